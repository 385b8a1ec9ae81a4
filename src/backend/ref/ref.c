/* ref.c - the reference backend: plain loops, always built.
 *
 * It computes in double for every element type and sums in a fixed order. Other
 * backends are tested against it, and it runs the steps they do not support.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct dnn_dev {
    struct dnn_exchange exchange; /* sum NULL: one rank */
};

struct dnn_kernel {
    struct ref_call call;
    ref_fn *fn; /* NULL: DNN_OP_EXCHANGE */
};

struct ops_row {
    ref_fn *fn[DNN_PASSES]; /* forward; backward: data, weights, statistics */
    ref_work *work[DNN_PASSES];
};

static const struct ops_row table[DNN_OP_KINDS] = {
    [DNN_OP_MATMUL] = {.fn = {dnn_ref_matmul, dnn_ref_matmul_data,
                              dnn_ref_matmul_weights}},
    [DNN_OP_BIAS] = {.fn = {dnn_ref_bias, NULL, dnn_ref_bias_weights}},
    [DNN_OP_CONV] = {.fn = {dnn_ref_conv, dnn_ref_conv_data, dnn_ref_conv_weights}},
    [DNN_OP_DECONV] = {.fn = {dnn_ref_deconv, dnn_ref_deconv_data,
                              dnn_ref_deconv_weights}},
    [DNN_OP_POOL] = {.fn = {dnn_ref_pool, dnn_ref_pool_data}},
    [DNN_OP_UPSAMPLE] = {.fn = {dnn_ref_upsample, dnn_ref_upsample_data},
                       .work = {NULL, dnn_ref_work_outputs}},
    [DNN_OP_PAD] = {.fn = {dnn_ref_pad, dnn_ref_pad_data}},
    [DNN_OP_UNARY] = {.fn = {dnn_ref_unary, dnn_ref_unary_data}},
    [DNN_OP_PRELU] = {.fn = {dnn_ref_prelu, dnn_ref_prelu_data, dnn_ref_prelu_weights},
                       .work = {NULL, NULL, dnn_ref_work_outputs}},
    [DNN_OP_SOFTMAX] = {.fn = {dnn_ref_softmax, dnn_ref_softmax_data}},
    [DNN_OP_COMBINE] = {.fn = {dnn_ref_combine, dnn_ref_combine_data},
                       .work = {NULL, dnn_ref_work_outputs}},
    [DNN_OP_CONCAT] = {.fn = {dnn_ref_concat, dnn_ref_concat_data}},
    [DNN_OP_RESHAPE] = {.fn = {dnn_ref_reshape}},
    [DNN_OP_TRANSPOSE] = {.fn = {dnn_ref_transpose}},
    [DNN_OP_REDUCE] = {.fn = {dnn_ref_reduce, dnn_ref_reduce_data},
                       .work = {dnn_ref_work_reduce, dnn_ref_work_reduce}},
    [DNN_OP_BN_STATS] = {.fn = {dnn_ref_bn_stats}},
    [DNN_OP_BN_UPDATE] = {.fn = {dnn_ref_bn_update}},
    [DNN_OP_BN_APPLY] = {.fn = {dnn_ref_bn_apply, dnn_ref_bn_apply_data,
                                dnn_ref_bn_apply_weights, dnn_ref_bn_apply_stats}},
    [DNN_OP_BN_INFER] = {.fn = {dnn_ref_bn_infer, dnn_ref_bn_infer_data,
                                dnn_ref_bn_infer_weights}},
    [DNN_OP_GROUPNORM] = {.fn = {dnn_ref_groupnorm, dnn_ref_groupnorm_data,
                                 dnn_ref_groupnorm_weights},
                       .work = {dnn_ref_work_stats, dnn_ref_work_stats,
                                   dnn_ref_work_outputs}},
    [DNN_OP_NOISE] = {.fn = {dnn_ref_noise, dnn_ref_noise_data}},
    [DNN_OP_SCALE] = {.fn = {dnn_ref_scale, dnn_ref_scale_data}},
    [DNN_OP_ACTIVITY] = {.fn = {dnn_ref_activity, dnn_ref_activity_data}},
    [DNN_OP_MSE] = {.fn = {dnn_ref_mse, dnn_ref_mse_data}},
    [DNN_OP_XENT] = {.fn = {dnn_ref_xent, dnn_ref_xent_data}},
    [DNN_OP_POINT] = {.fn = {dnn_ref_point, dnn_ref_point_data}},
    [DNN_OP_MARGIN] = {.fn = {dnn_ref_margin, dnn_ref_margin_data}},
    [DNN_OP_WEIGH] = {.fn = {dnn_ref_weigh}},
    [DNN_OP_OVERLAP] = {.fn = {dnn_ref_overlap, dnn_ref_overlap_data}},
    [DNN_OP_RATIO] = {.fn = {dnn_ref_ratio, dnn_ref_ratio_data}},
    [DNN_OP_LOVASZ] = {.fn = {dnn_ref_lovasz, dnn_ref_lovasz_data},
                       .work = {dnn_ref_work_lovasz}},
    [DNN_OP_FOLD] = {.fn = {dnn_ref_fold}},
    [DNN_OP_PENALTY] = {.fn = {dnn_ref_penalty}},
    [DNN_OP_UPDATE] = {.fn = {dnn_ref_update}, .work = {dnn_ref_work_update}},
};

