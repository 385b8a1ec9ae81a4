/* direct_narrow_weights.h - the gradient of the weights of a convolution with few
 * channels, for one instruction set; part of direct_kernel.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */

/* taps and m are constants in every call. */
INLINE void taps_tile(const struct dnn_direct_narrow_weights *t, const int taps,
                      const int m)
{
    reg s[DNN_DIRECT_TAPS][DNN_DIRECT_TAPS_M];

#pragma GCC unroll 3
    for (int k = 0; k < taps; k++)
#pragma GCC unroll 4
        for (int j = 0; j < m; j++)
            s[k][j] = (vec){0};
    for (int64_t r = 0; r < t->rows; r++) {
        const float *x = t->x + r * t->x_row, *y = t->y + r * t->y_row;

        for (int64_t i = 0; i < t->count; i += LANES) {
            reg yv[DNN_DIRECT_TAPS_M];

#pragma GCC unroll 4
            for (int j = 0; j < m; j++)
                yv[j] = *(const vec *)(y + j * t->y_step + i);
#pragma GCC unroll 3
            for (int k = 0; k < taps; k++) {
                vec xv = *(const vec *)(x + k * t->x_step + i);

#pragma GCC unroll 4
                for (int j = 0; j < m; j++)
                    s[k][j] += xv * yv[j];
            }
        }
    }
#pragma GCC unroll 3
    for (int k = 0; k < taps; k++)
#pragma GCC unroll 4
        for (int j = 0; j < m; j++)
            t->sum[k * t->sum_step + j] += total(s[k][j]);
}

#define TAPS(k, j)                                                                     \
    case (k) * 8 + (j):                                                                \
        taps_tile(t, k, j);                                                            \
        break;
#define TAPS_OF(k) TAPS(k, 1) TAPS(k, 2) TAPS(k, 3) TAPS(k, 4)
_Static_assert(DNN_DIRECT_TAPS == 3 && DNN_DIRECT_TAPS_M == 4, "a case for each");

static TARGET void taps(const struct dnn_direct_narrow_weights *t)
{
    switch (t->taps * 8 + t->m) {
        TAPS_OF(1)
        TAPS_OF(2)
        TAPS_OF(3)
    }
}
