/* exact.c - sums of f32 vectors that do not depend on the order of summation.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "parallel/exact.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <math.h>
#include <string.h>

/* The algorithm depends on the rounding of each operation. */
#if defined(__FAST_MATH__)
#error "exact sums need IEEE arithmetic: do not compile with -ffast-math"
#endif

enum {
    BLOCK = 1 << 12,       /* minimum elements per thread                             */
    CHUNK = 1 << 9,        /* elements whose sums stay in the L1 cache                */
    PASS_VECTORS = 1 << 11 /* maximum vectors of a pass: their remainders stay below
                              DNN_EXACT_FINE */
};

/* Wider vectors give bitwise the same results, because no operations are fused. */
#define PASS pass_plain
#define TARGET
#define DOUBLES(v) __builtin_convertvector(v, exact_d4)
#include "parallel/exact_kernel.h"
#undef PASS
#undef TARGET
#undef DOUBLES
#if defined(__x86_64__)
#define PASS pass_avx2
#define TARGET __attribute__((target("avx2")))
/* The compiler would use two 128-bit conversions. */
#define DOUBLES(v) ((exact_d4)_mm256_cvtps_pd((__m128)(v)))
#include "parallel/exact_kernel.h"
#undef PASS
#undef TARGET
#undef DOUBLES
#endif

static int pass(double *sums, double *fine, const float *const *x, int m, int64_t at,
                int64_t n, bool fresh)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return pass_avx2(sums, fine, x, m, at, n, fresh);
#endif
    return pass_plain(sums, fine, x, m, at, n, fresh);
}

/* Add elements [at, at + n) of each vector to sums[0] to sums[n - 1]. */
static int add_chunk(double *sums, double *fine, const float *const *x, int m,
                     int64_t at, int64_t n, bool fresh)
{
    int bad = 0;

    for (int i = 0; i < m; i += PASS_VECTORS)
        bad |= pass(sums, fine, x + i, m - i < PASS_VECTORS ? m - i : PASS_VECTORS, at,
                    n, fresh && i == 0);
    return bad;
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int add_block(double *sums, int64_t stride, const float *const *x, int m,
                     int64_t at, int64_t last, bool fresh)
{
    int bad = 0;

    for (; at < last; at += CHUNK)
        bad |= add_chunk(sums + at, sums + stride + at, x, m, at, min(last - at, CHUNK),
                         fresh);
    return bad;
}

bool dnn_exact_add(double *sums, int64_t stride, const float *const *x, int m,
                   int64_t n, bool fresh)
{
    int bad = 0;

#pragma omp parallel for reduction(| : bad) if (n > BLOCK) schedule(static)
    for (int64_t at = 0; at < n; at += BLOCK)
        bad |= add_block(sums, stride, x, m, at, min(n, at + BLOCK), fresh);
    return bad == 0;
}

static void read(const double *sums, const double *fine, float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(sums[i] + fine[i]);
}

void dnn_exact_read(const double *sums, int64_t stride, float *x, int64_t n)
{
#pragma omp parallel for if (n > BLOCK) schedule(static)
    for (int64_t at = 0; at < n; at += BLOCK)
        read(sums + at, sums + stride + at, x + at, min(n - at, BLOCK));
}

static int sum_block(const double *sums, int64_t stride, const float *const *x, int m,
                     float *out, int64_t at, int64_t last)
{
    double all[CHUNK], fine[CHUNK];
    int bad = 0;

    for (; at < last; at += CHUNK) {
        int64_t n = min(last - at, CHUNK);

        if (sums != NULL) {
            memcpy(all, sums + at, (size_t)n * sizeof *all);
            memcpy(fine, sums + stride + at, (size_t)n * sizeof *fine);
        }
        bad |= add_chunk(all, fine, x, m, at, n, sums == NULL);
        read(all, fine, out + at, n);
    }
    return bad;
}

bool dnn_exact_sum(const double *sums, int64_t stride, const float *const *x, int m,
                   float *out, int64_t n)
{
    int bad = 0;

#pragma omp parallel for reduction(| : bad) if (n > BLOCK) schedule(static)
    for (int64_t at = 0; at < n; at += BLOCK)
        bad |= sum_block(sums, stride, x, m, out, at, min(n, at + BLOCK));
    return bad == 0;
}
