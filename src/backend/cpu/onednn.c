/* onednn.c - the oneDNN engine, descriptors, and the activations oneDNN can fuse.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_prim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Klambauer and others, "Self-normalizing neural networks", 2017 */
#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946

int dnn_cpu_onednn_fail(dnnl_status_t status, const char *what, struct dnn_err *err)
{
    static const char *const why[] = {
        [dnnl_success] = "no error",
        [dnnl_out_of_memory] = "out of memory",
        [dnnl_invalid_arguments] = "invalid arguments",
        [dnnl_unimplemented] = "not implemented",
        [dnnl_last_impl_reached] = "no implementation left",
        [dnnl_runtime_error] = "error while running",
        [dnnl_not_required] = "not required",
    };
    unsigned index = (unsigned)status;
    const char *text = index < sizeof why / sizeof why[0] && why[index] != NULL
                           ? why[index]
                           : "unknown error";

    return dnn_fail(err, status == dnnl_out_of_memory ? DNN_ENOMEM : DNN_EDEVICE,
                    "oneDNN: %s: %s", what, text);
}

int dnn_cpu_onednn_open(struct dnn_dev *dev, struct dnn_err *err)
{
    if (dev->engine == NULL)
        CALL(dnnl_engine_create(&dev->engine, dnnl_cpu, 0), "engine");
    if (dev->stream == NULL)
        CALL(dnnl_stream_create(&dev->stream, dev->engine, dnnl_stream_default_flags),
             "stream");
    return 0;
}

void dnn_cpu_onednn_close(struct dnn_dev *dev)
{
    if (dev->stream != NULL) dnnl_stream_destroy(dev->stream);
    if (dev->engine != NULL) dnnl_engine_destroy(dev->engine);
    dev->stream = NULL;
    dev->engine = NULL;
}

const char *dnn_cpu_onednn_version(char *out, size_t size)
{
    const dnnl_version_t *v = dnnl_version();

    snprintf(out, size, "%d.%d.%d", v->major, v->minor, v->patch);
    return out;
}

int dnn_cpu_memory_desc(int ndim, const int64_t *dim, const int64_t *stride,
                        dnnl_memory_desc_t *out, struct dnn_err *err)
{
    dnnl_dims_t dims, strides;

    for (int i = 0; i < ndim; i++) {
        dims[i] = dim[i];
        if (stride != NULL) strides[i] = stride[i];
    }
    if (stride == NULL)
        CALL(dnnl_memory_desc_create_with_tag(out, ndim, dims, dnnl_f32,
                                              dnnl_format_tag_any),
             "memory descriptor");
    else
        CALL(dnnl_memory_desc_create_with_strides(out, ndim, dims, dnnl_f32, strides),
             "memory descriptor");
    return 0;
}

/* An activation as one or two oneDNN eltwise operations; count 0: not possible. */
struct eltwise {
    int count;
    dnnl_alg_kind_t alg[2];
    double alpha[2], beta[2];
};

static struct eltwise relu(const struct dnn_op_unary *u)
{
    if (u->threshold != 0 || u->alpha < 0) return (struct eltwise){0};
    if (!isfinite(u->max_value))
        return (struct eltwise){1, {dnnl_eltwise_relu}, {u->alpha}, {0}};
    if (u->alpha != 0 || u->max_value < 0) return (struct eltwise){0};
    return (struct eltwise){1, {dnnl_eltwise_clip}, {0}, {u->max_value}};
}

static struct eltwise translate(const struct dnn_op_unary *u)
{
    switch (u->fn) {
    case DNN_RELU:
        return relu(u);
    case DNN_ELU:
        return (struct eltwise){1, {dnnl_eltwise_elu}, {u->alpha}, {0}};
    case DNN_SELU:
        return (struct eltwise){
            2, {dnnl_eltwise_elu, dnnl_eltwise_linear},
             {SELU_ALPHA, SELU_SCALE},
             {0}
        };
    case DNN_GELU:
        return (struct eltwise){1, {dnnl_eltwise_gelu_erf}, {0}, {0}};
    case DNN_GELU_TANH:
        return (struct eltwise){1, {dnnl_eltwise_gelu_tanh}, {0}, {0}};
    case DNN_SIGMOID:
        return (struct eltwise){1, {dnnl_eltwise_logistic}, {0}, {0}};
    case DNN_TANH:
        return (struct eltwise){1, {dnnl_eltwise_tanh}, {0}, {0}};
    case DNN_SOFTPLUS:
        return (struct eltwise){1, {dnnl_eltwise_soft_relu}, {1}, {0}};
    case DNN_LOG_SIGMOID:
        return (struct eltwise){1, {dnnl_eltwise_soft_relu}, {-1}, {0}};
    case DNN_HARD_SIGMOID:
        return (struct eltwise){1, {dnnl_eltwise_hardsigmoid}, {u->alpha}, {0.5}};
    case DNN_HARD_SWISH:
        return (struct eltwise){1, {dnnl_eltwise_hardswish}, {1. / 6}, {0.5}};
    case DNN_SWISH:
        return (struct eltwise){1, {dnnl_eltwise_swish}, {1}, {0}};
    case DNN_MISH:
        return (struct eltwise){1, {dnnl_eltwise_mish}, {0}, {0}};
    case DNN_SQUARE:
        return (struct eltwise){1, {dnnl_eltwise_square}, {0}, {0}};
    case DNN_ABS:
        return (struct eltwise){1, {dnnl_eltwise_abs}, {0}, {0}};
    case DNN_NEGATE:
        return (struct eltwise){1, {dnnl_eltwise_linear}, {-1}, {0}};
    default:
        return (struct eltwise){0};
    }
}

bool dnn_cpu_onednn_post_can(const struct dnn_op_unary *post)
{
    return post == NULL || translate(post).count > 0;
}

static int add_post(dnnl_primitive_attr_t attr, const struct dnn_op_unary *post,
                    struct dnn_err *err)
{
    struct eltwise e = translate(post);
    dnnl_post_ops_t ops;

    CALL(dnnl_post_ops_create(&ops), "post operations");
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < e.count && status == dnnl_success; i++)
        status = dnnl_post_ops_append_eltwise(ops, e.alg[i], (float)e.alpha[i],
                                              (float)e.beta[i]);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(attr, ops);
    dnnl_post_ops_destroy(ops);
    CALL(status, "post operations");
    return 0;
}

int dnn_cpu_onednn_attr(const struct dnn_op_unary *post, dnnl_primitive_attr_t *out,
                        struct dnn_err *err)
{
    dnnl_primitive_attr_t attr;

    CALL(dnnl_primitive_attr_create(&attr), "attributes");
    dnnl_status_t status =
        dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    int rc =
        status == dnnl_success ? 0 : dnn_cpu_onednn_fail(status, "attributes", err);
    if (rc == 0 && post != NULL) rc = add_post(attr, post, err);
    if (rc < 0) {
        dnnl_primitive_attr_destroy(attr);
        return rc;
    }
    *out = attr;
    return 0;
}
