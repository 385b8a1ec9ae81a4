/* conv_narrow.c - convolutions with few input and output channels, such as the first
 * ones of a small network; forward, and backward data where the stride is 1 (a
 * convolution with the kernel mirrored).
 *
 * oneDNN fills its vectors with channels; ours run along the positions of a row
 * (direct_narrow.h). Rows of the input are copied, one channel after the other and with
 * their zero padding, to memory that stays in the cache: a row is copied once and read
 * by all output rows that need it. With a stride, the positions are copied phase by
 * phase, so that neighbours in the output are neighbours there.
 *
 * Every sum has the same order wherever its position is in a vector: results do not
 * depend on the threads or on the other samples of a batch.
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
    CHANNELS = 16,    /* on a side at most                             */
    PARTS = 64,       /* of a window at most: rows of taps             */
    TERMS = 256,      /* of a row of taps at most: taps and channels   */
    HELD = 256,       /* rows that a thread keeps at most              */
    SHORT = 64,       /* positions of a row that are not cut           */
    NEAR = 16 * 1024, /* floats that stay in a fast cache              */
    KEPT = 128 * 1024 /* floats that a thread keeps at most            */
};

struct narrow {
    struct dnn_direct_conv v; /* what is computed, mirrored if it is backward */
    bool back;
    const struct dnn_direct_isa *isa;
    int64_t parts;        /* a row of outputs is done in                        */
    int64_t span, x_step; /* floats of a phase, of a channel                    */
    int64_t ring;         /* rows kept for each tap of the first axis           */
    int64_t slot, size;   /* floats of a kept row, of all a thread has          */
    int64_t depth;        /* weights of one result                              */
    int64_t off[TERMS];   /* where the terms of a row of taps are               */
    bool relu;
    float alpha;
    struct cpu_packed packed;
};

/* Most strides are 1, and a division is slow. */
static int64_t strides(int64_t n, int64_t stride)
{
    return stride == 1 ? n : (n + stride - 1) / stride;
}

/* Rows of outputs in so many parts. */
static void cut(struct narrow *s, int64_t parts)
{
    const struct dnn_direct_conv *v = &s->v;
    int64_t lanes = s->isa->lanes, most = (v->out[2] + parts - 1) / parts;

    s->parts = parts;
    /* Whole vectors, wherever a part ends. */
    s->span =
        dnn_round_up(most, lanes) + (v->kernel[2] - 1) * v->dilation[2] / v->stride[2];
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
        cut(&s, s.parts + 1);
    } while (s.size > NEAR && v->out[2] / s.parts > SHORT);
    s.depth = v->kernel[0] * v->kernel[1] * v->kernel[2] * v->c;
    for (int64_t i = 0; i < v->kernel[2] * v->c && i < TERMS; i++) {
        int64_t at = i / v->c * v->dilation[2];

        s.off[i] = i % v->c * s.x_step + at % v->stride[2] * s.span + at / v->stride[2];
    }
    s.relu = post != NULL && post->fn == DNN_RELU && post->threshold == 0 &&
             isinf(post->max_value);
    s.alpha = s.relu ? (float)post->alpha : 0;
    return s;
}

/* Where other kernels are faster: many channels that fill vectors, 1 x 1 kernels of
 * them, and long sums with few outputs. */
static bool others(const struct narrow *s)
{
    const struct dnn_direct_conv *v = &s->v;
    bool tap = v->kernel[0] * v->kernel[1] * v->kernel[2] == 1;

    if (v->m % 8 == 0) return v->m > 8 || v->c > 8 || tap;
    return !s->back && v->c == CHANNELS && v->m < 4;
}

