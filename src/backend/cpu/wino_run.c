/* wino_run.c - the part of a Winograd convolution that one thread computes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/wino_impl.h"

#include <string.h>

enum {
    OUT = DNN_WINO_OUT,
    DEPTH = 256, /* rows of packed weights that stay in the L1 cache */
    LINE = 64    /* bytes of a cache line                            */
};

/* A block of one or several output planes. */
struct block {
    int64_t n, d, h, w; /* position of its corner; h and w in tiles */
    int64_t high, wide, deep;
    int64_t lo, hi;     /* reads input planes lo ... hi - 1 */
    int64_t row, plane; /* floats of the values at a point */
};

static struct block block_at(const struct dnn_wino *s, int64_t unit)
{
    const struct dnn_direct_conv *v = &s->v;
    int64_t index = unit / s->layers, layer = unit % s->layers, w = index % s->across;
    int64_t h = index / s->across % s->down;
    struct block p = {.n = index / s->across / s->down,
                      .d = dnn_direct_cut(v->out[0], s->layers, layer),
                      .h = dnn_direct_cut(s->tile_rows, s->down, h),
                      .w = dnn_direct_cut(s->tiles, s->across, w)};

    p.high = dnn_direct_cut(s->tile_rows, s->down, h + 1) - p.h;
    p.wide = dnn_direct_cut(s->tiles, s->across, w + 1) - p.w;
    p.deep = dnn_direct_cut(v->out[0], s->layers, layer + 1) - p.d;
    p.lo = p.d - v->before[0];
    p.hi = p.lo + v->kernel[0] + p.deep - 1;
    if (p.lo < 0) p.lo = 0;
    if (p.hi > v->in[0]) p.hi = v->in[0];
    p.row = p.wide * v->c;
    p.plane = (p.high + s->lines - 1) * p.row;
    return p;
}

/* Transform one input plane to values at the points. */
static void fill(const struct dnn_wino *s, const struct cpu_array *x,
                 const struct block *p, int64_t plane, float *values)
{
    const struct dnn_direct_conv *v = &s->v;
    const float *from = (const float *)x->mem +
                        (p->n * v->in[0] + plane) * v->in[1] * v->in[2] * x->pitch;
    struct dnn_wino_input in = {.height = s->height,
                                .pitch = x->pitch,
                                .width = v->in[2],
                                .at = p->w * OUT - v->before[2],
                                .c = v->c,
                                .count = p->wide,
                                .v = values + plane % s->ring * p->plane,
                                .v_step = s->v_step};

    for (int64_t r = 0; r < p->high + s->lines - 1; r++, in.v += p->row) {
        bool any = false;

        for (int i = 0; i < dnn_wino_lines(s->height); i++) {
            int64_t h = (p->h + r) * s->height - v->before[1] + i;
            bool inside = h >= 0 && h < v->in[1];

            in.x[i] = inside ? from + h * v->in[2] * x->pitch : NULL;
            any = any || inside;
        }
        if (any) {
            s->isa->input(&in);
            continue;
        }
        for (int f = 0; f < s->points; f++)
            memset(in.v + f * s->v_step, 0, (size_t)p->row * sizeof(float));
    }
}

/* ---- prefetching ---- */

/* count rows of an array, each of `bytes` bytes, step bytes apart. */
struct rows {
    const char *at;
    int64_t bytes, step, count;
};

/* Prefetching of two lists of rows: a few cache lines at each product. */
struct prefetch {
    struct rows rows[2];
    int list;
    int64_t row, byte;
    int64_t lines; /* per product */
};

static void prefetch_lines(struct prefetch *a)
{
    for (int64_t i = 0; i < a->lines && a->list < 2; i++) {
        const struct rows *r = &a->rows[a->list];

        if (a->row == r->count) {
            a->list++;
            a->row = 0;
            continue;
        }
        __builtin_prefetch(r->at + a->row * r->step + a->byte, 0, 2);
        a->byte += LINE;
        if (a->byte < r->bytes) continue;
        a->byte = 0;
        a->row++;
    }
}

/* The outputs of a block. */
static struct rows outputs(const struct dnn_wino *s, const struct cpu_array *y,
                           const struct block *p)
{
    const int64_t *out = s->v.out;
    int64_t h = p->h * s->height, bytes = 4 * y->pitch;
    int64_t row = (p->n * out[0] + p->d) * out[1] + h;

    return (struct rows){
        .at = (const char *)y->mem + (row * out[2] + p->w * OUT) * bytes,
        .bytes = dnn_min64(p->wide * OUT, out[2] - p->w * OUT) * bytes,
        .step = out[2] * bytes,
        .count = p->deep > 1 ? p->deep * out[1]
                             : dnn_min64(p->high * s->height, out[1] - h)};
}

