/* conv_transpose.c - transposed convolutions: Conv1DTranspose, 2D, 3D.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <inttypes.h>
#include <string.h>

struct deconv {
    int64_t filters;
    struct dnn_list kernel_size, strides, dilation_rate, output_padding;
    bool use_bias, has_extra;
    struct dnn_layer_window window;
    int64_t extra[3]; /* output_padding, if has_extra */
    struct dnn_layer_spec kernel, bias;
    struct dnn_layer_act act;
};

#define AT(f) offsetof(struct deconv, f)
static const struct dnn_field fields[] = {
    DNN_LAYER_INT("filters", AT(filters), NULL, 1, DNN_LAYER_AXIS_MAX,
                  "channels of the output"),
    DNN_LAYER_INTS("kernel_size", AT(kernel_size), NULL, 1, 65536, "kernel size",
                   &dnn_layer_extents),
    DNN_LAYER_INTS("strides", AT(strides), "1", 1, 65536, "steps of the window",
                   &dnn_layer_extents),
    DNN_LAYER_INTS("dilation_rate", AT(dilation_rate), "1", 1, 65536,
                   "steps inside the window", &dnn_layer_extents),
    DNN_LAYER_INTS("output_padding", AT(output_padding), "null", 0, 65536,
                   "added at the end; null: from the padding", &dnn_layer_extents),
    DNN_LAYER_BOOL("use_bias", AT(use_bias), "true", "add a bias"),
    DNN_LAYER_OTHER("padding", "valid, same, or numbers"),
    DNN_LAYER_OTHER("activation", "applied to the result"),
    DNN_LAYER_NEUTRAL("groups", "1"),
    DNN_LAYER_FORMAT,
    DNN_LAYER_WEIGHT("kernel"),
    DNN_LAYER_WEIGHT("bias"),
    DNN_LAYER_END,
};

static int read(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                struct dnn_err *err)
{
    struct dnn_jobj act = dnn_json_sub(config, "activation");
    struct dnn_jobj extra = dnn_json_sub(config, "output_padding");
    struct deconv *c = cfg;
    struct dnn_layer_window *w = &c->window;
    int nd = layer->type->nd;

    w->nd = nd;
    DNN_TRY(dnn_layer_read_extents(config, "kernel_size", nd, &c->kernel_size, 1,
                                   w->size, err));
    DNN_TRY(
        dnn_layer_read_extents(config, "strides", nd, &c->strides, 1, w->stride, err));
    DNN_TRY(dnn_layer_read_extents(config, "dilation_rate", nd, &c->dilation_rate, 1,
                                   w->dilation, err));
    DNN_TRY(dnn_layer_read_extents(config, "output_padding", nd, &c->output_padding, 0,
                                   c->extra, err));
    c->has_extra = c->output_padding.count > 0;
    for (int i = 0; i < nd; i++) {
        struct dnn_jobj at = dnn_json_sub(config, "dilation_rate");

        if (c->has_extra && c->extra[i] >= w->stride[i])
            return dnn_json_fail(&extra, err, "must be below the strides");
        if (w->dilation[i] > 1 && w->stride[i] > 1)
            return dnn_json_fail(
                &at, err, "must be 1 where the strides are above 1, as in Keras");
    }
    DNN_TRY(dnn_layer_read_padding(config, false, w, err));
    DNN_TRY(dnn_layer_read_format(config, err));
    DNN_TRY(dnn_layer_read_spec(config, "kernel", NULL, NULL, "glorot_uniform",
                                &c->kernel, err));
    DNN_TRY(dnn_layer_read_spec(config, "bias", NULL, NULL, "zeros", &c->bias, err));
    return dnn_layer_read_act(layer, &act, &c->act, err);
}

static int64_t effective_size(const struct dnn_layer_window *w, int i)
{
    return (w->size[i] - 1) * w->dilation[i] + 1;
}

/* Keras's rule: without output_padding "same" gives in * stride and "valid" all
 * that the windows cover, but at least in * stride. */
static int64_t out_extent(const struct deconv *c, int i, int64_t in)
{
    const struct dnn_layer_window *w = &c->window;
    int64_t kernel = effective_size(w, i), stride = w->stride[i];
    int64_t pad = w->padding == DNN_LAYER_SAME      ? kernel / 2
                  : w->padding == DNN_LAYER_NUMBERS ? w->pad[i]
                                                    : 0;

    if (c->has_extra || w->padding == DNN_LAYER_NUMBERS)
        return (in - 1) * stride + kernel - 2 * pad + (c->has_extra ? c->extra[i] : 0);
    if (w->padding == DNN_LAYER_SAME) return in * stride;
    return in * stride + (kernel > stride ? kernel - stride : 0);
}

