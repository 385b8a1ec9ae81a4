/* conv_direct_weights.c - the gradient of a convolution's weights by our own kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"

/* What the kernels compute.  Of a transposed convolution x is what they call dy, and
 * dy, whose rows may be apart, what they call x. */
static struct cpu_window window(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);

    g.conv.pitch = step->op->kind == DNN_OP_DECONV
                       ? dnn_cpu_pitch(step->in[1], step->in_pitch, 1)
                       : dnn_cpu_pitch(step->in[0], step->in_pitch, 0);
    return g;
}

/* The same when it runs. */
static struct cpu_window window_now(const struct cpu_call *c)
{
    struct dnn_tensor x = {.shape = c->in[0].shape}, dy = {.shape = c->in[1].shape};
    const struct dnn_tensor *in[] = {&x, &dy};

    return window(&(struct dnn_step){
        .op = c->op,
        .in = in,
        .in_pitch = (int64_t[]){c->in[0].pitch, c->in[1].pitch}
    });
}

static bool can(const struct dnn_step *step)
{
    struct cpu_window g = window(step);

    return g.groups == 1 && dnn_direct_weights_can(&g.conv);
}

/* A product of matrices is worth it where there are many more rows than weights. */
static bool can_matmul(const struct dnn_step *step)
{
    struct cpu_window g = window(step);

    return can(step) && g.conv.in[2] >= 8 * g.conv.c && g.conv.in[2] >= 8 * g.conv.m;
}

static size_t up(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static size_t work(const struct dnn_step *step, int threads)
{
    struct cpu_window g = window(step);

    return dnn_direct_weights_work(&g.conv, threads);
}

static void conv_weights(const struct cpu_call *c)
{
    struct cpu_window g = window_now(c);

    dnn_direct_weights(&g.conv, c->in[0].mem, c->in[1].mem, c->out[0].mem,
                       c->op->nout > 1 ? c->out[1].mem : NULL, c->work, c->threads);
}

/* The sums of the bias come first in the scratch memory. */
static size_t deconv_work(const struct dnn_step *step, int threads)
{
    const struct dnn_tensor *db = dnn_cpu_out(step, 1);
    size_t sums = db == NULL ? 0 : dnn_cpu_sums_work(db->shape.dim[0], threads);

    return up(sums) + work(step, threads);
}

static void deconv_weights(const struct cpu_call *c)
{
    struct cpu_window g = window_now(c);
    bool bias = c->op->nout > 1 && c->out[1].mem != NULL;
    size_t sums = bias ? dnn_cpu_sums_work(c->out[1].count, c->threads) : 0;

    if (bias) dnn_cpu_sums(&c->in[1], c->out[1].mem, c->work, c->threads);
    dnn_direct_weights(&g.conv, c->in[1].mem, c->in[0].mem, c->out[0].mem, NULL,
                       (char *)c->work + up(sums), c->threads);
}

const struct cpu_algo dnn_cpu_direct_conv_weights = {.name = "direct",
                                                     .can = can,
                                                     .in_pitch = 1,
                                                     .fn = conv_weights,
                                                     .work = work,
                                                     .by_isa = true};
const struct cpu_algo dnn_cpu_direct_matmul_weights = {.name = "direct",
                                                       .can = can_matmul,
                                                       .in_pitch = 1,
                                                       .fn = conv_weights,
                                                       .work = work,
                                                       .by_isa = true};
const struct cpu_algo dnn_cpu_direct_deconv_weights = {.name = "direct",
                                                       .can = can,
                                                       .in_pitch = 2,
                                                       .fn = deconv_weights,
                                                       .work = deconv_work,
                                                       .by_isa = true};
