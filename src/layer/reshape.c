/* reshape.c - layers that change the shape: Reshape, Flatten, Permute.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <inttypes.h>
#include <string.h>

/* Elements of one sample; DNN_UNKNOWN if an extent is unknown. */
static int64_t per_sample(const struct dnn_shape *in)
{
    int64_t count = 1;

    for (int i = 1; i < in->ndim; i++) {
        if (in->dim[i] < 0) return DNN_UNKNOWN;
        count *= in->dim[i]; /* below DNN_LAYER_COUNT_MAX */
    }
    return count;
}

static int as_shape(const struct dnn_layer_lower *to, const struct dnn_shape *shape)
{
    union dnn_attr attr = {.reshape = {.shape = *shape}};

    return dnn_prog_op1(to->prog, DNN_OP_RESHAPE, &attr, to->in[0]);
}

/* ---- Reshape ---- */

struct reshape {
    struct dnn_list target;
};

static const struct dnn_sub any = {.max = DNN_MAX_DIMS - 1, .single = true};
static const struct dnn_field reshape_fields[] = {
    DNN_LAYER_INTS(
        "target_shape", offsetof(struct reshape, target), NULL, -1, DNN_LAYER_AXIS_MAX,
        "target shape without the batch axis; one dimension may be -1", &any),
    DNN_LAYER_END,
};

static int reshape_read(struct dnn_layer *layer, void *cfg,
                        const struct dnn_jobj *config, struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(config, "target_shape");
    struct reshape *r = cfg;
    int open = 0;

    (void)layer;
    for (int64_t i = 0; i < r->target.count; i++) {
        if (r->target.ints[i] == 0)
            return dnn_json_fail(&at, err, "must have no axis of size 0");
        if (r->target.ints[i] < 0 && ++open > 1)
            return dnn_json_fail(&at, err, "must have one axis of -1 at most");
    }
    return 0;
}

static int reshape_infer(const struct dnn_layer *layer, int nin,
                         const struct dnn_shape *in, struct dnn_shape *out,
                         struct dnn_err *err)
{
    const struct reshape *r = layer->cfg;
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];
    int64_t known = 1;
    int open = 0;

    DNN_TRY(dnn_layer_one(nin, in, 1, err));
    int64_t have = per_sample(in);
    *out = (struct dnn_shape){.ndim = (int)r->target.count + 1, .dim = {in->dim[0]}};
    for (int i = 1; i < out->ndim; i++) {
        out->dim[i] = r->target.ints[i - 1];
        if (out->dim[i] < 0)
            open = i;
        else if (__builtin_mul_overflow(known, out->dim[i], &known))
            return dnn_fail(err, DNN_ECONFIG,
                            "\"target_shape\" has more elements than can be counted");
    }
    if (have < 0) return 0; /* checked again when all extents are known */
    if (open > 0 && have % known == 0) out->dim[open] = have / known;
    if (open > 0 ? have % known == 0 : have == known) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "cannot make %s of %s: the numbers of elements differ",
                    dnn_shape_text(a, sizeof a, out), dnn_shape_text(b, sizeof b, in));
}

static int reshape_lower(const struct dnn_layer *layer,
                         const struct dnn_layer_lower *to)
{
    struct dnn_shape out;

    reshape_infer(layer, 1, dnn_prog_shape(to->prog, to->in[0]), &out, NULL);
    return as_shape(to, &out);
}

static int reshape_write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                         struct dnn_err *err)
{
    const struct reshape *r = layer->cfg;

    (void)err;
    dnn_layer_put_ints(out, "target_shape", r->target.count, r->target.ints);
    return 0;
}

const struct dnn_layer_type dnn_layer_reshape = {.name = "Reshape",
                                                 .size = sizeof(struct reshape),
                                                 .fields = reshape_fields,
                                                 .read = reshape_read,
                                                 .infer = reshape_infer,
                                                 .lower = reshape_lower,
                                                 .write = reshape_write};

/* ---- Flatten ---- */

static const struct dnn_field flatten_fields[] = {DNN_LAYER_FORMAT, DNN_LAYER_END};

static int flatten_read(struct dnn_layer *layer, void *cfg,
                        const struct dnn_jobj *config, struct dnn_err *err)
{
    (void)layer;
    (void)cfg;
    return dnn_layer_read_format(config, err);
}

static int flatten_infer(const struct dnn_layer *layer, int nin,
                         const struct dnn_shape *in, struct dnn_shape *out,
                         struct dnn_err *err)
{
    (void)layer;
    DNN_TRY(dnn_layer_one(nin, in, 1, err));
    *out = (struct dnn_shape){
        .ndim = 2, .dim = {in->dim[0], per_sample(in)}
    };
    return 0;
}

static int flatten_lower(const struct dnn_layer *layer,
                         const struct dnn_layer_lower *to)
{
    struct dnn_shape out;

    flatten_infer(layer, 1, dnn_prog_shape(to->prog, to->in[0]), &out, NULL);
    return as_shape(to, &out);
}

const struct dnn_layer_type dnn_layer_flatten = {.name = "Flatten",
                                                 .fields = flatten_fields,
                                                 .read = flatten_read,
                                                 .infer = flatten_infer,
                                                 .lower = flatten_lower};

/* ---- Permute ---- */

struct permute {
    struct dnn_list dims; /* from 1, without the batch */
};

static const struct dnn_field permute_fields[] = {
    DNN_LAYER_INTS("dims", offsetof(struct permute, dims), NULL, 1, DNN_MAX_DIMS - 1,
                   "the axes in their new order, from 1", &any),
    DNN_LAYER_END,
};

static int permute_infer(const struct dnn_layer *layer, int nin,
                         const struct dnn_shape *in, struct dnn_shape *out,
                         struct dnn_err *err)
{
    const struct permute *p = layer->cfg;
    unsigned seen = 1;

    DNN_TRY(dnn_layer_one(nin, in, 2, err));
    *out = *in;
    if (p->dims.count == in->ndim - 1)
        for (int i = 1; i < in->ndim; i++) {
            int64_t from = p->dims.ints[i - 1];

            if (from >= in->ndim) break;
            out->dim[i] = in->dim[from];
            seen |= 1u << from;
        }
    if (seen != (1u << in->ndim) - 1)
        return dnn_fail(err, DNN_ECONFIG,
                        "\"dims\" must hold each of 1 to %d once for this input",
                        in->ndim - 1);
    return 0;
}

static int permute_lower(const struct dnn_layer *layer,
                         const struct dnn_layer_lower *to)
{
    const struct permute *p = layer->cfg;
    union dnn_attr attr = {0};

    for (int64_t i = 0; i < p->dims.count; i++)
        attr.transpose.perm[i + 1] = (int)p->dims.ints[i];
    return dnn_prog_op1(to->prog, DNN_OP_TRANSPOSE, &attr, to->in[0]);
}

static int permute_write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                         struct dnn_err *err)
{
    const struct permute *p = layer->cfg;

    (void)err;
    dnn_layer_put_ints(out, "dims", p->dims.count, p->dims.ints);
    return 0;
}

const struct dnn_layer_type dnn_layer_permute = {.name = "Permute",
                                                 .size = sizeof(struct permute),
                                                 .fields = permute_fields,
                                                 .infer = permute_infer,
                                                 .lower = permute_lower,
                                                 .write = permute_write};
