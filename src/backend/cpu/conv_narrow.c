/* conv_narrow.c - convolutions with few input and output channels, such as the first
 * ones of a small network; forward, and backward data where the stride is 1 (a
 * convolution with the kernel mirrored).
 *
 * oneDNN vectorizes over channels; this kernel over the positions of a row
 * (direct_narrow.h). Rows of the input are copied, channel by channel and with their
 * zero padding, to memory that stays in the cache: a row is copied once and read by all
 * output rows that need it. With a stride s, positions are copied in s phases (i % s),
 * so that the inputs of neighbouring outputs are contiguous.
 *
 * Each sum is added in the same order at any position of a vector: results do not
 * depend on the number of threads or on the other samples of a batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct_impl.h"
#include "backend/cpu/onednn_impl.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum {
    MAX_CHANNELS = 16,        /* maximum of input channels, of output channels */
    MAX_TAP_ROWS = 64,        /* maximum rows of taps of a window              */
    MAX_TERMS = 256,          /* maximum taps times channels of a row of taps  */
    MAX_ROWS = 256,           /* maximum rows that a thread caches             */
    MIN_SPLIT = 64,           /* shorter rows are not split                    */
    CACHE_FLOATS = 16 * 1024, /* floats that stay in a fast cache              */
    MAX_FLOATS = 128 * 1024   /* maximum floats that a thread caches           */
};

struct narrow {
    struct dnn_direct_conv v; /* the convolution; backward: the mirrored one */
    bool back;
    const struct dnn_direct_isa *isa;
    int64_t parts;          /* that a row of outputs is split into                */
    int64_t span, x_step;   /* floats of a phase, of a channel                    */
    int64_t ring;           /* rows cached for each tap of the first axis         */
    int64_t slot, size;     /* floats of a cached row, of all rows of a thread    */
    int64_t depth;          /* weights of one result                              */
    int64_t off[MAX_TERMS]; /* offsets of the terms of a row of taps              */
    bool relu;
    float alpha;
    struct cpu_packed packed;
};

/* n / stride rounded up. Stride 1 is common, and a division is slow. */
static int64_t ceil_div(int64_t n, int64_t stride)
{
    return stride == 1 ? n : (n + stride - 1) / stride;
}

/* Set the number of parts of a row, and the sizes that follow from it. */
static void set_parts(struct narrow *s, int64_t parts)
{
    const struct dnn_direct_conv *v = &s->v;
    int64_t lanes = s->isa->lanes, longest = (v->out[2] + parts - 1) / parts;

    s->parts = parts;
    /* Whole vectors in every part. */
    s->span = dnn_round_up(longest, lanes) +
              (v->kernel[2] - 1) * v->dilation[2] / v->stride[2];
    s->span = dnn_round_up(s->span, lanes);
    s->x_step = s->span * v->stride[2];
    s->slot = s->x_step * v->c;
    s->size = dnn_round_up(s->slot * s->ring * v->kernel[0], 16);
}

static struct narrow plan(const struct dnn_step *step)
{
    const struct dnn_op_unary *post = step->op->post;
    struct cpu_window g = dnn_cpu_window(step);
    struct narrow s = {.v = g.conv, .back = step->op->pass == DNN_BWD_DATA};
    const struct dnn_direct_conv *v = &s.v;

    s.isa = dnn_direct_find();
    if (s.back) s.v = dnn_cpu_mirrored(&g.conv);
    s.ring = (v->kernel[1] - 1) * v->dilation[1] + 1;
    do {
        set_parts(&s, s.parts + 1);
    } while (s.size > CACHE_FLOATS && v->out[2] / s.parts > MIN_SPLIT);
    s.depth = v->kernel[0] * v->kernel[1] * v->kernel[2] * v->c;
    for (int64_t i = 0; i < v->kernel[2] * v->c && i < MAX_TERMS; i++) {
        int64_t at = i / v->c * v->dilation[2];

        s.off[i] = i % v->c * s.x_step + at % v->stride[2] * s.span + at / v->stride[2];
    }
    s.relu = post != NULL && post->fn == DNN_RELU && post->threshold == 0 &&
             isinf(post->max_value);
    s.alpha = s.relu ? (float)post->alpha : 0;
    return s;
}

