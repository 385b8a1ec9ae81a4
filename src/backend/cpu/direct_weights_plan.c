/* direct_weights_plan.c - how the gradient of the weights is split into blocks and
 * tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct_impl.h"

#include <string.h>

enum {
    BLOCK_POSITIONS = 1024, /* of a block: enough to amortize loading a tile's sums */
    MIN_POSITIONS = 256,    /* minimum, if there are more threads than blocks       */
    CACHE_FLOATS = 1 << 16, /* floats of a block that stay in the cache             */
    FEW_CHANNELS = 5,       /* as few channels do not fill the rows of a tile       */
    FEW_OUTPUTS = 4,        /* as few outputs are better broadcast                  */
    MANY_CHANNELS = 32,     /* with more channels the strides hurt the L1 cache     */
    MIN_READS = 16,         /* number of reads for which a copy pays off            */
};

static int64_t volume(const int64_t *v)
{
    return v[0] * v[1] * v[2];
}

/* Number of input positions from the first to the last that count outputs read. */
static int64_t span(const struct dnn_direct_conv *v, int i, int64_t count)
{
    return (count - 1) * v->stride[i] + (v->kernel[i] - 1) * v->dilation[i] + 1;
}

void dnn_direct_range(const struct dnn_direct_conv *v, int i, int64_t k, int64_t from,
                      int64_t to, int64_t *lo, int64_t *hi)
{
    int64_t shift = k * v->dilation[i] - v->before[i], s = v->stride[i];
    int64_t first = shift < 0 ? (-shift + s - 1) / s : 0;
    int64_t end = shift < v->in[i] ? (v->in[i] - shift + s - 1) / s : 0;

    *lo = first > from ? first : from;
    *hi = dnn_min64(end, to);
    if (*hi < *lo) *hi = *lo;
}

void dnn_direct_reach(const struct dnn_direct_conv *v, int i, int64_t from, int64_t to,
                      int64_t *lo, int64_t *hi)
{
    int64_t first = from * v->stride[i] - v->before[i];
    int64_t end = first + span(v, i, to - from);

    *lo = first < 0 ? 0 : dnn_min64(first, v->in[i]);
    *hi = end < *lo ? *lo : dnn_min64(end, v->in[i]);
}

/* With few outputs, exchange x and dy: dw[k] is the sum of x[i] * dy[i - k], which is
 * also the gradient of a convolution, with the taps in reverse order. */
static void swap_sides(struct dnn_direct_conv *v)
{
    struct dnn_direct_conv old = *v;

    for (int i = 0; i < 3; i++) {
        v->in[i] = old.out[i];
        v->out[i] = old.in[i];
        v->before[i] = (old.kernel[i] - 1) * old.dilation[i] - old.before[i];
    }
    v->c = v->pitch = old.m;
    v->m = old.c;
}

static bool is_plain(const struct dnn_direct_conv *v, int i)
{
    return v->kernel[i] == 1 && v->stride[i] == 1 && v->before[i] == 0 &&
           v->in[i] == v->out[i];
}

/* Merge axes without a kernel with their neighbour, so that 2D and 1D batches and 1x1
 * kernels have long axes. */
static void fold(struct dnn_direct_conv *v)
{
    if (is_plain(v, 0)) {
        v->in[0] *= v->n;
        v->out[0] *= v->n;
        v->n = 1;
    }
    for (int i = 0; i < 2; i++) {
        if (!is_plain(v, i) || !is_plain(v, i + 1)) continue;
        v->in[i + 1] *= v->in[i];
        v->out[i + 1] *= v->out[i];
        v->in[i] = v->out[i] = 1;
    }
}

/* Make all taps rows of one tap, over a copy of the input padded with zeros. */
static void spread_taps(struct dnn_direct_plan *p)
{
    struct dnn_direct_conv *v = &p->conv;

    p->rows = volume(v->kernel) * v->c;
    p->taps = 1;
    for (int i = 0; i < 3; i++) {
        int64_t padded = span(v, i, v->out[i]);

        if (v->before[i] != 0 || padded > v->in[i] || v->pitch != v->c) p->pad = true;
        p->padded[i] = padded;
    }
    if (!p->pad) memcpy(p->padded, v->in, sizeof v->in);
    for (int i = 0; i < 3; i++) {
        v->in[i] = p->padded[i];
        v->kernel[i] = v->dilation[i] = 1;
        v->before[i] = 0;
    }
    v->pitch = v->c;
}

/* Blocks of about BLOCK_POSITIONS positions: part of a long row, else rows, else
 * planes; smaller, so that a block stays in the cache of a core and every thread has
 * several. */
static void cut_blocks(struct dnn_direct_plan *p, int threads)
{
    int64_t all = p->conv.n * volume(p->conv.out), left = BLOCK_POSITIONS;
    int64_t each = volume(p->conv.stride) * p->conv.c + p->conv.m;

    while (left > MIN_POSITIONS &&
           (all / left < 4 * (int64_t)threads || left * each > CACHE_FLOATS))
        left /= 2;
    p->blocks = p->conv.n;
    for (int i = 2; i >= 0; i--) {
        int64_t out = p->conv.out[i], parts = (out + left / 2) / left;

        if (parts < 1) parts = 1;
        p->parts[i] = parts;
        p->block[i] = (out + parts - 1) / parts;
        p->blocks *= parts;
        left /= p->block[i];
        if (left < 1) left = 1;
    }
}

