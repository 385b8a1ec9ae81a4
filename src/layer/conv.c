/* conv.c - convolutions: Conv1D, 2D, 3D; DepthwiseConv; SeparableConv, a
 * depthwise and then a pointwise convolution.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <inttypes.h>
#include <string.h>

enum { FULL, DEPTHWISE, SEPARABLE };

struct conv {
    int64_t filters, groups, multiplier;
    struct dnn_list kernel_size, strides, dilation_rate;
    int64_t rows, cols, depth; /* Keras 1 */
    int64_t step;              /* Keras 1 */
    bool use_bias;
    struct dnn_layer_window window;
    struct dnn_layer_spec kernel, bias, pointwise;
    struct dnn_layer_act act;
};

#define AT(f) offsetof(struct conv, f)
#define SIZE_MAX_1D 65536
#define FILTERS(key)                                                                   \
    DNN_LAYER_INT(key, AT(filters), NULL, 1, DNN_LAYER_AXIS_MAX,                       \
                  "channels of the output")
#define MULTIPLIER                                                                     \
    DNN_LAYER_INT("depth_multiplier", AT(multiplier), "1", 1, 65536,                   \
                  "outputs of each channel")
#define EXTENTS(key, f, def, help)                                                     \
    DNN_LAYER_INTS(key, AT(f), def, 1, SIZE_MAX_1D, help, &dnn_layer_extents)
#define SHARED                                                                         \
    EXTENTS("kernel_size", kernel_size, NULL, "kernel size"),                          \
        EXTENTS("strides", strides, "1", "steps of the window"),                       \
        EXTENTS("dilation_rate", dilation_rate, "1", "steps inside the window"),       \
        DNN_LAYER_BOOL("use_bias", AT(use_bias), "true", "add a bias"),                \
        DNN_LAYER_OTHER("padding", "valid, same, or numbers"),                         \
        DNN_LAYER_OTHER("activation", "applied to the result"), DNN_LAYER_FORMAT,      \
        DNN_LAYER_WEIGHT("bias")

static const struct dnn_field fields[] = {
    FILTERS("filters"),
    SHARED,
    DNN_LAYER_WEIGHT("kernel"),
    DNN_LAYER_INT("groups", AT(groups), "1", 1, DNN_LAYER_AXIS_MAX,
                  "groups of channels"),
    DNN_LAYER_END,
};
/* Keras 2 also writes keys that DepthwiseConv and SeparableConv inherit but ignore. */
#define UNUSED_KERNEL                                                                  \
    DNN_LAYER_IGNORED("kernel_initializer"),                                           \
        DNN_LAYER_NEUTRAL("kernel_regularizer", "null"),                               \
        DNN_LAYER_NEUTRAL("kernel_constraint", "null")
static const struct dnn_field depthwise_fields[] = {
    SHARED,
    MULTIPLIER,
    DNN_LAYER_WEIGHT("depthwise"),
    UNUSED_KERNEL,
    DNN_LAYER_NEUTRAL("groups", "1"),
    DNN_LAYER_IGNORED("filters"),
    DNN_LAYER_END,
};
static const struct dnn_field separable_fields[] = {
    FILTERS("filters"),
    SHARED,
    MULTIPLIER,
    DNN_LAYER_WEIGHT("depthwise"),
    DNN_LAYER_WEIGHT("pointwise"),
    UNUSED_KERNEL,
    DNN_LAYER_NEUTRAL("groups", "1"),
    DNN_LAYER_END,
};

#define KERAS1_SHARED                                                                  \
    FILTERS("nb_filter"), DNN_LAYER_BOOL("bias", AT(use_bias), "true", "add a bias"),  \
        DNN_LAYER_OTHER("activation", "applied to the result"),                        \
        DNN_LAYER_OTHER("init", "initializer of the kernel"),                          \
        DNN_LAYER_OTHER("b_regularizer", "regularizer of the bias"),                   \
        DNN_LAYER_OTHER("b_constraint", "constraint of the bias"),                     \
        DNN_LAYER_OTHER("border_mode", "valid or same"),                               \
        DNN_LAYER_OTHER("dim_ordering", "tf")
