/* conv_tiles.c - convolutions whose windows do not overlap, and their transposes.
 *
 * Where stride and kernel are equal, each position of the small side belongs to one
 * window of the large side: a matrix product whose rows are scattered. Examples are the
 * decoder of a U-Net (2 x 2 x 2, stride 2) and 1 x 1 convolutions. Rows may have a
 * pitch, so that the result is written directly into a concatenation.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct_impl.h"
#include "backend/cpu/onednn_impl.h"
#include "base/mem.h"

#include <string.h>

enum {
    MAX_TAPS = 64,    /* maximum taps of a window                                     */
    BLOCK_ROWS = 48,  /* rows computed with a panel of weights while it is cached     */
    MAX_DEPTH = 4096, /* maximum terms of a sum: a panel must stay in some cache      */
};

/* The plan.  g is the window of the convolution, also for a transposed one: its input
 * is the big side, its output the small side. */
struct tiles {
    struct cpu_window g;
    bool scatter; /* the result is the big side: each small row makes a row per tap */
    int64_t rows, taps, off[MAX_TAPS]; /* small rows; offsets of taps, in big rows  */
    int64_t depth, cols;               /* terms of a part of a sum; results per row */
    int64_t panels;                    /* of two vectors, the last may have one     */
    int64_t panel_size;                /* floats of one packed panel                */
    int lanes;
    struct cpu_packed packed;
};

static struct tiles plan(const struct dnn_step *step)
{
    struct tiles t = {.g = dnn_cpu_window(step), .rows = 0};
    const struct dnn_direct_conv *v = &t.g.conv;

    t.scatter = (step->op->kind == DNN_OP_DECONV) == (step->op->pass == DNN_FWD);
    t.lanes = dnn_direct_find()->lanes;
    t.rows = v->n * v->out[0] * v->out[1] * v->out[2];
    t.taps = v->kernel[0] * v->kernel[1] * v->kernel[2];
    for (int64_t i = 0; i < t.taps && i < MAX_TAPS; i++)
        t.off[i] = (i / v->kernel[2] / v->kernel[1] * v->in[1] +
                    i / v->kernel[2] % v->kernel[1]) *
                       v->in[2] +
                   i % v->kernel[2];
    t.depth = t.scatter ? v->m : v->c;
    t.cols = t.scatter ? v->c : v->m;
    t.panels = (t.cols + 2 * t.lanes - 1) / (2 * t.lanes);
    t.panel_size = 2 * t.lanes * t.depth * (t.scatter ? 1 : t.taps);
    return t;
}

static bool can(const struct dnn_step *step)
{
    struct tiles t = plan(step);
    const struct dnn_direct_conv *v = &t.g.conv;

    for (int i = 0; i < 3; i++) {
        bool exact =
            v->kernel[i] == v->stride[i] && v->in[i] == v->out[i] * v->stride[i];
        bool apart = v->kernel[i] <= v->stride[i] &&
                     (v->out[i] - 1) * v->stride[i] + v->kernel[i] <= v->in[i];

        if (v->before[i] != 0 || (v->kernel[i] > 1 && v->dilation[i] != 1) ||
            !(exact || (apart && !t.scatter)))
            return false;
    }
    return t.g.groups == 1 && t.rows > 0 && t.taps <= MAX_TAPS &&
           t.panel_size <= 2 * t.lanes * (int64_t)MAX_DEPTH && dnn_cpu_post_can(step);
}

/* ---- packing: the bias in whole vectors, then panels ---- */

static int64_t bias_floats(const struct tiles *t)
{
    return t->panels * 2 * t->lanes;
}

static void pack_panel(const struct tiles *t, const float *w, int64_t tap,
                       int64_t panel, float *to)
{
    const struct dnn_direct_conv *v = &t->g.conv;
    int64_t wide = 2 * t->lanes, first = panel * wide, left = t->cols - first;
    int64_t width = left <= t->lanes ? t->lanes : wide;

    if (left > width) left = width;
    for (int64_t k = 0; k < t->depth; k++, to += width) {
        const float *from = t->scatter ? w + (tap * v->c + first) * v->m + k
                                       : w + (tap * v->c + k) * v->m + first;
        int64_t step = t->scatter ? v->m : 1;

        for (int64_t i = 0; i < width; i++)
            to[i] = i < left ? from[i * step] : 0;
    }
}

static float *panel_at(const struct tiles *t, float *keep, int64_t tap, int64_t panel)
{
    float *panels = keep + bias_floats(t);

    if (t->scatter) return panels + (tap * t->panels + panel) * t->panel_size;
    /* All taps of a panel are stored one after another. */
    bool narrow = t->cols - panel * 2 * t->lanes <= t->lanes;
    return panels + panel * t->panel_size +
           tap * t->depth * t->lanes * (narrow ? 1 : 2);
}

static void pack(const struct tiles *t, const struct cpu_call *c)
{
    const float *bias = c->op->nin > 2 ? c->in[2].mem : NULL;
    float *keep = c->keep;

    for (int64_t i = 0; i < bias_floats(t); i++)
        keep[i] = bias != NULL && i < t->cols ? bias[i] : 0;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < t->taps * t->panels; i++)
        pack_panel(t, c->in[1].mem, i / t->panels, i % t->panels,
                   panel_at(t, keep, i / t->panels, i % t->panels));
}

/* ---- running ---- */