/* Whether other kernels are faster: if many channels fill vectors, also with 1 x 1
 * kernels, and for long sums with few outputs. */
static bool others_faster(const struct narrow *s)
{
    const struct dnn_direct_conv *v = &s->v;
    bool tap = v->kernel[0] * v->kernel[1] * v->kernel[2] == 1;

    if (v->m % 8 == 0) return v->m > 8 || v->c > 8 || tap;
    return !s->back && v->c == MAX_CHANNELS && v->m < 4;
}

static bool can(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);
    const struct dnn_direct_conv *v = &g.conv;

    if (g.groups != 1 || v->n < 1 || v->c > MAX_CHANNELS || v->m > MAX_CHANNELS ||
        v->kernel[0] * v->kernel[1] > MAX_TAP_ROWS || v->kernel[2] * v->c > MAX_TERMS ||
        v->kernel[2] * v->m > MAX_TERMS)
        return false;
    for (int i = 0; i < 3; i++)
        if (step->op->pass == DNN_BWD_DATA && v->stride[i] != 1) return false;
    struct narrow s = plan(step);
    return s.ring * s.v.kernel[0] <= MAX_ROWS && s.size <= MAX_FLOATS &&
           !others_faster(&s) && dnn_cpu_post_can(step);
}

/* ---- packing ---- */

/* (taps, c, m), or mirrored (taps, m, c), becomes (m / 4, taps, c, 4). */
static void pack(const struct narrow *s, const float *w, float *to)
{
    const struct dnn_direct_conv *v = &s->v;
    int64_t taps = s->depth / v->c;

    for (int64_t first = 0; first < v->m; first += 4)
        for (int64_t tap = 0; tap < taps; tap++)
            for (int64_t k = 0; k < v->c; k++)
                for (int64_t j = first; j < first + 4 && j < v->m; j++)
                    *to++ = s->back ? w[((taps - 1 - tap) * v->m + j) * v->c + k]
                                    : w[(tap * v->c + k) * v->m + j];
}

/* ---- running ---- */

/* The memory of a thread. */
struct row_cache {
    const struct narrow *s;
    const struct cpu_array *x;
    float *cache;
    int64_t cached[MAX_ROWS];      /* index of the cached input row; -1: none        */
    int64_t from, to;              /* the part of the output rows: from ... to - 1   */
    const float *at[MAX_TAP_ROWS]; /* cached rows that a row of outputs reads        */
    int64_t row[MAX_TAP_ROWS];     /* the rows of taps they are multiplied with      */
};

/* Start another part: cached rows become invalid, and the padding moves. */
static void start_part(struct row_cache *r, int64_t part)
{
    const struct narrow *s = r->s;
    int64_t from, to;

    dnn_cpu_share(s->v.out[2], (int)s->parts, (int)part, &from, &to);
    if (from == r->from && to == r->to) return;
    r->from = from;
    r->to = to;
    memset(r->cache, 0, (size_t)s->size * sizeof *r->cache);
    for (int64_t i = 0; i < s->ring * s->v.kernel[0]; i++)
        r->cached[i] = -1;
}

/* Copy a row of the input; the padding stays zero. */
static void copy(const struct row_cache *r, int64_t row, float *to)
{
    const struct dnn_direct_conv *v = &r->s->v;
    const float *x = (const float *)r->x->mem + row * v->in[2] * r->x->pitch;
    int64_t stride = v->stride[2], span = r->s->span;

    for (int64_t phase = 0; phase < stride; phase++) {
        int64_t at = r->from * stride + phase - v->before[2], skip = 0;

        if (at < 0) skip = ceil_div(-at, stride);
        at += skip * stride;
        int64_t count = at < v->in[2] ? ceil_div(v->in[2] - at, stride) : 0;
        if (count > span - skip) count = span - skip;
        if (count > 0)
            r->s->isa->deinterleave(x + at * r->x->pitch, stride * r->x->pitch, count,
                                    v->c, to + phase * span + skip, r->s->x_step);
    }
}

/* The cached copy of a row of the input. */
static const float *row_at(struct row_cache *r, int64_t slot, int64_t row)
{
    float *at = r->cache + slot * r->s->slot;

    if (r->cached[slot] != row) copy(r, row, at);
    r->cached[slot] = row;
    return at;
}