static void cut_tiles(struct dnn_direct_plan *p)
{
    int64_t lanes = p->isa->lanes;

    p->cols = dnn_round_up(p->conv.m, lanes);
    p->size = p->taps * p->rows * p->cols;
    p->wide = p->cols / (2 * lanes);
    p->col_tiles = (p->cols + 2 * lanes - 1) / (2 * lanes);
    for (int v = 1; v <= 2; v++)
        p->row_tiles[v] = (p->rows + p->isa->rows[v] - 1) / p->isa->rows[v];
    p->pack_a =
        !p->spread && p->conv.c > MANY_CHANNELS && p->taps * p->col_tiles >= MIN_READS;
    p->pack_b = p->cols != p->conv.m ||
                (p->conv.m > MANY_CHANNELS && p->taps * p->row_tiles[2] >= MIN_READS);
    /* Rows are packed in the order of the row tiles, which must be the same for all
     * column tiles. */
    if (p->pack_a && p->wide > 0) p->row_tiles[1] = p->row_tiles[2];
    p->items = p->taps *
               (p->wide * p->row_tiles[2] + (p->col_tiles - p->wide) * p->row_tiles[1]);
}

/* Estimated cycles: what the slowest thread computes and copies, and its share of
 * adding the private sums. */
static double cost(const struct dnn_direct_plan *p, int64_t over_blocks,
                   int64_t over_items, bool in_place)
{
    double positions = (double)p->conv.n * (double)volume(p->conv.out);
    double share =
        (double)((p->blocks + over_blocks - 1) / over_blocks) / (double)p->blocks;
    double part = (double)((p->items + over_items - 1) / over_items) / (double)p->items;
    double sums = (double)p->size * positions / (2. * p->isa->lanes) * share * part;
    double packs = positions * share *
                   ((p->pack_a ? 2. * (double)p->conv.c : 0) +
                    (p->pack_b ? (double)p->cols * part : 0)) /
                   3;
    double total = in_place && over_blocks == 1
                       ? 0
                       : (double)p->size * (double)(over_blocks + 1) / 2;

    return sums + packs + total / (double)(over_blocks * over_items);
}

static void split_threads(struct dnn_direct_plan *p, int threads)
{
    bool in_place = p->cols == p->conv.m && !p->swap;
    double best = -1;

    for (int64_t blocks = 1; blocks <= dnn_min64(threads, p->blocks); blocks++) {
        int64_t items = dnn_min64(threads / blocks, p->items);
        double cycles = cost(p, blocks, items, in_place);

        if (best >= 0 && cycles >= best) continue;
        best = cycles;
        p->over_blocks = (int)blocks;
        p->over_items = (int)items;
    }
    p->direct = in_place && p->over_blocks == 1;
}

/* Set the offsets in the workspace, on separate cache lines. */
static void set_offsets(struct dnn_direct_plan *p)
{
    int64_t team = (int64_t)p->over_blocks * p->over_items, region = p->conv.c;
    int64_t at = 0;

    for (int i = 0; i < 3; i++)
        region *= dnn_min64(p->conv.in[i], span(&p->conv, i, p->block[i]));
    p->pad_at = at;
    if (p->pad) at += dnn_round_up(p->conv.n * volume(p->padded) * p->conv.c, 16);
    p->off_at = at;
    if (p->spread)
        at += dnn_round_up(p->rows * (int64_t)(sizeof(int64_t) / sizeof(float)), 16);
    p->copy_at = at;
    if (!p->direct) at += p->over_blocks * dnn_round_up(p->size, 16);
    p->bias_at = at;
    at += team * dnn_round_up(p->swap ? p->conv.c : p->conv.m, 16);
    p->pack_at = at;
    p->pack_b_at = p->pack_a ? dnn_round_up(region, 16) : 0;
    p->pack_size =
        p->pack_b_at + (p->pack_b ? dnn_round_up(volume(p->block) * p->cols, 16) : 0);
    p->total = at + team * p->pack_size;
}

struct dnn_direct_plan dnn_direct_plan(const struct dnn_direct_conv *conv, int threads)
{
    struct dnn_direct_plan p = {.conv = *conv};
    struct dnn_direct_conv *v = &p.conv;

    for (int i = 0; i < 3; i++)
        if (v->dilation[i] == 0 || v->kernel[i] == 1) v->dilation[i] = 1;
    if (v->pitch == 0) v->pitch = v->c;
    p.swap = v->m <= FEW_OUTPUTS && v->c > FEW_CHANNELS && v->pitch == v->c &&
             v->stride[0] == 1 && v->stride[1] == 1 && v->stride[2] == 1;
    if (p.swap) swap_sides(v);
    p.isa = dnn_direct_find_for(v->m);
    fold(v);
    p.from = *v;
    p.taps = volume(v->kernel);
    p.rows = v->c;
    p.spread = v->c <= FEW_CHANNELS;
    if (p.spread) spread_taps(&p);
    cut_tiles(&p);
    if (threads < 1) threads = 1;
    cut_blocks(&p, threads);
    split_threads(&p, threads);
    set_offsets(&p);
    return p;
}

size_t dnn_direct_weights_work(const struct dnn_direct_conv *conv, int threads)
{
    struct dnn_direct_plan p = dnn_direct_plan(conv, threads);

    return (size_t)p.total * sizeof(float) + 64; /* 64: to align to a cache line */
}
