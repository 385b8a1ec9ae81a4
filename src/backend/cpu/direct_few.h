/* direct_few.h - sums with few outputs at many positions, for one instruction set; part
 * of direct_kernel.h.
 *
 * Vectors run along the terms of a sum, so that all lanes are used with few outputs
 * too; several positions use the same loaded weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */

INLINE float total(vec v)
{
#if LANES == 16
    v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5,
                                 6, 7);
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10,
                                 11);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12,
                                 13);
#elif LANES == 8
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
#else
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1);
#endif
    return v[0] + v[1];
}

/* n positions; m and n are constants in every call. */
INLINE void few_tile(const struct dnn_direct_few *f, int64_t first, const int m,
                     const int n)
{
    reg sum[DNN_DIRECT_SHARED][DNN_DIRECT_FEW];

#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
#pragma GCC unroll 4
        for (int j = 0; j < m; j++)
            sum[i][j] = (vec){0};
    for (int64_t part = 0; part < f->parts; part++) {
        const float *x = f->x[part] + first * f->x_step, *w = f->w[part];

        for (int64_t k = 0; k < f->len; k += LANES) {
            reg wv[DNN_DIRECT_FEW];

#pragma GCC unroll 4
            for (int j = 0; j < m; j++)
                wv[j] = *(const vec *)(w + j * f->w_step + k);
#pragma GCC unroll 8
            for (int i = 0; i < n; i++) {
                vec xv = *(const vec *)(x + i * f->x_step + k);

#pragma GCC unroll 4
                for (int j = 0; j < m; j++)
                    sum[i][j] += xv * wv[j];
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
#pragma GCC unroll 4
        for (int j = 0; j < m; j++)
            f->y[(first + i) * f->y_step + j] =
                total(sum[i][j]) + (f->bias == NULL ? 0 : f->bias[j]);
}

INLINE void few_sums(const struct dnn_direct_few *f, const int m, const int n)
{
    int64_t at = 0;

    for (; at + n <= f->count; at += n)
        few_tile(f, at, m, n);
    if (at == f->count) return;
    /* The remainder: compute some of the last n positions again. The results are the
     * same, and it is faster than one by one. */
    if (f->count >= n)
        few_tile(f, f->count - n, m, n);
    else
        for (; at < f->count; at++)
            few_tile(f, at, m, 1);
}

static TARGET void few(const struct dnn_direct_few *f)
{
    switch (f->m) {
    case 1:
        few_sums(f, 1, 8);
        break;
    case 2:
        few_sums(f, 2, 5);
        break;
    case 3:
        few_sums(f, 3, 4);
        break;
    case 4:
        few_sums(f, 4, 3);
        break;
    }
}