/* A part of the row of outputs (n, d, h). */
struct line {
    int64_t n, d, h, part;
};

/* f: values that are the same for all lines. */
static void run_line(struct row_cache *r, const struct line *l,
                     struct dnn_direct_narrow *f)
{
    const struct dnn_direct_conv *v = &r->s->v;
    int64_t ring = r->s->ring, h0 = l->h * v->stride[1] - v->before[1];
    int64_t first = h0 % ring + (h0 % ring < 0 ? ring : 0);

    f->rows = 0;
    for (int64_t kd = 0; kd < v->kernel[0]; kd++) {
        int64_t d = l->d * v->stride[0] + kd * v->dilation[0] - v->before[0];
        int64_t slot = first, h = h0;

        if (d < 0 || d >= v->in[0]) continue;
        for (int64_t kh = 0; kh < v->kernel[1]; kh++) {
            if (h >= 0 && h < v->in[1]) {
                r->at[f->rows] =
                    row_at(r, kd * ring + slot, (l->n * v->in[0] + d) * v->in[1] + h);
                r->row[f->rows++] = kd * v->kernel[1] + kh;
            }
            h += v->dilation[1];
            slot += v->dilation[1];
            if (slot >= ring) slot -= ring;
        }
    }
    r->s->isa->narrow(f);
}

/* Compute share number share of all rows, with an own cache for input rows. */
static void run_share(const struct narrow *s, const struct cpu_call *c, int share,
                      int shares)
{
    const struct dnn_direct_conv *v = &s->v;
    struct row_cache r = {.s = s, .x = &c->in[0]};
    struct dnn_direct_narrow f = {.terms = v->kernel[2] * v->c,
                                  .m = v->m,
                                  .x = r.at,
                                  .row = r.row,
                                  .off = s->off,
                                  .w = c->keep,
                                  .depth = s->depth,
                                  .bias =
                                      !s->back && c->op->nin > 2 ? c->in[2].mem : NULL,
                                  .relu = s->relu,
                                  .alpha = s->alpha,
                                  .y_step = c->out[0].pitch};
    int64_t i, last;

    r.cache = (float *)c->work + share * s->size;
    dnn_cpu_share(v->n * v->out[0] * s->parts * v->out[1], shares, share, &i, &last);
    while (i < last) {
        int64_t plane = i / v->out[1] / s->parts;
        struct line l = {.n = plane / v->out[0],
                         .d = plane % v->out[0],
                         .h = i % v->out[1],
                         .part = i / v->out[1] % s->parts};

        start_part(&r, l.part);
        f.count = r.to - r.from;
        for (; i < last && l.h < v->out[1]; i++, l.h++) {
            int64_t at = (plane * v->out[1] + l.h) * v->out[2] + r.from;

            f.y = (float *)c->out[0].mem + at * f.y_step;
            run_line(&r, &l, &f);
        }
    }
}

static int run(struct dnn_dev *dev, const struct cpu_call *c, void *state,
               struct dnn_err *err)
{
    struct narrow *s = state;

    (void)dev, (void)err;
    if (cpu_pack_needed(&s->packed, c)) pack(s, c->in[1].mem, c->keep);
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int i = 0; i < c->threads; i++)
        run_share(s, c, i, c->threads);
    if (!s->relu) dnn_cpu_post(c);
    return 0;
}

static int need(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err)
{
    struct narrow s = plan(step);

    (void)err;
    *need = (struct dnn_need){.work = (size_t)(dev->threads * s.size) * sizeof(float),
                              .keep = (size_t)(s.depth * s.v.m) * sizeof(float)};
    return 0;
}

static int prepare(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_call *call, void **state, struct dnn_err *err)
{
    struct narrow *s = dnn_alloc(sizeof *s);

    (void)dev, (void)call, (void)err;
    *s = plan(step);
    *state = s;
    return 0;
}

static const struct cpu_packed *packed(const void *state)
{
    return &((const struct narrow *)state)->packed;
}

const struct cpu_algo dnn_cpu_narrow = {.name = "narrow",
                                        .can = can,
                                        .in_pitch = 1,
                                        .out_pitch = 1,
                                        .need = need,
                                        .prepare = prepare,
                                        .run = run,
                                        .discard = dnn_free,
                                        .packed = packed,
                                        .by_isa = true};
