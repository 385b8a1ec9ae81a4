/* ref_impl.h - what the files of the ref backend share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_REF_REF_IMPL_H
#define DNN_BACKEND_REF_REF_IMPL_H

#include "backend/backend.h"

#include <assert.h>

struct ref_array {
    void *mem; /* NULL: the operand is absent */
    enum dnn_dtype dtype;
    int64_t count;
    int64_t row, gap; /* elements of the last axis, and between two rows in memory */
    struct dnn_shape shape;
};

/* A kernel about to run. */
struct ref_call {
    const struct dnn_op *op;
    struct ref_array *in; /* owned, op->nin of them */
    struct ref_array out[DNN_MAX_OUT];
    double *work; /* as much as need() said */
    struct dnn_now now;
};

typedef void ref_fn(const struct ref_call *c);
/* How many doubles of workspace. */
typedef int64_t ref_work(const struct dnn_step *step);

/* Every element is read as a double and computed with as one; it is rounded to its
 * type when it is written. */
static inline int64_t where(const struct ref_array *a, int64_t i)
{
    return a->gap == 0 ? i : i + i / a->row * a->gap;
}

static inline double get(const struct ref_array *a, int64_t i)
{
    i = where(a, i);
    switch (a->dtype) {
    case DNN_F32:
        return ((const float *)a->mem)[i];
    case DNN_F64:
        return ((const double *)a->mem)[i];
    case DNN_U8:
        return ((const uint8_t *)a->mem)[i];
    case DNN_U16:
        return ((const uint16_t *)a->mem)[i];
    default:
        assert(a->dtype == DNN_I32);
        return ((const int32_t *)a->mem)[i];
    }
}

static inline void set(const struct ref_array *a, int64_t i, double v)
{
    i = where(a, i);
    switch (a->dtype) {
    case DNN_F32:
        ((float *)a->mem)[i] = (float)v;
        break;
    case DNN_F64:
        ((double *)a->mem)[i] = v;
        break;
    case DNN_U8:
        ((uint8_t *)a->mem)[i] = (uint8_t)v;
        break;
    case DNN_U16:
        ((uint16_t *)a->mem)[i] = (uint16_t)v;
        break;
    default:
        assert(a->dtype == DNN_I32);
        ((int32_t *)a->mem)[i] = (int32_t)v;
        break;
    }
}

/* How a smaller array is walked along with a bigger one: for each axis of the
 * bigger, how far to go in the smaller (0: stay, it is broadcast there). */
struct ref_map {
    struct dnn_shape big;
    int64_t step[DNN_MAX_DIMS];
};

/* small broadcasts to big, aligned at the last axis. */
struct ref_map dnn_ref_broadcast(const struct dnn_shape *big,
                                 const struct dnn_shape *small);
/* The smaller one has big's axes but for those in the set. */
struct ref_map dnn_ref_without(const struct dnn_shape *big, unsigned axes);
/* The place in the smaller of element i of the bigger. */
int64_t dnn_ref_at(const struct ref_map *map, int64_t i);

static inline void clear(double *work, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        work[i] = 0;
}

static inline void store(const struct ref_array *a, const double *from)
{
    for (int64_t i = 0; i < a->count; i++)
        set(a, i, from[i]);
}

/* x seen around one axis: (outer, n, inner). */
struct ref_axis {
    int64_t outer, n, inner;
};
struct ref_axis dnn_ref_axis(const struct dnn_shape *shape, int axis);

int64_t dnn_ref_count(const struct dnn_tensor *tensor); /* 0 if it is NULL */

/* Operand i, absent if the op has fewer. */
static inline const struct ref_array *dnn_ref_in(const struct ref_call *c, int i)
{
    static const struct ref_array absent = {0};

    return i < c->op->nin ? &c->in[i] : &absent;
}

/* The function the op does in the same go (op->post), and its slope, at x. */
double dnn_ref_post(const struct ref_call *c, double x);
double dnn_ref_post_slope(const struct ref_call *c, double x);
/* Sums of dy over all axes but the last; nothing if db is absent. */
void dnn_ref_bias_sum(const struct ref_array *dy, const struct ref_array *db);

ref_fn dnn_ref_matmul, dnn_ref_matmul_data, dnn_ref_matmul_weights;
ref_fn dnn_ref_bias, dnn_ref_bias_weights;
ref_fn dnn_ref_conv, dnn_ref_conv_data, dnn_ref_conv_weights;
ref_fn dnn_ref_deconv, dnn_ref_deconv_data, dnn_ref_deconv_weights;
ref_fn dnn_ref_pool, dnn_ref_pool_data;
ref_fn dnn_ref_upsample, dnn_ref_upsample_data;
ref_fn dnn_ref_pad, dnn_ref_pad_data;
ref_fn dnn_ref_unary, dnn_ref_unary_data;
ref_fn dnn_ref_prelu, dnn_ref_prelu_data, dnn_ref_prelu_weights;
ref_fn dnn_ref_softmax, dnn_ref_softmax_data;
ref_fn dnn_ref_combine, dnn_ref_combine_data;
ref_fn dnn_ref_concat, dnn_ref_concat_data;
ref_fn dnn_ref_reshape, dnn_ref_transpose;
ref_fn dnn_ref_reduce, dnn_ref_reduce_data;
ref_fn dnn_ref_bn_stats, dnn_ref_bn_update;
ref_fn dnn_ref_bn_apply, dnn_ref_bn_apply_data, dnn_ref_bn_apply_weights,
    dnn_ref_bn_apply_stats;
ref_fn dnn_ref_bn_infer, dnn_ref_bn_infer_data, dnn_ref_bn_infer_weights;
ref_fn dnn_ref_groupnorm, dnn_ref_groupnorm_data, dnn_ref_groupnorm_weights;
ref_fn dnn_ref_noise, dnn_ref_noise_data;
ref_fn dnn_ref_scale, dnn_ref_scale_data;
ref_fn dnn_ref_activity, dnn_ref_activity_data;
ref_fn dnn_ref_mse, dnn_ref_mse_data;
ref_fn dnn_ref_xent, dnn_ref_xent_data;
ref_fn dnn_ref_point, dnn_ref_point_data;
ref_fn dnn_ref_margin, dnn_ref_margin_data;
ref_fn dnn_ref_weigh;
ref_fn dnn_ref_overlap, dnn_ref_overlap_data;
ref_fn dnn_ref_ratio, dnn_ref_ratio_data;
ref_fn dnn_ref_lovasz, dnn_ref_lovasz_data;
ref_fn dnn_ref_fold, dnn_ref_penalty, dnn_ref_update;

ref_work dnn_ref_work_outputs; /* one double per element of each output      */
ref_work dnn_ref_work_reduce;  /* two per element of the smaller side        */
ref_work dnn_ref_work_stats;   /* group norm: a few per statistic            */
ref_work dnn_ref_work_lovasz;  /* a few per place of a sample               */
ref_work dnn_ref_work_update;  /* one per norm that is constrained           */

#endif
