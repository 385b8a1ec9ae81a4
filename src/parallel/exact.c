/* exact.c - sums of f32 vectors that do not depend on the order of adding.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "parallel/exact.h"

#define COARSE 1048576.0         /* 2^20            */
#define FINE 1099511627776.0     /* 2^40: on top of COARSE */
#define ROUND 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to a whole number */

/* Rounding needs the two operations as they stand. */
#if defined(__FAST_MATH__)
#error "exact sums need IEEE arithmetic: do not compile with -ffast-math"
#endif

enum { BLOCK = 1 << 14 }; /* numbers that are worth waking a thread for */

/* The same instructions on wider vectors give the same bits: nothing is fused. */
#define FOR_EACH_VECTOR(MAKE) MAKE(plain, )
#if defined(__x86_64__)
#undef FOR_EACH_VECTOR
#define FOR_EACH_VECTOR(MAKE)                                                          \
    MAKE(plain, )                                                                      \
    MAKE(avx2, __attribute__((target("avx2"))))
#endif

#define ADD(isa, target)                                                               \
    target static int add_##isa(double *sums, double *fine, const float *x, int64_t n) \
    {                                                                                  \
        int bad = 0;                                                                   \
        _Pragma("omp simd reduction(| : bad)") for (int64_t i = 0; i < n; i++)         \
        {                                                                              \
            double t = (double)x[i] * COARSE;                                          \
            double whole = (t + ROUND) - ROUND;                                        \
            double rest = ((t - whole) * FINE + ROUND) - ROUND;                        \
                                                                                       \
            /* Also true of a NaN. */                                                  \
            bad |= !(x[i] < DNN_EXACT_LARGEST && x[i] > -DNN_EXACT_LARGEST);           \
            sums[i] += whole;                                                          \
            fine[i] += rest;                                                           \
        }                                                                              \
        return bad;                                                                    \
    }
FOR_EACH_VECTOR(ADD)

static int add_block(double *sums, double *fine, const float *x, int64_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return add_avx2(sums, fine, x, n);
#endif
    return add_plain(sums, fine, x, n);
}

bool dnn_exact_add(double *sums, int64_t stride, const float *x, int64_t n)
{
    double *fine = sums + stride;
    int bad = 0;

#pragma omp parallel for reduction(| : bad) if (n > BLOCK) schedule(static)
    for (int64_t at = 0; at < n; at += BLOCK)
        bad |= add_block(sums + at, fine + at, x + at, n - at < BLOCK ? n - at : BLOCK);
    return bad == 0;
}

void dnn_exact_read(const double *sums, int64_t stride, float *x, int64_t n)
{
    const double *fine = sums + stride;

#pragma omp parallel for simd if (n > BLOCK) schedule(static)
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((sums[i] + fine[i] / FINE) / COARSE);
}
