/* direct_kernel.h - the arithmetic of a tile, for one instruction set.
 *
 * Included once by each of direct_plain.c, direct_avx2.c and direct_avx512.c,
 * which say LANES (floats in a vector), TILE_ROWS (rows of a tile two vectors wide:
 * 6 or 12), TARGET (the functions' attribute), PAST (a store past the cache) and
 * FENCE (after the last of them), and ISA (the table's name).  The code
 * is the same for all of them, so what runs anywhere tests all but the width.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct_impl.h"

#include <string.h>

/* A vector at any address, over floats. */
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
/* Several in an array of ours: aligned, which compilers rely on where they check memory
 * accesses, too. */
typedef float reg __attribute__((vector_size(4 * LANES), may_alias));

#define INLINE static inline __attribute__((always_inline)) TARGET

enum { ROWS1 = 12 };

/* rows, vecs and spread are constants wherever this is used: the loops over them
 * vanish and sum lives in registers. */
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

            for (int64_t k = t->count[2]; k > 0; k--, a += a_step, b += b_step) {
                reg y[2];

#pragma GCC unroll 2
                for (int v = 0; v < vecs; v++)
                    y[v] = ((const vec *)b)[v];
#pragma GCC unroll 12
                for (int r = 0; r < rows; r++) {
                    float x = spread ? a[off[r]] : a[r];

#pragma GCC unroll 2
                    for (int v = 0; v < vecs; v++)
                        sum[r][v] += x * y[v];
                }
            }
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
        break
#define CASES_6(vecs, spread)                                                          \
    CASE(1, vecs, spread);                                                             \
    CASE(2, vecs, spread);                                                             \
    CASE(3, vecs, spread);                                                             \
    CASE(4, vecs, spread);                                                             \
    CASE(5, vecs, spread);                                                             \
    CASE(6, vecs, spread)
#define CASES_12(vecs, spread)                                                         \
    CASES_6(vecs, spread);                                                             \
    CASE(7, vecs, spread);                                                             \
    CASE(8, vecs, spread);                                                             \
    CASE(9, vecs, spread);                                                             \
    CASE(10, vecs, spread);                                                            \
    CASE(11, vecs, spread);                                                            \
    CASE(12, vecs, spread)
#if TILE_ROWS == 6
#define CASES_2(vecs, spread) CASES_6(vecs, spread)
#else
#define CASES_2(vecs, spread) CASES_12(vecs, spread)
#endif

static TARGET void tile_1(const struct dnn_direct_tile *t)
{
    if (t->off != NULL) {
        switch (t->rows) {
            CASES_12(1, true);
        }
    } else {
        switch (t->rows) {
            CASES_12(1, false);
        }
    }
}

static TARGET void tile_2(const struct dnn_direct_tile *t)
{
    if (t->off != NULL) {
        switch (t->rows) {
            CASES_2(2, true);
        }
    } else {
        switch (t->rows) {
            CASES_2(2, false);
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

/* Four rows at a time, so that additions need not wait for each other. */
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
    .apart = narrow_apart,
    .stream = {add_rows, dots, across, outer, fence},
    .columns = columns
};
