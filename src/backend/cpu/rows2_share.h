/* rows2_share.h - what the algos around rows2_kernel.h share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_ROWS2_SHARE_H
#define DNN_BACKEND_CPU_ROWS2_SHARE_H

#include "backend/cpu/rows2_kernel.h"
#include "backend/cpu/rows_impl.h"
#include "backend/cpu/rows_share.h"

enum { ROWS2_LINE = 16 }; /* floats of a cache line: where shares begin */

/* A single number, of either type. */
static inline double rows2_number(const struct cpu_array *a)
{
    return a->dtype == DNN_F64 ? *(const double *)a->mem
                               : (double)*(const float *)a->mem;
}

static inline void rows2_put(const struct cpu_array *a, double v)
{
    if (a->dtype == DNN_F64)
        *(double *)a->mem = v;
    else
        *(float *)a->mem = (float)v;
}

/* A share of n floats side by side, cut between cache lines. */
static inline void rows2_line_share(int64_t n, int parts, int p, int64_t *first,
                                    int64_t *last)
{
    dnn_cpu_share((n + ROWS2_LINE - 1) / ROWS2_LINE, parts, p, first, last);
    *first *= ROWS2_LINE;
    *last = *last * ROWS2_LINE < n ? *last * ROWS2_LINE : n;
}

/* A double of each part, a cache line apart. */
static inline size_t rows2_sums_bytes(int threads)
{
    return (size_t)threads * 8 * sizeof(double);
}

static inline double rows2_add_up(const double *sums, int parts)
{
    double sum = 0;

    for (int p = 0; p < parts; p++)
        sum += sums[8 * p];
    return sum;
}

/* Operand i's memory, NULL if it is absent. */
static inline float *rows2_in(const struct cpu_call *c, int i)
{
    return i < c->op->nin ? c->in[i].mem : NULL;
}

/* How many elements a step's operand has. */
static inline int64_t rows2_count(const struct dnn_tensor *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->shape.ndim; i++)
        n *= t->shape.dim[i];
    return n;
}

static inline int64_t rows2_row(const struct dnn_tensor *t)
{
    return t->shape.ndim == 0 ? 1 : t->shape.dim[t->shape.ndim - 1];
}

#endif
