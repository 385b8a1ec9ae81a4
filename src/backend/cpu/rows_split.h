/* rows_split.h - how loops over rows are split among threads, and how short rows are
 * joined to long ones.
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

/* The number of parts that work on so many elements is split into. It depends only on
 * the arguments, so that sums over parts are reproducible. */
static inline int rows_parts(int64_t elements, int threads)
{
    int64_t max = 1 + elements / 8192;

    return threads < max ? threads : (int)max;
}

/* Contiguous rows of c floats are joined to long rows of n, whole vectors; values per
 * column are repeated n / c times. Returns n, which is at least min. */
static inline int64_t rows_long(int64_t c, int64_t min)
{
    int64_t n = c;

    if (c >= 64) return c;
    while (n % 16 != 0)
        n += n; /* at most 16 c */
    while (n < min)
        n += n;
    return n;
}

struct rows_fold {
    int64_t c, n; /* floats of a row, of a long row           */
    int64_t rows; /* number of complete long rows             */
    int64_t left; /* floats of the incomplete long row, or 0  */
};

static inline struct rows_fold rows_fold(int64_t rows, int64_t c, bool dense,
                                         int64_t min)
{
    struct rows_fold f = {.c = c, .n = c, .rows = rows};

    if (!dense) return f;
    f.n = rows_long(c, min);
    f.rows = rows / (f.n / c);
    f.left = rows * c - f.rows * f.n;
    return f;
}

static inline bool rows_dense(const struct cpu_array *a)
{
    return a->pitch == a->row;
}

/* Repeat the first c values up to n. */
static inline void rows_repeat(float *v, int64_t c, int64_t n)
{
    for (int64_t i = c; i < n; i++)
        v[i] = v[i - c];
}

/* Whether it is a ReLU that the kernels can fuse. */
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

/* A function, without its arrays. */
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

/* The sums of all columns of a, times factor.  bias.c */
void dnn_cpu_columns(const struct cpu_array *a, int threads, void *work, float factor,
                     float *out);
size_t dnn_cpu_columns_work(int64_t row, int threads);

/* For element-wise functions: if dense, long rows that ignore the ends of rows. */
static inline struct rows_fold rows_flat(const struct cpu_array *a, bool dense)
{
    struct rows_fold f = {.c = a->row, .n = a->row, .rows = a->rows};

    if (!dense) return f;
    f.n = 1024;
    f.rows = a->count / f.n;
    f.left = a->count % f.n;
    return f;
}

/* Larger outputs (bytes) use non-temporal stores, if as much is read, and if little is
 * read. */
enum { ROWS_LARGE_COPY = 8 << 20, ROWS_LARGE_FILL = 32 << 20 };

/* Whether to use non-temporal stores: y has more than `large` bytes, is not the input,
 * and has whole cache lines. rows.c */
bool dnn_rows_stream(const struct cpu_array *y, const struct cpu_array *x,
                     int64_t large);

/* Number of rows that stay in the L1 cache while several kernels process them. */
static inline int64_t rows_chunk(int64_t n)
{
    return n >= 2048 ? 1 : 2048 / n;
}

enum { ROWS_LINE = 16 }; /* floats of a cache line */

/* A scalar of either type. */
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

/* Part p of n contiguous floats, split at cache lines. */
static inline void rows_line_share(int64_t n, int parts, int p, int64_t *first,
                                   int64_t *last)
{
    dnn_cpu_share((n + ROWS_LINE - 1) / ROWS_LINE, parts, p, first, last);
    *first *= ROWS_LINE;
    *last = *last * ROWS_LINE < n ? *last * ROWS_LINE : n;
}

/* One double per part, each in its own cache line. */
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

/* The memory of input i; NULL: absent. */
static inline float *rows_in(const struct cpu_call *c, int i)
{
    return i < c->op->nin ? c->in[i].mem : NULL;
}

/* Number of elements. */
static inline int64_t rows_count(const struct dnn_tensor *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->shape.ndim; i++)
        n *= t->shape.dim[i];
    return n;
}

/* Extent of the last axis; scalar: 1. */
static inline int64_t rows_row(const struct dnn_tensor *t)
{
    return t->shape.ndim == 0 ? 1 : t->shape.dim[t->shape.ndim - 1];
}

#endif
