/* rows_norm_kernel.h - batch norm over a box of rows, and sums of columns.
 *
 * Included by rows_plain.c and rows_avx2.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_kernel.h"
#include "backend/cpu/vmath_impl.h"

enum { RELU_NONE, RELU_ZERO, RELU_LEAKY };

INLINE int relu_kind(struct rows_relu relu)
{
    return !relu.on ? RELU_NONE : relu.alpha == 0 ? RELU_ZERO : RELU_LEAKY;
}

/* kind is a constant in every call. */
INLINE vec relu_value(vec v, const int kind, float alpha)
{
    if (kind == RELU_ZERO) return (vec)((ivec)v & ~(v < 0.0f));
    if (kind == RELU_LEAKY) return v_select(v < 0.0f, v * alpha, v);
    return v;
}

INLINE vec relu_slope(vec v, vec dy, const int kind, float alpha)
{
    if (kind == RELU_ZERO) return v_where(v > 0.0f, dy);
    if (kind == RELU_LEAKY) return v_select(v > 0.0f, dy, dy * alpha);
    return dy;
}

enum { ROW_STEP = 16 }; /* rows computed before the next columns */

/* ---- the result ---- */

INLINE vec norm_value(vec x, vec mean, vec scale, vec shift)
{
    return (x - mean) * scale + shift;
}

enum { LINE = 16 / LANES }; /* vectors of a cache line */

/* vecs vectors of every row: the coefficients of the columns stay in registers. */
INLINE void apply_column(const struct rows_norm *b, int64_t j, int64_t left,
                         const int vecs, const int kind, const bool stream)
{
    vec mean[LINE], scale[LINE], shift[LINE];
    int64_t rows = b->rows, x_pitch = b->x_pitch, y_pitch = b->y_pitch;
    const float *x = b->x + j;
    float *y = b->y + j, alpha = b->relu.alpha;

#pragma GCC unroll 4
    for (int v = 0; v < vecs; v++) {
        mean[v] = v_load_some(b->mean + j + v * LANES, left);
        scale[v] = v_load_some(b->scale + j + v * LANES, left);
        shift[v] = v_load_some(b->shift + j + v * LANES, left);
    }
    for (int64_t r = 0; r < rows; r++, x += x_pitch, y += y_pitch) {
#pragma GCC unroll 4
        for (int v = 0; v < vecs; v++) {
            vec value = norm_value(v_load_some(x + v * LANES, left), mean[v], scale[v],
                                   shift[v]);

            value = relu_value(value, kind, alpha);
            if (stream)
                v_stream(y + v * LANES, value);
            else
                v_store_some(y + v * LANES, value, left);
        }
    }
}

INLINE void apply_rows(const struct rows_norm *given, const int kind, const bool stream)
{
    const struct rows_norm b = *given; /* a copy: stores to y cannot alias it */

    for (int64_t r = 0; r < b.rows; r += ROW_STEP) {
        struct rows_norm part = b;
        int64_t j = 0;

        part.rows = b.rows - r < ROW_STEP ? b.rows - r : ROW_STEP;
        part.x += r * b.x_pitch;
        part.y += r * b.y_pitch;
        for (; j + LINE * LANES <= b.n; j += LINE * LANES)
            apply_column(&part, j, 0, LINE, kind, stream);
        for (; j + LANES <= b.n; j += LANES)
            apply_column(&part, j, 0, 1, kind, false);
        if (j < b.n) apply_column(&part, j, b.n - j, 1, kind, false);
    }
    if (stream) v_fence();
}

INLINE void apply_to(const struct rows_norm *b, const int kind)
{
    if (b->stream)
        apply_rows(b, kind, true);
    else
        apply_rows(b, kind, false);
}

static TARGET void norm_apply(const struct rows_norm *b)
{
    switch (relu_kind(b->relu)) {
    case RELU_NONE:
        apply_to(b, RELU_NONE);
        break;
    case RELU_ZERO:
        apply_to(b, RELU_ZERO);
        break;
    default:
        apply_to(b, RELU_LEAKY);
        break;
    }
}

/* ---- sums, in double ---- */

/* The values to sum are *one and *one * *other: x and x^2; slope: dy' and dy' (x -
 * mean), where dy' is the gradient before the ReLU. */
INLINE void summands(const struct rows_norm *b, int64_t r, int64_t j, int64_t left,
                     const bool slope, const int kind, vec *one, vec *other)
{
    vec x = v_load_some(b->x + r * b->x_pitch + j, left);

    if (!slope) {
        *one = *other = x;
        return;
    }
    vec dy = v_load_some(b->dy + r * b->dy_pitch + j, left);
    vec mean = v_load_some(b->mean + j, left);
    *other = x - mean;
    if (kind != RELU_NONE) {
        vec scale = v_load_some(b->scale + j, left);
        vec shift = v_load_some(b->shift + j, left);
        dy = relu_slope(norm_value(x, mean, scale, shift), dy, kind, b->relu.alpha);
    }
    *one = dy;
}

/* vecs vectors from column j on, rows first ... last - 1. Sums of x and x^2 are in
 * double, because their difference is used; those of dy are in float for a few rows. */
