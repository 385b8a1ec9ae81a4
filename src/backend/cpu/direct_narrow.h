/* direct_narrow.h - a row of a convolution with few channels, for one instruction set;
 * part of direct_kernel.h.
 *
 * Vectors run along the positions of a row, so that all lanes are used with few
 * channels too: the input is read channel by channel, and results are interleaved when
 * they are stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));

/* Interleave the low (high) halves of each quad of two vectors: by single floats (_1),
 * by pairs (_2). */
#if LANES == 16
#define LOW_1(a, b)                                                                    \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28,    \
                            13, 29)
#define HIGH_1(a, b)                                                                   \
    __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30,  \
                            15, 31)
#define LOW_2(a, b)                                                                    \
    __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13,    \
                            28, 29)
#define HIGH_2(a, b)                                                                   \
    __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15,  \
                            30, 31)
#elif LANES == 8
#define LOW_1(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH_1(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define LOW_2(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH_2(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#else
#define LOW_1(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH_1(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOW_2(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define HIGH_2(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#endif

/* Transpose LANES / 4 blocks of 4 x 4: block q is quad q of the four vectors. */
INLINE void transpose_4x4(const reg from[4], reg to[4])
{
    vec a = LOW_1(from[0], from[1]), b = LOW_1(from[2], from[3]);
    vec c = HIGH_1(from[0], from[1]), d = HIGH_1(from[2], from[3]);

    to[0] = LOW_2(a, b);
    to[1] = HIGH_2(a, b);
    to[2] = LOW_2(c, d);
    to[3] = HIGH_2(c, d);
}

/* Load LANES / 4 quads, step apart. */
INLINE vec quads(const float *at, int64_t step)
{
#if LANES == 4
    (void)step;
    return *(const vec *)at;
#else
    quad a = *(const quad *)at, b = *(const quad *)(at + step);
#if LANES == 8
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
#else
    quad c = *(const quad *)(at + 2 * step), d = *(const quad *)(at + 3 * step);

    return __builtin_shufflevector(
        __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7),
        __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7), 0, 1, 2, 3, 4, 5, 6, 7,
        8, 9, 10, 11, 12, 13, 14, 15);
#endif
#endif
}

/* Deinterleave LANES positions of four channels. */
INLINE void narrow_four(const float *x, int64_t x_step, float *to, int64_t to_step)
{
    reg in[4], out[4];

#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
        in[j] = quads(x + j * x_step, 4 * x_step);
    transpose_4x4(in, out);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
        *(vec *)(to + j * to_step) = out[j];
}

/* to[k * to_step + i] = x[i * x_step + k]: deinterleave the channels. */
static TARGET void narrow_deinterleave(const float *x, int64_t x_step, int64_t count,
                                       int64_t c, float *to, int64_t to_step)
{
    int64_t k = 0, last = count - LANES;

    /* The last vector overlaps the one before it. */
    for (; last >= 0 && k + 4 <= c; k += 4) {
        for (int64_t i = 0; i < last; i += LANES)
            narrow_four(x + i * x_step + k, x_step, to + k * to_step + i, to_step);
        narrow_four(x + last * x_step + k, x_step, to + k * to_step + last, to_step);
    }
    for (; k < c; k++)
        for (int64_t i = 0; i < count; i++)
            to[k * to_step + i] = x[i * x_step + k];
}

/* Store count (up to LANES) positions of four channels. */
INLINE void narrow_store_4(vec a, vec b, vec c, vec d, float *y, int64_t y_step,
                           int64_t count)
{
    reg from[4] = {a, b, c, d}, to[4];

    transpose_4x4(from, to);
#pragma GCC unroll 4
    for (int q = 0; q < LANES / 4; q++)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            if (4 * q + i < count)
                *(quad *)(y + (4 * q + i) * y_step) = ((const quad *)&to[i])[q];
}

/* Store count (up to LANES) positions of one channel. */
INLINE void narrow_store_1(vec v, float *y, int64_t y_step, int64_t count)
{
    float lanes[LANES];

    if (y_step == 1 && count == LANES) {
        *(vec *)y = v;
        return;
    }
    *(vec *)lanes = v;
    for (int64_t i = 0; i < count; i++)
        y[i * y_step] = lanes[i];
}

INLINE vec narrow_relu(vec y, float alpha)
{
    ivec below = y < 0.0f;

    return (vec)(((ivec)(y * alpha) & below) | ((ivec)y & ~below));
}

/* Results first ... first + m - 1 of n vectors of positions, from position at on; m and
 * n are constants in every call. */
INLINE void narrow_tile(const struct dnn_direct_narrow *f, int64_t first, int64_t at,
                        const int m, const int n)
{
    const float *w = f->w + first * f->depth;
    const int64_t *off = f->off;
    int64_t terms = f->terms;
    reg sum[6][4];

#pragma GCC unroll 6
    for (int i = 0; i < n; i++)
#pragma GCC unroll 4
        for (int j = 0; j < m; j++)
            sum[i][j] = (vec){0} + (f->bias == NULL ? 0 : f->bias[first + j]);
    for (int64_t r = 0; r < f->rows; r++) {
        const float *wp = w + f->row[r] * terms * m, *x = f->x[r] + at;

        for (int64_t k = 0; k < terms; k++, wp += m) {
            const vec *from = (const vec *)(x + off[k]);
            reg in[6];

#pragma GCC unroll 6
            for (int i = 0; i < n; i++)
                in[i] = from[i];
#pragma GCC unroll 4
            for (int j = 0; j < m; j++)
#pragma GCC unroll 6
                for (int i = 0; i < n; i++)
                    sum[i][j] += wp[j] * in[i];
        }
    }
    float *y = f->y + at * f->y_step + first;
    int64_t left = f->count - at;
#pragma GCC unroll 6
    for (int i = 0; i < n; i++, y += LANES * f->y_step, left -= LANES) {
        int64_t count = left < LANES ? left : LANES;

#pragma GCC unroll 4
        for (int j = 0; j < m; j++)
            if (f->relu) sum[i][j] = narrow_relu(sum[i][j], f->alpha);
        if (m == 4) {
            narrow_store_4(sum[i][0], sum[i][1], sum[i][2], sum[i][3], y, f->y_step,
                           count);
            continue;
        }
#pragma GCC unroll 4
        for (int j = 0; j < m; j++)
            narrow_store_1(sum[i][j], y + j, f->y_step, count);
    }
}

/* All positions, in tiles of at most max vectors. */
INLINE void narrow_sums(const struct dnn_direct_narrow *f, int64_t first, const int m,
                        const unsigned max)
{
    unsigned vecs = (unsigned)(f->count + LANES - 1) / LANES, n;
    int64_t at = 0;

    /* Of similar size: a small tile is limited by the latency of its sums. */
    for (unsigned tiles = (vecs + max - 1) / max; tiles > 0; tiles--) {
        n = (vecs + tiles - 1) / tiles;
#pragma GCC unroll 6
        for (unsigned k = 1; k <= max; k++)
            if (n == k) narrow_tile(f, first, at, m, (int)k);
        at += n * LANES;
        vecs -= n;
    }
}

static TARGET void narrow(const struct dnn_direct_narrow *f)
{
    int64_t first = 0;

    for (; first + 4 <= f->m; first += 4)
        narrow_sums(f, first, 4, LANES == 16 ? 6 : 2);
    switch (f->m - first) {
    case 1:
        narrow_sums(f, first, 1, 6);
        break;
    case 2:
        narrow_sums(f, first, 2, 5);
        break;
    case 3:
        narrow_sums(f, first, 3, 3);
        break;
    }
}
