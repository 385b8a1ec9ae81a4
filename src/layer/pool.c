/* pool.c - max and average pooling over windows, and global pooling.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <string.h>

struct pool {
    struct dnn_list pool_size, strides;
    int64_t length; /* Keras 1 */
    struct dnn_layer_window window;
};

#define AT(f) offsetof(struct pool, f)
#define SIZES                                                                          \
    DNN_LAYER_INTS("pool_size", AT(pool_size), "2", 1, 65536, "kernel size",           \
                   &dnn_layer_extents),                                                \
        DNN_LAYER_INTS("strides", AT(strides), "null", 1, 65536,                       \
                       "strides; null: the pool size", &dnn_layer_extents)
static const struct dnn_field fields[] = {
    SIZES,
    DNN_LAYER_OTHER("padding", "valid, same, or numbers"),
    DNN_LAYER_FORMAT,
    DNN_LAYER_END,
};
static const struct dnn_field keras1[] = {
    SIZES,
    DNN_LAYER_INT("pool_length", AT(length), "2", 1, 65536, "kernel size"),
    {"stride", DNN_F_OTHER, 0, "null", 0, 0, NULL, "its steps", NULL},
    DNN_LAYER_OTHER("border_mode", "valid or same"),
    DNN_LAYER_OTHER("dim_ordering", "tf"),
    DNN_LAYER_END,
};

static int read(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                struct dnn_err *err)
{
    struct pool *p = cfg;
    struct dnn_layer_window *w = &p->window;
    struct dnn_jobj stride1 = dnn_json_sub(config, "stride");
    int nd = layer->type->nd;

    w->nd = nd;
    DNN_TRY(dnn_layer_read_extents(config, "pool_size", nd, &p->pool_size, 2, w->size,
                                   err));
    if (layer->keras == 1 && nd == 1) w->size[0] = p->length;
    DNN_TRY(
        dnn_layer_read_extents(config, "strides", nd, &p->strides, 0, w->stride, err));
    if (dnn_json_type(&stride1) == DNN_J_NUMBER) {
        DNN_TRY(dnn_json_int(&stride1, &w->stride[0], err));
        if (w->stride[0] < 1 || w->stride[0] > 65536)
            return dnn_json_fail(&stride1, err, "must be between 1 and 65536");
    }
    for (int i = 0; i < 3; i++) {
        w->dilation[i] = 1;
        if (w->stride[i] == 0) w->stride[i] = w->size[i];
    }
    DNN_TRY(dnn_layer_read_padding(config, false, w, err));
    for (int i = 0; i < nd; i++) {
        struct dnn_jobj at = dnn_json_sub(config, "padding");

        if (w->padding == DNN_LAYER_NUMBERS && 2 * w->pad[i] > w->size[i])
            return dnn_json_fail(&at, err, "must be at most half of \"pool_size\"");
    }
    return dnn_layer_read_format(config, err);
}

static int infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                 struct dnn_shape *out, struct dnn_err *err)
{
    const struct pool *p = layer->cfg;

    DNN_TRY(dnn_layer_one_image(layer->type->nd, nin, in, err));
    return dnn_layer_window_infer(&p->window, in, out, err);
}

static int lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct pool *p = layer->cfg;
    const struct dnn_layer_window *w = &p->window;
    union dnn_attr attr = {.pool = {.fn = (enum dnn_pool)layer->type->kind}};
    struct dnn_op_window *win = &attr.pool.win;

    win->nspatial = w->nd;
    win->groups = 1;
    memcpy(win->kernel, w->size, sizeof w->size);
    memcpy(win->stride, w->stride, sizeof w->stride);
    memcpy(win->dilation, w->dilation, sizeof w->dilation);
    dnn_layer_window_pads(w, dnn_prog_shape(to->prog, to->in[0]), win->before,
                          win->after);
    return dnn_prog_op1(to->prog, DNN_OP_POOL, &attr, to->in[0]);
}

static int write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                 struct dnn_err *err)
{
    const struct dnn_layer_window *w = &((const struct pool *)layer->cfg)->window;

    dnn_layer_put_ints(out, "pool_size", w->nd, w->size);
    dnn_layer_put_ints(out, "strides", w->nd, w->stride);
    return dnn_layer_put_padding(out, w, false, err);
}

