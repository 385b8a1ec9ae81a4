/* wino_weights_impl.h - shared by the files of the Winograd gradient of the weights.
 *
 * The plan (wino_weights_plan.c) splits the outputs into blocks; wino_weights.c
 * transforms the inputs of a block and sums the products; wino_weights_kernel.h,
 * compiled once per instruction set, does the arithmetic, with each tile of sums in
 * registers.
 *
 * A "piece" is four outputs along the last axis. In the transformed arrays, of which
 * there is one for each of the POINTS points, it is one position.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_WINO_WEIGHTS_IMPL_H
#define DNN_BACKEND_CPU_WINO_WEIGHTS_IMPL_H

#include "backend/cpu/direct_impl.h"
#include "backend/cpu/wino_weights.h"

enum {
    DNN_WINO_WEIGHTS_POINTS = 6, /* values that a piece is transformed to             */
    DNN_WINO_WEIGHTS_OUT = 4,    /* positions of dy in a piece                        */
    DNN_WINO_WEIGHTS_TAPS = 3,
    DNN_WINO_WEIGHTS_SLACK = 16 /* floats that may be written past a row of pieces   */
};

/* Transforms count pieces of x, which are OUT positions apart: rows channels of each
 * are stored at to + point * point_step, one piece after another.  Reads and writes
 * whole vectors: floats past the end are overwritten. */
struct dnn_wino_weights_x {
    int64_t count, pitch, rows, point_step;
    const float *x;
    float *to;
};

/* The same for dy: vecs whole vectors of each piece. */
struct dnn_wino_weights_y {
    int64_t count, pitch, point_step;
    int vecs;
    const float *y;
    float *to;
};

/* sums[rows][vecs] += a[rows] * b[vecs], summed over planes of count pieces.  Plane i
 * of a is in slot (slot + i) % ring. */
struct dnn_wino_weights_tile {
    int rows, vecs;
    bool first; /* sums is not initialized: set it, do not add */
    int64_t planes, count, slot, ring, a_plane, b_plane;
    const float *a, *b;
    float *sums;
};

/* Transforms one row of sums to three rows of the gradient; copies of the sums are
 * copy_step apart, points point_step. */
struct dnn_wino_weights_end {
    int64_t copies, copy_step, point_step, cols, to_step;
    const float *sums;
    float *to;
};

struct dnn_wino_weights_isa {
    const struct dnn_direct_isa *direct;
    int rows[4]; /* maximum rows of a tile of 1, 2 or 3 vectors */
    void (*x)(const struct dnn_wino_weights_x *x);
    void (*y)(const struct dnn_wino_weights_y *y);
    void (*tile)(const struct dnn_wino_weights_tile *tile);
    void (*end)(const struct dnn_wino_weights_end *end);
};

extern const struct dnn_wino_weights_isa dnn_wino_weights_plain, dnn_wino_weights_avx2,
    dnn_wino_weights_avx512;

struct dnn_wino_weights_plan {
    struct dnn_direct_conv conv; /* axes folded */
    const struct dnn_wino_weights_isa *isa;
    int64_t lanes;
    int64_t taps;   /* of the first two axes             */
    int64_t pieces; /* per row of outputs                */
    int64_t cols;   /* m in whole vectors                */
    int64_t size;   /* floats of the sums of one point   */
    int vecs;       /* of a column tile, the last may have fewer */
    int64_t col_tiles, row_tiles, items;

    int64_t block[3], parts[3], blocks; /* the last axis in pieces */
    int64_t ring;                       /* planes of x that are kept */
    int64_t x_rows;                     /* maximum rows of a plane   */
    int64_t x_step, y_step;             /* from point to point       */

    int over_blocks, over_items; /* threads are over_blocks * over_items */

    /* Offsets in the workspace, in floats: the sums, then one part per member; _in: in
     * the part of a member. */
    int64_t sums_size, own_at, own_size;
    int64_t bias_in, edge_in, taps_in, x_in, y_in;
};

/* The pieces of a block that a tap has, in both transformed arrays. */
struct dnn_wino_weights_tap {
    int64_t planes, count, slot, at_x, at_y;
};

/* ---- wino_weights_plan.c ---- */

struct dnn_wino_weights_plan dnn_wino_weights_plan(const struct dnn_direct_conv *conv,
                                                   int threads);

/* The offset of row tile r in a member's transformed x, its rows and its floats per
 * plane. */
int64_t dnn_wino_weights_x_at(const struct dnn_wino_weights_plan *plan, int64_t r,
                              int64_t *rows, int64_t *floats);

#endif
