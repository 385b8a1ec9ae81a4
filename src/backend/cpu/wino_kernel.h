/* wino_kernel.h - Winograd transforms and products, for one instruction set.
 *
 * Included once by each of wino_plain.c, wino_avx2.c and wino_avx512.c, which define
 * LANES (floats in a vector), TILE_ROWS (rows of a tile two vectors wide: 6 or 12),
 * TARGET (the attribute of the functions), ISA (the name of the table) and DIRECT (the
 * table of the direct kernels).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/tile_impl.h"
#include "backend/cpu/wino_impl.h"

#include <string.h>

typedef int32_t ivec __attribute__((vector_size(4 * LANES)));

#include "backend/cpu/wino_transform.h"

/* The first n (up to LANES) floats of a vector; the others are 0. */
static TARGET vec load_some(const float *from, int64_t n)
{
    float lanes[LANES] = {0};

    memcpy(lanes, from, (size_t)n * sizeof *from);
    return *(const vec *)lanes;
}

static TARGET void store_some(float *to, vec v, int64_t n)
{
    float lanes[LANES];

    *(vec *)lanes = v;
    memcpy(to, lanes, (size_t)n * sizeof *to);
}

/* ---- inputs ---- */

/* A vector of inputs: n channels from k on, of the tile that begins at position at.
 * inner (all positions are inside) and part (n is not LANES) are constants in every
 * call. */
struct input_pos {
    int64_t at, k, n;
    bool inner, part;
};

/* One row of inputs, transformed to the points. */
INLINE void input_row(const struct dnn_wino_input *in, const float *row,
                      const struct input_pos s, vec v[6])
{
    vec d[6];

#pragma GCC unroll 6
    for (int j = 0; j < 6; j++) {
        if (!s.inner && (s.at + j < 0 || s.at + j >= in->width)) {
            d[j] = (vec){0};
            continue;
        }
        const float *x = row + (s.at + j) * in->pitch + s.k;
        d[j] = s.part ? load_some(x, s.n) : *(const vec *)x;
    }
    wino_in(d, v);
}

INLINE void input_store(const struct dnn_wino_input *in, float *to,
                        const struct input_pos s, int point, vec v)
{
    if (s.part)
        store_some(to + point * in->v_step + s.k, v, s.n);
    else
        *(vec *)(to + point * in->v_step + s.k) = v;
}

INLINE void input_vec(const struct dnn_wino_input *in, float *to,
                      const struct input_pos s, const int height)
{
    const int lines = dnn_wino_lines(height);
    vec v[6][6];

#pragma GCC unroll 6
    for (int i = 0; i < lines; i++) {
        if (height == 1 || in->x[i] != NULL)
            input_row(in, in->x[i], s, v[i]);
        else
            memset(v[i], 0, sizeof v[i]);
    }
#pragma GCC unroll 6
    for (int j = 0; j < 6; j++) {
        vec d[6], all[6];

        if (height == 1) {
            input_store(in, to, s, j, v[0][j]);
            continue;
        }
#pragma GCC unroll 6
        for (int i = 0; i < lines; i++)
            d[i] = v[i][j];
        wino_in(d, all);
#pragma GCC unroll 6
        for (int i = 0; i < lines; i++)
            input_store(in, to, s, i * 6 + j, all[i]);
    }
}

INLINE void input_tile(const struct dnn_wino_input *in, int64_t at, float *to,
                       const bool inner, const int height)
{
    int64_t k = 0;

    for (; k + LANES <= in->c; k += LANES)
        input_vec(in, to, (struct input_pos){at, k, LANES, inner, false}, height);
    if (k == in->c) return;
    /* The last vector overlaps the one before it. */
    k = in->c - LANES;
    if (k >= 0)
        input_vec(in, to, (struct input_pos){at, k, LANES, inner, false}, height);
    else
        input_vec(in, to, (struct input_pos){at, 0, in->c, false, true}, height);
}

INLINE void input_tiles(const struct dnn_wino_input *in, const int height)
{
    for (int64_t i = 0; i < in->count; i++) {
        int64_t at = in->at + 4 * i;

        if (at >= 0 && at + 6 <= in->width)
            input_tile(in, at, in->v + i * in->c, true, height);
        else
            input_tile(in, at, in->v + i * in->c, false, height);
    }
}

/* A local copy of *in stays in registers: stores of vectors cannot alias it. */
static TARGET void input(const struct dnn_wino_input *in)
{
    const struct dnn_wino_input copy = *in;

    if (copy.height == 1)
        input_tiles(&copy, 1);
    else
        input_tiles(&copy, 4);
}

/* ---- sums ---- */

/* rows and vecs are constants in every call: the loops are unrolled and sum stays in
 * registers. */