static int open_dev(const struct dnn_device *device, struct dnn_dev **out,
                    struct dnn_err *err)
{
    if (device->index != 0)
        return dnn_fail(err, DNN_EDEVICE, "backend ref has only device 0, not %d",
                        device->index);
    *out = dnn_alloc(sizeof **out);
    (*out)->exchange = device->exchange;
    return 0;
}

static void close_dev(struct dnn_dev *dev)
{
    dnn_free(dev);
}

static int alloc(struct dnn_dev *dev, size_t bytes, void **out, struct dnn_err *err)
{
    size_t rounded = bytes == 0 ? 64 : (bytes + 63) & ~(size_t)63;
    void *mem = rounded < bytes ? NULL : aligned_alloc(64, rounded);

    (void)dev;
    if (mem == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "backend ref: cannot allocate %zu bytes of memory", bytes);
    memset(mem, 0, rounded);
    *out = mem;
    return 0;
}

static void release(struct dnn_dev *dev, void *mem, size_t bytes)
{
    (void)dev, (void)bytes;
    free(mem);
}

static int copy(struct dnn_dev *dev, void *dst, const void *src, size_t n,
                struct dnn_err *err)
{
    (void)dev, (void)err;
    if (n > 0) memcpy(dst, src, n);
    return 0;
}

static int check(const struct dnn_op *op, enum dnn_operand operand,
                 const struct dnn_tensor *t, struct dnn_err *why)
{
    bool index = op->kind == DNN_OP_POOL && operand == DNN_OPERAND_BITS;
    bool mask =
        op->kind == DNN_OP_UNARY && operand == DNN_OPERAND_BITS && op->attr.unary.mask;

    if (t == NULL) return 0;
    if (t->dtype == DNN_F32 || t->dtype == DNN_F64) {
        if (!index) return 0;
    } else if (t->dtype == DNN_I32) {
        if (index || operand == DNN_OPERAND_LABEL) return 0;
    } else if ((t->dtype == DNN_U8 && (index || mask)) ||
               (t->dtype == DNN_U16 && index)) {
        return 0;
    }
    return dnn_fail(why, DNN_ECONFIG, "backend ref has no %s %s for %s%s; it has %s",
                    dnn_op_info(op->kind)->name, dnn_op_pass_name(op->pass),
                    index ? "an index of " : "", dnn_dtype_name(t->dtype),
                    index ? "u8, u16 and i32" : "f32 and f64");
}

static int supports(struct dnn_dev *dev, const struct dnn_step *step,
                    struct dnn_err *why)
{
    const struct dnn_op *op = step->op;

