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

enum {
    SERIAL = 1 << 14
}; /* fewer numbers than this are not worth waking threads for */

bool dnn_exact_add(double *sums, int64_t stride, const float *x, int64_t n)
{
    double *fine = sums + stride;
    int bad = 0;

#pragma omp parallel for simd reduction(| : bad) if (n > SERIAL) schedule(static)
    for (int64_t i = 0; i < n; i++) {
        double t = (double)x[i] * COARSE;
        double whole = (t + ROUND) - ROUND;
        double rest = ((t - whole) * FINE + ROUND) - ROUND;

        /* Also true of a NaN. */
        bad |= !(x[i] < DNN_EXACT_LARGEST && x[i] > -DNN_EXACT_LARGEST);
        sums[i] += whole;
        fine[i] += rest;
    }
    return bad == 0;
}

void dnn_exact_read(const double *sums, int64_t stride, float *x, int64_t n)
{
    const double *fine = sums + stride;

#pragma omp parallel for simd if (n > SERIAL) schedule(static)
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((sums[i] + fine[i] / FINE) / COARSE);
}
