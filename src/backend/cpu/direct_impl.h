/* direct_impl.h - what the files of the direct kernels share.
 *
 * The plan (direct_plan.c) turns a convolution into blocks of output positions
 * times items of the weights' gradient; the runner (direct_weights.c) walks them; a
 * tile (direct_kernel.h, compiled once per instruction set) does the arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_DIRECT_IMPL_H
#define DNN_BACKEND_CPU_DIRECT_IMPL_H

#include "backend/cpu/direct.h"

/* The registers' share of a gradient: d[r][v] += a[r] * b[v], summed over
 * count[0] * count[1] * count[2] positions.  One step along axis i moves a by
 * a_step[i] floats and b by b_step[i]; b gives vecs whole vectors. */
struct dnn_direct_tile {
    int rows, vecs;
    bool first;         /* d holds nothing yet                         */
    const float *a, *b; /* unused when there are no positions          */
    const int64_t *off; /* where a's rows are; NULL: one after another */
    float *d;
    int64_t d_step; /* from row to row */
    int64_t count[3], a_step[3], b_step[3];
};

/* Some rows of a matrix product: to[r] = a[r] b + bias.  A row of a lies in parts of
 * depth floats each, part i at off[i] from its beginning; b is packed, parts * depth
 * rows of vecs whole vectors. */
struct dnn_direct_product {
    int rows, vecs; /* rows as many as a tile of two vectors has at most */
    int64_t parts, depth;
    const float *const *a;
    const int64_t *off;
    const float *b, *bias; /* bias: whole vectors; NULL: none   */
    float *const *to;
    int64_t cols; /* how many of a row's results are wanted */
};

enum { DNN_DIRECT_FEW = 4, DNN_DIRECT_SHARED = 8 };

/* A few sums (m of them, up to DNN_DIRECT_FEW) at each of count positions:
 * y[j] = bias[j] + sum over parts of x times w[j].  len is a number of whole
 * vectors. */
struct dnn_direct_few {
    int m;
    int64_t count, parts, len;
    const float *const *x; /* each part's beginning for the first position */
    const float *const *w; /* each part's weights for the first sum        */
    int64_t x_step;        /* from position to position                    */
    int64_t w_step;        /* from sum to sum                              */
    const float *bias;     /* m of them; NULL: none                        */
    float *y;
    int64_t y_step;
};

/* A row of count positions of a convolution with few channels: y[i] = bias + the sum
 * over rows of taps and the terms of each of w times x.  Positions of x lie side by
 * side; whole vectors may be read where they end.  w is packed, (rows, terms, 4), by
 * fours of results, the last of which may be less. */
struct dnn_direct_narrow {
    int64_t count, rows, terms, m;
    const float *const *x; /* each row's beginning for the first position  */
    const int64_t *row;    /* which of the rows of taps it is for          */
    const int64_t *off;    /* where terms are, in floats                   */
    const float *w;
    int64_t depth;     /* weights of one result, in all rows               */
    const float *bias; /* m of them; NULL: none                            */
    bool relu;         /* negative ones times alpha                        */
    float alpha;
    float *y;
    int64_t y_step;
};

/* Part of the gradient of a convolution's weights: for taps (up to DNN_DIRECT_TAPS) of
 * them and m (up to DNN_DIRECT_TAPS_M) channels of y, the sum over rows of count
 * positions (whole vectors) of x times y is added to sum. */
enum { DNN_DIRECT_TAPS = 3, DNN_DIRECT_TAPS_M = 4 };
struct dnn_direct_narrow_weights {
    int64_t rows, count;
    int taps, m;
    const float *x;        /* of the first tap                            */
    int64_t x_row, x_step; /* floats from row to row, from tap to tap     */
    const float *y;        /* of the first channel, each for itself       */
    int64_t y_row, y_step; /* from row to row, from channel to channel    */
    float *sum;            /* m side by side                              */
    int64_t sum_step;      /* from tap to tap                             */
};

/* For few rows and a large matrix w, which is read or written once: rows of w are
 * ldw floats apart, "chunk" is two vectors' columns. */
enum {
    DNN_DIRECT_DEEP = 64,
    DNN_DIRECT_DOTS = 3,
    DNN_DIRECT_DOT_ROWS = 4,
    DNN_DIRECT_ROWS = 6,
    DNN_DIRECT_MOST = 32 /* rows in all */
};

