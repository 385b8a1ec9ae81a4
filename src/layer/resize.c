/* resize.c - layers that change the size of an image: UpSampling, ZeroPadding,
 * Cropping, CenterCrop.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <inttypes.h>
#include <string.h>

/* ---- UpSampling ---- */

struct upsample {
    struct dnn_list size;
    int interpolation;
    int64_t factor[3];
};

static const struct dnn_choice interpolations[] = {
    {"nearest",   DNN_UP_NEAREST},
    {"bilinear",  DNN_UP_LINEAR },
    {"linear",    DNN_UP_LINEAR },
    {"trilinear", DNN_UP_LINEAR },
    {NULL,        0             }
};
#define AT(f) offsetof(struct upsample, f)
#define SIZE(key)                                                                      \
    {key, DNN_F_INTS, AT(size), "2", 1, 65536, NULL, "factors", &dnn_layer_extents}
static const struct dnn_field upsample_fields[] = {
    SIZE("size"),
    DNN_LAYER_ENUM("interpolation", AT(interpolation), "nearest", interpolations,
                   "between the elements"),
    DNN_LAYER_FORMAT,
    DNN_LAYER_END,
};
static const struct dnn_field upsample_keras1[] = {
    SIZE("size"), DNN_LAYER_OTHER("dim_ordering", "tf"), DNN_LAYER_END};
static const struct dnn_field upsample_keras1_1d[] = {SIZE("length"), DNN_LAYER_END};
#undef AT

static int upsample_read(struct dnn_layer *layer, void *cfg,
                         const struct dnn_jobj *config, struct dnn_err *err)
{
    struct upsample *u = cfg;

    DNN_TRY(dnn_layer_read_extents(config, "size", layer->type->nd, &u->size, 2,
                                   u->factor, err));
    return dnn_layer_read_format(config, err);
}

static int upsample_infer(const struct dnn_layer *layer, int nin,
                          const struct dnn_shape *in, struct dnn_shape *out,
                          struct dnn_err *err)
{
    const struct upsample *u = layer->cfg;

    DNN_TRY(dnn_layer_one_image(layer->type->nd, nin, in, err));
    *out = *in;
    for (int i = 0; i < layer->type->nd; i++)
        if (in->dim[i + 1] >= 0) out->dim[i + 1] *= u->factor[i];
    return 0;
}

static int upsample_lower(const struct dnn_layer *layer,
                          const struct dnn_layer_lower *to)
{
    const struct upsample *u = layer->cfg;
    union dnn_attr attr = {
        .upsample = {.nspatial = layer->type->nd,
                     .fn = (enum dnn_upsample)u->interpolation}
    };

    memcpy(attr.upsample.factor, u->factor, sizeof u->factor);
    return dnn_prog_op1(to->prog, DNN_OP_UPSAMPLE, &attr, to->in[0]);
}

static int upsample_write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                          struct dnn_err *err)
{
    const struct upsample *u = layer->cfg;
    bool linear = u->interpolation == DNN_UP_LINEAR;

    if (layer->type->nd != 2 && linear)
        return dnn_fail(err, DNN_ECONFIG,
                        "Keras's %s has no interpolation but the nearest element",
                        layer->type->name);
    if (layer->type->nd == 1)
        dnn_layer_put_int(out, "size", u->factor[0]);
    else
        dnn_layer_put_ints(out, "size", layer->type->nd, u->factor);
    if (layer->type->nd == 2)
        dnn_layer_put(out, "\"interpolation\": \"%s\"",
                      linear ? "bilinear" : "nearest");
    return 0;
}

#define UPSAMPLE(id, class_name, n, table1)                                            \
    const struct dnn_layer_type dnn_layer_##id = {                                     \
        .name = class_name,                                                            \
        .nd = n,                                                                       \
        .size = sizeof(struct upsample),                                               \
        .fields = upsample_fields,                                                     \
        .keras1 = table1,                                                              \
        .read = upsample_read,                                                         \
        .infer = upsample_infer,                                                       \
        .lower = upsample_lower,                                                       \
        .write = upsample_write,                                                       \
    }

UPSAMPLE(upsampling1d, "UpSampling1D", 1, upsample_keras1_1d);
UPSAMPLE(upsampling2d, "UpSampling2D", 2, upsample_keras1);
UPSAMPLE(upsampling3d, "UpSampling3D", 3, upsample_keras1);