#define KIND(id, class_name, other, n, which)                                          \
    const struct dnn_layer_type dnn_layer_##id = {                                     \
        .name = class_name,                                                            \
        .alias = {other},                                                              \
        .nd = n,                                                                       \
        .kind = which,                                                                 \
        .size = sizeof(struct pool),                                                   \
        .fields = fields,                                                              \
        .keras1 = keras1,                                                              \
        .read = read,                                                                  \
        .infer = infer,                                                                \
        .lower = lower,                                                                \
        .write = write,                                                                \
    }

KIND(max_pool1d, "MaxPooling1D", "MaxPool1D", 1, DNN_POOL_MAX);
KIND(max_pool2d, "MaxPooling2D", "MaxPool2D", 2, DNN_POOL_MAX);
KIND(max_pool3d, "MaxPooling3D", "MaxPool3D", 3, DNN_POOL_MAX);
KIND(average_pool1d, "AveragePooling1D", "AvgPool1D", 1, DNN_POOL_AVERAGE);
KIND(average_pool2d, "AveragePooling2D", "AvgPool2D", 2, DNN_POOL_AVERAGE);
KIND(average_pool3d, "AveragePooling3D", "AvgPool3D", 3, DNN_POOL_AVERAGE);

/* ---- global pooling ---- */

struct global {
    bool keepdims;
};

static const struct dnn_field global_fields[] = {
    DNN_LAYER_BOOL("keepdims", offsetof(struct global, keepdims), "false",
                   "keep the reduced axes with size 1"),
    DNN_LAYER_FORMAT,
    DNN_LAYER_OTHER("dim_ordering", "tf"),
    DNN_LAYER_END,
};

static int global_read(struct dnn_layer *layer, void *cfg,
                       const struct dnn_jobj *config, struct dnn_err *err)
{
    (void)layer;
    (void)cfg;
    return dnn_layer_read_format(config, err);
}

static int global_infer(const struct dnn_layer *layer, int nin,
                        const struct dnn_shape *in, struct dnn_shape *out,
                        struct dnn_err *err)
{
    const struct global *g = layer->cfg;
    int nd = layer->type->nd;

    DNN_TRY(dnn_layer_one_image(nd, nin, in, err));
    *out = (struct dnn_shape){.ndim = g->keepdims ? nd + 2 : 2, .dim = {in->dim[0]}};
    for (int i = 1; i + 1 < out->ndim; i++)
        out->dim[i] = 1;
    out->dim[out->ndim - 1] = in->dim[nd + 1];
    return 0;
}

static int global_lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct global *g = layer->cfg;
    union dnn_attr attr = {
        .reduce = {.fn = (enum dnn_reduce)layer->type->kind, .keepdims = g->keepdims}
    };

    for (int i = 1; i <= layer->type->nd; i++)
        attr.reduce.axes |= 1u << i;
    return dnn_prog_op1(to->prog, DNN_OP_REDUCE, &attr, to->in[0]);
}

static int global_write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                        struct dnn_err *err)
{
    const struct global *g = layer->cfg;

    (void)err;
    dnn_layer_put_bool(out, "keepdims", g->keepdims);
    return 0;
}

#define GLOBAL(id, class_name, other, n, which)                                        \
    const struct dnn_layer_type dnn_layer_##id = {                                     \
        .name = class_name,                                                            \
        .alias = {other},                                                              \
        .nd = n,                                                                       \
        .kind = which,                                                                 \
        .size = sizeof(struct global),                                                 \
        .fields = global_fields,                                                       \
        .read = global_read,                                                           \
        .infer = global_infer,                                                         \
        .lower = global_lower,                                                         \
        .write = global_write,                                                         \
    }

GLOBAL(global_max1d, "GlobalMaxPooling1D", "GlobalMaxPool1D", 1, DNN_REDUCE_MAX);
GLOBAL(global_max2d, "GlobalMaxPooling2D", "GlobalMaxPool2D", 2, DNN_REDUCE_MAX);
GLOBAL(global_max3d, "GlobalMaxPooling3D", "GlobalMaxPool3D", 3, DNN_REDUCE_MAX);
GLOBAL(global_average1d, "GlobalAveragePooling1D", "GlobalAvgPool1D", 1,
       DNN_REDUCE_MEAN);
GLOBAL(global_average2d, "GlobalAveragePooling2D", "GlobalAvgPool2D", 2,
       DNN_REDUCE_MEAN);
GLOBAL(global_average3d, "GlobalAveragePooling3D", "GlobalAvgPool3D", 3,
       DNN_REDUCE_MEAN);