struct dnn_direct_stream {
    /* Adds depth (up to DNN_DIRECT_DEEP) rows of w, times x, to sum: x is (depth,
     * rows), sum (chunks, rows, two vectors), zero beyond cols. */
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
    /* k (up to DNN_DIRECT_ROWS) rows of w become x^T y: x is (rows, k) with rows ldx
     * apart, y (chunks, rows, two vectors).  past: do not keep w in the cache. */
    void (*outer)(const float *x, int64_t ldx, int64_t rows, const float *y, int k,
                  int64_t cols, float *w, int64_t ldw, bool past);
    void (*fence)(void); /* what went past the cache is in memory */
};

struct dnn_direct_isa {
    const char *name;
    int lanes;   /* floats in a vector                         */
    int rows[3]; /* rows a tile of 1 or 2 vectors has at most  */
    void (*tile)(const struct dnn_direct_tile *tile);
    void (*product)(const struct dnn_direct_product *product);
    void (*few)(const struct dnn_direct_few *few);
    void (*narrow)(const struct dnn_direct_narrow *narrow);
    void (*taps)(const struct dnn_direct_narrow_weights *taps);
    /* to[k * to_step + i] = x[i * x_step + k], i < count, k < c */
    void (*apart)(const float *x, int64_t x_step, int64_t count, int64_t c, float *to,
                  int64_t to_step);
    struct dnn_direct_stream stream;
    /* sum[0..m) += the columns of n rows of m floats, pitch apart */
    void (*columns)(const float *y, int64_t n, int64_t m, int64_t pitch, float *sum);
};

extern const struct dnn_direct_isa dnn_direct_plain, dnn_direct_avx2, dnn_direct_avx512;

/* The one to use here and now. */
const struct dnn_direct_isa *dnn_direct_find(void);
/* The same, or avx2 for avx512 if so many columns fill no more than one of its vectors:
 * half a wide vector takes longer than a whole one of those. */
const struct dnn_direct_isa *dnn_direct_filled(int64_t columns);

/* How a gradient is computed.  "a" is the operand whose channels are broadcast
 * (rows of the tiles), "b" the one whose channels fill vectors. */
struct dnn_direct_plan {
    struct dnn_direct_conv from; /* axes folded, sides swapped */
    struct dnn_direct_conv conv; /* the same; when spread, over the padded input */
    const struct dnn_direct_isa *isa;
    bool swap;   /* few outputs: a is dy, b is x, taps run backwards */
    bool spread; /* few channels in a: all taps are rows, a is padded */
    bool pad;    /* and the padded copy differs from the input */
    bool pack_a; /* a's channels are far apart: copy each block */
    bool pack_b; /* b's are, or they do not fill vectors */
    bool direct; /* the result is computed in place */

    int64_t taps; /* 1 when spread */
    int64_t rows; /* of one tap: c, or all taps' channels when spread */
    int64_t cols; /* m in whole vectors */
    int64_t size; /* taps * rows * cols */

    int64_t wide;         /* column tiles of two vectors; one of one may follow */
    int64_t col_tiles;    /* all of them */
    int64_t row_tiles[3]; /* by vectors of the column tile */
    int64_t items;        /* tiles in all */

    int64_t block[3], parts[3]; /* positions of a block, blocks per axis */
    int64_t blocks;             /* over the batch */
    int64_t padded[3];          /* sizes of the padded copy when spread */

    int over_blocks, over_items; /* threads are over_blocks * over_items */

    /* Floats in the scratch memory, one part after the other. */
    int64_t pad_at, off_at, copy_at, bias_at, pack_at, pack_size, pack_b_at, total;
};

struct dnn_direct_plan dnn_direct_plan(const struct dnn_direct_conv *conv, int threads);

/* The outputs [*lo, *hi) of [from, to) on an axis that tap k reads inside. */
void dnn_direct_range(const struct dnn_direct_conv *conv, int axis, int64_t k,
                      int64_t from, int64_t to, int64_t *lo, int64_t *hi);

/* The inputs [*lo, *hi) on an axis that outputs [from, to) read with any tap. */
void dnn_direct_reach(const struct dnn_direct_conv *conv, int axis, int64_t from,
                      int64_t to, int64_t *lo, int64_t *hi);

/* Where part i of count things in parts begins: even to one. */
static inline int64_t dnn_direct_cut(int64_t count, int64_t parts, int64_t i)
{
    return count / parts * i + (count % parts) * i / parts;
}

#endif
