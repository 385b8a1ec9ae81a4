/* norm.c - normalizations: Batch, Layer, Group and Instance.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <inttypes.h>
#include <string.h>

enum { BATCH, LAYER, GROUP, INSTANCE };

struct norm {
    struct dnn_list axis;
    double momentum, epsilon;
    bool center, scale, affine;
    int64_t groups;
    struct dnn_layer_spec gamma, beta, mean, variance;
};

#define AT(f) offsetof(struct norm, f)
static const struct dnn_sub axes_sub = {.min = 1, .max = DNN_MAX_DIMS, .single = true};
#define AXIS                                                                           \
    DNN_LAYER_INTS("axis", AT(axis), "-1", -DNN_MAX_DIMS, DNN_MAX_DIMS - 1,            \
                   "of the channels", &axes_sub)
#define EPSILON                                                                        \
    DNN_LAYER_REAL("epsilon", AT(epsilon), "0.001", 0, 1e6, "added to the variance")
#define MOMENTUM                                                                       \
    DNN_LAYER_REAL("momentum", AT(momentum), "0.99", 0, 1, "of the moving averages")
#define SHARED                                                                         \
    AXIS, EPSILON, DNN_LAYER_BOOL("center", AT(center), "true", "add beta"),           \
        DNN_LAYER_BOOL("scale", AT(scale), "true", "multiply by gamma"),               \
        DNN_LAYER_WEIGHT("gamma"), DNN_LAYER_WEIGHT("beta")

static const struct dnn_field batch_fields[] = {
    SHARED,
    MOMENTUM,
    DNN_LAYER_OTHER("moving_mean_initializer", "initializer"),
    DNN_LAYER_OTHER("moving_variance_initializer", "initializer"),
    DNN_LAYER_NEUTRAL("renorm", "false"),
    DNN_LAYER_IGNORED("renorm_clipping"),
    DNN_LAYER_IGNORED("renorm_momentum"),
    DNN_LAYER_IGNORED("fused"),
    DNN_LAYER_NEUTRAL("virtual_batch_size", "null"),
    DNN_LAYER_NEUTRAL("adjustment", "null"),
    DNN_LAYER_IGNORED("synchronized"), /* always done */
    DNN_LAYER_END,
};
static const struct dnn_field batch_keras1[] = {
    AXIS,
    EPSILON,
    MOMENTUM,
    DNN_LAYER_NEUTRAL("mode", "0"),
    DNN_LAYER_OTHER("gamma_init", "initializer"),
    DNN_LAYER_OTHER("beta_init", "initializer"),
    DNN_LAYER_OTHER("gamma_regularizer", "regularizer"),
    DNN_LAYER_OTHER("beta_regularizer", "regularizer"),
    DNN_LAYER_END,
};
static const struct dnn_field layer_fields[] = {
    SHARED, DNN_LAYER_NEUTRAL("rms_scaling", "false"), DNN_LAYER_END};
static const struct dnn_field group_fields[] = {
    SHARED,
    DNN_LAYER_INT("groups", AT(groups), "32", -1, DNN_LAYER_AXIS_MAX,
                  "groups of channels; -1: one per channel"),
    DNN_LAYER_END,
};
static const struct dnn_field instance_fields[] = {
    SHARED,
    DNN_LAYER_BOOL("affine", AT(affine), "true", "false: neither beta nor gamma"),
    DNN_LAYER_NEUTRAL("track_running_stats", "false"),
    DNN_LAYER_IGNORED("momentum"), /* of statistics that are not tracked */
    DNN_LAYER_NEUTRAL("groups", "-1"),
    DNN_LAYER_END,
};

