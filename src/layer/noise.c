/* noise.c - layers that act only in training: Dropout, SpatialDropout, AlphaDropout,
 * GaussianDropout, GaussianNoise; and ActivityRegularization.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <inttypes.h>

enum { STOCHASTIC_DEPTH = 100 }; /* dropout of whole samples, of ConvNeXt */

struct noise {
    double rate; /* or the deviation of the noise */
    struct dnn_regularizer reg;
    unsigned shared; /* axes with one random number, from noise_shape */
    int ndim;        /* of noise_shape; 0: none                       */
    uint64_t seed;
};

#define AT(f) offsetof(struct noise, f)
#define RATE(key, max)                                                                 \
    {key, DNN_F_REAL, AT(rate), NULL, 0, max, NULL, "rate, or standard deviation", NULL}
#define SEED DNN_LAYER_OTHER("seed", "seed of its random numbers")
static const struct dnn_field rate_fields[] = {
    RATE("rate", 1), SEED,
    DNN_LAYER_OTHER("noise_shape", "1 where axes share a number"), DNN_LAYER_FORMAT,
    DNN_LAYER_END};
static const struct dnn_field rate_keras1[] = {
    RATE("p", 1), SEED, DNN_LAYER_OTHER("noise_shape", "1 where axes share a number"),
    DNN_LAYER_OTHER("dim_ordering", "tf"), DNN_LAYER_END};
static const struct dnn_field stddev_fields[] = {RATE("stddev", 1e30), SEED,
                                                 DNN_LAYER_END};
static const struct dnn_field stddev_keras1[] = {RATE("sigma", 1e30), DNN_LAYER_END};
static const struct dnn_field depth_fields[] = {RATE("drop_path_rate", 1), SEED,
                                                DNN_LAYER_END};
static const struct dnn_field activity_fields[] = {
    DNN_LAYER_REAL("l1", AT(reg.l1), "0", 0, 1e30, "times the sum of |x|"),
    DNN_LAYER_REAL("l2", AT(reg.l2), "0", 0, 1e30, "times the sum of x^2"),
    DNN_LAYER_END,
};

static int read_shape(struct noise *n, const struct dnn_jobj *at, struct dnn_err *err)
{
    if (dnn_json_type(at) <= DNN_J_NULL) return 0;
    struct dnn_jobj items = *at;
    if (dnn_json_type(at) == DNN_J_OBJECT) items = dnn_json_sub(at, "items");
    if (dnn_json_type(&items) != DNN_J_LIST || dnn_json_count(&items) > DNN_MAX_DIMS)
        return dnn_json_fail(at, err, "must be a list of 1 and null, one per axis");
    for (struct dnn_jobj it = dnn_json_first(&items); it.val != NULL;
         it = dnn_json_next(&it)) {
        int64_t extent;

        n->ndim++;
        if (dnn_json_type(&it) == DNN_J_NULL) continue;
        DNN_TRY(dnn_json_int(&it, &extent, err));
        if (extent == 1) n->shared |= 1u << it.index;
    }
    return 0;
}

static int read(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                struct dnn_err *err)
{
    struct dnn_jobj shape = dnn_json_sub(config, "noise_shape");
    struct dnn_jobj seed = dnn_json_sub(config, "seed");
    struct noise *n = cfg;

    if (layer->type->kind == DNN_ALPHA_DROPOUT && dnn_json_type(&shape) > DNN_J_NULL)
        return dnn_json_fail(&shape, err, "not supported: must be null");
    DNN_TRY(read_shape(n, &shape, err));
    if (layer->type->kind != DNN_GAUSSIAN_NOISE && n->rate >= 1) {
        struct dnn_jobj at = dnn_layer_either(config, "rate", "p");

        return dnn_json_fail(&at, err, "must be below 1");
    }
    /* An object is a generator of Keras 3, whose numbers cannot be reproduced. */
    if (dnn_json_type(&seed) == DNN_J_NUMBER) {
        int64_t number;

        DNN_TRY(dnn_json_int(&seed, &number, err));
        n->seed = (uint64_t)number;
    }
    return dnn_layer_read_format(config, err);
}

static int infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                 struct dnn_shape *out, struct dnn_err *err)
{
    const struct noise *n = layer->cfg;
    char text[DNN_SHAPE_TEXT];

    DNN_TRY(dnn_layer_one(nin, in, 1, err));
    if (layer->type->nd > 0)
        DNN_TRY(dnn_layer_one_image(layer->type->nd, nin, in, err));
    if (n->ndim > 0 && n->ndim != in->ndim)
        return dnn_fail(err, DNN_ECONFIG,
                        "\"noise_shape\" has %d axes, its input is %s", n->ndim,
                        dnn_shape_text(text, sizeof text, in));
    *out = *in;
    return 0;
}