#define KERAS1                                                                         \
    KERAS1_SHARED, DNN_LAYER_OTHER("W_regularizer", "regularizer of the kernel"),      \
        DNN_LAYER_OTHER("W_constraint", "constraint of the kernel")
#define EXTENT1(key, f) DNN_LAYER_INT(key, AT(f), NULL, 1, SIZE_MAX_1D, "kernel size")
#define SUBSAMPLE EXTENTS("subsample", strides, "1", "steps of the window")
/* of AtrousConvolution, otherwise the same layer */
#define ATROUS EXTENTS("atrous_rate", dilation_rate, "1", "steps inside the window")
static const struct dnn_field keras1_1d[] = {KERAS1, EXTENT1("filter_length", rows),
                                             DNN_LAYER_INT("subsample_length", AT(step),
                                                           "1", 1, SIZE_MAX_1D,
                                                           "steps of the window"),
                                             ATROUS, DNN_LAYER_END};
static const struct dnn_field keras1_2d[] = {
    KERAS1,       EXTENT1("nb_row", rows), EXTENT1("nb_col", cols), SUBSAMPLE, ATROUS,
    DNN_LAYER_END};
static const struct dnn_field keras1_separable[] = {
    KERAS1_SHARED,
    MULTIPLIER,
    DNN_LAYER_OTHER("depthwise_regularizer", "regularizer of the first kernel"),
    DNN_LAYER_OTHER("depthwise_constraint", "constraint"),
    DNN_LAYER_OTHER("pointwise_regularizer", "regularizer of the second kernel"),
    DNN_LAYER_OTHER("pointwise_constraint", "constraint"),
    EXTENT1("nb_row", rows),
    EXTENT1("nb_col", cols),
    SUBSAMPLE,
    DNN_LAYER_END};
static const struct dnn_field keras1_3d[] = {KERAS1,
                                             EXTENT1("kernel_dim1", rows),
                                             EXTENT1("kernel_dim2", cols),
                                             EXTENT1("kernel_dim3", depth),
                                             SUBSAMPLE,
                                             DNN_LAYER_END};

static int read_window(const struct dnn_layer *layer, struct conv *c,
                       const struct dnn_jobj *config, struct dnn_err *err)
{
    struct dnn_layer_window *w = &c->window;
    int nd = layer->type->nd;

    w->nd = nd;
    if (c->rows > 0) { /* Keras 1 */
        int64_t size[3] = {c->rows, nd > 1 ? c->cols : 1, nd > 2 ? c->depth : 1};

        memcpy(w->size, size, sizeof size);
    } else
        DNN_TRY(dnn_layer_read_extents(config, "kernel_size", nd, &c->kernel_size, 1,
                                       w->size, err));
    DNN_TRY(
        dnn_layer_read_extents(config, "strides", nd, &c->strides, 1, w->stride, err));
    if (c->step > 0) w->stride[0] = c->step;
    DNN_TRY(dnn_layer_read_extents(config, "dilation_rate", nd, &c->dilation_rate, 1,
                                   w->dilation, err));
    for (int i = 0; i < nd; i++) {
        struct dnn_jobj at = dnn_json_sub(config, "dilation_rate");

        if (w->dilation[i] > 1 && w->stride[i] > 1)
            return dnn_json_fail(
                &at, err, "must be 1 where the strides are above 1, as in Keras");
    }
    DNN_TRY(dnn_layer_read_padding(config, nd == 1, w, err));
    return dnn_layer_read_format(config, err);
}

