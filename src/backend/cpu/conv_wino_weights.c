/* conv_wino_weights.c - the gradient of the weights of a convolution by Winograd's
 * method.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"
#include "backend/cpu/wino_weights.h"

static struct cpu_window window(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);

    g.conv.pitch = dnn_cpu_pitch(step->in[0], step->in_pitch, 0);
    return g;
}

static bool can(const struct dnn_step *step)
{
    struct cpu_window g = window(step);

    return g.groups == 1 && dnn_wino_weights_can(&g.conv);
}

/* The limits come from measurements with networks of the zoo. */
static bool best(const struct dnn_step *step)
{
    struct cpu_window g = window(step);
    const struct dnn_direct_conv *v = &g.conv;

    return v->c * v->m * v->kernel[0] >= 192 && v->out[1] >= 8 && v->out[2] >= 8;
}

static size_t work(const struct dnn_step *step, int threads)
{
    struct cpu_window g = window(step);

    return dnn_wino_weights_work(&g.conv, threads);
}

static void conv_weights(const struct cpu_call *c)
{
    struct cpu_window g = dnn_cpu_window_weights(c);

    dnn_wino_weights(&g.conv, c->in[0].mem, c->in[1].mem, c->out[0].mem,
                     c->op->nout > 1 ? c->out[1].mem : NULL, c->work, c->threads);
}

const struct cpu_algo dnn_cpu_wino_weights = {.name = "winograd",
                                              .can = can,
                                              .best = best,
                                              .in_pitch = 1,
                                              .fn = conv_weights,
                                              .work = work,
                                              .by_isa = true};
