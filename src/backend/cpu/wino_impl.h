/* wino_impl.h - what the files of the minimal filtering along the last axis share.
 *
 * Four neighbouring outputs of three taps each are 12 multiplications; evaluated as
 * polynomials at six points, 0, +-a, +-b and infinity, they are 6 (Winograd's F(4, 3)):
 *
 *   y (4) = At ((G g (3)) * (Bt d (6)))      d: six neighbouring inputs
 *   g (3) = Gt ((A y (4)) * (Bt d (6)))      the gradient of the taps
 *
 * a = 3/4, b = 3/2: all that is made of them is a whole binary fraction, and the
 * result is off by about 1.3 times what plain sums are (with 1 and 2 by 1.9 times).
 * Bt, At and A are in wino_transform.h for whole vectors, G and Gt here.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_WINO_IMPL_H
#define DNN_BACKEND_CPU_WINO_IMPL_H

#include "backend/cpu/direct_impl.h"

enum {
    DNN_WINO_POINTS = 6, /* products of a tile, inputs it reads */
    DNN_WINO_OUT = 4,    /* outputs of a tile                   */
    DNN_WINO_TAPS = 3
};

#define DNN_WINO_A 0.75f
#define DNN_WINO_B 1.5f
#define DNN_WINO_A2 (DNN_WINO_A * DNN_WINO_A)
#define DNN_WINO_B2 (DNN_WINO_B * DNN_WINO_B)
/* 1 over what the other points' polynomials are at 0, at +-a and at +-b */
#define DNN_WINO_G0 (1 / (DNN_WINO_A2 * DNN_WINO_B2))
#define DNN_WINO_GA (1 / (2 * DNN_WINO_A2 * (DNN_WINO_A2 - DNN_WINO_B2)))
#define DNN_WINO_GB (1 / (2 * DNN_WINO_B2 * (DNN_WINO_B2 - DNN_WINO_A2)))

/* Gt: the gradient of three taps from the six sums of products. */
static inline void dnn_wino_taps_back(const float u[6], float g[3])
{
    float a = DNN_WINO_GA * (u[1] + u[2]), odd_a = DNN_WINO_GA * (u[1] - u[2]);
    float b = DNN_WINO_GB * (u[3] + u[4]), odd_b = DNN_WINO_GB * (u[3] - u[4]);

    g[0] = DNN_WINO_G0 * u[0] + a + b;
    g[1] = DNN_WINO_A * odd_a + DNN_WINO_B * odd_b;
    g[2] = DNN_WINO_A2 * a + DNN_WINO_B2 * b + u[5];
}

/* The inputs of some tiles of one row, c channels each, as values at the points:
 * v[f * v_step + i * c + k] for tile i.  Tile i begins at position at + 4 i of width
 * ones, which lie pitch floats apart; outside there are zeros. */
struct dnn_wino_input {
    const float *x;
    int64_t pitch, width, at, c, count;
    float *v;
    int64_t v_step;
};

/* d[r * vecs vectors] = [d +] sums over parts and depth of a[r * a_step + off + k]
 * times b, packed rows of vecs whole vectors. */
struct dnn_wino_product {
    int rows, vecs;
    bool add;
    int64_t parts, depth;
    const float *a, *b;
    int64_t a_step;
    const int64_t *off; /* of each part */
    float *d;
};

/* Sums at the points, m[f * m_step + i * vecs vectors], as outputs: wanted positions
 * from the first tile's first one on, pitch apart, cols of each. */
struct dnn_wino_output {
    const float *m;
    int64_t m_step, wanted, pitch, cols;
    int vecs;
    const float *bias; /* vecs vectors */
    bool relu;
    float alpha; /* its slope below 0 */
    float *y;
};

/* Three taps (step apart) of cols (up to vecs vectors) neighbours as six vectors'
 * worth of weights, u_step apart, zero beyond cols. */
struct dnn_wino_weights {
    const float *g;
    int64_t step, cols;
    int vecs;
    float *u;
    int64_t u_step;
};

struct dnn_wino_isa {
    const struct dnn_direct_isa *is; /* name, lanes, rows of a tile */
    void (*input)(const struct dnn_wino_input *in);
    void (*product)(const struct dnn_wino_product *product);
    void (*output)(const struct dnn_wino_output *out);
    void (*weights)(const struct dnn_wino_weights *weights);
};

extern const struct dnn_wino_isa dnn_wino_plain, dnn_wino_avx2, dnn_wino_avx512;

/* The one to use here and now: that of dnn_direct_find(). */
const struct dnn_wino_isa *dnn_wino_find(void);

#endif
