/* direct_kernel.h - the direct kernels for one instruction set.
 *
 * Included once by each of direct_plain.c, direct_avx2.c and direct_avx512.c, which
 * define LANES (floats in a vector), TILE_ROWS (rows of a tile two vectors wide: 6
 * or 12), TARGET (the attribute of the functions), STREAM (a non-temporal store),
 * FENCE (after the last of them), ISA (the name of the table) and ISA_NAME. The code
 * is the same for all instruction sets, so that a test on any machine covers it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct_impl.h"
#include "backend/cpu/tile_impl.h"

#include <string.h>

enum { ROWS1 = 12 };

/* rows, vecs and spread are constants in every call: the loops are unrolled and sum
 * stays in registers. */
INLINE void sum_tile(const struct dnn_direct_tile *t, const int rows, const int vecs,
                     const bool spread)
{
    reg sum[12][2];
    int64_t off[12] = {0};

#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
        const vec *d = (const vec *)(t->d + r * t->d_step);

        if (spread) off[r] = t->off[r];
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++)
            sum[r][v] = t->first ? (vec){0} : d[v];
    }
    for (int64_t i = 0; i < t->count[0]; i++) {
        for (int64_t j = 0; j < t->count[1]; j++) {
            const float *a = t->a + i * t->a_step[0] + j * t->a_step[1];
            const float *b = t->b + i * t->b_step[0] + j * t->b_step[1];
            int64_t a_step = t->a_step[2], b_step = t->b_step[2];

            for (int64_t k = t->count[2]; k > 0; k--, a += a_step, b += b_step)
                TILE_ADD(sum, rows, vecs, b, spread ? a[off[r]] : a[r]);
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
        vec *d = (vec *)(t->d + r * t->d_step);

#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++)
            d[v] = sum[r][v];
    }
}

#define CASE(rows, vecs, spread)                                                       \
    case rows:                                                                         \
        sum_tile(t, rows, vecs, spread);                                               \
        break;

static TARGET void tile_1(const struct dnn_direct_tile *t)
{
    if (t->off != NULL) {
        switch (t->rows) {
            TILE_ROWS_12(CASE, 1, true)
        }
    } else {
        switch (t->rows) {
            TILE_ROWS_12(CASE, 1, false)
        }
    }
}

static TARGET void tile_2(const struct dnn_direct_tile *t)
{
    if (t->off != NULL) {
        switch (t->rows) {
            TILE_ROWS_OF_2(CASE, 2, true)
        }
    } else {
        switch (t->rows) {
            TILE_ROWS_OF_2(CASE, 2, false)
        }
    }
}

static TARGET void tile(const struct dnn_direct_tile *t)
{
    if (t->vecs == 2)
        tile_2(t);
    else
        tile_1(t);
}

/* Four rows at a time with separate sums, to hide the latency of additions. */
static TARGET void columns(const float *y, int64_t n, int64_t m, int64_t pitch,
                           float *sum)
{
    int64_t j = 0;

    for (; j + LANES <= m; j += LANES) {
        reg s[4] = {{0}};
        int64_t i = 0;

        for (; i + 4 <= n; i += 4) {
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++)
                s[k] += *(const vec *)(y + (i + k) * pitch + j);
        }
        for (; i < n; i++)
            s[0] += *(const vec *)(y + i * pitch + j);
        *(vec *)(sum + j) += (s[0] + s[1]) + (s[2] + s[3]);
    }
    for (; j < m; j++) {
        float s[4] = {0};
        int64_t i = 0;

        for (; i + 4 <= n; i += 4) {
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++)
                s[k] += y[(i + k) * pitch + j];
        }
        for (; i < n; i++)
            s[0] += y[i * pitch + j];
        sum[j] += (s[0] + s[1]) + (s[2] + s[3]);
    }
}

#include "backend/cpu/direct_product.h"
#include "backend/cpu/direct_few.h"
#include "backend/cpu/direct_narrow.h"
#include "backend/cpu/direct_stream.h"
#include "backend/cpu/direct_narrow_weights.h"

const struct dnn_direct_isa ISA = {
    .name = ISA_NAME,
    .lanes = LANES,
    .rows = {0, ROWS1, TILE_ROWS},
    .tile = tile,
    .product = product,
    .few = few,
    .narrow = narrow,
    .taps = taps,
    .deinterleave = narrow_deinterleave,
    .stream = {add_rows, dots, across, outer, fence},
    .columns = columns
};
