/* onednn_conv.c - convolutions and transposed convolutions by oneDNN.
 *
 * Activations are plain channels-last arrays; oneDNN chooses the layout of the
 * weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_prim.h"

#include <omp.h>

enum { SRC, DST, WEIGHTS, BIAS, DESCS };

struct shape {
    dnnl_memory_desc_t desc[DESCS]; /* BIAS NULL: none */
    dnnl_dims_t stride, dilation, before, after;
};

/* oneDNN has no fast 1D kernels: 1D is computed as 2D with height 1. */
static int spatial(const struct cpu_window *g)
{
    return g->nspatial == 3 ? 3 : 2;
}

/* (n, c, space...) with channels last. */
static int activations(const struct cpu_window *g, bool input, dnnl_memory_desc_t *out,
                       struct dnn_err *err)
{
    const int64_t *extent = input ? g->conv.in : g->conv.out;
    int64_t c = input ? g->conv.c : g->conv.m, dim[5] = {g->conv.n, c}, stride[5];
    int ns = spatial(g);
    int64_t at = c;

    for (int i = ns - 1; i >= 0; i--) {
        dim[2 + i] = extent[3 - ns + i];
        stride[2 + i] = at;
        at *= dim[2 + i];
    }
    stride[0] = at;
    stride[1] = 1;
    return dnn_cpu_memory_desc(2 + ns, dim, stride, out, err);
}

/* Keras's (k..., c / groups, m) as (groups, m / groups, c / groups, k...); transposed:
 * (k..., outputs, inputs) as (outputs, inputs, k...).  plain: the layout in memory,
 * else any layout that oneDNN chooses. */
static int weights(const struct cpu_window *g, bool transposed, bool plain,
                   dnnl_memory_desc_t *out, struct dnn_err *err)
{
    int64_t c = g->conv.c / g->groups, m = g->conv.m / g->groups, at = c * g->conv.m;
    int64_t dim[6] = {g->groups}, stride[6] = {m};
    int first = g->groups > 1, ns = spatial(g);

    dim[first] = transposed ? c : m;
    stride[first] = transposed ? g->conv.m : 1;
    dim[first + 1] = transposed ? m : c;
    stride[first + 1] = transposed ? 1 : g->conv.m;
    for (int i = ns - 1; i >= 0; i--) {
        dim[first + 2 + i] = g->conv.kernel[3 - ns + i];
        stride[first + 2 + i] = at;
        at *= dim[first + 2 + i];
    }
    return dnn_cpu_memory_desc(first + 2 + ns, dim, plain ? stride : NULL, out, err);
}

static void shape_free(struct shape *s)
{
    for (int i = 0; i < DESCS; i++)
        if (s->desc[i] != NULL) dnnl_memory_desc_destroy(s->desc[i]);
}

static int shape_make(const struct dnn_step *step, struct shape *s,
                      dnnl_memory_desc_t *plain, struct dnn_err *err)
{
    struct cpu_window g = dnn_cpu_window(step);
    bool transposed = step->op->kind == DNN_OP_DECONV;
    bool bias = step->op->pass == DNN_FWD           ? dnn_cpu_in(step, 2) != NULL
                : step->op->pass == DNN_BWD_WEIGHTS ? dnn_cpu_out(step, 1) != NULL
                                                    : false;
    int ns = spatial(&g);

    for (int i = 0; i < ns; i++) {
        int j = 3 - ns + i;
        s->stride[i] = g.conv.stride[j];
        s->dilation[i] = g.conv.dilation[j] - 1;
        s->before[i] = g.conv.before[j];
        s->after[i] = g.after[j];
    }
    DNN_TRY(activations(&g, !transposed, &s->desc[SRC], err));
    DNN_TRY(activations(&g, transposed, &s->desc[DST], err));
    DNN_TRY(weights(&g, transposed, false, &s->desc[WEIGHTS], err));
    if (bias) {
        int64_t m = transposed ? g.conv.c : g.conv.m, one = 1;
        DNN_TRY(dnn_cpu_memory_desc(1, &m, &one, &s->desc[BIAS], err));
    }
    return weights(&g, transposed, true, plain, err);
}

