/* conv.c - convolution and its transpose.
 *
 * A transposed convolution is a convolution's backward data pass: one set of
 * loops serves both, with input and output changing places.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

enum { D = DNN_MAX_SPATIAL };

/* A convolution with three space axes; those it does not have come first and have
 * extent 1. */
struct geometry {
    int64_t n, in[D], out[D], kernel[D], stride[D], dilation[D], before[D];
    int64_t c, m;       /* channels of input and output */
    int64_t cpg, mpg;   /* the same, per group          */
    int64_t taps, outs; /* product of kernel, of out    */
};

static struct geometry geometry(const struct dnn_op_window *w,
                                const struct dnn_shape *in, const struct dnn_shape *out)
{
    struct geometry g = {.n = in->dim[0],
                         .c = in->dim[in->ndim - 1],
                         .m = out->dim[in->ndim - 1],
                         .taps = 1,
                         .outs = 1};

    for (int i = 0; i < D; i++) {
        int j = i - (D - w->nspatial);
        g.in[i] = j < 0 ? 1 : in->dim[j + 1];
        g.out[i] = j < 0 ? 1 : out->dim[j + 1];
        g.kernel[i] = j < 0 ? 1 : w->kernel[j];
        g.stride[i] = j < 0 ? 1 : w->stride[j];
        g.dilation[i] = j < 0 ? 1 : w->dilation[j];
        g.before[i] = j < 0 ? 0 : w->before[j];
        g.taps *= g.kernel[i];
        g.outs *= g.out[i];
    }
    g.cpg = g.c / w->groups;
    g.mpg = g.m / w->groups;
    return g;
}

/* Element i of an array of extents d, as its three indices. */
static void split(int64_t i, const int64_t d[D], int64_t at[D])
{
    for (int j = D - 1; j >= 0; j--) {
        at[j] = i % d[j];
        i /= d[j];
    }
}

static int64_t join(const int64_t at[D], const int64_t d[D])
{
    return (at[0] * d[1] + at[1]) * d[2] + at[2];
}

/* The place in the input that output place o sees through a tap; false: padding. */
static bool seen(const struct geometry *g, const int64_t o[D], int64_t tap,
                 int64_t *out)
{
    int64_t k[D], i[D];

    split(tap, g->kernel, k);
    for (int j = 0; j < D; j++) {
        i[j] = o[j] * g->stride[j] - g->before[j] + k[j] * g->dilation[j];
        if (i[j] < 0 || i[j] >= g->in[j]) return false;
    }
    *out = join(i, g->in);
    return true;
}

/* The output place that sees input place i through a tap; false: none does. */
static bool seer(const struct geometry *g, const int64_t i[D], int64_t tap,
                 int64_t *out)
{
    int64_t k[D], o[D];

    split(tap, g->kernel, k);
    for (int j = 0; j < D; j++) {
        o[j] = i[j] + g->before[j] - k[j] * g->dilation[j];
        if (o[j] < 0 || o[j] % g->stride[j] != 0) return false;
        o[j] /= g->stride[j];
        if (o[j] >= g->out[j]) return false;
    }
    *out = join(o, g->out);
    return true;
}

/* What is added to the sums of an op's forward pass, and what becomes of them. */
static double finish(const struct ref_call *c, int64_t channel, double sum)
{
    const struct ref_array *b = dnn_ref_in(c, 2);

    return dnn_ref_post(c, b->mem == NULL ? sum : sum + get(b, channel));
}

/* x(n, in, c) w(taps, cpg, m) -> y(n, out, m); call: whose forward pass it is, NULL:
 * a backward one's */