static int lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct noise *n = layer->cfg;
    bool depth = layer->type->kind == STOCHASTIC_DEPTH;
    union dnn_attr attr = {
        .noise = {.fn = depth ? DNN_DROPOUT : (enum dnn_noise)layer->type->kind,
                  .rate = n->rate,
                  .seed = n->seed,
                  .shared = n->shared}
    };

    if (!to->training || n->rate == 0) return to->in[0];
    int shared =
        depth ? dnn_prog_shape(to->prog, to->in[0])->ndim - 1 : layer->type->nd;
    for (int i = 1; i <= shared; i++)
        attr.noise.shared |= 1u << i;
    return dnn_prog_op1(to->prog, DNN_OP_NOISE, &attr, to->in[0]);
}

static int write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                 struct dnn_err *err)
{
    const struct noise *n = layer->cfg;

    (void)err;
    if (layer->type->kind == STOCHASTIC_DEPTH) {
        out->module = "keras.src.applications.convnext";
        out->registered = "StochasticDepth";
    }
    dnn_layer_put_reals(out,
                        layer->type->kind == STOCHASTIC_DEPTH     ? "drop_path_rate"
                        : layer->type->kind == DNN_GAUSSIAN_NOISE ? "stddev"
                                                                  : "rate",
                        1, &n->rate);
    if (n->seed != 0) dnn_layer_put(out, "\"seed\": %" PRIu64, n->seed);
    if (n->ndim == 0) return 0;
    dnn_layer_put(out, "\"noise_shape\": [");
    for (int i = 0; i < n->ndim; i++)
        dnn_buf_add(&out->config, "%s%s", i == 0 ? "" : ", ",
                    (n->shared >> i & 1) != 0 ? "1" : "null");
    dnn_buf_add(&out->config, "]");
    return 0;
}

#define KIND(id, class_name, n, which, table, table1)                                  \
    const struct dnn_layer_type dnn_layer_##id = {                                     \
        .name = class_name,                                                            \
        .nd = n,                                                                       \
        .kind = which,                                                                 \
        .size = sizeof(struct noise),                                                  \
        .fields = table,                                                               \
        .keras1 = table1,                                                              \
        .read = read,                                                                  \
        .infer = infer,                                                                \
        .lower = lower,                                                                \
        .write = write,                                                                \
    }

KIND(dropout, "Dropout", 0, DNN_DROPOUT, rate_fields, rate_keras1);
KIND(spatial_dropout1d, "SpatialDropout1D", 1, DNN_DROPOUT, rate_fields, rate_keras1);
KIND(spatial_dropout2d, "SpatialDropout2D", 2, DNN_DROPOUT, rate_fields, rate_keras1);
KIND(spatial_dropout3d, "SpatialDropout3D", 3, DNN_DROPOUT, rate_fields, rate_keras1);
KIND(gaussian_dropout, "GaussianDropout", 0, DNN_GAUSSIAN_DROPOUT, rate_fields,
     rate_keras1);
KIND(alpha_dropout, "AlphaDropout", 0, DNN_ALPHA_DROPOUT, rate_fields, rate_keras1);
KIND(stochastic_depth, "StochasticDepth", 0, STOCHASTIC_DEPTH, depth_fields, NULL);
KIND(gaussian_noise, "GaussianNoise", 0, DNN_GAUSSIAN_NOISE, stddev_fields,
     stddev_keras1);

/* ---- ActivityRegularization ---- */

static int activity_infer(const struct dnn_layer *layer, int nin,
                          const struct dnn_shape *in, struct dnn_shape *out,
                          struct dnn_err *err)
{
    (void)layer;
    DNN_TRY(dnn_layer_one(nin, in, 1, err));
    *out = *in;
    return 0;
}

static int activity_lower(const struct dnn_layer *layer,
                          const struct dnn_layer_lower *to)
{
    const struct noise *n = layer->cfg;
    /* Keras averages over the batch. */
    double batch = (double)dnn_prog_dim(to->prog, to->in[0], 0);
    union dnn_attr attr = {
        .activity = {.l1 = n->reg.l1 / batch, .l2 = n->reg.l2 / batch}
    };

    if (!to->training || (n->reg.l1 == 0 && n->reg.l2 == 0)) return to->in[0];
    return dnn_prog_op1(to->prog, DNN_OP_ACTIVITY, &attr, to->in[0]);
}

static int activity_write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                          struct dnn_err *err)
{
    const struct noise *n = layer->cfg;

    (void)err;
    dnn_layer_put_reals(out, "l1", 1, &n->reg.l1);
    dnn_layer_put_reals(out, "l2", 1, &n->reg.l2);
    return 0;
}

const struct dnn_layer_type dnn_layer_activity = {.name = "ActivityRegularization",
                                                  .size = sizeof(struct noise),
                                                  .fields = activity_fields,
                                                  .infer = activity_infer,
                                                  .lower = activity_lower,
                                                  .write = activity_write};
