/* rows_split.h - how the loops over rows are shared among threads, and how short rows
 * become long ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_ROWS_SPLIT_H
#define DNN_BACKEND_CPU_ROWS_SPLIT_H

#include "backend/cpu/rows_impl.h"
#include "backend/cpu/rows_kernel.h"

#include <math.h>
#include <string.h>

/* Into how many parts to split work on that many elements.  It does not depend on
 * what the machine is doing: sums over parts always come out the same. */
static inline int rows_parts(int64_t elements, int threads)
{
    int64_t most = 1 + elements / 8192;

    return threads < most ? threads : (int)most;
}

/* Several rows of c taken as one of n, so that it is whole vectors: per row things are
 * repeated n / c times. */
static inline int64_t rows_long(int64_t c, int64_t least)
{
    int64_t n = c;

    if (c >= 64) return c;
    while (n % 16 != 0)
        n += n; /* c 16 at most */
    while (n < least)
        n += n;
    return n;
}

struct rows_fold {
    int64_t c, n; /* a row; a long one                        */
    int64_t rows; /* how many long ones there are             */
    int64_t left; /* floats of the one that is not full, or 0 */
};

static inline struct rows_fold rows_fold(int64_t rows, int64_t c, bool dense,
                                         int64_t least)
{
    struct rows_fold f = {.c = c, .n = c, .rows = rows};

    if (!dense) return f;
    f.n = rows_long(c, least);
    f.rows = rows / (f.n / c);
    f.left = rows * c - f.rows * f.n;
    return f;
}

static inline bool rows_dense(const struct cpu_array *a)
{
    return a->pitch == a->row;
}

/* The first c of n repeated. */
static inline void rows_repeat(float *v, int64_t c, int64_t n)
{
    for (int64_t i = c; i < n; i++)
        v[i] = v[i - c];
}

/* A ReLU the kernels do in the same go. */
static inline bool rows_is_relu(const struct dnn_op_unary *u)
{
    return u->fn == DNN_RELU && u->threshold == 0 && isinf(u->max_value);
}

static inline struct rows_relu rows_relu(const struct dnn_op_unary *post)
{
    struct rows_relu r = {0};

    if (post != NULL && rows_is_relu(post)) {
        r.on = true;
        r.alpha = (float)post->alpha;
    }
    return r;
}

/* A function without its memory. */
static inline struct rows_unary rows_unary(const struct dnn_op_unary *u)
{
    return (struct rows_unary){.fn = u->fn,
                               .alpha = (float)u->alpha,
                               .max_value = (float)u->max_value,
                               .threshold = (float)u->threshold,
                               .result = dnn_op_unary_by_result(u)};
}

/* y = post(y), in place. */
static inline void rows_post(const struct dnn_rows_isa *isa,
                             const struct dnn_op_unary *post, float *y, int64_t pitch,
                             int64_t rows, int64_t n)
{
    struct rows_unary u = rows_unary(post);

    u.rows = rows;
    u.n = n;
    u.x = u.y = y;
    u.x_pitch = u.y_pitch = pitch;
    isa->unary(&u);
}

/* The sums of all columns of a, factor times them.  bias.c */
void dnn_cpu_columns(const struct cpu_array *a, int threads, void *work, float factor,
                     float *out);
size_t dnn_cpu_columns_work(int64_t row, int threads);

/* Where a row's gaps do not matter: long rows of all elements. */
static inline struct rows_fold rows_flat(const struct cpu_array *a, bool dense)
{
    struct rows_fold f = {.c = a->row, .n = a->row, .rows = a->rows};

    if (!dense) return f;
    f.n = 1024;
    f.rows = a->count / f.n;
    f.left = a->count % f.n;
    return f;
}

/* Beyond so many bytes an output is better written past the caches: where as much is
 * read, and where little is. */
enum { ROWS_LARGE_COPY = 8 << 20, ROWS_LARGE_FILL = 32 << 20 };

/* Whether to write past the caches: y has more bytes than that, lies apart from the
 * input, and has whole lines.  rows.c */
bool dnn_rows_stream(const struct cpu_array *y, const struct cpu_array *x,
                     int64_t large);

/* Rows that stay in the innermost cache while several kernels go over them. */
static inline int64_t rows_chunk(int64_t n)
{
    return n >= 2048 ? 1 : 2048 / n;
}

enum { ROWS_LINE = 16 }; /* floats of a cache line: where shares begin */

/* A single number, of either type. */
static inline double rows_number(const struct cpu_array *a)
{
    return a->dtype == DNN_F64 ? *(const double *)a->mem
                               : (double)*(const float *)a->mem;
}

static inline void rows_put(const struct cpu_array *a, double v)
{
    if (a->dtype == DNN_F64)
        *(double *)a->mem = v;
    else
        *(float *)a->mem = (float)v;
}

/* A share of n floats side by side, cut between cache lines. */
static inline void rows_line_share(int64_t n, int parts, int p, int64_t *first,
                                   int64_t *last)
{
    dnn_cpu_share((n + ROWS_LINE - 1) / ROWS_LINE, parts, p, first, last);
    *first *= ROWS_LINE;
    *last = *last * ROWS_LINE < n ? *last * ROWS_LINE : n;
}

/* A double of each part, a cache line apart. */
static inline size_t rows_sums_bytes(int threads)
{
    return (size_t)threads * 8 * sizeof(double);
}

static inline double rows_add_up(const double *sums, int parts)
{
    double sum = 0;

    for (int p = 0; p < parts; p++)
        sum += sums[8 * p];
    return sum;
}

/* Operand i's memory, NULL if it is absent. */
static inline float *rows_in(const struct cpu_call *c, int i)
{
    return i < c->op->nin ? c->in[i].mem : NULL;
}

/* How many elements a step's operand has. */
static inline int64_t rows_count(const struct dnn_tensor *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->shape.ndim; i++)
        n *= t->shape.dim[i];
    return n;
}

static inline int64_t rows_row(const struct dnn_tensor *t)
{
    return t->shape.ndim == 0 ? 1 : t->shape.dim[t->shape.ndim - 1];
}

#endif
