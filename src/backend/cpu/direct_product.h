/* direct_product.h - rows times a packed matrix, for one instruction set; part of
 * direct_kernel.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */

/* Vectors are passed by value: sums whose address is taken do not stay in registers. */
static TARGET void store_some(float *to, vec first, vec second, int64_t cols)
{
    float lanes[2 * LANES];

    *(vec *)lanes = first;
    *(vec *)(lanes + LANES) = second;
    memcpy(to, lanes, (size_t)cols * sizeof *to);
}

/* rows and vecs are constants in every call. */
INLINE void product_tile(const struct dnn_direct_product *p, const int rows,
                         const int vecs)
{
    const float *b = p->b;
    reg sum[12][2];

#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++)
            sum[r][v] =
                p->bias == NULL ? (vec){0} : *(const vec *)(p->bias + v * LANES);
    for (int64_t i = 0; i < p->parts; i++) {
        const float *a[12];

#pragma GCC unroll 12
        for (int r = 0; r < rows; r++)
            a[r] = p->a[r] + p->off[i];
        for (int64_t k = 0; k < p->depth; k++, b += vecs * LANES)
            TILE_ADD(sum, rows, vecs, b, a[r][k]);
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
        if (p->cols < vecs * LANES) {
            store_some(p->to[r], sum[r][0], sum[r][vecs - 1], p->cols);
            continue;
        }
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++)
            ((vec *)p->to[r])[v] = sum[r][v];
    }
}

#define PRODUCT(rows, vecs)                                                            \
    case rows:                                                                         \
        product_tile(p, rows, vecs);                                                   \
        break;

static TARGET void product_1(const struct dnn_direct_product *p)
{
    switch (p->rows) {
        TILE_ROWS_OF_2(PRODUCT, 1)
    }
}

static TARGET void product_2(const struct dnn_direct_product *p)
{
    switch (p->rows) {
        TILE_ROWS_OF_2(PRODUCT, 2)
    }
}

static TARGET void product(const struct dnn_direct_product *p)
{
    if (p->vecs == 2)
        product_2(p);
    else
        product_1(p);
}