static bool can(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);
    const struct dnn_direct_conv *v = &g.conv;

    if (g.groups != 1 || v->n < 1 || v->c > CHANNELS || v->m > CHANNELS ||
        v->kernel[0] * v->kernel[1] > PARTS || v->kernel[2] * v->c > TERMS ||
        v->kernel[2] * v->m > TERMS)
        return false;
    for (int i = 0; i < 3; i++)
        if (step->op->pass == DNN_BWD_DATA && v->stride[i] != 1) return false;
    struct narrow s = plan(step);
    return s.ring * s.v.kernel[0] <= HELD && s.size <= KEPT && !others(&s) &&
           dnn_cpu_post_can(step);
}

/* ---- packing ---- */

/* (taps, c, m), or mirrored (taps, m, c), becomes fours of results. */
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
struct rows {
    const struct narrow *s;
    const struct cpu_array *x;
    float *kept;
    int64_t holds[HELD];    /* which row of the input a kept one is; -1: none */
    int64_t from, to;       /* outputs of the rows: a part                    */
    const float *at[PARTS]; /* those that a row of outputs reads              */
    int64_t row[PARTS];     /* and which rows of taps they are for            */
};

/* Start another part: cached rows are invalid, and the padding is elsewhere. */
static void rows_for(struct rows *r, int64_t part)
{
    const struct narrow *s = r->s;
    int64_t from, to;

    dnn_cpu_share(s->v.out[2], (int)s->parts, (int)part, &from, &to);
    if (from == r->from && to == r->to) return;
    r->from = from;
    r->to = to;
    memset(r->kept, 0, (size_t)s->size * sizeof *r->kept);
    for (int64_t i = 0; i < s->ring * s->v.kernel[0]; i++)
        r->holds[i] = -1;
}

/* Copy a row of the input; the padding stays zero. */
static void copy(const struct rows *r, int64_t row, float *to)
{
    const struct dnn_direct_conv *v = &r->s->v;
    const float *x = (const float *)r->x->mem + row * v->in[2] * r->x->pitch;
    int64_t stride = v->stride[2], span = r->s->span;

    for (int64_t phase = 0; phase < stride; phase++) {
        int64_t at = r->from * stride + phase - v->before[2], skip = 0;

        if (at < 0) skip = strides(-at, stride);
        at += skip * stride;
        int64_t count = at < v->in[2] ? strides(v->in[2] - at, stride) : 0;
        if (count > span - skip) count = span - skip;
        if (count > 0)
            r->s->isa->apart(x + at * r->x->pitch, stride * r->x->pitch, count, v->c,
                             to + phase * span + skip, r->s->x_step);
    }
}

/* The kept copy of a row of the input. */
static const float *row_at(struct rows *r, int64_t slot, int64_t row)
{
    float *at = r->kept + slot * r->s->slot;

    if (r->holds[slot] != row) copy(r, row, at);
    r->holds[slot] = row;
    return at;
}

/* A row of outputs, (n, d, h), or a part of it. */
struct line {
    int64_t n, d, h, part;
};

/* f: all that is the same in all of them. */
static void run_line(struct rows *r, const struct line *l, struct dnn_direct_narrow *f)
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

/* One of shares of all rows, with a place of its own to keep some. */
static void run_some(const struct narrow *s, const struct cpu_call *c, int share,
                     int shares)
{
    const struct dnn_direct_conv *v = &s->v;
    struct rows r = {.s = s, .x = &c->in[0]};
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

    r.kept = (float *)c->work + share * s->size;
    dnn_cpu_share(v->n * v->out[0] * s->parts * v->out[1], shares, share, &i, &last);
    while (i < last) {
        int64_t plane = i / v->out[1] / s->parts;
        struct line l = {.n = plane / v->out[0],
                         .d = plane % v->out[0],
                         .h = i % v->out[1],
                         .part = i / v->out[1] % s->parts};

        rows_for(&r, l.part);
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
        run_some(s, c, i, c->threads);
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

const struct cpu_algo dnn_cpu_narrow = {.name = "narrow",
                                        .can = can,
                                        .in_pitch = 1,
                                        .out_pitch = 1,
                                        .need = need,
                                        .prepare = prepare,
                                        .run = run,
                                        .discard = dnn_free,
                                        .by_isa = true};