/* The inputs of a block from a plane on: of this plane, or of all remaining ones; empty
 * if there is no such plane. */
static struct rows inputs(const struct dnn_wino *s, const struct cpu_array *x,
                          const struct block *p, int64_t plane)
{
    const struct dnn_direct_conv *v = &s->v;
    int64_t h = p->h * s->height - v->before[1], w = p->w * OUT - v->before[2];
    int64_t h_end = dnn_min64(h + p->high * s->height + v->kernel[1] - 1, v->in[1]);
    int64_t w_end = dnn_min64(w + p->wide * OUT + 2, v->in[2]), bytes = 4 * x->pitch;

    h = dnn_max64(h, 0);
    w = dnn_max64(w, 0);
    if (plane >= p->hi || h >= h_end || w >= w_end) return (struct rows){0};
    int64_t row = (p->n * v->in[0] + plane) * v->in[1] + h;
    return (struct rows){.at = (const char *)x->mem + (row * v->in[2] + w) * bytes,
                         .bytes = (w_end - w) * bytes,
                         .step = v->in[2] * bytes,
                         .count = p->deep > 1 && h == 0 ? (p->hi - plane) * v->in[1]
                                                        : h_end - h};
}

static int64_t lines_of(const struct rows *r)
{
    return r->count * ((r->bytes + LINE - 1) / LINE);
}

/* ---- sums ---- */

/* Some tiles of a block at one point: of one plane, or all tiles of several planes. */
struct part {
    int64_t first, tiles, planes;
    const float *values, *weights;
    int vecs;
    float *sums;
};

/* Some of the terms, for one plane. */
static void add(const struct dnn_wino *s, const struct part *part,
                struct dnn_wino_product t, struct prefetch *prefetch)
{
    int64_t rows = s->isa->rows[t.vecs];
    int64_t blocks = (part->tiles + rows - 1) / rows;
    const float *a = t.a;
    float *d = t.d;

    for (int64_t i = 0; i < blocks; i++) {
        int64_t at = dnn_direct_cut(part->tiles, blocks, i);

        t.rows = (int)(dnn_direct_cut(part->tiles, blocks, i + 1) - at);
        t.a = a + at * t.a_step;
        t.d = d + at * t.vecs * s->lanes;
        prefetch_lines(prefetch);
        s->isa->product(&t);
    }
}

/* Terms: taps from ... to - 1, depth channels of each from k on. */
struct terms {
    int64_t from, to, k, depth;
};

/* Add terms for plane i; taps outside the input are skipped. */
static void add_plane(const struct dnn_wino *s, const struct block *p,
                      const struct part *part, int64_t i, const struct terms *terms,
                      struct prefetch *prefetch)
{
    int64_t off[DNN_WINO_MAX_TAPS] = {0}, c = s->v.c, width = part->vecs * s->lanes;
    int64_t plane = p->d + i - s->v.before[0]; /* that of the first tap */
    int64_t first = dnn_max64(-plane, 0) * s->lines;
    int64_t last = dnn_min64(s->v.in[0] - plane, s->v.kernel[0]) * s->lines;
    int64_t from = dnn_max64(terms->from, first), to = dnn_min64(terms->to, last);
    bool none = first >= last && terms->from == 0 && terms->k == 0;
    struct dnn_wino_product t = {.vecs = part->vecs,
                                 .add = !none && (from > first || terms->k > 0),
                                 .depth = terms->depth,
                                 .a = part->values + terms->k,
                                 .b = part->weights,
                                 .a_step = c,
                                 .off = off,
                                 .d = part->sums + i * part->tiles * width};

    if (from >= to && !none) return;
    for (int64_t tap = from; tap < to; tap++)
        off[t.parts++] = (plane + tap / s->lines) % s->ring * p->plane +
                         tap % s->lines * p->row + part->first * c;
    if (t.parts > 0) t.b += (from * c + terms->k) * width;
    add(s, part, t, prefetch);
}

/* Add all terms, in groups whose weights stay in the cache. */
static void sum(const struct dnn_wino *s, const struct block *p,
                const struct part *part, struct prefetch *prefetch)
{
    int64_t c = s->v.c, together = c < DEPTH ? DEPTH / c : 1;
    struct terms t;

    for (t.from = 0; t.from < s->taps; t.from = t.to) {
        t.to = dnn_min64(t.from + together, s->taps);
        for (t.k = 0; t.k < c; t.k += t.depth) {
            t.depth = dnn_min64(c - t.k, DEPTH);
            for (int64_t i = 0; i < part->planes; i++)
                add_plane(s, p, part, i, &t, prefetch);
        }
    }
}

