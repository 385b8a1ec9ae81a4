/* wino_weights_plan.c - how the Winograd gradient of the weights is split into blocks
 * and tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/wino_weights_impl.h"

enum {
    BLOCK_PIECES = 256,     /* of a block: enough to amortize loading a tile's sums  */
    MIN_PIECES = 64,        /* minimum, if there are more threads than blocks        */
    CACHE_FLOATS = 1 << 16, /* floats of a block that stay in the cache              */
    MIN_CHANNELS = 8,       /* with fewer the transforms do not pay off              */
    MIN_WIDTH = 8,          /* nor with shorter rows                                 */
};

bool dnn_wino_weights_can(const struct dnn_direct_conv *v)
{
    if (!dnn_direct_weights_can(v)) return false;
    for (int i = 0; i < 3; i++)
        if (v->stride[i] != 1 || (v->dilation[i] > 1 && v->kernel[i] > 1)) return false;
    return v->kernel[2] == DNN_WINO_WEIGHTS_TAPS && v->c >= MIN_CHANNELS &&
           v->m >= MIN_CHANNELS && v->in[2] >= MIN_WIDTH;
}

static const struct dnn_wino_weights_isa *find(void)
{
    static const struct dnn_wino_weights_isa *const isas[] = {
        &dnn_wino_weights_plain,
#if defined(__x86_64__)
        &dnn_wino_weights_avx2,
        &dnn_wino_weights_avx512,
#endif
    };

    return isas[dnn_direct_level()];
}

static bool is_plain(const struct dnn_direct_conv *v, int i)
{
    return v->kernel[i] == 1 && v->before[i] == 0 && v->in[i] == v->out[i];
}

static void move_axis(struct dnn_direct_conv *v, int to, int from)
{
    v->in[to] = v->in[from];
    v->out[to] = v->out[from];
    v->kernel[to] = v->kernel[from];
    v->before[to] = v->before[from];
}

/* 1D: merge all rows of the batch into one plane. 2D: treat the rows of a large image
 * as planes, which are transformed only once; treat small images as planes, so that a
 * block can have several. */
static void fold(struct dnn_direct_conv *v, int64_t pieces)
{
    if (!is_plain(v, 0)) return;
    int64_t images = v->n * v->in[0];

    v->n = 1;
    v->in[0] = v->out[0] = images;
    if (is_plain(v, 1)) {
        v->in[1] = v->out[1] = images * v->in[1];
        v->in[0] = v->out[0] = 1;
    } else if (v->out[1] * pieces >= BLOCK_PIECES) {
        v->n = images;
        move_axis(v, 0, 1);
        v->in[1] = v->out[1] = v->kernel[1] = 1;
        v->before[1] = 0;
    }
}

static void cut_tiles(struct dnn_wino_weights_plan *p)
{
    int64_t vecs;

    p->lanes = p->isa->direct->lanes;
    p->cols = dnn_round_up(p->conv.m, p->lanes);
    vecs = p->cols / p->lanes;
    p->vecs = vecs == 1 ? 1 : vecs % 2 != 0 && vecs % 3 == 0 ? 3 : 2;
    p->col_tiles = (vecs + p->vecs - 1) / p->vecs;
    p->row_tiles = (p->conv.c + p->isa->rows[p->vecs] - 1) / p->isa->rows[p->vecs];
    p->items = DNN_WINO_WEIGHTS_POINTS * p->col_tiles * p->row_tiles;
    p->size = p->taps * p->conv.c * p->cols;
}

/* Blocks of about BLOCK_PIECES pieces: part of a row, else whole rows, else planes. */
static void cut_blocks(struct dnn_wino_weights_plan *p, int threads)
{
    const struct dnn_direct_conv *v = &p->conv;
    int64_t all = v->n * v->out[0] * v->out[1] * p->pieces, left = BLOCK_PIECES;

    while (left > MIN_PIECES && (all / left < 4 * (int64_t)threads ||
                                 left * (v->c + p->cols) > CACHE_FLOATS))
        left /= 2;
    p->blocks = v->n;
    for (int i = 2; i >= 0; i--) {
        int64_t out = i == 2 ? p->pieces : v->out[i];
        int64_t parts = dnn_max64((out + left / 2) / left, 1);

        p->parts[i] = parts;
        p->block[i] = (out + parts - 1) / parts;
        p->blocks *= parts;
        left = dnn_max64(left / p->block[i], 1);
    }
    p->ring = dnn_min64(p->block[0] + v->kernel[0] - 1, v->in[0]);
    p->x_rows = dnn_min64(p->block[1] + v->kernel[1] - 1, v->in[1]);
}