/* ---- ZeroPadding and Cropping ---- */

struct edge {
    int64_t before[3], after[3]; /* negative when cropping */
};

enum { PAD = 1, CROP = -1 };

static const struct dnn_field pad_fields[] = {
    DNN_LAYER_OTHER("padding", "rows added on each side"), DNN_LAYER_FORMAT,
    DNN_LAYER_OTHER("dim_ordering", "tf"), DNN_LAYER_END};
static const struct dnn_field crop_fields[] = {
    DNN_LAYER_OTHER("cropping", "rows cut off on each side"), DNN_LAYER_FORMAT,
    DNN_LAYER_OTHER("dim_ordering", "tf"), DNN_LAYER_END};

static int edge_number(const struct dnn_jobj *at, int64_t *out, struct dnn_err *err)
{
    DNN_TRY(dnn_json_int(at, out, err));
    if (*out < 0 || *out > DNN_LAYER_AXIS_MAX)
        return dnn_json_fail(at, err, "must be between 0 and %d, not %" PRId64,
                             DNN_LAYER_AXIS_MAX, *out);
    return 0;
}

/* One axis: a number for both sides, or [before, after]. */
static int edge_axis(const struct dnn_jobj *at, int64_t *before, int64_t *after,
                     struct dnn_err *err)
{
    if (dnn_json_type(at) != DNN_J_LIST) {
        DNN_TRY(edge_number(at, before, err));
        *after = *before;
        return 0;
    }
    if (dnn_json_count(at) != 2)
        return dnn_json_fail(at, err, "must have 2 elements, not %zu",
                             dnn_json_count(at));
    struct dnn_jobj first = dnn_json_first(at), second = dnn_json_next(&first);
    DNN_TRY(edge_number(&first, before, err));
    return edge_number(&second, after, err);
}

static int edge_read(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                     struct dnn_err *err)
{
    struct dnn_jobj at =
        dnn_json_sub(config, layer->type->kind == PAD ? "padding" : "cropping");
    struct edge *e = cfg;
    int nd = layer->type->nd;

    DNN_TRY(dnn_layer_read_format(config, err));
    if (dnn_json_type(&at) <= DNN_J_NULL) {
        for (int i = 0; i < nd; i++)
            e->before[i] = e->after[i] = 1;
    } else if (nd == 1 || dnn_json_type(&at) != DNN_J_LIST) {
        for (int i = 0; i < nd; i++)
            DNN_TRY(edge_axis(&at, &e->before[i], &e->after[i], err));
    } else {
        if (dnn_json_count(&at) != (size_t)nd)
            return dnn_json_fail(&at, err, "must have %d elements, not %zu", nd,
                                 dnn_json_count(&at));
        for (struct dnn_jobj it = dnn_json_first(&at); it.val != NULL;
             it = dnn_json_next(&it))
            DNN_TRY(edge_axis(&it, &e->before[it.index], &e->after[it.index], err));
    }
    for (int i = 0; i < nd; i++) {
        e->before[i] *= layer->type->kind;
        e->after[i] *= layer->type->kind;
    }
    return 0;
}

static int edge_infer(const struct dnn_layer *layer, int nin,
                      const struct dnn_shape *in, struct dnn_shape *out,
                      struct dnn_err *err)
{
    const struct edge *e = layer->cfg;
    char text[DNN_SHAPE_TEXT];

    DNN_TRY(dnn_layer_one_image(layer->type->nd, nin, in, err));
    *out = *in;
    for (int i = 0; i < layer->type->nd; i++) {
        if (in->dim[i + 1] < 0) continue;
        out->dim[i + 1] += e->before[i] + e->after[i];
        if (out->dim[i + 1] < 1)
            return dnn_fail(err, DNN_ECONFIG, "cuts off all of axis %d of its input %s",
                            i + 1, dnn_shape_text(text, sizeof text, in));
    }
    return 0;
}

static int edge_lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct edge *e = layer->cfg;
    union dnn_attr attr = {0};

    for (int i = 0; i < layer->type->nd; i++) {
        attr.pad.before[i + 1] = e->before[i];
        attr.pad.after[i + 1] = e->after[i];
    }
    return dnn_prog_op1(to->prog, DNN_OP_PAD, &attr, to->in[0]);
}