static int read(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                struct dnn_err *err)
{
    struct dnn_jobj act = dnn_json_sub(config, "activation");
    struct conv *c = cfg;
    const char *kernel = layer->type->kind == FULL ? "kernel" : "depthwise";

    DNN_TRY(read_window(layer, c, config, err));
    DNN_TRY(dnn_layer_read_spec(config, kernel, "init", "W", "glorot_uniform",
                                &c->kernel, err));
    DNN_TRY(dnn_layer_read_spec(config, "bias", NULL, "b", "zeros", &c->bias, err));
    DNN_TRY(dnn_layer_read_spec(config, "pointwise", layer->keras == 1 ? "init" : NULL,
                                NULL, "glorot_uniform", &c->pointwise, err));
    if (c->groups < 1) c->groups = 1;
    if (layer->type->kind == FULL && c->filters % c->groups != 0) {
        struct dnn_jobj at = dnn_json_sub(config, "groups");

        return dnn_json_fail(&at, err,
                             "must divide the filters, %" PRId64 ", not %" PRId64,
                             c->filters, c->groups);
    }
    return dnn_layer_read_act(layer, &act, &c->act, err);
}

static int64_t outputs(const struct dnn_layer *layer, int64_t channels)
{
    const struct conv *c = layer->cfg;

    return layer->type->kind == DEPTHWISE ? channels * c->multiplier : c->filters;
}

static int infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                 struct dnn_shape *out, struct dnn_err *err)
{
    const struct conv *c = layer->cfg;
    int nd = layer->type->nd;

    DNN_TRY(dnn_layer_one_image(nd, nin, in, err));
    int64_t channels = in->dim[nd + 1];
    if (channels % c->groups != 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "its %" PRId64 " groups do not divide the %" PRId64
                        " channels of its input",
                        c->groups, channels);
    DNN_TRY(dnn_layer_window_infer(&c->window, in, out, err));
    out->dim[nd + 1] = outputs(layer, channels);
    return dnn_layer_infer_act(&c->act, out, err);
}

/* (window..., a, b) */
static struct dnn_shape kernel_shape(const struct dnn_layer_window *w, bool one,
                                     int64_t a, int64_t b)
{
    struct dnn_shape shape = {.ndim = w->nd + 2};

    for (int i = 0; i < w->nd; i++)
        shape.dim[i] = one ? 1 : w->size[i];
    shape.dim[w->nd] = a;
    shape.dim[w->nd + 1] = b;
    return shape;
}

static int weights(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                   struct dnn_layer_weight *out)
{
    const struct conv *c = layer->cfg;
    const struct dnn_layer_window *w = &c->window;
    int64_t channels = in->dim[layer->type->nd + 1];
    int n = 0;

    (void)nin;
    if (layer->type->kind == FULL) {
        dnn_layer_add_weight(out, &n, "kernel",
                             kernel_shape(w, false, channels / c->groups, c->filters),
                             true, &c->kernel);
    } else {
        dnn_layer_add_weight(out, &n, "depthwise_kernel",
                             kernel_shape(w, false, channels, c->multiplier), true,
                             &c->kernel);
        if (layer->type->kind == SEPARABLE)
            dnn_layer_add_weight(
                out, &n, "pointwise_kernel",
                kernel_shape(w, true, channels * c->multiplier, c->filters), true,
                &c->pointwise);
    }
    if (c->use_bias)
        dnn_layer_add_weight(out, &n, "bias",
                             dnn_layer_shape(1, outputs(layer, channels), 0, 0, 0, 0),
                             true, &c->bias);
    return n;
}