INLINE void sum_columns(const struct rows_norm *b, int64_t first, int64_t last,
                        int64_t j, const int vecs, const bool slope, const int kind,
                        const bool both)
{
    dvec sum[4], sum2[4];
    dvec *s = (dvec *)(b->sum + j), *m = (dvec *)(b->sum2 + (both ? j : 0));

#pragma GCC unroll 4
    for (int i = 0; i < 2 * vecs; i++) {
        sum[i] = s[i];
        if (both) sum2[i] = m[i];
    }
    for (int64_t r = first; r < last;) {
        int64_t end = slope && last - r > ROW_STEP ? r + ROW_STEP : last;
        vec part[2] = {{0}}, product[2] = {{0}};

        for (; r < end; r++) {
#pragma GCC unroll 2
            for (int v = 0; v < vecs; v++) {
                vec one, other;

                summands(b, r, j + v * LANES, 0, slope, kind, &one, &other);
                if (slope) {
                    part[v] += one;
                    product[v] += one * other;
                    continue;
                }
                sum[2 * v] += v_low(one);
                sum[2 * v + 1] += v_high(one);
                if (!both) continue;
                sum2[2 * v] += v_low(one) * v_low(one);
                sum2[2 * v + 1] += v_high(one) * v_high(one);
            }
        }
#pragma GCC unroll 2
        for (int v = 0; slope && v < vecs; v++) {
            sum[2 * v] += v_low(part[v]);
            sum[2 * v + 1] += v_high(part[v]);
            sum2[2 * v] += v_low(product[v]);
            sum2[2 * v + 1] += v_high(product[v]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 2 * vecs; i++) {
        s[i] = sum[i];
        if (both) m[i] = sum2[i];
    }
}

INLINE void sum_rest(const struct rows_norm *b, int64_t first, int64_t last, int64_t j,
                     const bool slope, const int kind, const bool both)
{
    int64_t left = b->n - j;

    for (int64_t r = first; r < last; r++) {
        vec one, other;

        summands(b, r, j, left, slope, kind, &one, &other);
        for (int64_t i = 0; i < left; i++) {
            b->sum[j + i] += one[i];
            if (both) b->sum2[j + i] += (double)one[i] * other[i];
        }
    }
}

INLINE void sum_rows(const struct rows_norm *b, const bool slope, const int kind,
                     const bool both)
{
    int64_t step = b->n <= 2 * LANES ? b->rows : ROW_STEP;

    for (int64_t r = 0; r < b->rows; r += step) {
        int64_t end = r + step < b->rows ? r + step : b->rows, j = 0;

        for (; j + 2 * LANES <= b->n; j += 2 * LANES)
            sum_columns(b, r, end, j, 2, slope, kind, both);
        for (; j + LANES <= b->n; j += LANES)
            sum_columns(b, r, end, j, 1, slope, kind, both);
        if (j < b->n) sum_rest(b, r, end, j, slope, kind, both);
    }
}

static TARGET void norm_stats(const struct rows_norm *b)
{
    if (b->sum2 == NULL)
        sum_rows(b, false, RELU_NONE, false);
    else
        sum_rows(b, false, RELU_NONE, true);
}

static TARGET void norm_dstats(const struct rows_norm *b)
{
    switch (relu_kind(b->relu)) {
    case RELU_NONE:
        sum_rows(b, true, RELU_NONE, true);
        break;
    case RELU_ZERO:
        sum_rows(b, true, RELU_ZERO, true);
        break;
    default:
        sum_rows(b, true, RELU_LEAKY, true);
        break;
    }
}

/* ---- the gradient ---- */

INLINE void data_column(const struct rows_norm *b, int64_t j, int64_t left,
                        const int kind)
{
    vec mean = v_load_some(b->mean + j, left), scale = v_load_some(b->scale + j, left);
    vec shift = v_load_some(b->shift + j, left), rest = v_load_some(b->rest + j, left);
    vec slope = v_load_some(b->slope + j, left);
    int64_t rows = b->rows, xp = b->x_pitch, dyp = b->dy_pitch, yp = b->y_pitch;
    const float *x = b->x + j, *dy = b->dy + j;
    float *dx = b->y + j, alpha = b->relu.alpha;

    for (int64_t r = 0; r < rows; r++, x += xp, dy += dyp, dx += yp) {
        vec xv = v_load_some(x, left);
        vec d = relu_slope(norm_value(xv, mean, scale, shift), v_load_some(dy, left),
                           kind, alpha);

        v_store_some(dx, d * scale + ((xv - mean) * slope + rest), left);
    }
}

INLINE void data_rows(const struct rows_norm *given, const int kind)
{
    const struct rows_norm b = *given;
    /* With three arrays it is faster to read long rows from start to end. */
    int64_t step = b.n >= 64 ? 1 : ROW_STEP;

    for (int64_t r = 0; r < b.rows; r += step) {
        struct rows_norm part = b;
        int64_t j = 0;

        part.rows = b.rows - r < step ? b.rows - r : step;
        part.x += r * b.x_pitch;
        part.dy += r * b.dy_pitch;
        part.y += r * b.y_pitch;
        for (; j + LANES <= b.n; j += LANES)
            data_column(&part, j, 0, kind);
        if (j < b.n) data_column(&part, j, b.n - j, kind);
    }
}

static TARGET void norm_data(const struct rows_norm *b)
{
    switch (relu_kind(b->relu)) {
    case RELU_NONE:
        data_rows(b, RELU_NONE);
        break;
    case RELU_ZERO:
        data_rows(b, RELU_ZERO);
        break;
    default:
        data_rows(b, RELU_LEAKY);
        break;
    }
}
