/* wino_weights_plan.c - how the transformed gradient of weights is cut into blocks and
 * tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/wino_weights_impl.h"

enum {
    PIECES = 256,     /* of a block: pays for fetching a tile's sums           */
    LEAST = 64,       /* as few when there are more threads than blocks        */
    CACHED = 1 << 16, /* floats of a block that are read again and again       */
    CHANNELS = 8,     /* fewer do not pay for the transforms                   */
    WIDTH = 8,        /* nor do shorter rows                                   */
};

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t up(int64_t a, int64_t to)
{
    return (a + to - 1) / to * to;
}

bool dnn_wino_weights_can(const struct dnn_direct_conv *v)
{
    if (!dnn_direct_weights_can(v)) return false;
    for (int i = 0; i < 3; i++)
        if (v->stride[i] != 1 || (v->dilation[i] > 1 && v->kernel[i] > 1)) return false;
    return v->kernel[2] == DNN_WINO_WEIGHTS_TAPS && v->c >= CHANNELS &&
           v->m >= CHANNELS && v->in[2] >= WIDTH;
}

static const struct dnn_wino_weights_isa *find(void)
{
    static const struct dnn_wino_weights_isa *const isas[] = {
#if defined(__x86_64__)
        &dnn_wino_weights_avx512,
        &dnn_wino_weights_avx2,
#endif
    };
    const struct dnn_direct_isa *here = dnn_direct_find();

    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        if (isas[i]->direct == here) return isas[i];
    return &dnn_wino_weights_plain;
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

/* In one dimension all rows are alike, whichever image they are of.  In two a large
 * image's rows take the place of planes, which are transformed only once; small ones
 * are the planes, so that blocks can have several. */
static void fold(struct dnn_direct_conv *v, int64_t pieces)
{
    if (!is_plain(v, 0)) return;
    int64_t images = v->n * v->in[0];

    v->n = 1;
    v->in[0] = v->out[0] = images;
    if (is_plain(v, 1)) {
        v->in[1] = v->out[1] = images * v->in[1];
        v->in[0] = v->out[0] = 1;
    } else if (v->out[1] * pieces >= PIECES) {
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
    p->cols = up(p->conv.m, p->lanes);
    vecs = p->cols / p->lanes;
    p->vecs = vecs == 1 ? 1 : vecs % 2 != 0 && vecs % 3 == 0 ? 3 : 2;
    p->col_tiles = (vecs + p->vecs - 1) / p->vecs;
    p->row_tiles = (p->conv.c + p->isa->rows[p->vecs] - 1) / p->isa->rows[p->vecs];
    p->items = DNN_WINO_WEIGHTS_POINTS * p->col_tiles * p->row_tiles;
    p->size = p->taps * p->conv.c * p->cols;
}

/* Rows first, whole if they can be, then rows of a plane, then planes. */
static void cut_blocks(struct dnn_wino_weights_plan *p, int threads)
{
    const struct dnn_direct_conv *v = &p->conv;
    int64_t all = v->n * v->out[0] * v->out[1] * p->pieces, left = PIECES;

    while (left > LEAST &&
           (all / left < 4 * (int64_t)threads || left * (v->c + p->cols) > CACHED))
        left /= 2;
    p->blocks = v->n;
    for (int i = 2; i >= 0; i--) {
        int64_t out = i == 2 ? p->pieces : v->out[i];
        int64_t parts = max64((out + left / 2) / left, 1);

        p->parts[i] = parts;
        p->block[i] = (out + parts - 1) / parts;
        p->blocks *= parts;
        left = max64(left / p->block[i], 1);
    }
    p->ring = min64(p->block[0] + v->kernel[0] - 1, v->in[0]);
    p->x_rows = min64(p->block[1] + v->kernel[1] - 1, v->in[1]);
}

/* Cycles times lanes, roughly: what the slowest thread computes and transforms, and its
 * share of summing the private results. */
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
    double made = pieces * share * (double)(2 * p->conv.c + p->cols) * 8;
    double total =
        DNN_WINO_WEIGHTS_POINTS * (double)p->size * (double)(over_blocks + 1) * 4;

    return sums + made + total / (double)(over_blocks * over_items);
}

static void share_out(struct dnn_wino_weights_plan *p, int threads)
{
    double best = -1;

    for (int64_t blocks = 1; blocks <= min64(threads, p->blocks); blocks++) {
        int64_t items = min64(threads / blocks, p->items);
        double now = cost(p, blocks, items);

        if (best >= 0 && now >= best) continue;
        best = now;
        p->over_blocks = (int)blocks;
        p->over_items = (int)items;
    }
}

/* Places in the scratch memory, each on a cache line of its own. */
static void place(struct dnn_wino_weights_plan *p)
{
    const struct dnn_direct_conv *v = &p->conv;
    int64_t tap = (int64_t)(sizeof(struct dnn_wino_weights_tap) / sizeof(float));
    int64_t plane =
        p->x_rows * p->block[2] * v->c + DNN_WINO_WEIGHTS_SLACK * p->row_tiles;

    p->x_step = up(p->ring * plane, 16) + 16;
    p->y_step = up(p->block[0] * p->block[1] * p->block[2] * p->cols, 16) + 16;
    p->sums_size = up(DNN_WINO_WEIGHTS_POINTS * p->size, 16);
    p->own_at = p->over_blocks * p->sums_size;
    p->bias_in = 0;
    p->edge_in = p->bias_in + up(v->m, 16);
    p->taps_in = p->edge_in + DNN_WINO_WEIGHTS_POINTS *
                                  up(max64(v->c + DNN_WINO_WEIGHTS_SLACK, p->cols), 16);
    p->x_in = p->taps_in + up(p->taps * tap, 16);
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
    share_out(&p, threads);
    place(&p);
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

    /* 64: to begin on a cache line */
    return (size_t)(p.own_at + team * p.own_size) * sizeof(float) + 64;
}
