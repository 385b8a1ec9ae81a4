/* exact_kernel.h - add vectors to exact sums, for one instruction set.  PASS is the
 * name of the function, TARGET its attribute; DOUBLES converts four floats to doubles.
 *
 * The coarse sum starts at 1.5 * 2^32, so that adding an element rounds it to a
 * multiple of 2^-20.  The increase of the sum is this multiple; the remainder is added
 * in the same way to the fine sum, which starts at 1.5 * 2^-8 and has multiples of
 * 2^-60.  Ties may be rounded up or down, depending on the current sum.  In the coarse
 * sum this is compensated by the remainder.  In the fine sum ties cannot occur, because
 * the last bit of each remainder, far below 2^-60, is set.  So the total of both sums
 * does not depend on the order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */

#ifndef DNN_EXACT_COARSE
#define DNN_EXACT_COARSE 6442450944.0 /* 1.5 * 2^32 */
#define DNN_EXACT_FINE 0.005859375    /* 1.5 * 2^-8 */

enum { LANES = 4, WIDE = 4 };  /* elements of a vector; vectors per iteration */
enum { LARGEST = 0x48800000 }; /* bits of DNN_EXACT_LARGEST; those of NaN are larger */

typedef float exact_f4
    __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef double exact_d4 __attribute__((vector_size(LANES * sizeof(double))));
typedef int32_t exact_i4 __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef int64_t exact_l4 __attribute__((vector_size(LANES * sizeof(int64_t))));
#endif

/* Add elements [at, at + n) of m vectors to sums[0] to sums[n - 1]; n is at most CHUNK.
 * Returns not 0 if an element is too large, infinite or NaN. */
TARGET static int PASS(double *sums, double *fine, const float *const *x, int m,
                       int64_t at, int64_t n, bool fresh)
{
    enum { STEP = LANES * WIDE };
    exact_i4 large = {0};
    int64_t i = 0;
    int bad = 0;

    for (; i + STEP <= n; i += STEP) {
        exact_d4 s[WIDE], f[WIDE], old;

#pragma GCC unroll 4
        for (int k = 0; k < WIDE; k++) {
            s[k] = (exact_d4){0} + DNN_EXACT_COARSE;
            f[k] = (exact_d4){0} + DNN_EXACT_FINE;
        }
        for (int p = 0; p < m; p++) {
            const exact_f4 *v = (const exact_f4 *)(const void *)(x[p] + at + i);

#pragma GCC unroll 4
            for (int k = 0; k < WIDE; k++) {
                exact_d4 all = DOUBLES(v[k]);
                exact_d4 next = s[k] + all, rest = all - (next - s[k]);

                large |= ((exact_i4)v[k] & INT32_MAX) >= LARGEST;
                s[k] = next;
                f[k] += (exact_d4)((exact_l4)rest | 1);
            }
        }
#pragma GCC unroll 4
        for (int k = 0; k < WIDE; k++) {
            double *to = sums + i + k * LANES, *fine_to = fine + i + k * LANES;

            s[k] -= DNN_EXACT_COARSE;
            f[k] -= DNN_EXACT_FINE;
            if (!fresh) {
                memcpy(&old, to, sizeof old);
                s[k] += old;
                memcpy(&old, fine_to, sizeof old);
                f[k] += old;
            }
            memcpy(to, &s[k], sizeof s[k]);
            memcpy(fine_to, &f[k], sizeof f[k]);
        }
    }
    for (; i < n; i++) {
        double s = DNN_EXACT_COARSE, f = DNN_EXACT_FINE;

        for (int p = 0; p < m; p++) {
            float v = x[p][at + i];
            double next = s + (double)v, rest = (double)v - (next - s);
            int64_t bits;

            bad |= !(fabsf(v) < DNN_EXACT_LARGEST);
            s = next;
            memcpy(&bits, &rest, sizeof bits);
            bits |= 1;
            memcpy(&rest, &bits, sizeof rest);
            f += rest;
        }
        sums[i] = s - DNN_EXACT_COARSE + (fresh ? 0 : sums[i]);
        fine[i] = f - DNN_EXACT_FINE + (fresh ? 0 : fine[i]);
    }
    for (int k = 0; k < LANES; k++)
        bad |= large[k];
    return bad;
}