static void forward(const struct geometry *g, const struct ref_array *x,
                    const struct ref_array *w, const struct ref_array *y,
                    const struct ref_call *call)
{
    int64_t ins = g->in[0] * g->in[1] * g->in[2], at[D], i;

    for (int64_t e = 0; e < y->count; e++) {
        int64_t m = e % g->m, o = e / g->m % g->outs, n = e / g->m / g->outs;
        int64_t c0 = m / g->mpg * g->cpg;
        double sum = 0;
        split(o, g->out, at);
        for (int64_t t = 0; t < g->taps; t++) {
            if (!seen(g, at, t, &i)) continue;
            for (int64_t c = 0; c < g->cpg; c++)
                sum += get(x, (n * ins + i) * g->c + c0 + c) *
                       get(w, (t * g->cpg + c) * g->m + m);
        }
        set(y, e, call == NULL ? sum : finish(call, m, sum));
    }
}

static void backward(const struct geometry *g, const struct ref_array *dy,
                     const struct ref_array *w, const struct ref_array *dx,
                     const struct ref_call *call)
{
    int64_t ins = g->in[0] * g->in[1] * g->in[2], at[D], o;

    for (int64_t e = 0; e < dx->count; e++) {
        int64_t c = e % g->c, i = e / g->c % ins, n = e / g->c / ins;
        int64_t m0 = c / g->cpg * g->mpg, cg = c % g->cpg;
        double sum = 0;
        split(i, g->in, at);
        for (int64_t t = 0; t < g->taps; t++) {
            if (!seer(g, at, t, &o)) continue;
            for (int64_t m = m0; m < m0 + g->mpg; m++)
                sum += get(dy, (n * g->outs + o) * g->m + m) *
                       get(w, (t * g->cpg + cg) * g->m + m);
        }
        set(dx, e, call == NULL ? sum : finish(call, c, sum));
    }
}

static void weights(const struct geometry *g, const struct ref_array *x,
                    const struct ref_array *dy, const struct ref_array *dw)
{
    int64_t ins = g->in[0] * g->in[1] * g->in[2], at[D], i;

    for (int64_t e = 0; e < dw->count; e++) {
        int64_t m = e % g->m, t = e / g->m / g->cpg;
        int64_t c = m / g->mpg * g->cpg + e / g->m % g->cpg;
        double sum = 0;
        for (int64_t o = 0; o < g->outs; o++) {
            split(o, g->out, at);
            if (!seen(g, at, t, &i)) continue;
            for (int64_t n = 0; n < g->n; n++)
                sum += get(x, (n * ins + i) * g->c + c) *
                       get(dy, (n * g->outs + o) * g->m + m);
        }
        set(dw, e, sum);
    }
}

void dnn_ref_conv(const struct ref_call *c)
{
    struct geometry g =
        geometry(&c->op->attr.window, &c->in[0].shape, &c->out[0].shape);

    forward(&g, &c->in[0], &c->in[1], &c->out[0], c);
}

void dnn_ref_conv_data(const struct ref_call *c)
{
    struct geometry g =
        geometry(&c->op->attr.window, &c->out[0].shape, &c->in[0].shape);

    backward(&g, &c->in[0], &c->in[1], &c->out[0], NULL);
}

void dnn_ref_conv_weights(const struct ref_call *c)
{
    struct geometry g = geometry(&c->op->attr.window, &c->in[0].shape, &c->in[1].shape);

    weights(&g, &c->in[0], &c->in[1], &c->out[0]);
    dnn_ref_bias_sum(&c->in[1], &c->out[1]);
}

void dnn_ref_deconv(const struct ref_call *c)
{
    struct geometry g =
        geometry(&c->op->attr.window, &c->out[0].shape, &c->in[0].shape);

    backward(&g, &c->in[0], &c->in[1], &c->out[0], c);
}

void dnn_ref_deconv_data(const struct ref_call *c)
{
    struct geometry g =
        geometry(&c->op->attr.window, &c->in[0].shape, &c->out[0].shape);

    forward(&g, &c->in[0], &c->in[1], &c->out[0], NULL);
}

void dnn_ref_deconv_weights(const struct ref_call *c)
{
    /* in: x, dy of the transposed one, which are dy, x of the other */
    struct geometry g = geometry(&c->op->attr.window, &c->in[1].shape, &c->in[0].shape);

    weights(&g, &c->in[1], &c->in[0], &c->out[0]);
    dnn_ref_bias_sum(&c->in[1], &c->out[1]);
}