/* The first big row of a small one. */
static int64_t first_row(const struct dnn_direct_conv *v, int64_t row)
{
    int64_t w = row % v->out[2], h = row / v->out[2] % v->out[1];
    int64_t d = row / v->out[2] / v->out[1] % v->out[0];
    int64_t n = row / v->out[2] / v->out[1] / v->out[0];

    return ((n * v->in[0] + d * v->stride[0]) * v->in[1] + h * v->stride[1]) *
               v->in[2] +
           w * v->stride[2];
}

struct block {
    const float *a[BLOCK_ROWS]; /* rows that are read, at the first tap      */
    float *to[BLOCK_ROWS];      /* rows that are written, at the first tap   */
    int64_t rows;
};

static struct block block_at(const struct tiles *t, const struct cpu_call *c,
                             int64_t first, int64_t rows)
{
    const struct cpu_array *from = &c->in[0], *to = &c->out[0];
    struct block b = {.rows = rows};

    for (int64_t i = 0; i < rows; i++) {
        int64_t big = first_row(&t->g.conv, first + i), small = first + i;

        b.a[i] = (const float *)from->mem + (t->scatter ? small : big) * from->pitch;
        b.to[i] = (float *)to->mem + (t->scatter ? big : small) * to->pitch;
    }
    return b;
}

/* Prefetch the windows of the next block: they are scattered, so that the CPU's
 * hardware prefetcher does not work.  (For windows that are written it costs more than
 * it gains.) */
static void prefetch(const struct tiles *t, const struct cpu_array *big, int64_t first,
                     int64_t rows)
{
    for (int64_t i = first; i < first + rows; i++) {
        const float *at =
            (const float *)big->mem + first_row(&t->g.conv, i) * big->pitch;

        for (int64_t tap = 0; tap < t->taps; tap++)
            for (int64_t k = 0; k < t->depth; k += 16)
                __builtin_prefetch(at + t->off[tap] * big->pitch + k);
    }
}

/* The columns of a panel, for all rows of a block. */
static void run_panel(const struct tiles *t, const struct cpu_call *c,
                      const struct block *b, int64_t tap, int64_t panel)
{
    const struct dnn_direct_isa *isa = dnn_direct_find();
    int64_t first = panel * 2 * t->lanes, left = t->cols - first, parts[MAX_TAPS] = {0};
    struct dnn_direct_product p = {.vecs = left <= t->lanes ? 1 : 2,
                                   .parts = t->scatter ? 1 : t->taps,
                                   .depth = t->depth,
                                   .off = parts,
                                   .b = panel_at(t, c->keep, tap, panel),
                                   .bias = (const float *)c->keep + first,
                                   .cols = left};
    float *to[12];

    if (!t->scatter)
        for (int64_t i = 0; i < t->taps; i++)
            parts[i] = t->off[i] * c->in[0].pitch;
    int64_t shift = first + (t->scatter ? t->off[tap] * c->out[0].pitch : 0);
    for (int64_t r = 0; r < b->rows; r += p.rows) {
        p.rows = (int)(b->rows - r < isa->rows[2] ? b->rows - r : isa->rows[2]);
        p.a = b->a + r;
        for (int i = 0; i < p.rows; i++)
            to[i] = b->to[r + i] + shift;
        p.to = to;
        isa->product(&p);
    }
}

static int run(struct dnn_dev *dev, const struct cpu_call *c, void *state,
               struct dnn_err *err)
{
    struct tiles *t = state;
    int64_t tile = dnn_direct_find()->rows[2], size = BLOCK_ROWS / tile * tile;

    (void)dev, (void)err;
    if (cpu_pack_needed(&t->packed, c)) pack(t, c);
    while (size > tile && t->rows / size < 4 * (int64_t)c->threads)
        size -= tile;
    int64_t blocks = (t->rows + size - 1) / size;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < blocks; i++) {
        int64_t first = i * size, left = t->rows - first;
        struct block b = block_at(t, c, first, left < size ? left : size);

        if (t->taps > 1 && !t->scatter && left > size)
            prefetch(t, &c->in[0], first + size,
                     left - size < size ? left - size : size);
        for (int64_t tap = 0; tap < (t->scatter ? t->taps : 1); tap++)
            for (int64_t panel = 0; panel < t->panels; panel++)
                run_panel(t, c, &b, tap, panel);
    }
    dnn_cpu_post(c);
    return 0;
}

static int need(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err)
{
    struct tiles t = plan(step);

    (void)dev, (void)err;
    int64_t npanels = t.panels * (t.scatter ? t.taps : 1);
    *need = (struct dnn_need){
        .keep = (size_t)(bias_floats(&t) + npanels * t.panel_size) * sizeof(float)};
    return 0;
}

static int prepare(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_call *call, void **state, struct dnn_err *err)
{
    struct tiles *t = dnn_alloc(sizeof *t);

    (void)dev, (void)call, (void)err;
    *t = plan(step);
    *state = t;
    return 0;
}

static const struct cpu_packed *packed(const void *state)
{
    return &((const struct tiles *)state)->packed;
}

const struct cpu_algo dnn_cpu_tiles = {.name = "tiles",
                                       .can = can,
                                       .in_pitch = 1,
                                       .out_pitch = 1,
                                       .need = need,
                                       .prepare = prepare,
                                       .run = run,
                                       .discard = dnn_free,
                                       .packed = packed,
                                       .by_isa = true};
