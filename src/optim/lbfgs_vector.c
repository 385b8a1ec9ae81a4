/* lbfgs_vector.c - arithmetic on long vectors of either precision; sums in doubles.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/lbfgs_impl.h"

/* The number of chunks of n elements, and the end of chunk p. */
static int64_t chunks(int64_t n)
{
    return (n + LBFGS_CHUNK - 1) / LBFGS_CHUNK;
}

static int64_t end_of(int64_t n, int64_t p)
{
    return n - p * LBFGS_CHUNK < LBFGS_CHUNK ? n : (p + 1) * LBFGS_CHUNK;
}

/* One body for both types.  Eight partial sums, so that the order of additions does not
 * depend on how the compiler vectorizes. */
#define BODIES(type, name)                                                             \
    static double dot_##name(const type *a, const type *b, int64_t first,              \
                             int64_t last)                                             \
    {                                                                                  \
        double sum[8] = {0}, all = 0;                                                  \
        int64_t i = first;                                                             \
        for (; i + 8 <= last; i += 8)                                                  \
            for (int k = 0; k < 8; k++)                                                \
                sum[k] += (double)a[i + k] * (double)b[i + k];                         \
        for (; i < last; i++)                                                          \
            sum[0] += (double)a[i] * (double)b[i];                                     \
        for (int k = 0; k < 8; k++)                                                    \
            all += sum[k];                                                             \
        return all;                                                                    \
    }                                                                                  \
    static void blend_##name(type *z, double a, const type *x, double b,               \
                             const type *y, int64_t first, int64_t last)               \
    {                                                                                  \
        for (int64_t i = first; i < last; i++)                                         \
            z[i] = (type)(a * (double)x[i] + b * (double)y[i]);                        \
    }
BODIES(float, f32)
BODIES(double, f64)

double dnn_lbfgs_dot(const struct dnn_lbfgs *l, const void *a, const void *b)
{
    int64_t count = chunks(l->n);
    double all = 0;

#pragma omp parallel for schedule(static) if (count > 8)
    for (int64_t p = 0; p < count; p++) {
        int64_t first = p * LBFGS_CHUNK, last = end_of(l->n, p);

        l->sums[p] = l->dtype == DNN_F32 ? dot_f32(a, b, first, last)
                                         : dot_f64(a, b, first, last);
    }
    for (int64_t p = 0; p < count; p++)
        all += l->sums[p];
    return all;
}

void dnn_lbfgs_blend(const struct dnn_lbfgs *l, void *z, double a, const void *x,
                     double b, const void *y)
{
    int64_t count = chunks(l->n);

#pragma omp parallel for schedule(static) if (count > 8)
    for (int64_t p = 0; p < count; p++) {
        int64_t first = p * LBFGS_CHUNK, last = end_of(l->n, p);

        if (l->dtype == DNN_F32)
            blend_f32(z, a, x, b, y, first, last);
        else
            blend_f64(z, a, x, b, y, first, last);
    }
}
