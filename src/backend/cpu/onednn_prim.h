/* onednn_prim.h - a oneDNN primitive with its memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_ONEDNN_PRIM_H
#define DNN_BACKEND_CPU_ONEDNN_PRIM_H

#include "backend/cpu/onednn_impl.h"

#include <dnnl.h>

enum { CPU_PRIM_ARGS = 6 };

/* The plan of a primitive.  desc and plain are owned; free with dnn_cpu_plan_free(). */
struct cpu_plan {
    dnnl_primitive_desc_t desc;
    dnnl_memory_desc_t plain;        /* our plain layout of the weights           */
    const_dnnl_memory_desc_t native; /* the primitive's layout; owned by desc     */
    bool packed;                     /* the two differ                            */
    bool gradient;                   /* weights are the output                    */
    size_t pack;                     /* bytes of packed weights, 0 if not packed  */
    size_t scratch;                  /* bytes of scratch memory while it runs     */
};

/* Create engine and stream, unless they exist. */
int dnn_cpu_onednn_open(struct dnn_dev *dev, struct dnn_err *err);
/* Convert a dnnl_status_t to an error; what: the name of the operation that failed. */
int dnn_cpu_onednn_fail(dnnl_status_t status, const char *what, struct dnn_err *err);

/* Return that error if a call fails. */
#define CALL(call, what)                                                               \
    do {                                                                               \
        dnnl_status_t status_ = (call);                                                \
        if (status_ != dnnl_success) return dnn_cpu_onednn_fail(status_, what, err);   \
    } while (0)

/* A descriptor of an f32 array: extents, and strides (NULL: any layout). */
int dnn_cpu_memory_desc(int ndim, const int64_t *dim, const int64_t *stride,
                        dnnl_memory_desc_t *out, struct dnn_err *err);

/* Whether oneDNN can fuse an activation with the same definition as ours. */
bool dnn_cpu_onednn_post_can(const struct dnn_op_unary *post);
/* The attributes of a primitive: the fused activation (NULL: none), and that the caller
 * provides scratch memory. The caller destroys *out. */
int dnn_cpu_onednn_attr(const struct dnn_op_unary *post, dnnl_primitive_attr_t *out,
                        struct dnn_err *err);

/* Set the other members of a plan whose desc, plain and gradient are set. */
void dnn_cpu_plan_finish(struct cpu_plan *plan);
/* Whether it uses im2col. */
bool dnn_cpu_plan_uses_im2col(const struct cpu_plan *plan);
struct dnn_need dnn_cpu_plan_need(const struct cpu_plan *plan);
void dnn_cpu_plan_free(struct cpu_plan *plan);

/* An operand of the primitive: its argument number (DNNL_ARG_...) and memory. */
struct cpu_prim_arg {
    int arg;
    void *mem; /* NULL: absent */
};

/* Make the primitive.  args: weights first (DNNL_ARG_WEIGHTS or _DIFF_WEIGHTS), then
 * the others.  plan is not kept: the caller frees it. */
int dnn_cpu_prim_make(struct dnn_dev *dev, const struct cpu_plan *plan,
                      const struct cpu_prim_arg *args, int count,
                      const struct cpu_call *call, void **out, struct dnn_err *err);
/* The functions of a kernel (struct cpu_algo). */
int dnn_cpu_prim_run(struct dnn_dev *dev, const struct cpu_call *call, void *state,
                     struct dnn_err *err);
void dnn_cpu_prim_discard(void *state);
const struct cpu_packed *dnn_cpu_prim_packed(const void *state);
const char *dnn_cpu_prim_describe(const void *state);

#endif
