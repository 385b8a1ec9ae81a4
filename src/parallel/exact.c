/* exact.c - sums of f32 vectors that do not depend on the order of adding.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "parallel/exact.h"

#include <math.h>

/* Adding and taking away 1.5 * 2^52 units rounds to whole ones. */
#define COARSE 6442450944.0 /* 1.5 * 2^32: units of 2^-20 */
#define FINE 0.005859375    /* 1.5 * 2^-8: units of 2^-60 */

/* Rounding needs the two operations as they stand. */
#if defined(__FAST_MATH__)
#error "exact sums need IEEE arithmetic: do not compile with -ffast-math"
#endif

enum { BLOCK = 1 << 14 }; /* numbers that are worth waking a thread for */

/* One number more in s and f; a NaN is too large, too. */
#define TERM(v)                                                                        \
    do {                                                                               \
        double all = (double)(v), whole = (all + COARSE) - COARSE;                     \
                                                                                       \
        bad |= !(fabsf(v) < DNN_EXACT_LARGEST);                                        \
        s += whole;                                                                    \
        f += ((all - whole) + FINE) - FINE;                                            \
    } while (0)

/* Sums are in memory that is slower than the arithmetic, so m vectors are added in one
 * pass over them.  A macro, for as an inline function it would be cut into the vectors
 * of the plain instruction set wherever it is used. */
#define PASS(m, from, and_from)                                                        \
    _Pragma("omp simd reduction(| : bad)") for (int64_t i = 0; i < n; i++)             \
    {                                                                                  \
        double s = (from), f = (and_from);                                             \
                                                                                       \
        TERM(x0[i]);                                                                   \
        if ((m) > 1) TERM(x1[i]);                                                      \
        if ((m) > 2) TERM(x2[i]);                                                      \
        if ((m) > 3) TERM(x3[i]);                                                      \
        sums[i] = s;                                                                   \
        fine[i] = f;                                                                   \
    }                                                                                  \
    break;
#define CASES(m)                                                                       \
    case 2 * (m):                                                                      \
        PASS(m, sums[i], fine[i])                                                      \
    case 2 * (m) + 1:                                                                  \
        PASS(m, 0, 0)

#define ADD(isa, target)                                                               \
    target static int add_##isa(double *sums, double *fine, const float *const *x,     \
                                int m, int64_t at, int64_t n, bool fresh)              \
    {                                                                                  \
        const float *x0 = x[0] + at, *x1 = x[m > 1 ? 1 : 0] + at,                      \
                    *x2 = x[m > 2 ? 2 : 0] + at, *x3 = x[m > 3 ? 3 : 0] + at;          \
        int bad = 0;                                                                   \
                                                                                       \
        sums += at;                                                                    \
        fine += at;                                                                    \
        switch (2 * m + fresh) {                                                       \
            CASES(1)                                                                   \
            CASES(2)                                                                   \
            CASES(3)                                                                   \
            CASES(4)                                                                   \
        default:                                                                       \
            bad = 1;                                                                   \
        }                                                                              \
        return bad;                                                                    \
    }
_Static_assert(DNN_EXACT_AT_ONCE == 4, "cases for each");

/* The same instructions on wider vectors give the same bits: nothing is fused. */
ADD(plain, )
#if defined(__x86_64__)
ADD(avx2, __attribute__((target("avx2"))))
#endif

static int add_block(double *sums, double *fine, const float *const *x, int m,
                     int64_t at, int64_t n, bool fresh)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return add_avx2(sums, fine, x, m, at, n, fresh);
#endif
    return add_plain(sums, fine, x, m, at, n, fresh);
}

bool dnn_exact_add(double *sums, int64_t stride, const float *const *x, int m,
                   int64_t n, bool fresh)
{
    int bad = 0;

#pragma omp parallel for reduction(| : bad) if (n > BLOCK) schedule(static)
    for (int64_t at = 0; at < n; at += BLOCK)
        bad |= add_block(sums, sums + stride, x, m, at, n - at < BLOCK ? n - at : BLOCK,
                         fresh);
    return bad == 0;
}

void dnn_exact_read(const double *sums, int64_t stride, float *x, int64_t n)
{
    const double *fine = sums + stride;

#pragma omp parallel for simd if (n > BLOCK) schedule(static)
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(sums[i] + fine[i]);
}