static int edge_write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                      struct dnn_err *err)
{
    const struct edge *e = layer->cfg;
    int sign = layer->type->kind, nd = layer->type->nd;

    (void)err;
    dnn_layer_put(out, "\"%s\": %s", sign == PAD ? "padding" : "cropping",
                  nd == 1 ? "" : "[");
    for (int i = 0; i < nd; i++)
        dnn_buf_add(&out->config, "%s[%" PRId64 ", %" PRId64 "]", i == 0 ? "" : ", ",
                    sign * e->before[i], sign * e->after[i]);
    dnn_buf_add(&out->config, "%s", nd == 1 ? "" : "]");
    return 0;
}

#define EDGE(id, class_name, n, which, table)                                          \
    const struct dnn_layer_type dnn_layer_##id = {                                     \
        .name = class_name,                                                            \
        .nd = n,                                                                       \
        .kind = which,                                                                 \
        .size = sizeof(struct edge),                                                   \
        .fields = table,                                                               \
        .read = edge_read,                                                             \
        .infer = edge_infer,                                                           \
        .lower = edge_lower,                                                           \
        .write = edge_write,                                                           \
    }

EDGE(zero_padding1d, "ZeroPadding1D", 1, PAD, pad_fields);
EDGE(zero_padding2d, "ZeroPadding2D", 2, PAD, pad_fields);
EDGE(zero_padding3d, "ZeroPadding3D", 3, PAD, pad_fields);
EDGE(cropping1d, "Cropping1D", 1, CROP, crop_fields);
EDGE(cropping2d, "Cropping2D", 2, CROP, crop_fields);
EDGE(cropping3d, "Cropping3D", 3, CROP, crop_fields);

/* ---- CenterCrop ---- */

struct center {
    int64_t height, width;
};

static const struct dnn_field center_fields[] = {
    DNN_LAYER_INT("height", offsetof(struct center, height), NULL, 1,
                  DNN_LAYER_AXIS_MAX, "rows of the output"),
    DNN_LAYER_INT("width", offsetof(struct center, width), NULL, 1, DNN_LAYER_AXIS_MAX,
                  "columns of the output"),
    DNN_LAYER_FORMAT,
    DNN_LAYER_END,
};

static int center_read(struct dnn_layer *layer, void *cfg,
                       const struct dnn_jobj *config, struct dnn_err *err)
{
    (void)layer;
    (void)cfg;
    return dnn_layer_read_format(config, err);
}

static int center_infer(const struct dnn_layer *layer, int nin,
                        const struct dnn_shape *in, struct dnn_shape *out,
                        struct dnn_err *err)
{
    const struct center *c = layer->cfg;
    char text[DNN_SHAPE_TEXT];

    DNN_TRY(dnn_layer_one_image(2, nin, in, err));
    /* Keras resizes a smaller image, which is not supported here. */
    if ((in->dim[1] >= 0 && in->dim[1] < c->height) ||
        (in->dim[2] >= 0 && in->dim[2] < c->width))
        return dnn_fail(err, DNN_ECONFIG,
                        "cannot cut %" PRId64 "x%" PRId64
                        " out of its input %s, which is smaller",
                        c->height, c->width, dnn_shape_text(text, sizeof text, in));
    *out = *in;
    out->dim[1] = c->height;
    out->dim[2] = c->width;
    return 0;
}

static int center_lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct center *c = layer->cfg;
    int64_t rows = dnn_prog_dim(to->prog, to->in[0], 1) - c->height;
    int64_t cols = dnn_prog_dim(to->prog, to->in[0], 2) - c->width;
    union dnn_attr attr = {
        .pad = {.before = {0, -(rows / 2), -(cols / 2)},
                .after = {0, rows / 2 - rows, cols / 2 - cols}}
    };

    return dnn_prog_op1(to->prog, DNN_OP_PAD, &attr, to->in[0]);
}

static int center_write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                        struct dnn_err *err)
{
    const struct center *c = layer->cfg;

    (void)err;
    dnn_layer_put_int(out, "height", c->height);
    dnn_layer_put_int(out, "width", c->width);
    return 0;
}

const struct dnn_layer_type dnn_layer_center_crop = {.name = "CenterCrop",
                                                     .nd = 2,
                                                     .size = sizeof(struct center),
                                                     .fields = center_fields,
                                                     .read = center_read,
                                                     .infer = center_infer,
                                                     .lower = center_lower,
                                                     .write = center_write};