    (void)dev;
    if (op->kind != DNN_OP_EXCHANGE && table[op->kind].fn[op->pass] == NULL)
        return dnn_fail(why, DNN_ECONFIG, "backend ref has no %s %s",
                        dnn_op_info(op->kind)->name, dnn_op_pass_name(op->pass));
    for (int i = 0; i < op->nin; i++)
        DNN_TRY(check(op, dnn_op_operand_in(op, i), step->in[i], why));
    for (int i = 0; i < op->nout; i++)
        DNN_TRY(check(op, dnn_op_operand_out(op, i), step->out[i], why));
    if (op->kind == DNN_OP_EXCHANGE && step->in[0]->dtype != DNN_F64)
        return dnn_fail(why, DNN_ECONFIG,
                        "backend ref has no exchange forward for %s; it has f64",
                        dnn_dtype_name(step->in[0]->dtype));
    return 0;
}

static int need(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err)
{
    ref_work *work = table[step->op->kind].work[step->op->pass];

    DNN_TRY(supports(dev, step, err));
    *need = (struct dnn_need){0};
    if (work != NULL) need->work = (size_t)work(step) * sizeof(double);
    return 0;
}

/* Always: elements are addressed one by one. */
static bool pitch(struct dnn_dev *dev, const struct dnn_step *step, bool out, int i)
{
    (void)dev, (void)step, (void)out, (void)i;
    return true;
}

static struct ref_array array(const struct dnn_tensor *tensor, void *mem,
                              const int64_t *pitches, int i)
{
    struct ref_array a = {0};

    if (tensor == NULL) return a;
    a.mem = mem;
    a.dtype = tensor->dtype;
    a.shape = tensor->shape;
    a.count = dnn_ref_count(tensor);
    a.row = tensor->shape.ndim == 0 ? 1 : tensor->shape.dim[tensor->shape.ndim - 1];
    a.gap = pitches == NULL || pitches[i] == 0 ? 0 : pitches[i] - a.row;
    return a;
}

static int prepare(struct dnn_dev *dev, const struct dnn_step *step,
                   struct dnn_kernel **out, struct dnn_err *err)
{
    const struct dnn_op *op = step->op;

    DNN_TRY(supports(dev, step, err));
    struct dnn_kernel *k = dnn_alloc(sizeof *k);
    k->fn = table[op->kind].fn[op->pass];
    k->call.op = op;
    k->call.work = step->work;
    k->call.in = dnn_alloc((size_t)op->nin * sizeof *k->call.in);
    for (int i = 0; i < op->nin; i++)
        k->call.in[i] = array(step->in[i], step->in_mem[i], step->in_pitch, i);
    for (int i = 0; i < op->nout; i++)
        k->call.out[i] = array(step->out[i], step->out_mem[i], step->out_pitch, i);
    *out = k;
    return 0;
}

static int run(struct dnn_dev *dev, struct dnn_kernel *kernel,
               const struct dnn_now *now, struct dnn_err *err)
{
    struct ref_call *c = &kernel->call;

    c->now = *now;
    if (kernel->fn != NULL) {
        kernel->fn(c);
        return 0;
    }
    dnn_ref_reshape(c); /* a copy */
    if (dev->exchange.sum == NULL) return 0;
    return dev->exchange.sum(dev->exchange.arg, c->out[0].mem, c->out[0].count, err);
}

static void discard(struct dnn_dev *dev, struct dnn_kernel *kernel)
{
    (void)dev;
    if (kernel == NULL) return;
    dnn_free(kernel->call.in);
    dnn_free(kernel);
}

static int sync_dev(struct dnn_dev *dev, struct dnn_err *err)
{
    (void)dev, (void)err;
    return 0;
}

static const char *describe(struct dnn_dev *dev, const struct dnn_kernel *kernel)
{
    (void)dev, (void)kernel;
    return "plain loops";
}

extern const struct dnn_backend dnn_backend_ref;
const struct dnn_backend dnn_backend_ref = {
    .name = "ref",
    .host_memory = true,
    .open = open_dev,
    .close = close_dev,
    .alloc = alloc,
    .release = release,
    .put = copy,
    .get = copy,
    .supports = supports,
    .need = need,
    .pitch = pitch,
    .prepare = prepare,
    .run = run,
    .discard = discard,
    .sync = sync_dev,
    .describe = describe,
};