static int read(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                struct dnn_err *err)
{
    struct dnn_jobj mean = dnn_json_sub(config, "moving_mean_initializer");
    struct dnn_jobj variance = dnn_json_sub(config, "moving_variance_initializer");
    struct norm *n = cfg;

    DNN_TRY(dnn_layer_read_spec(config, "gamma", "gamma_init", NULL, "ones", &n->gamma,
                                err));
    DNN_TRY(
        dnn_layer_read_spec(config, "beta", "beta_init", NULL, "zeros", &n->beta, err));
    DNN_TRY(dnn_layer_read_init(&mean, "zeros", &n->mean.init, err));
    DNN_TRY(dnn_layer_read_init(&variance, "ones", &n->variance.init, err));
    if (layer->keras == 1 && layer->type->kind == BATCH) n->center = n->scale = true;
    if (layer->type->kind == INSTANCE && !n->affine) n->center = n->scale = false;
    if (layer->type->kind != LAYER && n->axis.count != 1) {
        struct dnn_jobj at = dnn_json_sub(config, "axis");

        return dnn_json_fail(&at, err, "must be one axis, that of the channels");
    }
    if (layer->type->kind == GROUP && n->groups == 0) {
        struct dnn_jobj at = dnn_json_sub(config, "groups");

        return dnn_json_fail(&at, err, "must be 1 or more, or -1, not 0");
    }
    return 0;
}

/* The axes in "axis", as bits. */
static int find_axes(const struct norm *n, const struct dnn_shape *in, unsigned *bits,
                     struct dnn_err *err)
{
    *bits = 0;
    for (int64_t i = 0; i < n->axis.count; i++) {
        int axis;

        DNN_TRY(dnn_layer_axis(n->axis.ints[i], in->ndim, &axis, err));
        if (axis == 0)
            return dnn_fail(err, DNN_ECONFIG, "\"axis\" must not be 0, the batch");
        *bits |= 1u << axis;
    }
    return 0;
}

static int infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                 struct dnn_shape *out, struct dnn_err *err)
{
    const struct norm *n = layer->cfg;
    char text[DNN_SHAPE_TEXT];
    unsigned bits;

    DNN_TRY(dnn_layer_one(nin, in, 2, err));
    DNN_TRY(find_axes(n, in, &bits, err));
    for (int i = 1; i < in->ndim; i++)
        if ((bits >> i & 1) != 0 && in->dim[i] < 0)
            return dnn_fail(err, DNN_ECONFIG,
                            "needs to know axis %d of its input, which is %s", i,
                            dnn_shape_text(text, sizeof text, in));
    int64_t channels = in->dim[in->ndim - 1];
    if ((layer->type->kind == GROUP || layer->type->kind == INSTANCE) &&
        bits != 1u << (in->ndim - 1))
        return dnn_fail(err, DNN_ECONFIG,
                        "\"axis\" must be the last, -1: channels are last here");
    if (layer->type->kind == GROUP && n->groups > 0 && channels % n->groups != 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "its %" PRId64 " groups do not divide the %" PRId64
                        " channels of its input",
                        n->groups, channels);
    *out = *in;
    return 0;
}

static int weights(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                   struct dnn_layer_weight *out)
{
    const struct norm *n = layer->cfg;
    struct dnn_shape shape = {0};
    unsigned bits;
    int count = 0;

    (void)nin;
    if (find_axes(n, in, &bits, NULL) < 0) return 0;
    for (int i = 1; i < in->ndim; i++)
        if ((bits >> i & 1) != 0) shape.dim[shape.ndim++] = in->dim[i];
    if (n->scale) dnn_layer_add_weight(out, &count, "gamma", shape, true, &n->gamma);
    if (n->center) dnn_layer_add_weight(out, &count, "beta", shape, true, &n->beta);
    if (layer->type->kind == BATCH) {
        dnn_layer_add_weight(out, &count, "moving_mean", shape, false, &n->mean);
        dnn_layer_add_weight(out, &count, "moving_variance", shape, false,
                             &n->variance);
    }
    return count;
}

