/* wino_weights_kernel.h - transforms and products of the Winograd gradient of the
 * weights, for one instruction set.
 *
 * Included once by each of wino_weights_plain.c, wino_weights_avx2.c and
 * wino_weights_avx512.c, which define LANES (floats in a vector), TILE_ROWS (rows of a
 * tile two vectors wide: 6 or 12), TARGET (the attribute of the functions), ISA (the
 * name of the table) and DIRECT (the table of the direct kernels).
 *
 * The points are 0, +-sqrt(1/2), +-sqrt(2) and infinity. sqrt(1/2) and sqrt(2) are
 * inverses of each other, which keeps all factors small and halves the rounding errors
 * compared with +-1 and +-2.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/tile_impl.h"
#include "backend/cpu/wino_weights_impl.h"

#include <string.h>

static const float small = 0.70710678118654752440f, large = 1.41421356237309504880f;

INLINE void put(float *to, int64_t step, int point, vec v)
{
    *(vec *)(to + point * step) = v;
}

/* One vector of one piece of x: polynomials of degree 5 through the points. */
INLINE void transform_x(const float *from, int64_t pitch, float *to, int64_t step)
{
    vec x0 = *(const vec *)from, x1 = *(const vec *)(from + pitch);
    vec x2 = *(const vec *)(from + 2 * pitch), x3 = *(const vec *)(from + 3 * pitch);
    vec x4 = *(const vec *)(from + 4 * pitch), x5 = *(const vec *)(from + 5 * pitch);
    vec even1 = x4 - 2 * x2, odd1 = x3 - 2 * x1;
    vec even2 = x4 - 0.5f * x2, odd2 = x3 - 0.5f * x1;

    put(to, step, 0, x0 + x4 - 2.5f * x2);
    put(to, step, 1, even1 + small * odd1);
    put(to, step, 2, even1 - small * odd1);
    put(to, step, 3, even2 + large * odd2);
    put(to, step, 4, even2 - large * odd2);
    put(to, step, 5, x1 + x5 - 2.5f * x3);
}

static TARGET void make_x(const struct dnn_wino_weights_x *p)
{
    const float *from = p->x;
    float *to = p->to;

    for (int64_t i = 0; i < p->count; i++, from += DNN_WINO_WEIGHTS_OUT * p->pitch) {
        for (int64_t r = 0; r < p->rows; r += LANES)
            transform_x(from + r, p->pitch, to + r, p->point_step);
        to += p->rows;
    }
}

/* One vector of one piece of dy: its values at the points, as a polynomial. */
INLINE void transform_y(const float *from, int64_t pitch, float *to, int64_t step)
{
    vec y0 = *(const vec *)from, y1 = *(const vec *)(from + pitch);
    vec y2 = *(const vec *)(from + 2 * pitch), y3 = *(const vec *)(from + 3 * pitch);
    vec even1 = y0 + 0.5f * y2, odd1 = y1 + 0.5f * y3;
    vec even2 = y0 + 2 * y2, odd2 = y1 + 2 * y3;

    put(to, step, 0, y0);
    put(to, step, 1, even1 + small * odd1);
    put(to, step, 2, even1 - small * odd1);
    put(to, step, 3, even2 + large * odd2);
    put(to, step, 4, even2 - large * odd2);
    put(to, step, 5, y3);
}

static TARGET void make_y(const struct dnn_wino_weights_y *p)
{
    const float *from = p->y;
    float *to = p->to;

    for (int64_t i = 0; i < p->count; i++, from += DNN_WINO_WEIGHTS_OUT * p->pitch)
        for (int v = 0; v < p->vecs; v++, to += LANES)
            transform_y(from + v * LANES, p->pitch, to, p->point_step);
}

/* rows and vecs are constants in every call: the loops are unrolled and sum stays in
 * registers.  The sums of a block start at zero, not at those of the blocks before it:
 * adding values of similar size is more accurate. */
INLINE void sum_tile(const struct dnn_wino_weights_tile *t, const int rows,
                     const int vecs)
{
    vec sum[12][3];
    int64_t slot = t->slot;

#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (int v = 0; v < vecs; v++)
            sum[r][v] = (vec){0};
    for (int64_t i = 0; i < t->planes; i++) {
        const float *a = t->a + slot * t->a_plane, *b = t->b + i * t->b_plane;

        if (++slot == t->ring) slot = 0;
        for (int64_t k = t->count; k > 0; k--, a += rows, b += vecs * LANES)
            TILE_ADD(sum, rows, vecs, b, a[r]);
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
        vec *d = (vec *)(t->sums + r * vecs * LANES);

#pragma GCC unroll 3
        for (int v = 0; v < vecs; v++)
            d[v] = sum[r][v] + (t->first ? (vec){0} : d[v]);
    }
}

#define CASE(rows, vecs)                                                               \
    case rows:                                                                         \
        sum_tile(t, rows, vecs);                                                       \
        break;

static TARGET void tile_1(const struct dnn_wino_weights_tile *t)
{
    switch (t->rows) {
        TILE_ROWS_12(CASE, 1)
    }
}

static TARGET void tile_2(const struct dnn_wino_weights_tile *t)
{
    switch (t->rows) {
        TILE_ROWS_OF_2(CASE, 2)
    }
}

static TARGET void tile_3(const struct dnn_wino_weights_tile *t)
{
    switch (t->rows) {
        TILE_ROWS_OF_3(CASE, 3)
    }
}

static TARGET void tile(const struct dnn_wino_weights_tile *t)
{
    if (t->vecs == 3)
        tile_3(t);
    else if (t->vecs == 2)
        tile_2(t);
    else
        tile_1(t);
}

static TARGET void end(const struct dnn_wino_weights_end *p)
{
    for (int64_t c = 0; c < p->cols; c += LANES) {
        vec s[DNN_WINO_WEIGHTS_POINTS], out[DNN_WINO_WEIGHTS_TAPS];
        size_t bytes = (size_t)(p->cols - c < LANES ? p->cols - c : LANES) * 4;

#pragma GCC unroll 6
        for (int i = 0; i < DNN_WINO_WEIGHTS_POINTS; i++) {
            const float *from = p->sums + i * p->point_step + c;

            s[i] = *(const vec *)from;
            for (int64_t k = 1; k < p->copies; k++)
                s[i] += *(const vec *)(from + k * p->copy_step);
        }
        vec even1 = (s[1] + s[2]) * (-1 / 1.5f), odd1 = (s[1] - s[2]) * (-1 / 1.5f);
        vec even2 = (s[3] + s[4]) * (1 / 6.f), odd2 = (s[3] - s[4]) * (1 / 6.f);
        out[0] = s[0] + even1 + even2;
        out[1] = small * odd1 + large * odd2;
        out[2] = 0.5f * even1 + 2 * even2 + s[5];
        for (int i = 0; i < DNN_WINO_WEIGHTS_TAPS; i++)
            memcpy(p->to + i * p->to_step + c, &out[i], bytes);
    }
}

const struct dnn_wino_weights_isa ISA = {
    .direct = &DIRECT,
    .rows = {0, 12, TILE_ROWS, TILE_ROWS * 2 / 3},
    .x = make_x,
    .y = make_y,
    .tile = tile,
    .end = end
};
