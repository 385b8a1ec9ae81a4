/* merge.c - layers with several inputs: Add, Subtract, Multiply, Average, Maximum,
 * Minimum, Concatenate; Keras 1's Merge, which has all of these as modes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <string.h>

enum { CONCATENATE = 100, BY_MODE, DIVIDE };

struct merge {
    int kind; /* enum dnn_combine or CONCATENATE */
    int mode; /* Keras 1                         */
    struct dnn_list axis;
};

#define AT(f) offsetof(struct merge, f)
static const struct dnn_sub one_axis = {.min = 1, .max = 1, .single = true};
static const struct dnn_choice modes[] = {
    {"sum",    DNN_ADD     },
    {"mul",    DNN_MULTIPLY},
    {"ave",    DNN_AVERAGE },
    {"max",    DNN_MAXIMUM },
    {"concat", CONCATENATE },
    {NULL,     0           }
};
static const struct dnn_field concat_fields[] = {
    DNN_LAYER_INTS("axis", AT(axis), "-1", -DNN_MAX_DIMS, DNN_MAX_DIMS - 1,
                   "axis of the concatenation", &one_axis),
    DNN_LAYER_END,
};
static const struct dnn_field merge_fields[] = {
    DNN_LAYER_ENUM("mode", AT(mode), "sum", modes, "how to combine the inputs"),
    DNN_LAYER_INTS("concat_axis", AT(axis), "-1", -DNN_MAX_DIMS, DNN_MAX_DIMS - 1,
                   "axis of the concatenation", &one_axis),
    DNN_LAYER_IGNORED("dot_axes"),
    DNN_LAYER_IGNORED("mode_type"),
    DNN_LAYER_IGNORED("output_shape"),
    DNN_LAYER_IGNORED("output_shape_type"),
    DNN_LAYER_IGNORED("output_mask"),
    DNN_LAYER_IGNORED("output_mask_type"),
    DNN_LAYER_IGNORED("arguments"),
    DNN_LAYER_END,
};

static int read(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                struct dnn_err *err)
{
    struct merge *m = cfg;

    (void)config;
    (void)err;
    m->kind = layer->type->kind == BY_MODE ? m->mode : layer->type->kind;
    return 0;
}

static int mismatch(const struct dnn_shape *a, const struct dnn_shape *b, int which,
                    struct dnn_err *err)
{
    char x[DNN_SHAPE_TEXT], y[DNN_SHAPE_TEXT];

    return dnn_fail(err, DNN_ECONFIG,
                    "input shapes do not match: the first is %s, number "
                    "%d is %s",
                    dnn_shape_text(x, sizeof x, a), which + 1,
                    dnn_shape_text(y, sizeof y, b));
}

static int infer_concat(const struct merge *m, int nin, const struct dnn_shape *in,
                        struct dnn_shape *out, struct dnn_err *err)
{
    int axis;

    *out = in[0];
    DNN_TRY(dnn_layer_axis(m->axis.ints[0], out->ndim, &axis, err));
    if (axis == 0)
        return dnn_fail(err, DNN_ECONFIG, "cannot concatenate along the batch axis");
    for (int i = 1; i < nin; i++) {
        if (in[i].ndim != out->ndim) return mismatch(&in[0], &in[i], i, err);
        for (int k = 0; k < out->ndim; k++) {
            if (k == axis) {
                if (out->dim[k] >= 0 && in[i].dim[k] >= 0)
                    out->dim[k] += in[i].dim[k];
                else
                    out->dim[k] = DNN_UNKNOWN;
            } else if (out->dim[k] < 0)
                out->dim[k] = in[i].dim[k];
            else if (in[i].dim[k] >= 0 && in[i].dim[k] != out->dim[k])
                return mismatch(&in[0], &in[i], i, err);
        }
    }
    return 0;
}

/* Shapes broadcast from the last axis; missing axes of extent 1 go after the batch. */
static struct dnn_shape widen(const struct dnn_shape *s, int ndim)
{
    struct dnn_shape wide = {.ndim = ndim};
    int more = ndim - s->ndim;

    for (int i = 0; i < ndim; i++)
        wide.dim[i] = i == 0 ? s->dim[0] : i <= more ? 1 : s->dim[i - more];
    return wide;
}

static int most_axes(int nin, const struct dnn_shape *in)
{
    int most = 0;

    for (int i = 0; i < nin; i++)
        if (in[i].ndim > most) most = in[i].ndim;
    return most;
}

static int infer_combine(int nin, const struct dnn_shape *in, struct dnn_shape *out,
                         struct dnn_err *err)
{
    int ndim = most_axes(nin, in);