static dnnl_status_t describe_conv(struct dnn_dev *dev, enum dnn_pass pass,
                                   const struct shape *s, dnnl_primitive_attr_t attr,
                                   dnnl_primitive_desc_t *out)
{
    const dnnl_memory_desc_t *d = s->desc;

    if (pass == DNN_FWD)
        return dnnl_convolution_forward_primitive_desc_create(
            out, dev->engine, dnnl_forward_inference, dnnl_convolution_direct, d[SRC],
            d[WEIGHTS], d[BIAS], d[DST], s->stride, s->dilation, s->before, s->after,
            attr);
    if (pass == DNN_BWD_DATA)
        return dnnl_convolution_backward_data_primitive_desc_create(
            out, dev->engine, dnnl_convolution_direct, d[SRC], d[WEIGHTS], d[DST],
            s->stride, s->dilation, s->before, s->after, NULL, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        out, dev->engine, dnnl_convolution_direct, d[SRC], d[WEIGHTS], d[BIAS], d[DST],
        s->stride, s->dilation, s->before, s->after, NULL, attr);
}

static dnnl_status_t describe_deconv(struct dnn_dev *dev, enum dnn_pass pass,
                                     const struct shape *s, dnnl_primitive_attr_t attr,
                                     dnnl_primitive_desc_t *out)
{
    const dnnl_memory_desc_t *d = s->desc;

    if (pass == DNN_FWD)
        return dnnl_deconvolution_forward_primitive_desc_create(
            out, dev->engine, dnnl_forward_inference, dnnl_deconvolution_direct, d[SRC],
            d[WEIGHTS], d[BIAS], d[DST], s->stride, s->dilation, s->before, s->after,
            attr);
    if (pass == DNN_BWD_DATA)
        return dnnl_deconvolution_backward_data_primitive_desc_create(
            out, dev->engine, dnnl_deconvolution_direct, d[SRC], d[WEIGHTS], d[DST],
            s->stride, s->dilation, s->before, s->after, NULL, attr);
    return dnnl_deconvolution_backward_weights_primitive_desc_create(
        out, dev->engine, dnnl_deconvolution_direct, d[SRC], d[WEIGHTS], d[BIAS],
        d[DST], s->stride, s->dilation, s->before, s->after, NULL, attr);
}

/* The fused activation, if oneDNN supports it; else we apply it afterwards. */
static const struct dnn_op_unary *fused(const struct dnn_op *op)
{
    return dnn_cpu_onednn_post_can(op->post) ? op->post : NULL;
}

static int plan_make(struct dnn_dev *dev, const struct dnn_step *step,
                     struct cpu_plan *plan, struct dnn_err *err)
{
    struct shape s = {0};
    dnnl_primitive_attr_t attr = NULL;

    omp_set_num_threads(dev->threads); /* descriptors depend on it */
    *plan = (struct cpu_plan){.gradient = step->op->pass == DNN_BWD_WEIGHTS};
    int rc = dnn_cpu_onednn_open(dev, err);
    if (rc == 0) rc = shape_make(step, &s, &plan->plain, err);
    if (rc == 0) rc = dnn_cpu_onednn_attr(fused(step->op), &attr, err);
    if (rc == 0) {
        dnnl_status_t status =
            step->op->kind == DNN_OP_DECONV
                ? describe_deconv(dev, step->op->pass, &s, attr, &plan->desc)
                : describe_conv(dev, step->op->pass, &s, attr, &plan->desc);
        if (status != dnnl_success)
            rc = dnn_cpu_onednn_fail(status, "convolution", err);
    }
    while (rc == 0 && dev->conv == CPU_CONV_GEMM && !dnn_cpu_plan_uses_im2col(plan))
        if (dnnl_primitive_desc_next_impl(plan->desc) != dnnl_success)
            rc = dnn_fail(err, DNN_EDEVICE, "oneDNN has no gemm kernel for this");
    if (rc == 0) dnn_cpu_plan_finish(plan);
    if (attr != NULL) dnnl_primitive_attr_destroy(attr);
    shape_free(&s);
    if (rc < 0) dnn_cpu_plan_free(plan);
    return rc;
}

