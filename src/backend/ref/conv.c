/* conv.c - convolution and transposed convolution.
 *
 * A transposed convolution is the backward data pass of a convolution: it uses the same
 * loops with input and output swapped.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"
#include "backend/window_impl.h"

enum { D = DNN_MAX_SPATIAL };

struct geometry {
    struct window3d w;
    int64_t cpg, mpg; /* channels per group, of input and output */
    int64_t outs;     /* output positions: product of w.out      */
};

static struct geometry geometry(const struct dnn_op_window *w,
                                const struct dnn_shape *in, const struct dnn_shape *out)
{
    struct geometry g = {.w = window3d(w, in, out)};

    g.cpg = g.w.c / w->groups;
    g.mpg = g.w.m / w->groups;
    g.outs = g.w.out[0] * g.w.out[1] * g.w.out[2];
    return g;
}

/* The three indices of element i of an array with extents d. */
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

/* The input position that output position o reads with a tap; false: padding. */
static bool find_input(const struct geometry *g, const int64_t o[D], int64_t tap,
                       int64_t *out)
{
    int64_t k[D], i[D];

    split(tap, g->w.kernel, k);
    for (int j = 0; j < D; j++) {
        i[j] = o[j] * g->w.stride[j] - g->w.before[j] + k[j] * g->w.dilation[j];
        if (i[j] < 0 || i[j] >= g->w.in[j]) return false;
    }
    *out = join(i, g->w.in);
    return true;
}

/* The output position that reads input position i with a tap; false: none. */
static bool find_output(const struct geometry *g, const int64_t i[D], int64_t tap,
                        int64_t *out)
{
    int64_t k[D], o[D];

    split(tap, g->w.kernel, k);
    for (int j = 0; j < D; j++) {
        o[j] = i[j] + g->w.before[j] - k[j] * g->w.dilation[j];
        if (o[j] < 0 || o[j] % g->w.stride[j] != 0) return false;
        o[j] /= g->w.stride[j];
        if (o[j] >= g->w.out[j]) return false;
    }
    *out = join(o, g->w.out);
    return true;
}

/* Bias and fused activation of a forward pass. */
static double finish(const struct ref_call *c, int64_t channel, double sum)
{
    const struct ref_array *b = dnn_ref_in(c, 2);

    return dnn_ref_post(c, b->mem == NULL ? sum : sum + get(b, channel));
}

/* x(n, in, c) w(taps, cpg, m) -> y(n, out, m). call: adds bias and activation (forward
 * pass); NULL: does not (backward pass). */
static void forward(const struct geometry *g, const struct ref_array *x,
                    const struct ref_array *w, const struct ref_array *y,
                    const struct ref_call *call)
{
    int64_t ins = g->w.in[0] * g->w.in[1] * g->w.in[2], at[D], i;

    for (int64_t e = 0; e < y->count; e++) {
        int64_t m = e % g->w.m, o = e / g->w.m % g->outs, n = e / g->w.m / g->outs;
        int64_t c0 = m / g->mpg * g->cpg;
        double sum = 0;
        split(o, g->w.out, at);
        for (int64_t t = 0; t < g->w.taps; t++) {
            if (!find_input(g, at, t, &i)) continue;
            for (int64_t c = 0; c < g->cpg; c++)
                sum += get(x, (n * ins + i) * g->w.c + c0 + c) *
                       get(w, (t * g->cpg + c) * g->w.m + m);
        }
        set(y, e, call == NULL ? sum : finish(call, m, sum));
    }
}

static void backward(const struct geometry *g, const struct ref_array *dy,
                     const struct ref_array *w, const struct ref_array *dx,
                     const struct ref_call *call)
{
    int64_t ins = g->w.in[0] * g->w.in[1] * g->w.in[2], at[D], o;

    for (int64_t e = 0; e < dx->count; e++) {
        int64_t c = e % g->w.c, i = e / g->w.c % ins, n = e / g->w.c / ins;
        int64_t m0 = c / g->cpg * g->mpg, cg = c % g->cpg;
        double sum = 0;
        split(i, g->w.in, at);
        for (int64_t t = 0; t < g->w.taps; t++) {
            if (!find_output(g, at, t, &o)) continue;
            for (int64_t m = m0; m < m0 + g->mpg; m++)
                sum += get(dy, (n * g->outs + o) * g->w.m + m) *
                       get(w, (t * g->cpg + cg) * g->w.m + m);
        }
        set(dx, e, call == NULL ? sum : finish(call, c, sum));
    }
}

static void weights(const struct geometry *g, const struct ref_array *x,
                    const struct ref_array *dy, const struct ref_array *dw)
{
    int64_t ins = g->w.in[0] * g->w.in[1] * g->w.in[2], at[D], i;

    for (int64_t e = 0; e < dw->count; e++) {
        int64_t m = e % g->w.m, t = e / g->w.m / g->cpg;
        int64_t c = m / g->mpg * g->cpg + e / g->w.m % g->cpg;
        double sum = 0;
        for (int64_t o = 0; o < g->outs; o++) {
            split(o, g->w.out, at);
            if (!find_input(g, at, t, &i)) continue;
            for (int64_t n = 0; n < g->w.n; n++)
                sum += get(x, (n * ins + i) * g->w.c + c) *
                       get(dy, (n * g->outs + o) * g->w.m + m);
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
    /* x and dy of the transposed convolution are dy and x of the convolution. */
    struct geometry g = geometry(&c->op->attr.window, &c->in[1].shape, &c->in[0].shape);

    weights(&g, &c->in[1], &c->in[0], &c->out[0]);
    dnn_ref_bias_sum(&c->in[1], &c->out[1]);
}