    *out = widen(&in[0], ndim);
    for (int i = 1; i < nin; i++) {
        struct dnn_shape b = widen(&in[i], ndim);

        for (int k = 0; k < ndim; k++) {
            if (out->dim[k] == b.dim[k] || b.dim[k] == 1) continue;
            if (out->dim[k] == 1 || out->dim[k] < 0)
                out->dim[k] = b.dim[k];
            else if (b.dim[k] >= 0)
                return mismatch(&in[0], &in[i], i, err);
        }
    }
    return 0;
}

static int infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                 struct dnn_shape *out, struct dnn_err *err)
{
    const struct merge *m = layer->cfg;

    if ((m->kind == DNN_SUBTRACT || m->kind == DIVIDE) && nin != 2)
        return dnn_fail(err, DNN_ECONFIG, "takes two inputs, not %d", nin);
    if (nin < 1)
        return dnn_fail(err, DNN_ECONFIG, "takes two inputs or more, not none");
    for (int i = 0; i < nin; i++)
        DNN_TRY(dnn_layer_one(1, &in[i], 1, err));
    if (m->kind == CONCATENATE) return infer_concat(m, nin, in, out, err);
    return infer_combine(nin, in, out, err);
}

static int lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct merge *m = layer->cfg;
    union dnn_attr attr = {0};
    int ndim = 0;

    if (to->nin == 1) return to->in[0];
    for (int i = 0; i < to->nin; i++)
        if (dnn_prog_shape(to->prog, to->in[i])->ndim > ndim)
            ndim = dnn_prog_shape(to->prog, to->in[i])->ndim;
    if (m->kind == CONCATENATE) {
        int64_t axis = m->axis.ints[0];

        attr.concat.axis = (int)(axis < 0 ? axis + ndim : axis);
        return dnn_prog_op(to->prog, DNN_OP_CONCAT, &attr, to->nin, to->in);
    }
    int *in = dnn_alloc((size_t)to->nin * sizeof *in);
    for (int i = 0; i < to->nin; i++) {
        const struct dnn_shape *shape = dnn_prog_shape(to->prog, to->in[i]);

        in[i] = to->in[i];
        if (shape->ndim < ndim) {
            union dnn_attr wide = {.reshape = {.shape = widen(shape, ndim)}};

            in[i] = dnn_prog_op1(to->prog, DNN_OP_RESHAPE, &wide, in[i]);
        }
    }
    attr.combine.fn = (enum dnn_combine)m->kind;
    if (m->kind == DIVIDE) {
        union dnn_attr invert = {.unary = {.fn = DNN_RECIPROCAL}};

        in[1] = dnn_prog_op1(to->prog, DNN_OP_UNARY, &invert, in[1]);
        attr.combine.fn = DNN_MULTIPLY;
    }
    int y = dnn_prog_op(to->prog, DNN_OP_COMBINE, &attr, to->nin, in);
    dnn_free(in);
    return y;
}

static int write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                 struct dnn_err *err)
{
    static const char *const names[] = {
        [DNN_ADD] = "Add",           [DNN_SUBTRACT] = "Subtract",
        [DNN_MULTIPLY] = "Multiply", [DNN_AVERAGE] = "Average",
        [DNN_MAXIMUM] = "Maximum",   [DNN_MINIMUM] = "Minimum"};
    const struct merge *m = layer->cfg;

    (void)err;
    if (m->kind == CONCATENATE) {
        out->class_name = "Concatenate";
        dnn_layer_put_int(out, "axis", m->axis.ints[0]);
    } else
        out->class_name = names[m->kind];
    return 0;
}

#define KIND(id, class_name, which, table)                                             \
    const struct dnn_layer_type dnn_layer_##id = {                                     \
        .name = class_name,                                                            \
        .kind = which,                                                                 \
        .size = sizeof(struct merge),                                                  \
        .fields = table,                                                               \
        .read = read,                                                                  \
        .infer = infer,                                                                \
        .lower = lower,                                                                \
        .write = write,                                                                \
    }

KIND(add, "Add", DNN_ADD, NULL);
KIND(subtract, "Subtract", DNN_SUBTRACT, NULL);
KIND(multiply, "Multiply", DNN_MULTIPLY, NULL);
KIND(average, "Average", DNN_AVERAGE, NULL);
KIND(maximum, "Maximum", DNN_MAXIMUM, NULL);
KIND(minimum, "Minimum", DNN_MINIMUM, NULL);
KIND(divide, "Divide", DIVIDE, NULL); /* of keras.ops, not a layer */
KIND(concatenate, "Concatenate", CONCATENATE, concat_fields);
KIND(merge, "Merge", BY_MODE, merge_fields);