static int lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct conv *c = layer->cfg;
    const struct dnn_layer_window *w = &c->window;
    int64_t channels = dnn_prog_dim(to->prog, to->in[0], -1);
    union dnn_attr attr = {
        .window = {.nspatial = w->nd, .groups = c->groups}
    };
    int used = 1;

    memcpy(attr.window.kernel, w->size, sizeof w->size);
    memcpy(attr.window.stride, w->stride, sizeof w->stride);
    memcpy(attr.window.dilation, w->dilation, sizeof w->dilation);
    dnn_layer_window_pads(w, dnn_prog_shape(to->prog, to->in[0]), attr.window.before,
                          attr.window.after);
    if (layer->type->kind != FULL) attr.window.groups = channels;
    int y = dnn_prog_op2(to->prog, DNN_OP_CONV, &attr, to->in[0], to->weight[0]);
    if (layer->type->kind == SEPARABLE) {
        union dnn_attr mix = {
            .window = {.nspatial = w->nd, .groups = 1}
        };

        for (int i = 0; i < 3; i++)
            mix.window.kernel[i] = mix.window.stride[i] = mix.window.dilation[i] = 1;
        y = dnn_prog_op2(to->prog, DNN_OP_CONV, &mix, y, to->weight[used++]);
    }
    if (c->use_bias) y = dnn_prog_op2(to->prog, DNN_OP_BIAS, NULL, y, to->weight[used]);
    return dnn_layer_lower_act(&c->act, to->prog, y);
}

static int write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                 struct dnn_err *err)
{
    const struct conv *c = layer->cfg;
    const struct dnn_layer_window *w = &c->window;
    int kind = layer->type->kind;

    if (kind != FULL && w->nd == 3)
        return dnn_fail(err, DNN_ECONFIG, "Keras has no %s", layer->type->name);
    if (kind != DEPTHWISE) dnn_layer_put_int(out, "filters", c->filters);
    if (kind == FULL)
        dnn_layer_put_int(out, "groups", c->groups);
    else
        dnn_layer_put_int(out, "depth_multiplier", c->multiplier);
    dnn_layer_put_ints(out, "kernel_size", w->nd, w->size);
    dnn_layer_put_ints(out, "strides", w->nd, w->stride);
    dnn_layer_put_ints(out, "dilation_rate", w->nd, w->dilation);
    DNN_TRY(dnn_layer_put_padding(out, w, true, err));
    dnn_layer_put_bool(out, "use_bias", c->use_bias);
    dnn_layer_put_spec(out, kind == FULL ? "kernel" : "depthwise", &c->kernel);
    if (kind == SEPARABLE) dnn_layer_put_spec(out, "pointwise", &c->pointwise);
    dnn_layer_put_spec(out, "bias", &c->bias);
    return dnn_layer_put_act(out, &c->act, err);
}

#define KIND(id, class_name, other, old, n, which, table, table1)                      \
    const struct dnn_layer_type dnn_layer_##id = {                                     \
        .name = class_name,                                                            \
        .alias = {other, old},                                                         \
        .nd = n,                                                                       \
        .kind = which,                                                                 \
        .size = sizeof(struct conv),                                                   \
        .fields = table,                                                               \
        .keras1 = table1,                                                              \
        .read = read,                                                                  \
        .infer = infer,                                                                \
        .weights = weights,                                                            \
        .lower = lower,                                                                \
        .write = write \
    }

KIND(conv1d, "Conv1D", "Convolution1D", "AtrousConvolution1D", 1, FULL, fields,
     keras1_1d);
KIND(conv2d, "Conv2D", "Convolution2D", "AtrousConvolution2D", 2, FULL, fields,
     keras1_2d);
KIND(conv3d, "Conv3D", "Convolution3D", NULL, 3, FULL, fields, keras1_3d);
KIND(depthwise1d, "DepthwiseConv1D", NULL, NULL, 1, DEPTHWISE, depthwise_fields, NULL);
KIND(depthwise2d, "DepthwiseConv2D", NULL, NULL, 2, DEPTHWISE, depthwise_fields, NULL);
KIND(depthwise3d, "DepthwiseConv3D", NULL, NULL, 3, DEPTHWISE, depthwise_fields, NULL);
KIND(separable1d, "SeparableConv1D", "SeparableConvolution1D", NULL, 1, SEPARABLE,
     separable_fields, NULL);
KIND(separable2d, "SeparableConv2D", "SeparableConvolution2D", NULL, 2, SEPARABLE,
     separable_fields, keras1_separable);
KIND(separable3d, "SeparableConv3D", NULL, NULL, 3, SEPARABLE, separable_fields, NULL);
