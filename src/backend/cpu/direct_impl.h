/* direct_impl.h - shared by the files of the direct kernels.
 *
 * The plan (direct_weights_plan.c) cuts a convolution into blocks of output
 * positions and tiles of the gradient; direct_weights.c runs them; direct_kernel.h,
 * compiled once per instruction set, computes a tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_DIRECT_IMPL_H
#define DNN_BACKEND_CPU_DIRECT_IMPL_H

#include "backend/backend.h"
#include "backend/cpu/direct.h"

/* A tile of a gradient, held in registers: d[r][v] += a[r] * b[v], summed over
 * count[0] * count[1] * count[2] positions.  From one position to the next on axis i, a
 * advances by a_step[i] floats and b by b_step[i]; b is vecs whole vectors. */
struct dnn_direct_tile {
    int rows, vecs;
    bool first;         /* d is not initialized: set it, do not add    */
    const float *a, *b; /* unused if there are no positions            */
    const int64_t *off; /* offsets of a's rows; NULL: 0, 1, 2, ...     */
    float *d;
    int64_t d_step; /* from row to row */
    int64_t count[3], a_step[3], b_step[3];
};

/* Some rows of a matrix product: to[r] = a[r] b + bias.  A row of a consists of parts
 * of depth floats each, part i at offset off[i]; b is packed: parts * depth rows of
 * vecs whole vectors. */
struct dnn_direct_product {
    int rows, vecs; /* rows: at most those of a tile of two vectors */
    int64_t parts, depth;
    const float *const *a;
    const int64_t *off;
    const float *b, *bias; /* bias: whole vectors; NULL: none   */
    float *const *to;
    int64_t cols; /* number of results per row that are stored */
};

enum { DNN_DIRECT_FEW = 4, DNN_DIRECT_SHARED = 8 };

/* m sums (up to DNN_DIRECT_FEW) at each of count positions: y[j] = bias[j] + the sum
 * over parts of x times w[j].  Each part has len floats, a multiple of the vector
 * length. */
struct dnn_direct_few {
    int m;
    int64_t count, parts, len;
    const float *const *x; /* start of each part for the first position    */
    const float *const *w; /* weights of each part for the first sum       */
    int64_t x_step;        /* from position to position                    */
    int64_t w_step;        /* from sum to sum                              */
    const float *bias;     /* m values; NULL: none                         */
    float *y;
    int64_t y_step;
};

/* A row of count positions of a convolution with few channels: y[i] = bias + the sum
 * over rows of taps, and the terms of each row, of w times x.  Positions of x are
 * contiguous; whole vectors may be read past their end.  w is packed as (m / 4, rows,
 * terms, 4); the last group of results may have fewer than 4. */
struct dnn_direct_narrow {
    int64_t count, rows, terms, m;
    const float *const *x; /* start of each row for the first position     */
    const int64_t *row;    /* index of its row of taps                     */
    const int64_t *off;    /* offsets of the terms, in floats              */
    const float *w;
    int64_t depth;     /* weights of one result, in all rows               */
    const float *bias; /* m values; NULL: none                             */
    bool relu;         /* fused ReLU: negative results times alpha         */
    float alpha;
    float *y;
    int64_t y_step;
};

/* Part of the gradient of a convolution's weights, for taps (up to DNN_DIRECT_TAPS)
 * taps and m (up to DNN_DIRECT_TAPS_M) channels of y: adds x times y, summed over rows
 * of count positions (whole vectors), to sum. */
enum { DNN_DIRECT_TAPS = 3, DNN_DIRECT_TAPS_M = 4 };
struct dnn_direct_narrow_weights {
    int64_t rows, count;
    int taps, m;
    const float *x;        /* of the first tap                            */
    int64_t x_row, x_step; /* floats from row to row, from tap to tap     */
    const float *y;        /* of the first channel                        */
    int64_t y_row, y_step; /* from row to row, from channel to channel    */
    float *sum;            /* m contiguous values per tap                 */
    int64_t sum_step;      /* from tap to tap                             */
};

/* Products of few rows with a large matrix w, which is read or written once.  Rows of w
 * are ldw floats apart; a chunk is the columns of two vectors. */
enum {
    DNN_DIRECT_DEPTH = 64,
    DNN_DIRECT_DOTS = 3,
    DNN_DIRECT_DOT_ROWS = 4,
    DNN_DIRECT_ROWS = DNN_BACKEND_ROWS,
    DNN_DIRECT_MAX_ROWS = 32 /* maximum number of rows */
};