/* ---- outputs ---- */

/* Compute the outputs of some tiles, row by row. */
static void finish(const struct dnn_wino *s, const struct cpu_call *c,
                   const struct block *p, int64_t panel, const struct part *part)
{
    const struct dnn_direct_conv *v = &s->v;
    int64_t first = panel * 2 * s->lanes, n = part->tiles * part->planes, tiles;
    struct dnn_wino_output out = {.height = s->height,
                                  .m = part->sums,
                                  .m_step = s->m_step,
                                  .pitch = c->out[0].pitch,
                                  .cols = v->m - first,
                                  .vecs = part->vecs,
                                  .bias = (const float *)c->keep + first,
                                  .relu = s->relu,
                                  .alpha = s->alpha};

    for (int64_t i = 0; i < n; i += tiles) {
        int64_t d = p->d + i / part->tiles, tile = part->first + i % part->tiles;
        int64_t w = (p->w + tile % p->wide) * OUT;
        int64_t h = (p->h + tile / p->wide) * s->height;
        int64_t row = (p->n * v->out[0] + d) * v->out[1] + h;

        tiles = dnn_min64(part->tiles - i % part->tiles, p->wide - tile % p->wide);
        out.count = dnn_min64(v->out[2] - w, tiles * OUT);
        for (int j = 0; j < s->height; j++)
            out.y[j] = h + j < v->out[1]
                           ? (float *)c->out[0].mem +
                                 ((row + j) * v->out[2] + w) * out.pitch + first
                           : NULL;
        s->isa->output(&out);
        out.m += tiles * out.vecs * s->lanes;
    }
}

static void points_of(const struct dnn_wino *s, const struct cpu_call *c,
                      const struct block *p, int64_t panel, struct part *part,
                      float *mem, struct prefetch *prefetch)
{
    const float *weights = (const float *)c->keep + dnn_wino_panel(s, panel);
    float *sums = mem + s->points * s->v_step;

    for (int f = 0; f < s->points; f++) {
        part->values = mem + f * s->v_step;
        part->weights = weights + f * dnn_wino_panel_size(s, panel);
        part->sums = sums + f * s->m_step;
        sum(s, p, part, prefetch);
    }
    part->sums = sums;
    finish(s, c, p, panel, part);
}

/* A panel of outputs of a block whose inputs have been transformed. */
static void panel_of(const struct dnn_wino *s, const struct cpu_call *c,
                     const struct block *p, int64_t panel, float *mem,
                     struct prefetch *prefetch)
{
    int64_t tiles = p->high * p->wide;
    struct part part = {
        .vecs = dnn_wino_vecs(s, panel), .tiles = tiles, .planes = p->deep};
    int64_t rows = s->isa->rows[part.vecs], blocks = (tiles + rows - 1) / rows;
    int64_t per_group = dnn_max64(s->group / rows, 1),
            groups = (blocks + per_group - 1) / per_group;

    if (p->deep > 1) {
        points_of(s, c, p, panel, &part, mem, prefetch);
        return;
    }
    for (int64_t i = 0; i < groups; i++) {
        part.first = dnn_direct_cut(blocks, groups, i) * rows;
        part.tiles =
            dnn_min64(dnn_direct_cut(blocks, groups, i + 1) * rows, tiles) - part.first;
        points_of(s, c, p, panel, &part, mem, prefetch);
    }
}

void dnn_wino_run(const struct dnn_wino *s, const struct cpu_call *c, int64_t from,
                  int64_t to, float *mem)
{
    struct block p = block_at(s, from), next;
    int64_t filled = p.lo;

    for (int64_t unit = from; unit < to; unit++, p = next) {
        for (; filled < p.hi; filled++)
            fill(s, &c->in[0], &p, filled, mem);
        next = unit + 1 < to ? block_at(s, unit + 1) : (struct block){0};
        if (next.d == 0 || filled < next.lo) filled = next.lo;
        struct prefetch prefetch = {
            .rows = {outputs(s, &c->out[0], &p), inputs(s, &c->in[0], &next, filled)}
        };
        prefetch.lines =
            (lines_of(&prefetch.rows[0]) + lines_of(&prefetch.rows[1])) /
                (p.deep * p.high * p.wide * s->points / s->isa->rows[2] + 1) +
            1;
        for (int64_t panel = 0; panel < s->panels; panel++)
            panel_of(s, c, &p, panel, mem, &prefetch);
    }
}
