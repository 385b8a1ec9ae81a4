/* rows_softmax_kernel.h - softmax of rows of classes.
 *
 * Rows of 2, 4 or 8 classes side by side are whole vectors as they lie: what belongs
 * to a row is found by exchanging lanes.  Others are transposed, ROWS_BLOCK rows
 * at a time, so that a lane has a row of its own.
 *
 * Included by rows_plain.c and rows_avx2.c.
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

/* The larger one; b if a is not a number. */
INLINE vec larger(vec a, vec b)
{
    return v_select(a > b, a, b);
}

/* ---- rows as they lie; c is a constant wherever these are used ---- */

INLINE vec group_sum(vec v, const int c)
{
    if (c >= 2) v += SWAP1(v);
    if (c >= 4) v += SWAP2(v);
    if (c >= 8) v += SWAP4(v);
    return v;
}

INLINE vec group_most(vec v, const int c)
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
        vec x = v_load_some(k->x + i, left), v = x - group_most(x, c), e = v_exp(v);
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

/* ---- rows side by side ---- */

/* Class j of row r is at j ROWS_BLOCK + r; rows there are not are 0. */
INLINE void turn_in(float *to, const float *x, int64_t pitch, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++)
            to[j * ROWS_BLOCK + r] = x[r * pitch + j];
    for (int64_t r = rows; r < ROWS_BLOCK; r++)
        for (int64_t j = 0; j < n; j++)
            to[j * ROWS_BLOCK + r] = 0;
}

INLINE void turn_out(const float *from, float *y, int64_t pitch, int64_t rows,
                     int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++)
            y[r * pitch + j] = from[j * ROWS_BLOCK + r];
}

/* What is subtracted from a lane's numbers: the most of them. */
INLINE vec lane_most(const float *x, int64_t n)
{
    vec most = v_splat(-INFINITY);

    for (int64_t j = 0; j < n; j++)
        most = larger(v_load(x + j * ROWS_BLOCK), most);
    return most;
}

/* The sum of exp(x - most); the numbers take their place if e is given. */
INLINE vec lane_sum(const float *x, int64_t n, vec most, float *e)
{
    vec sum = {0};

    for (int64_t j = 0; j < n; j++) {
        vec v = v_exp(v_load(x + j * ROWS_BLOCK) - most);

        if (e != NULL) v_store(e + j * ROWS_BLOCK, v);
        sum += v;
    }
    return sum;
}

INLINE void lane_softmax(float *x, int64_t n, const bool log)
{
    vec most = lane_most(x, n), sum = lane_sum(x, n, most, log ? NULL : x);
    vec less = most, times = 1.0f / sum;

    if (log) sum = v_log(sum);
    for (int64_t j = 0; j < n; j++) {
        vec v = v_load(x + j * ROWS_BLOCK);

        v_store(x + j * ROWS_BLOCK, log ? (v - less) - sum : v * times);
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

/* The rows from r on: how many, and their numbers turned. */
INLINE int64_t few_of(const struct rows_classes *k, int64_t r, float *x, float *t)
{
    int64_t few = k->rows - r < ROWS_BLOCK ? k->rows - r : ROWS_BLOCK;

    turn_in(x, k->x + r * k->x_pitch, k->x_pitch, few, k->n);
    if (k->t != NULL) turn_in(t, k->t + r * k->t_pitch, k->t_pitch, few, k->n);
    return few;
}

/* ---- either ---- */

/* Classes of a row that fill vectors as they lie, or 0. */
INLINE int as_they_lie(const struct rows_classes *k)
{
    if (k->n != 2 && k->n != 4 && (k->n != 8 || LANES < 8)) return 0;
    if (k->x_pitch != k->n) return 0;
    if (k->t != NULL && k->t_pitch != k->n) return 0;
    return k->y == NULL || k->y_pitch == k->n ? (int)k->n : 0;
}

#define AS_THEY_LIE(k, function)                                                       \
    switch (as_they_lie(k)) {                                                          \
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
    AS_THEY_LIE(k, group_softmax)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        int64_t few = few_of(k, r, k->scratch, NULL);

        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            lane_softmax(k->scratch + v, k->n, k->log);
        turn_out(k->scratch, k->y + r * k->y_pitch, k->y_pitch, few, k->n);
    }
}

static TARGET void softmax_data(const struct rows_classes *k)
{
    float *y = k->scratch, *d = y + ROWS_BLOCK * k->n;

    AS_THEY_LIE(k, group_softmax_data)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        int64_t few = few_of(k, r, y, d);

        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            lane_softmax_data(y + v, d + v, k->n, k->log);
        turn_out(d, k->y + r * k->y_pitch, k->y_pitch, few, k->n);
    }
}