static bool can(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);

    for (int i = 0; i < 3; i++)
        if (g.conv.before[i] < 0 || g.after[i] + g.conv.stride[i] < 0 ||
            g.conv.in[i] < 1 || g.conv.out[i] < 1)
            return false;
    return g.conv.n > 0 &&
           (dnn_cpu_onednn_post_can(step->op->post) || dnn_cpu_post_can(step));
}

static int need(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err)
{
    struct cpu_plan plan;

    DNN_TRY(plan_make(dev, step, &plan, err));
    *need = dnn_cpu_plan_need(&plan);
    bool im2col = dnn_cpu_plan_uses_im2col(&plan);
    dnn_cpu_plan_free(&plan);
    /* Do not autotune im2col: our own kernels were 1.5 to 20 times faster in all
     * measurements (AVX2), and im2col needs much memory. */
    if (step->op->pass == DNN_BWD_WEIGHTS && im2col && dev->conv != CPU_CONV_GEMM &&
        dnn_cpu_window(step).groups == 1)
        return dnn_fail(err, DNN_EDEVICE, "oneDNN would use im2col here");
    return 0;
}

static int prepare(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_call *c, void **state, struct dnn_err *err)
{
    struct cpu_prim_arg args[4];
    struct cpu_plan plan;

    switch (step->op->pass) {
    case DNN_FWD:
        args[0] = (struct cpu_prim_arg){DNNL_ARG_WEIGHTS, c->in[1].mem};
        args[1] = (struct cpu_prim_arg){DNNL_ARG_SRC, c->in[0].mem};
        args[2] = (struct cpu_prim_arg){DNNL_ARG_DST, c->out[0].mem};
        args[3] = (struct cpu_prim_arg){
            DNNL_ARG_BIAS, dnn_cpu_in(step, 2) == NULL ? NULL : c->in[2].mem};
        break;
    case DNN_BWD_DATA:
        args[0] = (struct cpu_prim_arg){DNNL_ARG_WEIGHTS, c->in[1].mem};
        args[1] = (struct cpu_prim_arg){DNNL_ARG_DIFF_DST, c->in[0].mem};
        args[2] = (struct cpu_prim_arg){DNNL_ARG_DIFF_SRC, c->out[0].mem};
        args[3] = (struct cpu_prim_arg){DNNL_ARG_BIAS, NULL};
        break;
    default:
        args[0] = (struct cpu_prim_arg){DNNL_ARG_DIFF_WEIGHTS, c->out[0].mem};
        args[1] = (struct cpu_prim_arg){DNNL_ARG_SRC, c->in[0].mem};
        args[2] = (struct cpu_prim_arg){DNNL_ARG_DIFF_DST, c->in[1].mem};
        args[3] = (struct cpu_prim_arg){
            DNNL_ARG_DIFF_BIAS, dnn_cpu_out(step, 1) == NULL ? NULL : c->out[1].mem};
        break;
    }
    DNN_TRY(plan_make(dev, step, &plan, err));
    int rc = dnn_cpu_prim_make(dev, &plan, args, 4, c, state, err);
    dnn_cpu_plan_free(&plan);
    return rc;
}

static int run(struct dnn_dev *dev, const struct cpu_call *c, void *state,
               struct dnn_err *err)
{
    DNN_TRY(dnn_cpu_prim_run(dev, c, state, err));
    if (c->op->post != fused(c->op)) dnn_cpu_post(c);
    return 0;
}

/* oneDNN's gradients of weights depend on the number of threads of the descriptor. */
#define ALGO(variable, needs_all)                                                      \
    const struct cpu_algo variable = {.name = "oneDNN",                                \
                                      .can = can,                                      \
                                      .need = need,                                    \
                                      .prepare = prepare,                              \
                                      .run = run,                                      \
                                      .discard = dnn_cpu_prim_discard,                 \
                                      .packed = dnn_cpu_prim_packed,                   \
                                      .all_threads = needs_all,                        \
                                      .describe = dnn_cpu_prim_describe}

ALGO(dnn_cpu_onednn_conv, false);
ALGO(dnn_cpu_onednn_conv_data, false);
ALGO(dnn_cpu_onednn_conv_weights, true);
ALGO(dnn_cpu_onednn_deconv, false);
ALGO(dnn_cpu_onednn_deconv_data, false);
ALGO(dnn_cpu_onednn_deconv_weights, true);