struct dnn_direct_stream {
    /* sum += depth (up to DNN_DIRECT_DEPTH) rows of w times x: x is (depth, rows), sum
     * is (chunks, rows, two vectors), zero beyond cols. */
    void (*add)(const float *x, int64_t rows, const float *w, int64_t ldw, int depth,
                int64_t cols, float *sum);
    /* to(rows, k) += y w^T over cols columns: rows up to DNN_DIRECT_DOT_ROWS of y, k up
     * to DNN_DIRECT_DOTS rows of w. */
    void (*dots)(const float *y, int64_t ldy, int rows, const float *w, int64_t ldw,
                 int k, int64_t cols, float *to, int64_t ld_to);
    /* to(k, rows) = w y, k up to DNN_DIRECT_ROWS rows of w: y is (cols, rows), rows a
     * multiple of a vector. */
    void (*across)(const float *w, int64_t ldw, int k, const float *y, int64_t rows,
                   int64_t cols, float *to);
    /* k (up to DNN_DIRECT_ROWS) rows of w = x^T y: x is (rows, k) with rows ldx apart,
     * y is (chunks, rows, two vectors).  stream: use non-temporal stores. */
    void (*outer)(const float *x, int64_t ldx, int64_t rows, const float *y, int k,
                  int64_t cols, float *w, int64_t ldw, bool stream);
    void (*fence)(void); /* after the last non-temporal store */
};

struct dnn_direct_isa {
    const char *name;
    int lanes;   /* floats in a vector                         */
    int rows[3]; /* maximum rows of a tile of 1 or 2 vectors   */
    void (*tile)(const struct dnn_direct_tile *tile);
    void (*product)(const struct dnn_direct_product *product);
    void (*few)(const struct dnn_direct_few *few);
    void (*narrow)(const struct dnn_direct_narrow *narrow);
    void (*taps)(const struct dnn_direct_narrow_weights *taps);
    /* to[k * to_step + i] = x[i * x_step + k], i < count, k < c */
    void (*deinterleave)(const float *x, int64_t x_step, int64_t count, int64_t c,
                         float *to, int64_t to_step);
    struct dnn_direct_stream stream;
    /* sum[0 ... m) += the sums of the columns of n rows of m floats, pitch apart */
    void (*columns)(const float *y, int64_t n, int64_t m, int64_t pitch, float *sum);
};

extern const struct dnn_direct_isa dnn_direct_plain, dnn_direct_avx2, dnn_direct_avx512;

/* The best one for this machine and DNN_ISA. */
const struct dnn_direct_isa *dnn_direct_find(void);
/* The same, but avx2 instead of avx512 if the columns fit in one AVX2 vector: that is
 * faster than a half-empty AVX-512 vector. */
const struct dnn_direct_isa *dnn_direct_find_for(int64_t columns);

/* How a gradient is computed.  "a" is the operand whose channels are broadcast
 * (rows of the tiles), "b" the one whose channels fill vectors. */
struct dnn_direct_plan {
    struct dnn_direct_conv from; /* axes folded, sides swapped */
    struct dnn_direct_conv conv; /* the same; if spread, over the padded input */
    const struct dnn_direct_isa *isa;
    bool swap;   /* few outputs: a is dy, b is x, taps in reverse order */
    bool spread; /* few channels in a: rows are (tap, channel), a is padded */
    bool pad;    /* and the padded copy differs from the input */
    bool pack_a; /* a's channels are far apart: copy each block */
    bool pack_b; /* b's are, or they do not fill vectors */
    bool direct; /* the result is computed in place */

    int64_t taps; /* 1 if spread */
    int64_t rows; /* of one tap: c; if spread, of all taps */
    int64_t cols; /* m in whole vectors */
    int64_t size; /* taps * rows * cols */

    int64_t wide;         /* column tiles of two vectors; one of one may follow */
    int64_t col_tiles;    /* all column tiles */
    int64_t row_tiles[3]; /* for column tiles of 1 and 2 vectors */
    int64_t items;        /* total number of tiles */

    int64_t block[3], parts[3]; /* positions of a block, blocks per axis */
    int64_t blocks;             /* total, over the batch */
    int64_t padded[3];          /* if spread: extents of the padded copy */

    int over_blocks, over_items; /* threads are over_blocks * over_items */

    /* Offsets in the workspace, in floats. */
    int64_t pad_at, off_at, copy_at, bias_at, pack_at, pack_size, pack_b_at, total;
};

struct dnn_direct_plan dnn_direct_plan(const struct dnn_direct_conv *conv, int threads);

/* The outputs [*lo, *hi) of [from, to) on an axis that read inside the input with tap
 * k. */
void dnn_direct_range(const struct dnn_direct_conv *conv, int axis, int64_t k,
                      int64_t from, int64_t to, int64_t *lo, int64_t *hi);

/* The inputs [*lo, *hi) on an axis that the outputs [from, to) read with any tap. */
void dnn_direct_reach(const struct dnn_direct_conv *conv, int axis, int64_t from,
                      int64_t to, int64_t *lo, int64_t *hi);

/* The first item of part i, when count items are split into parts whose sizes differ by
 * at most one. */
static inline int64_t dnn_direct_cut(int64_t count, int64_t parts, int64_t i)
{
    return count / parts * i + (count % parts) * i / parts;
}

#endif
