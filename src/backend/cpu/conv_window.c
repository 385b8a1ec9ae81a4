/* conv_window.c - the geometry of a convolution step, for all kinds and passes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"
#include "backend/window_impl.h"

enum { D = DNN_MAX_SPATIAL };

const struct dnn_tensor *dnn_cpu_in(const struct dnn_step *step, int i)
{
    return i < step->op->nin ? step->in[i] : NULL;
}

const struct dnn_tensor *dnn_cpu_out(const struct dnn_step *step, int i)
{
    return i < step->op->nout ? step->out[i] : NULL;
}

int64_t dnn_cpu_pitch(const struct dnn_tensor *tensor, const int64_t *pitch, int i)
{
    if (pitch != NULL && pitch[i] != 0) return pitch[i];
    return tensor->shape.ndim == 0 ? 1 : tensor->shape.dim[tensor->shape.ndim - 1];
}

/* The shapes of x and y, in every pass. */
static void sides(const struct dnn_step *step, const struct dnn_shape **x,
                  const struct dnn_shape **y)
{
    switch (step->op->pass) {
    case DNN_FWD:
        *x = &step->in[0]->shape;
        *y = &step->out[0]->shape;
        break;
    case DNN_BWD_DATA:
        *x = &step->out[0]->shape;
        *y = &step->in[0]->shape;
        break;
    default:
        *x = &step->in[0]->shape;
        *y = &step->in[1]->shape;
        break;
    }
}

/* A matrix product as a convolution over all rows with one tap. */
static struct cpu_window matmul_window(const struct dnn_shape *x,
                                       const struct dnn_shape *y)
{
    struct cpu_window g = {.groups = 1, .nspatial = 1};

    g.conv = (struct dnn_direct_conv){
        .n = 1,
        .in = {1, 1, 1},
        .c = x->dim[x->ndim - 1],
        .out = {1, 1, 1},
        .m = y->dim[y->ndim - 1],
        .kernel = {1, 1, 1},
        .stride = {1, 1, 1},
        .dilation = {1, 1, 1}
    };
    for (int i = 0; i < x->ndim - 1; i++)
        g.conv.in[2] *= x->dim[i];
    g.conv.out[2] = g.conv.in[2];
    return g;
}

struct cpu_window dnn_cpu_window(const struct dnn_step *step)
{
    const struct dnn_op_window *w = &step->op->attr.window;
    const struct dnn_shape *in, *out;

    if (step->op->kind == DNN_OP_MATMUL) {
        sides(step, &in, &out);
        return matmul_window(in, out);
    }
    if (step->op->kind == DNN_OP_DECONV)
        sides(step, &out, &in);
    else
        sides(step, &in, &out);
    struct window3d s = window3d(w, in, out);
    struct cpu_window g = {
        .groups = w->groups < 1 ? 1 : w->groups,
        .nspatial = w->nspatial,
        .conv = {.n = s.n, .c = s.c, .m = s.m}
    };
    for (int i = 0; i < D; i++) {
        g.conv.in[i] = s.in[i];
        g.conv.out[i] = s.out[i];
        g.conv.kernel[i] = s.kernel[i];
        g.conv.stride[i] = s.stride[i];
        g.conv.dilation[i] = s.dilation[i];
        g.conv.before[i] = s.before[i];
        g.after[i] = s.after[i];
    }
    return g;
}

struct cpu_window dnn_cpu_window_weights(const struct cpu_call *c)
{
    struct dnn_tensor x = {.shape = c->in[0].shape}, dy = {.shape = c->in[1].shape};
    struct cpu_window g = dnn_cpu_window(&(struct dnn_step){
        .op = c->op, .in = (const struct dnn_tensor *[]){&x, &dy}
    });

    g.conv.pitch = c->in[c->op->kind == DNN_OP_DECONV ? 1 : 0].pitch;
    return g;
}

struct dnn_direct_conv dnn_cpu_mirrored(const struct dnn_direct_conv *v)
{
    struct dnn_direct_conv b = *v;

    b.c = v->m;
    b.m = v->c;
    for (int i = 0; i < D; i++) {
        b.in[i] = v->out[i];
        b.out[i] = v->in[i];
        b.before[i] = (v->kernel[i] - 1) * v->dilation[i] - v->before[i];
    }
    return b;
}

double dnn_cpu_flops(const struct dnn_step *step)
{
    if (step->op->kind != DNN_OP_CONV && step->op->kind != DNN_OP_DECONV &&
        step->op->kind != DNN_OP_MATMUL)
        return 0;
    struct cpu_window g = dnn_cpu_window(step);
    double flops =
        2 * (double)g.conv.n * (double)g.conv.c * (double)g.conv.m / (double)g.groups;
    for (int i = 0; i < D; i++)
        flops *= (double)g.conv.out[i] * (double)g.conv.kernel[i];
    return flops;
}