static int lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct norm *n = layer->cfg;
    const struct dnn_shape *in = dnn_prog_shape(to->prog, to->in[0]);
    int gamma = DNN_NONE, beta = DNN_NONE, used = 0;
    unsigned bits = 0;

    find_axes(n, in, &bits, NULL);
    if (n->scale) gamma = to->weight[used++];
    if (n->center) beta = to->weight[used++];
    if (layer->type->kind == BATCH) {
        struct dnn_op_batchnorm attr = {.axis = __builtin_ctz(bits),
                                        .epsilon = n->epsilon,
                                        .momentum = n->momentum};

        /* For images and volumes, Keras 2 uses a fused op of TensorFlow, which updates
         * the moving variance with the unbiased variance. */
        attr.unbiased = layer->keras == 2 && (in->ndim == 4 || in->ndim == 5) &&
                        (attr.axis == 1 || attr.axis == in->ndim - 1);
        /* As in Keras, a frozen layer uses its moving averages. */
        return dnn_prog_batchnorm(to->prog, &attr, to->training && layer->trainable,
                                  to->in[0], gamma, beta, to->weight[used],
                                  to->weight[used + 1]);
    }
    union dnn_attr attr = {
        .groupnorm = {
                      .axes = bits, .params = bits, .groups = 1, .epsilon = n->epsilon}
    };
    if (layer->type->kind != LAYER) {
        attr.groupnorm.axes = (1u << in->ndim) - 2;
        attr.groupnorm.groups = n->groups;
        if (layer->type->kind == INSTANCE || n->groups < 0)
            attr.groupnorm.groups = in->dim[in->ndim - 1];
    }
    return dnn_prog_op(to->prog, DNN_OP_GROUPNORM, &attr, 3,
                       (int[]){to->in[0], gamma, beta});
}

/* Keras has no instance normalization: it is a group normalization with a group for
 * each channel. */
static int write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                 struct dnn_err *err)
{
    const struct norm *n = layer->cfg;
    int kind = layer->type->kind;

    (void)err;
    if (kind == INSTANCE) out->class_name = "GroupNormalization";
    if (kind == INSTANCE || kind == GROUP)
        dnn_layer_put_int(out, "groups", kind == INSTANCE ? -1 : n->groups);
    if (kind == LAYER)
        dnn_layer_put_ints(out, "axis", n->axis.count, n->axis.ints);
    else
        dnn_layer_put_int(out, "axis", n->axis.ints[0]);
    dnn_layer_put_reals(out, "epsilon", 1, &n->epsilon);
    dnn_layer_put_bool(out, "center", n->center);
    dnn_layer_put_bool(out, "scale", n->scale);
    dnn_layer_put_spec(out, "beta", &n->beta);
    dnn_layer_put_spec(out, "gamma", &n->gamma);
    if (kind != BATCH) return 0;
    dnn_layer_put_reals(out, "momentum", 1, &n->momentum);
    dnn_layer_put_init(out, "moving_mean_initializer", &n->mean.init);
    dnn_layer_put_init(out, "moving_variance_initializer", &n->variance.init);
    return 0;
}

#define KIND(id, class_name, which, table, table1)                                     \
    const struct dnn_layer_type dnn_layer_##id = {                                     \
        .name = class_name,                                                            \
        .kind = which,                                                                 \
        .size = sizeof(struct norm),                                                   \
        .fields = table,                                                               \
        .keras1 = table1,                                                              \
        .read = read,                                                                  \
        .infer = infer,                                                                \
        .weights = weights,                                                            \
        .lower = lower,                                                                \
        .write = write,                                                                \
    }

KIND(batchnorm, "BatchNormalization", BATCH, batch_fields, batch_keras1);
KIND(layernorm, "LayerNormalization", LAYER, layer_fields, NULL);
KIND(groupnorm, "GroupNormalization", GROUP, group_fields, NULL);
KIND(instancenorm, "InstanceNormalization", INSTANCE, instance_fields, NULL);
