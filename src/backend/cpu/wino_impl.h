/* wino_impl.h - shared by the files of the Winograd convolutions.
 *
 * Four neighbouring outputs of three taps each need 12 multiplications; evaluated as
 * polynomials at six points, 0, +-a, +-b and infinity, only 6 (Winograd's F(4, 3)):
 *
 *   y (4) = At ((G g (3)) * (Bt d (6)))      d: six neighbouring inputs
 *   g (3) = Gt ((A y (4)) * (Bt d (6)))      the gradient of the taps
 *
 * a = 3/4, b = 3/2: the coefficients of Bt and At are exact binary fractions, and
 * rounding errors are about 1.3 times those of plain sums (with 1 and 2: 1.9 times).
 * Tiles of 4 x 4 outputs do the same along the previous axis too: 36 multiplications
 * instead of 144.
 *
 * The transforms are in wino_transform.h, for whole vectors.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_WINO_IMPL_H
#define DNN_BACKEND_CPU_WINO_IMPL_H

#include "backend/cpu/direct_impl.h"
#include "backend/cpu/onednn_impl.h"

enum {
    DNN_WINO_POINTS = 6, /* points, and inputs read, per row of a tile */
    DNN_WINO_OUT = 4,    /* outputs per row of a tile                  */
    DNN_WINO_TAPS = 3,
    DNN_WINO_LINES = 6 /* maximum rows of points of a tile */
};

#define DNN_WINO_A 0.75f
#define DNN_WINO_B 1.5f
#define DNN_WINO_A2 (DNN_WINO_A * DNN_WINO_A)
#define DNN_WINO_B2 (DNN_WINO_B * DNN_WINO_B)
/* 1 / (the product of the differences to the other points) for 0, +-a and +-b */
#define DNN_WINO_G0 (1 / (DNN_WINO_A2 * DNN_WINO_B2))
#define DNN_WINO_GA (1 / (2 * DNN_WINO_A2 * (DNN_WINO_A2 - DNN_WINO_B2)))
#define DNN_WINO_GB (1 / (2 * DNN_WINO_B2 * (DNN_WINO_B2 - DNN_WINO_A2)))

/* Rows of inputs a tile reads, and rows of points, by its height. */
static inline int dnn_wino_lines(int height)
{
    return height == 1 ? 1 : DNN_WINO_LINES;
}

/* Transforms the inputs of some tiles, of c channels: v[f * v_step + i * c + k] is the
 * value of tile i and channel k at point f (row * 6 + column).  Tile i begins at
 * position at + 4 i of width positions, which are pitch floats apart; outside there are
 * zeros. */
struct dnn_wino_input {
    int height;                     /* of the tiles: 1 or 4 rows         */
    const float *x[DNN_WINO_LINES]; /* rows (height 1: one); NULL: zeros */
    int64_t pitch, width, at, c, count;
    float *v;
    int64_t v_step;
};

/* Row r of d = [d +] the sum over parts and k < depth of a[r * a_step + off[part] + k]
 * times b.  Rows of d and of b, which is packed, are vecs whole vectors. */
struct dnn_wino_product {
    int rows, vecs;
    bool add;
    int64_t parts, depth;
    const float *a, *b;
    int64_t a_step;
    const int64_t *off; /* of each part */
    float *d;
};

/* Transforms sums at the points, m[f * m_step + i * vecs vectors], to outputs: count
 * positions from the first one of the first tile on, pitch apart, with cols floats
 * each. */
struct dnn_wino_output {
    int height;
    const float *m;
    int64_t m_step, count, pitch, cols;
    int vecs;
    const float *bias; /* vecs vectors */
    bool relu;
    float alpha;            /* slope of the ReLU below 0 */
    float *y[DNN_WINO_OUT]; /* rows; NULL: not stored */
};

/* Transforms three taps (step apart), or three rows of them (row apart), of cols
 * neighbouring outputs to weights at each point: vecs vectors, u_step apart, zero
 * beyond cols. */
struct dnn_wino_filter {
    int height;
    const float *g;
    int64_t step, row, cols;
    int vecs;
    float *u;
    int64_t u_step;
};

struct dnn_wino_isa {
    const struct dnn_direct_isa *direct; /* name, lanes                          */
    int rows[4];                         /* maximum, of a product of 1, 2, 3 vectors */
    void (*input)(const struct dnn_wino_input *in);
    void (*product)(const struct dnn_wino_product *product);
    void (*output)(const struct dnn_wino_output *out);
    void (*filter)(const struct dnn_wino_filter *filter);
};

extern const struct dnn_wino_isa dnn_wino_plain, dnn_wino_avx2, dnn_wino_avx512;

/* The one with the instruction set of dnn_direct_find(). */
const struct dnn_wino_isa *dnn_wino_find(void);

/* ---- wino.c, wino_run.c: forward and backward data ---- */

enum { DNN_WINO_MAX_TAPS = 64 }; /* taps of the other axes */

/* The plan of a convolution. */
struct dnn_wino {
    /* The convolution to run: mirrored if backward; samples may be planes (fold()). */
    struct dnn_direct_conv v;
    bool back;
    const struct dnn_wino_isa *isa;
    int height, points;   /* rows of outputs in a tile: 1 or 4; points: 6 or 36   */
    int64_t lanes;        /* floats of a vector                                   */
    int64_t vecs;         /* vectors of output channels                           */
    int64_t panels;       /* of two vectors, the last one of one to three         */
    int64_t lines, taps;  /* taps to sum over: along the second axis, total       */
    int64_t rows;         /* of the packed weights at a point                     */
    int64_t tiles;        /* per output row                                       */
    int64_t tile_rows;    /* rows of tiles per plane                              */
    int64_t across, down; /* blocks along a row, along the rows of tiles          */
    int64_t wide, high;   /* tiles of the largest block                           */
    int64_t deep, layers; /* planes per block (> 1: whole planes); layers of blocks */
    int64_t units;        /* total number of blocks                               */
    int64_t ring;         /* planes of values that are kept                       */
    int64_t group;        /* tiles whose sums are kept                            */
    int64_t v_step, m_step, size; /* floats at a point: values, sums; of a thread */
    bool relu;                    /* the activation is a ReLU, fused              */
    float alpha;
    struct cpu_packed packed;
};

/* Packed weights: the bias in whole vectors, then (panel, point, tap, c, floats of a
 * panel). dnn_wino_bias(): floats of the bias. */
static inline int64_t dnn_wino_bias(const struct dnn_wino *s)
{
    return s->vecs * s->lanes;
}

static inline int dnn_wino_vecs(const struct dnn_wino *s, int64_t panel)
{
    return panel + 1 < s->panels ? 2 : (int)(s->vecs - 2 * panel);
}

/* Floats of a panel's weights at a point; + 16: a power of two would cause cache
 * conflicts. */
static inline int64_t dnn_wino_panel_size(const struct dnn_wino *s, int64_t panel)
{
    return s->rows * dnn_wino_vecs(s, panel) * s->lanes + 16;
}

/* The offset of a panel's weights, in floats. */
static inline int64_t dnn_wino_panel(const struct dnn_wino *s, int64_t panel)
{
    int64_t before = panel > 0 ? panel * s->points * dnn_wino_panel_size(s, 0) : 0;

    return dnn_wino_bias(s) + before;
}

/* Run units from ... to - 1 in this thread; mem: its workspace of s->size floats. */
void dnn_wino_run(const struct dnn_wino *s, const struct cpu_call *c, int64_t from,
                  int64_t to, float *mem);

#endif
