/* loss_impl.h - shared by the losses of the cpu backend.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_LOSS_IMPL_H
#define DNN_BACKEND_CPU_LOSS_IMPL_H

#include "backend/cpu/rows_split.h"

/* Input number of x; the next one is its target. */
static inline int loss_x(const struct dnn_op *op)
{
    return op->pass == DNN_FWD ? 0 : 1;
}

/* Whether targets are labels, one per row, instead of one value per class. */
static inline bool loss_labels(const struct dnn_tensor *x, const struct dnn_tensor *t)
{
    return t->shape.ndim < x->shape.ndim;
}

static inline bool loss_can(const struct dnn_step *step)
{
    const struct dnn_tensor *x = step->in[loss_x(step->op)];
    const struct dnn_tensor *t = step->in[loss_x(step->op) + 1];

    return t->dtype == (loss_labels(x, t) ? DNN_I32 : DNN_F32) &&
           rows_row(x) <= INT32_MAX;
}

/* Floats of scratch memory in which the kernels transpose rows. */
static inline int64_t loss_scratch(int64_t classes)
{
    return 2 * ROWS_BLOCK * classes;
}

/* Rows first ... last - 1 of x and its targets, and of y unless y is NULL. */
static inline struct rows_loss loss_rows(const struct cpu_array *x,
                                         const struct cpu_array *t,
                                         const struct cpu_array *y, int64_t first,
                                         int64_t last)
{
    struct rows_loss k = {.rows = last - first,
                          .n = x->row,
                          .x_pitch = x->pitch,
                          .t_pitch = t->pitch,
                          .ignore = -1,
                          .on = 1};

    k.x = (const float *)x->mem + first * x->pitch;
    if (t->shape.ndim < x->shape.ndim)
        k.labels = (const int32_t *)t->mem + first;
    else
        k.t = (const float *)t->mem + first * t->pitch;
    if (y != NULL) {
        k.y = (float *)y->mem + first * y->pitch;
        k.y_pitch = y->pitch;
    }
    return k;
}

#endif