static int infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                 struct dnn_shape *out, struct dnn_err *err)
{
    const struct deconv *c = layer->cfg;
    int nd = layer->type->nd;

    DNN_TRY(dnn_layer_one_image(nd, nin, in, err));
    *out = *in;
    for (int i = 0; i < nd; i++) {
        if (in->dim[i + 1] < 0) continue;
        out->dim[i + 1] = out_extent(c, i, in->dim[i + 1]);
        if (out->dim[i + 1] < 1) {
            char text[DNN_SHAPE_TEXT];

            return dnn_fail(err, DNN_ECONFIG,
                            "its padding leaves nothing of axis %d of its input %s",
                            i + 1, dnn_shape_text(text, sizeof text, in));
        }
    }
    out->dim[nd + 1] = c->filters;
    return dnn_layer_infer_act(&c->act, out, err);
}

static int weights(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                   struct dnn_layer_weight *out)
{
    const struct deconv *c = layer->cfg;
    int nd = layer->type->nd, n = 0;
    struct dnn_shape shape = {.ndim = nd + 2};

    (void)nin;
    memcpy(shape.dim, c->window.size, (size_t)nd * sizeof shape.dim[0]);
    shape.dim[nd] = c->filters;
    shape.dim[nd + 1] = in->dim[nd + 1];
    dnn_layer_add_weight(out, &n, "kernel", shape, true, &c->kernel);
    if (c->use_bias)
        dnn_layer_add_weight(out, &n, "bias",
                             dnn_layer_shape(1, c->filters, 0, 0, 0, 0), true,
                             &c->bias);
    return n;
}

static int lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct deconv *c = layer->cfg;
    const struct dnn_layer_window *w = &c->window;
    const struct dnn_shape *in = dnn_prog_shape(to->prog, to->in[0]);
    union dnn_attr attr = {
        .window = {.nspatial = w->nd, .groups = 1}
    };

    memcpy(attr.window.kernel, w->size, sizeof w->size);
    memcpy(attr.window.stride, w->stride, sizeof w->stride);
    memcpy(attr.window.dilation, w->dilation, sizeof w->dilation);
    for (int i = 0; i < w->nd; i++) {
        int64_t *before = &attr.window.before[i], *after = &attr.window.after[i];
        int64_t extent = in->dim[i + 1];

        dnn_op_same_transposed(extent, out_extent(c, i, extent), w->size[i],
                               w->stride[i], w->dilation[i], before, after);
        /* Explicit padding is cut off before, the rest after. */
        if (w->padding == DNN_LAYER_NUMBERS) {
            *after += *before - w->pad[i];
            *before = w->pad[i];
        }
    }
    int y = dnn_prog_op2(to->prog, DNN_OP_DECONV, &attr, to->in[0], to->weight[0]);
    if (c->use_bias) y = dnn_prog_op2(to->prog, DNN_OP_BIAS, NULL, y, to->weight[1]);
    return dnn_layer_lower_act(&c->act, to->prog, y);
}

static int write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                 struct dnn_err *err)
{
    const struct deconv *c = layer->cfg;
    const struct dnn_layer_window *w = &c->window;

    dnn_layer_put_int(out, "filters", c->filters);
    dnn_layer_put_ints(out, "kernel_size", w->nd, w->size);
    dnn_layer_put_ints(out, "strides", w->nd, w->stride);
    dnn_layer_put_ints(out, "dilation_rate", w->nd, w->dilation);
    DNN_TRY(dnn_layer_put_padding(out, w, false, err));
    if (c->has_extra) dnn_layer_put_ints(out, "output_padding", w->nd, c->extra);
    dnn_layer_put_bool(out, "use_bias", c->use_bias);
    dnn_layer_put_spec(out, "kernel", &c->kernel);
    dnn_layer_put_spec(out, "bias", &c->bias);
    return dnn_layer_put_act(out, &c->act, err);
}

#define KIND(id, class_name, other, n)                                                 \
    const struct dnn_layer_type dnn_layer_##id = {                                     \
        .name = class_name,                                                            \
        .alias = {other},                                                              \
        .nd = n,                                                                       \
        .size = sizeof(struct deconv),                                                 \
        .fields = fields,                                                              \
        .read = read,                                                                  \
        .infer = infer,                                                                \
        .weights = weights,                                                            \
        .lower = lower,                                                                \
        .write = write,                                                                \
    }

KIND(conv1d_transpose, "Conv1DTranspose", "Convolution1DTranspose", 1);
KIND(conv2d_transpose, "Conv2DTranspose", "Convolution2DTranspose", 2);
KIND(conv3d_transpose, "Conv3DTranspose", "Convolution3DTranspose", 3);
