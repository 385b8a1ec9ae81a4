/* rows_softmax_kernel.h - softmax of rows of classes.
 *
 * Contiguous rows of 2, 4 or 8 classes are whole vectors: sums over a row are shuffles
 * of lanes. Other rows are transposed, ROWS_BLOCK at a time, so that each lane has its
 * own row.
 *
 * Included by rows_isa.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_kernel.h"
#include "backend/cpu/vmath_impl.h"

#if LANES == 8
#define SWAP1(v) __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6)
#define SWAP2(v) __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5)
#define SWAP4(v) __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3)
#define LANE_NUMBERS ((ivec){0, 1, 2, 3, 4, 5, 6, 7})
#else
#define SWAP1(v) __builtin_shufflevector(v, v, 1, 0, 3, 2)
#define SWAP2(v) __builtin_shufflevector(v, v, 2, 3, 0, 1)
#define SWAP4(v) (v)
#define LANE_NUMBERS ((ivec){0, 1, 2, 3})
#endif

/* The larger one; b if a is NaN. */
INLINE vec larger(vec a, vec b)
{
    return v_select(a > b, a, b);
}

/* ---- groups: contiguous rows of c lanes; c is a constant in every call ---- */

INLINE vec group_sum(vec v, const int c)
{
    if (c >= 2) v += SWAP1(v);
    if (c >= 4) v += SWAP2(v);
    if (c >= 8) v += SWAP4(v);
    return v;
}

INLINE vec group_max(vec v, const int c)
{
    v = v_select(v == v, v, v_splat(-INFINITY));
    if (c >= 2) v = larger(v, SWAP1(v));
    if (c >= 4) v = larger(v, SWAP2(v));
    if (c >= 8) v = larger(v, SWAP4(v));
    return v;
}

INLINE void group_softmax(const struct rows_classes *k, const int c)
{
    int64_t n = k->rows * c;

    for (int64_t i = 0; i < n; i += LANES) {
        int64_t left = n - i < LANES ? n - i : 0;
        vec x = v_load_some(k->x + i, left), v = x - group_max(x, c), e = v_exp(v);
        vec sum = group_sum(e, c);

        v_store_some(k->y + i, k->log ? v - v_log(sum) : e / sum, left);
    }
}

INLINE void group_softmax_data(const struct rows_classes *k, const int c)
{
    int64_t n = k->rows * c;

    for (int64_t i = 0; i < n; i += LANES) {
        int64_t left = n - i < LANES ? n - i : 0;
        vec y = v_load_some(k->x + i, left), d = v_load_some(k->t + i, left);

        if (k->log)
            d -= v_exp(y) * group_sum(d, c);
        else
            d = y * (d - group_sum(d * y, c));
        v_store_some(k->y + i, d, left);
    }
}

/* ---- lanes: transposed rows ---- */

/* Transpose: class j of row r is at j * ROWS_BLOCK + r; missing rows are 0. */
INLINE void transpose_in(float *to, const float *x, int64_t pitch, int64_t rows,
                         int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++)
            to[j * ROWS_BLOCK + r] = x[r * pitch + j];
    for (int64_t r = rows; r < ROWS_BLOCK; r++)
        for (int64_t j = 0; j < n; j++)
            to[j * ROWS_BLOCK + r] = 0;
}

INLINE void transpose_out(const float *from, float *y, int64_t pitch, int64_t rows,
                          int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++)
            y[r * pitch + j] = from[j * ROWS_BLOCK + r];
}

/* The maximum of each lane's values, which is subtracted from them. */
INLINE vec lane_max(const float *x, int64_t n)
{
    vec max = v_splat(-INFINITY);

    for (int64_t j = 0; j < n; j++)
        max = larger(v_load(x + j * ROWS_BLOCK), max);
    return max;
}

/* The sum of exp(x - max); the terms are stored in e, unless e is NULL. */
INLINE vec lane_sum(const float *x, int64_t n, vec max, float *e)
{
    vec sum = {0};

    for (int64_t j = 0; j < n; j++) {
        vec v = v_exp(v_load(x + j * ROWS_BLOCK) - max);

        if (e != NULL) v_store(e + j * ROWS_BLOCK, v);
        sum += v;
    }
    return sum;
}

INLINE void lane_softmax(float *x, int64_t n, const bool log)
{
    vec max = lane_max(x, n), sum = lane_sum(x, n, max, log ? NULL : x);
    vec shift = max, inv = 1.0f / sum;

    if (log) sum = v_log(sum);
    for (int64_t j = 0; j < n; j++) {
        vec v = v_load(x + j * ROWS_BLOCK);

        v_store(x + j * ROWS_BLOCK, log ? (v - shift) - sum : v * inv);
    }
}

INLINE void lane_softmax_data(const float *y, float *d, int64_t n, const bool log)
{
    vec sum = {0};

    for (int64_t j = 0; j < n; j++) {
        vec v = v_load(d + j * ROWS_BLOCK);

        if (!log) v *= v_load(y + j * ROWS_BLOCK);
        sum += v;
    }
    for (int64_t j = 0; j < n; j++) {
        vec v = v_load(d + j * ROWS_BLOCK), one = v_load(y + j * ROWS_BLOCK);

        v_store(d + j * ROWS_BLOCK, log ? v - v_exp(one) * sum : one * (v - sum));
    }
}

/* Transpose up to ROWS_BLOCK rows from r on; returns their number. */
INLINE int64_t transpose_classes(const struct rows_classes *k, int64_t r, float *x,
                                 float *t)
{
    int64_t rows = k->rows - r < ROWS_BLOCK ? k->rows - r : ROWS_BLOCK;

    transpose_in(x, k->x + r * k->x_pitch, k->x_pitch, rows, k->n);
    if (k->t != NULL) transpose_in(t, k->t + r * k->t_pitch, k->t_pitch, rows, k->n);
    return rows;
}

/* ---- both ---- */

/* The number of classes, if rows are contiguous and fill vectors, else 0. */
INLINE int group_size(const struct rows_classes *k)
{
    if (k->n != 2 && k->n != 4 && (k->n != 8 || LANES < 8)) return 0;
    if (k->x_pitch != k->n) return 0;
    if (k->t != NULL && k->t_pitch != k->n) return 0;
    return k->y == NULL || k->y_pitch == k->n ? (int)k->n : 0;
}

#define RUN_GROUPS(k, function)                                                        \
    switch (group_size(k)) {                                                           \
    case 2:                                                                            \
        function(k, 2);                                                                \
        return;                                                                        \
    case 4:                                                                            \
        function(k, 4);                                                                \
        return;                                                                        \
    case 8:                                                                            \
        function(k, 8);                                                                \
        return;                                                                        \
    }

static TARGET void softmax(const struct rows_classes *k)
{
    RUN_GROUPS(k, group_softmax)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        int64_t rows = transpose_classes(k, r, k->scratch, NULL);

        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            lane_softmax(k->scratch + v, k->n, k->log);
        transpose_out(k->scratch, k->y + r * k->y_pitch, k->y_pitch, rows, k->n);
    }
}

static TARGET void softmax_data(const struct rows_classes *k)
{
    float *y = k->scratch, *d = y + ROWS_BLOCK * k->n;

    RUN_GROUPS(k, group_softmax_data)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        int64_t rows = transpose_classes(k, r, y, d);

        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            lane_softmax_data(y + v, d + v, k->n, k->log);
        transpose_out(d, k->y + r * k->y_pitch, k->y_pitch, rows, k->n);
    }
}
