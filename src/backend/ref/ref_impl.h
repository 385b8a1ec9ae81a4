/* ref_impl.h - shared by the files of the ref backend.
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
    int64_t row, gap; /* elements per row (last axis), and between two rows in memory */
    struct dnn_shape shape;
};

/* A kernel about to run. */
struct ref_call {
    const struct dnn_op *op;
    struct ref_array *in; /* owned, op->nin of them */
    struct ref_array out[DNN_MAX_OUT];
    double *work; /* as many bytes as need() returned */
    struct dnn_now now;
};

typedef void ref_fn(const struct ref_call *c);
/* Doubles of workspace a step needs. */
typedef int64_t ref_work(const struct dnn_step *step);

/* Elements are read and computed as doubles, and rounded to their type when written.
 * offset_of() is where element i is in memory. */
static inline int64_t offset_of(const struct ref_array *a, int64_t i)
{
    return a->gap == 0 ? i : i + i / a->row * a->gap;
}

static inline double get(const struct ref_array *a, int64_t i)
{
    i = offset_of(a, i);
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
    i = offset_of(a, i);
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

/* Maps elements of a big array to those of a small one: for each axis of the big array
 * the step in the small one (0: broadcast). */
struct ref_map {
    struct dnn_shape big;
    int64_t step[DNN_MAX_DIMS];
};

/* For small broadcast to big, aligned at the last axis. */
struct ref_map dnn_ref_broadcast(const struct dnn_shape *big,
                                 const struct dnn_shape *small);
/* For a small array that has big's axes except those in the bit set axes. */
struct ref_map dnn_ref_without(const struct dnn_shape *big, unsigned axes);
/* The index in the small array of element i of the big one. */
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

/* A shape as (outer, n, inner) around one axis of extent n. */
struct ref_axis {
    int64_t outer, n, inner;
};
struct ref_axis dnn_ref_axis(const struct dnn_shape *shape, int axis);

int64_t dnn_ref_count(const struct dnn_tensor *tensor); /* 0 if it is NULL */

/* Input i; an absent one if the op has fewer. */
static inline const struct ref_array *dnn_ref_in(const struct ref_call *c, int i)
{
    static const struct ref_array absent = {0};

    return i < c->op->nin ? &c->in[i] : &absent;
}

/* The fused activation (op->post), and its slope, at x. */
double dnn_ref_post(const struct ref_call *c, double x);
double dnn_ref_post_slope(const struct ref_call *c, double x);
/* db = sums of dy over all axes but the last; does nothing if db is absent. */
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

ref_work dnn_ref_work_outputs; /* one double per element of each output    */
ref_work dnn_ref_work_reduce;  /* one per element of the reduced array     */
ref_work dnn_ref_work_stats;   /* group norm: two per statistic            */
ref_work dnn_ref_work_lovasz;  /* four per position of a sample            */
ref_work dnn_ref_work_update;  /* one per norm that is constrained         */

#endif
