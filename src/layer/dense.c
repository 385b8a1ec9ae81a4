/* dense.c - Keras Dense: y = x W + b along the last axis.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

struct dense {
    int64_t units;
    bool use_bias;
    struct dnn_layer_spec kernel, bias;
    struct dnn_layer_act act;
};

#define AT(f) offsetof(struct dense, f)
static const struct dnn_field fields[] = {
    DNN_LAYER_INT("units", AT(units), NULL, 1, DNN_LAYER_AXIS_MAX,
                  "size of the output"),
    DNN_LAYER_BOOL("use_bias", AT(use_bias), "true", "add a bias"),
    DNN_LAYER_OTHER("activation", "applied to the result"),
    DNN_LAYER_WEIGHT("kernel"),
    DNN_LAYER_WEIGHT("bias"),
    DNN_LAYER_END,
};
static const struct dnn_field keras1[] = {
    DNN_LAYER_INT("output_dim", AT(units), NULL, 1, DNN_LAYER_AXIS_MAX,
                  "size of the output"),
    DNN_LAYER_BOOL("bias", AT(use_bias), "true", "add a bias"),
    DNN_LAYER_OTHER("activation", "applied to the result"),
    DNN_LAYER_OTHER("init", "initializer of the kernel"),
    DNN_LAYER_OTHER("W_regularizer", "regularizer of the kernel"),
    DNN_LAYER_OTHER("b_regularizer", "regularizer of the bias"),
    DNN_LAYER_OTHER("W_constraint", "constraint of the kernel"),
    DNN_LAYER_OTHER("b_constraint", "constraint of the bias"),
    DNN_LAYER_END,
};

static int read(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                struct dnn_err *err)
{
    struct dnn_jobj act = dnn_json_sub(config, "activation");
    struct dense *d = cfg;

    DNN_TRY(dnn_layer_read_spec(config, "kernel", "init", "W", "glorot_uniform",
                                &d->kernel, err));
    DNN_TRY(dnn_layer_read_spec(config, "bias", NULL, "b", "zeros", &d->bias, err));
    return dnn_layer_read_act(layer, &act, &d->act, err);
}

static int infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                 struct dnn_shape *out, struct dnn_err *err)
{
    const struct dense *d = layer->cfg;
    char text[DNN_SHAPE_TEXT];

    DNN_TRY(dnn_layer_one(nin, in, 2, err));
    if (in->dim[in->ndim - 1] < 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "needs to know the last axis of its input, which is %s",
                        dnn_shape_text(text, sizeof text, in));
    *out = *in;
    out->dim[out->ndim - 1] = d->units;
    return dnn_layer_infer_act(&d->act, out, err);
}

static int weights(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                   struct dnn_layer_weight *out)
{
    const struct dense *d = layer->cfg;
    int n = 0;

    (void)nin;
    dnn_layer_add_weight(out, &n, "kernel",
                         dnn_layer_shape(2, in->dim[in->ndim - 1], d->units, 0, 0, 0),
                         true, &d->kernel);
    if (d->use_bias)
        dnn_layer_add_weight(out, &n, "bias", dnn_layer_shape(1, d->units, 0, 0, 0, 0),
                             true, &d->bias);
    return n;
}

static int lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct dense *d = layer->cfg;
    int y = dnn_prog_op2(to->prog, DNN_OP_MATMUL, NULL, to->in[0], to->weight[0]);

    if (d->use_bias) y = dnn_prog_op2(to->prog, DNN_OP_BIAS, NULL, y, to->weight[1]);
    return dnn_layer_lower_act(&d->act, to->prog, y);
}

static int write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                 struct dnn_err *err)
{
    const struct dense *d = layer->cfg;

    dnn_layer_put_int(out, "units", d->units);
    dnn_layer_put_bool(out, "use_bias", d->use_bias);
    dnn_layer_put_spec(out, "kernel", &d->kernel);
    dnn_layer_put_spec(out, "bias", &d->bias);
    return dnn_layer_put_act(out, &d->act, err);
}

const struct dnn_layer_type dnn_layer_dense = {.name = "Dense",
                                               .size = sizeof(struct dense),
                                               .fields = fields,
                                               .keras1 = keras1,
                                               .read = read,
                                               .infer = infer,
                                               .weights = weights,
                                               .lower = lower,
                                               .write = write};
