/* conv_few.c - convolutions with one to four output channels, such as the last one of a
 * segmentation network.
 *
 * oneDNN vectorizes over output channels; this kernel over input channels and the taps
 * of a row, which are contiguous.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct_impl.h"
#include "backend/cpu/onednn_impl.h"
#include "base/mem.h"

enum {
    MAX_PARTS = 343, /* maximum per window: rows of taps, or taps  */
    MIN_SPLIT = 128  /* rows with fewer outputs are not split      */
};

struct few {
    struct cpu_window g;
    struct cpu_packed packed;
};

static bool can(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);
    const struct dnn_direct_conv *v = &g.conv;

    for (int i = 0; i < 3; i++)
        if (v->before[i] < 0) return false;
    return g.groups == 1 && v->n > 0 && v->m <= DNN_DIRECT_FEW &&
           v->c % dnn_direct_find()->lanes == 0 &&
           v->kernel[0] * v->kernel[1] * v->kernel[2] <= MAX_PARTS &&
           dnn_cpu_post_can(step);
}

/* (taps, c, m) becomes (m, taps, c). */
static void pack(const struct dnn_direct_conv *v, const float *w, float *to)
{
    int64_t terms = v->kernel[0] * v->kernel[1] * v->kernel[2] * v->c;

    for (int64_t j = 0; j < v->m; j++)
        for (int64_t i = 0; i < terms; i++)
            *to++ = w[i * v->m + j];
}

/* Outputs from ... to - 1 of row (n, d, h). */
struct line {
    const struct dnn_direct_conv *v;
    const float *x, *w;
    int64_t n, d, h;
    int64_t from, to;
};

/* Lists the parts of the sum for output w: taps lo ... hi - 1 on the last axis. */
static void list_parts(const struct line *l, int64_t w, int64_t lo, int64_t hi,
                       struct dnn_direct_few *f, const float **x, const float **weights)
{
    const struct dnn_direct_conv *v = l->v;
    int64_t at = w * v->stride[2] - v->before[2], taps = hi - lo, step = taps;

    if (v->dilation[2] != 1) step = 1;
    f->parts = 0;
    f->len = step * v->c;
    for (int64_t kd = 0; kd < v->kernel[0]; kd++) {
        int64_t d = l->d * v->stride[0] + kd * v->dilation[0] - v->before[0];

        if (d < 0 || d >= v->in[0]) continue;
        for (int64_t kh = 0; kh < v->kernel[1]; kh++) {
            int64_t h = l->h * v->stride[1] + kh * v->dilation[1] - v->before[1];

            if (h < 0 || h >= v->in[1]) continue;
            for (int64_t kw = lo; kw < hi; kw += step, f->parts++) {
                x[f->parts] =
                    l->x + (((l->n * v->in[0] + d) * v->in[1] + h) * v->in[2] + at +
                            kw * v->dilation[2]) *
                               v->c;
                weights[f->parts] =
                    l->w + ((kd * v->kernel[1] + kh) * v->kernel[2] + kw) * v->c;
            }
        }
    }
}

/* The taps *lo ... *hi - 1 on the last axis with which output w reads inside the
 * input. */
static void valid_taps(const struct dnn_direct_conv *v, int64_t w, int64_t *lo,
                       int64_t *hi)
{
    int64_t at = w * v->stride[2] - v->before[2];

    *lo = 0;
    *hi = v->kernel[2];
    while (*lo < *hi && at + *lo * v->dilation[2] < 0)
        ++*lo;
    while (*hi > *lo && at + (*hi - 1) * v->dilation[2] >= v->in[2])
        --*hi;
}

/* f: values that are the same for the whole line. */
static void run_line(const struct line *l, struct dnn_direct_few f)
{
    const struct dnn_direct_conv *v = l->v;
    const float *x[MAX_PARTS], *weights[MAX_PARTS];
    float *y = f.y;
    int64_t lo, hi, next_lo, next_hi;

    f.x = x;
    f.w = weights;
    for (int64_t w = l->from; w < l->to; w += f.count) {
        valid_taps(v, w, &lo, &hi);
        for (f.count = 1; w + f.count < l->to; f.count++) {
            valid_taps(v, w + f.count, &next_lo, &next_hi);
            if (next_lo != lo || next_hi != hi) break;
        }
        list_parts(l, w, lo, hi, &f, x, weights);
        f.y = y + w * f.y_step;
        dnn_direct_find()->few(&f);
    }
}

static int run(struct dnn_dev *dev, const struct cpu_call *c, void *state,
               struct dnn_err *err)
{
    struct few *s = state;
    const struct dnn_direct_conv *v = &s->g.conv;
    int64_t lines = v->n * v->out[0] * v->out[1], parts = 1;

    (void)dev, (void)err;
    if (cpu_pack_needed(&s->packed, c)) pack(v, c->in[1].mem, c->keep);
    while (lines * parts < 4 * (int64_t)c->threads && v->out[2] / parts > MIN_SPLIT)
        parts++;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t part = 0; part < lines * parts; part++) {
        int64_t i = part / parts;
        struct line l = {.v = v,
                         .x = c->in[0].mem,
                         .w = c->keep,
                         .n = i / v->out[1] / v->out[0],
                         .d = i / v->out[1] % v->out[0],
                         .h = i % v->out[1]};

        dnn_cpu_share(v->out[2], (int)parts, (int)(part % parts), &l.from, &l.to);
        struct dnn_direct_few f = {
            .m = (int)v->m,
            .x_step = v->stride[2] * v->c,
            .w_step = v->kernel[0] * v->kernel[1] * v->kernel[2] * v->c,
            .bias = c->op->nin > 2 ? c->in[2].mem : NULL,
            .y = (float *)c->out[0].mem + i * v->out[2] * c->out[0].pitch,
            .y_step = c->out[0].pitch};

        run_line(&l, f);
    }
    dnn_cpu_post(c);
    return 0;
}

static int need(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err)
{
    struct cpu_window g = dnn_cpu_window(step);
    const int64_t *k = g.conv.kernel;

    (void)dev, (void)err;
    *need = (struct dnn_need){
        .keep = (size_t)(k[0] * k[1] * k[2] * g.conv.c * g.conv.m) * sizeof(float)};
    return 0;
}

static int prepare(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_call *call, void **state, struct dnn_err *err)
{
    struct few *s = dnn_alloc(sizeof *s);

    (void)dev, (void)call, (void)err;
    s->g = dnn_cpu_window(step);
    *state = s;
    return 0;
}

static const struct cpu_packed *packed(const void *state)
{
    return &((const struct few *)state)->packed;
}

const struct cpu_algo dnn_cpu_few = {.name = "few",
                                     .can = can,
                                     .out_pitch = 1,
                                     .need = need,
                                     .prepare = prepare,
                                     .run = run,
                                     .discard = dnn_free,
                                     .packed = packed,
                                     .by_isa = true};
