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
 * Squares of four by four outputs do the same along the axis before it as well: 36
 * multiplications for 144.
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
    DNN_WINO_POINTS = 6, /* products of a row of a tile, inputs it reads */
    DNN_WINO_OUT = 4,    /* outputs of a row of a tile                   */
    DNN_WINO_TAPS = 3,
    DNN_WINO_LINES = 6 /* rows of points of the tallest tile */
};

#define DNN_WINO_A 0.75f
#define DNN_WINO_B 1.5f
#define DNN_WINO_A2 (DNN_WINO_A * DNN_WINO_A)
#define DNN_WINO_B2 (DNN_WINO_B * DNN_WINO_B)
/* 1 over what the other points' polynomials are at 0, at +-a and at +-b */
#define DNN_WINO_G0 (1 / (DNN_WINO_A2 * DNN_WINO_B2))
#define DNN_WINO_GA (1 / (2 * DNN_WINO_A2 * (DNN_WINO_A2 - DNN_WINO_B2)))
#define DNN_WINO_GB (1 / (2 * DNN_WINO_B2 * (DNN_WINO_B2 - DNN_WINO_A2)))

/* Rows of inputs a tile reads (so rows of points), by its height. */
static inline int dnn_wino_lines(int tall)
{
    return tall == 1 ? 1 : DNN_WINO_LINES;
}

/* The inputs of some tiles, c channels each, as values at the points: v[f * v_step +
 * i * c + k] for tile i, f counting rows of points first.  Tile i begins at position
 * at + 4 i of width ones, which lie pitch floats apart; outside there are zeros. */
struct dnn_wino_input {
    int tall;                       /* tiles are 1 or 4 rows high        */
    const float *x[DNN_WINO_LINES]; /* rows; of a low tile one; NULL: 0s */
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
    int tall;
    const float *m;
    int64_t m_step, wanted, pitch, cols;
    int vecs;
    const float *bias; /* vecs vectors */
    bool relu;
    float alpha;            /* its slope below 0 */
    float *y[DNN_WINO_OUT]; /* rows; NULL: not wanted */
};

/* Three taps (step apart), or three rows of them (row apart), of cols (up to vecs
 * vectors) neighbours as weights at each point, u_step apart, zero beyond cols. */
struct dnn_wino_filter {
    int tall;
    const float *g;
    int64_t step, row, cols;
    int vecs;
    float *u;
    int64_t u_step;
};

struct dnn_wino_isa {
    const struct dnn_direct_isa *is; /* name, lanes                          */
    int rows[4];                     /* of a product of 1, 2, 3 vectors, most */
    void (*input)(const struct dnn_wino_input *in);
    void (*product)(const struct dnn_wino_product *product);
    void (*output)(const struct dnn_wino_output *out);
    void (*filter)(const struct dnn_wino_filter *filter);
};

extern const struct dnn_wino_isa dnn_wino_plain, dnn_wino_avx2, dnn_wino_avx512;

/* The one to use here and now: that of dnn_direct_find(). */
const struct dnn_wino_isa *dnn_wino_find(void);

/* ---- wino.c, wino_run.c: forward and backward data ---- */

enum { DNN_WINO_MOST = 64 }; /* taps of the other axes */

/* How it is done. */
struct dnn_wino {
    /* That which is run: backward data with sides swapped; samples may be planes. */
    struct dnn_direct_conv v;
    bool back;
    const struct dnn_wino_isa *isa;
    int tall, points;     /* rows of outputs in a tile: 1 or 4; so 6 or 36      */
    int64_t lanes;        /* floats of a vector                                 */
    int64_t vecs;         /* of outputs                                         */
    int64_t panels;       /* of two of those, the last of one to three          */
    int64_t lines, taps;  /* taps that are summed over: along a column, in all  */
    int64_t rows;         /* of the packed weights at a point                   */
    int64_t tiles;        /* of an output row                                   */
    int64_t stacks;       /* rows of tiles of a plane                           */
    int64_t across, down; /* blocks along a row, along the rows of tiles        */
    int64_t wide, high;   /* tiles of the largest                               */
    int64_t deep, layers; /* planes of one, if they are whole; so many in depth */
    int64_t units;        /* blocks in all                                      */
    int64_t ring;         /* planes of values that are kept                     */
    int64_t group;        /* tiles whose sums are kept                          */
    int64_t v_step, m_step, size; /* floats of values, sums at a point; of all  */
    bool relu;                    /* is the function behind, done at once       */
    float alpha;
    bool fresh;
    uint64_t weights;
};

/* What is kept: the bias in whole vectors, then (panel, point, tap, c, panel). */
static inline int64_t dnn_wino_bias(const struct dnn_wino *s)
{
    return s->vecs * s->lanes;
}

static inline int dnn_wino_vecs(const struct dnn_wino *s, int64_t panel)
{
    return panel + 1 < s->panels ? 2 : (int)(s->vecs - 2 * panel);
}

/* Floats of a panel's weights at a point: not a power of two, which caches do not
 * like. */
static inline int64_t dnn_wino_sheet(const struct dnn_wino *s, int64_t panel)
{
    return s->rows * dnn_wino_vecs(s, panel) * s->lanes + 16;
}

/* Where a panel's weights begin, in floats. */
static inline int64_t dnn_wino_panel(const struct dnn_wino *s, int64_t panel)
{
    int64_t before = panel > 0 ? panel * s->points * dnn_wino_sheet(s, 0) : 0;

    return dnn_wino_bias(s) + before;
}

/* The units from ... to - 1, by one thread; mem: its memory. */
void dnn_wino_walk(const struct dnn_wino *s, const struct cpu_call *c, int64_t from,
                   int64_t to, float *mem);

#endif