INLINE void product_tile(const struct dnn_wino_product *p, const int rows,
                         const int vecs)
{
    const float *b = p->b;
    int64_t step = p->a_step;
    vec sum[12][3];

#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (int v = 0; v < vecs; v++)
            sum[r][v] = p->add ? ((const vec *)p->d)[r * vecs + v] : (vec){0};
    for (int64_t i = 0; i < p->parts; i++) {
        const float *a[12];

#pragma GCC unroll 12
        for (int r = 0; r < rows; r++)
            a[r] = p->a + p->off[i] + r * step;
        for (int64_t k = 0; k < p->depth; k++, b += vecs * LANES)
            TILE_ADD(sum, rows, vecs, b, a[r][k]);
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (int v = 0; v < vecs; v++)
            ((vec *)p->d)[r * vecs + v] = sum[r][v];
}

#define PRODUCT(rows, vecs)                                                            \
    case rows:                                                                         \
        product_tile(p, rows, vecs);                                                   \
        break;

static TARGET void product_1(const struct dnn_wino_product *p)
{
    switch (p->rows) {
        TILE_ROWS_12(PRODUCT, 1)
    }
}

/* A single vector of sums, computed as the first of two equal ones: for one chain of
 * additions compilers may not use FMA, as they do for several, and so round
 * differently; but a tile's sums must not depend on how many tiles are computed with
 * it. */
static TARGET void product_single(const struct dnn_wino_product *p)
{
    struct dnn_wino_product two = *p;
    vec d[2] = {{0}};

    if (p->add) d[0] = *(const vec *)p->d;
    two.rows = 2;
    two.a_step = 0;
    two.d = (float *)d;
    product_1(&two);
    *(vec *)p->d = d[0];
}

static TARGET void product_2(const struct dnn_wino_product *p)
{
    switch (p->rows) {
        TILE_ROWS_OF_2(PRODUCT, 2)
    }
}

static TARGET void product_3(const struct dnn_wino_product *p)
{
    switch (p->rows) {
        TILE_ROWS_OF_3(PRODUCT, 3)
    }
}

static TARGET void product(const struct dnn_wino_product *p)
{
    switch (p->vecs) {
    case 1:
        if (p->rows == 1)
            product_single(p);
        else
            product_1(p);
        break;
    case 2:
        product_2(p);
        break;
    default:
        product_3(p);
        break;
    }
}

/* ---- outputs ---- */

INLINE vec finish(const struct dnn_wino_output *out, vec y, vec bias)
{
    y += bias;
    if (!out->relu) return y;
    ivec below = y < 0.0f;
    return (vec)(((ivec)(y * out->alpha) & below) | ((ivec)y & ~below));
}

/* A row of a tile from its sums: stores count positions of n channels. */
INLINE void output_row(const struct dnn_wino_output *out, const vec m[6], vec bias,
                       float *to, int64_t count, int64_t n)
{
    vec y[4];

    wino_out(m, y);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        if (j >= count) break;
        vec all = finish(out, y[j], bias);

        if (n < LANES)
            store_some(to + j * out->pitch, all, n);
        else
            *(vec *)(to + j * out->pitch) = all;
    }
}

/* A vector of a tile: its sums begin at m; at: the offset of its outputs in floats. */
INLINE void output_vec(const struct dnn_wino_output *out, const float *m, vec bias,
                       int64_t at, int64_t count, int64_t n, const int height)
{
    const int lines = dnn_wino_lines(height);
    vec d[4][6];

#pragma GCC unroll 6
    for (int j = 0; j < 6; j++) {
        vec column[6], y[4];

#pragma GCC unroll 6
        for (int i = 0; i < lines; i++)
            column[i] = *(const vec *)(m + (i * 6 + j) * out->m_step);
        if (height == 1)
            y[0] = column[0];
        else
            wino_out(column, y);
#pragma GCC unroll 4
        for (int i = 0; i < height; i++)
            d[i][j] = y[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < height; i++)
        if (height == 1 || out->y[i] != NULL)
            output_row(out, d[i], bias, out->y[i] + at, count, n);
}

INLINE void output_tiles(const struct dnn_wino_output *out, const int height)
{
    const float *m = out->m;
    int64_t at = 0;

    for (int64_t left = out->count; left > 0; left -= 4) {
        int64_t n = out->cols;

        for (int v = 0; v < out->vecs; v++, n -= LANES) {
            vec bias = *(const vec *)(out->bias + v * LANES);

            if (left >= 4 && n >= LANES)
                output_vec(out, m + v * LANES, bias, at + v * LANES, 4, LANES, height);
            else
                output_vec(out, m + v * LANES, bias, at + v * LANES, left, n, height);
        }
        m += out->vecs * LANES;
        at += 4 * out->pitch;
    }
}

static TARGET void output(const struct dnn_wino_output *out)
{
    const struct dnn_wino_output copy = *out;

    if (copy.height == 1)
        output_tiles(&copy, 1);
    else
        output_tiles(&copy, 4);
}

/* ---- weights ---- */

INLINE void filter_vec(const struct dnn_wino_filter *w, int v, const int height)
{
    int64_t n = w->cols - v * LANES;
    vec at[3][6], u[6];

#pragma GCC unroll 3
    for (int i = 0; i < (height == 1 ? 1 : 3); i++) {
        vec g[3];

#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
            const float *from = w->g + i * w->row + j * w->step + v * LANES;

            g[j] = n < LANES ? load_some(from, n) : *(const vec *)from;
        }
        wino_taps(g, at[i]);
    }
#pragma GCC unroll 6
    for (int j = 0; j < 6; j++) {
        float *to = w->u + j * w->u_step + v * LANES;

        if (height == 1) {
            *(vec *)to = at[0][j];
            continue;
        }
        wino_taps((const vec[]){at[0][j], at[1][j], at[2][j]}, u);
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++)
            *(vec *)(to + i * 6 * w->u_step) = u[i];
    }
}

static TARGET void filter(const struct dnn_wino_filter *w)
{
    for (int v = 0; v < w->vecs; v++) {
        if (w->height == 1)
            filter_vec(w, v, 1);
        else
            filter_vec(w, v, 4);
    }
}

const struct dnn_wino_isa ISA = {
    .direct = &DIRECT,
    .rows = {0, 12, TILE_ROWS, TILE_ROWS * 2 / 3},
    .input = input,
    .product = product,
    .output = output,
    .filter = filter
};