/* Estimated cycles times lanes: what the slowest thread computes and transforms, and
 * its share of adding the private sums. */
static double cost(const struct dnn_wino_weights_plan *p, int64_t over_blocks,
                   int64_t over_items)
{
    double pieces = (double)p->conv.n * (double)p->conv.out[0] *
                    (double)p->conv.out[1] * (double)p->pieces;
    double share =
        (double)((p->blocks + over_blocks - 1) / over_blocks) / (double)p->blocks;
    double part = (double)((p->items + over_items - 1) / over_items) / (double)p->items;
    double sums =
        DNN_WINO_WEIGHTS_POINTS * (double)p->size / 2. * pieces * share * part;
    double transforms = pieces * share * (double)(2 * p->conv.c + p->cols) * 8;
    double total =
        DNN_WINO_WEIGHTS_POINTS * (double)p->size * (double)(over_blocks + 1) * 4;

    return sums + transforms + total / (double)(over_blocks * over_items);
}

static void split_threads(struct dnn_wino_weights_plan *p, int threads)
{
    double best = -1;

    for (int64_t blocks = 1; blocks <= dnn_min64(threads, p->blocks); blocks++) {
        int64_t items = dnn_min64(threads / blocks, p->items);
        double cycles = cost(p, blocks, items);

        if (best >= 0 && cycles >= best) continue;
        best = cycles;
        p->over_blocks = (int)blocks;
        p->over_items = (int)items;
    }
}

/* Set the offsets in the workspace, on separate cache lines. */
static void set_offsets(struct dnn_wino_weights_plan *p)
{
    const struct dnn_direct_conv *v = &p->conv;
    int64_t tap = (int64_t)(sizeof(struct dnn_wino_weights_tap) / sizeof(float));
    int64_t plane =
        p->x_rows * p->block[2] * v->c + DNN_WINO_WEIGHTS_SLACK * p->row_tiles;

    p->x_step = dnn_round_up(p->ring * plane, 16) + 16;
    p->y_step =
        dnn_round_up(p->block[0] * p->block[1] * p->block[2] * p->cols, 16) + 16;
    p->sums_size = dnn_round_up(DNN_WINO_WEIGHTS_POINTS * p->size, 16);
    p->own_at = p->over_blocks * p->sums_size;
    p->bias_in = 0;
    p->edge_in = p->bias_in + dnn_round_up(v->m, 16);
    p->taps_in =
        p->edge_in +
        DNN_WINO_WEIGHTS_POINTS *
            dnn_round_up(dnn_max64(v->c + DNN_WINO_WEIGHTS_SLACK, p->cols), 16);
    p->x_in = p->taps_in + dnn_round_up(p->taps * tap, 16);
    p->y_in = p->x_in + DNN_WINO_WEIGHTS_POINTS * p->x_step;
    p->own_size = p->y_in + DNN_WINO_WEIGHTS_POINTS * p->y_step;
}

struct dnn_wino_weights_plan dnn_wino_weights_plan(const struct dnn_direct_conv *conv,
                                                   int threads)
{
    struct dnn_wino_weights_plan p = {.conv = *conv, .isa = find()};

    for (int i = 0; i < 3; i++)
        p.conv.dilation[i] = 1;
    if (p.conv.pitch == 0) p.conv.pitch = conv->c;
    p.pieces = (conv->out[2] + DNN_WINO_WEIGHTS_OUT - 1) / DNN_WINO_WEIGHTS_OUT;
    fold(&p.conv, p.pieces);
    p.taps = p.conv.kernel[0] * p.conv.kernel[1];
    cut_tiles(&p);
    if (threads < 1) threads = 1;
    cut_blocks(&p, threads);
    split_threads(&p, threads);
    set_offsets(&p);
    return p;
}

int64_t dnn_wino_weights_x_at(const struct dnn_wino_weights_plan *p, int64_t r,
                              int64_t *rows, int64_t *plane)
{
    int64_t pieces = p->x_rows * p->block[2];
    int64_t row = dnn_direct_cut(p->conv.c, p->row_tiles, r);

    *rows = dnn_direct_cut(p->conv.c, p->row_tiles, r + 1) - row;
    *plane = pieces * *rows + DNN_WINO_WEIGHTS_SLACK;
    return p->ring * (pieces * row + DNN_WINO_WEIGHTS_SLACK * r);
}

size_t dnn_wino_weights_work(const struct dnn_direct_conv *conv, int threads)
{
    struct dnn_wino_weights_plan p = dnn_wino_weights_plan(conv, threads);
    int64_t team = (int64_t)p.over_blocks * p.over_items;

    /* 64: to align to a cache line */
    return (size_t)(p.own_at + team * p.own_size) * sizeof(float) + 64;
}
