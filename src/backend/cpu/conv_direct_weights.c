/* conv_direct_weights.c - the gradient of the weights of a convolution by our own
 * direct kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"

/* The convolution that the kernels compute.  Of a transposed convolution they take x as
 * dy and dy, whose rows may have a pitch, as x. */
static struct cpu_window window(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);

    g.conv.pitch = step->op->kind == DNN_OP_DECONV
                       ? dnn_cpu_pitch(step->in[1], step->in_pitch, 1)
                       : dnn_cpu_pitch(step->in[0], step->in_pitch, 0);
    return g;
}

static bool can(const struct dnn_step *step)
{
    struct cpu_window g = window(step);

    return g.groups == 1 && dnn_direct_weights_can(&g.conv);
}

static size_t work(const struct dnn_step *step, int threads)
{
    struct cpu_window g = window(step);

    return dnn_direct_weights_work(&g.conv, threads);
}

static void conv_weights(const struct cpu_call *c)
{
    struct cpu_window g = dnn_cpu_window_weights(c);

    dnn_direct_weights(&g.conv, c->in[0].mem, c->in[1].mem, c->out[0].mem,
                       c->op->nout > 1 ? c->out[1].mem : NULL, c->work, c->threads);
}

/* The workspace begins with the sums for the bias. */
static size_t deconv_work(const struct dnn_step *step, int threads)
{
    const struct dnn_tensor *db = dnn_cpu_out(step, 1);
    size_t sums = db == NULL ? 0 : dnn_cpu_sums_work(db->shape.dim[0], threads);

    return cpu_lines(sums) + work(step, threads);
}

static void deconv_weights(const struct cpu_call *c)
{
    struct cpu_window g = dnn_cpu_window_weights(c);
    bool bias = c->op->nout > 1 && c->out[1].mem != NULL;
    size_t sums = bias ? dnn_cpu_sums_work(c->out[1].count, c->threads) : 0;

    if (bias) dnn_cpu_sums(&c->in[1], c->out[1].mem, c->work, c->threads);
    dnn_direct_weights(&g.conv, c->in[1].mem, c->in[0].mem, c->out[0].mem, NULL,
                       (char *)c->work + cpu_lines(sums), c->threads);
}

const struct cpu_algo dnn_cpu_direct_conv_weights = {.name = "direct",
                                                     .can = can,
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
