/* scale.c - layers that scale: Rescaling, Normalization, LayerScale,
 * CustomScaleLayer; and InputLayer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <inttypes.h>
#include <math.h>

enum { MAX_COUNT = 1 << 16 }; /* numbers in a list */

struct scale {
    int64_t count;       /* of a and b: 1, or one per channel; 0: they are weights */
    const double *a, *b; /* y = a x + b */
};

/* Append the numbers of a list of any depth, or a single number, to out. */
static int gather(const struct dnn_jobj *at, double *out, int64_t *n,
                  struct dnn_err *err)
{
    if (dnn_json_type(at) == DNN_J_LIST) {
        for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
             it = dnn_json_next(&it))
            DNN_TRY(gather(&it, out, n, err));
        return 0;
    }
    if (*n == MAX_COUNT)
        return dnn_json_fail(at, err, "must have at most %d numbers", MAX_COUNT);
    DNN_TRY(dnn_json_real(at, &out[*n], err));
    if (!(fabs(out[*n]) <= 1e30))
        return dnn_json_fail(at, err, "must be between -1e30 and 1e30");
    ++*n;
    return 0;
}

/* Elements of a list of any depth: the buffer that gather() needs. */
static int64_t count_elements(const struct dnn_jobj *at)
{
    int64_t n = 0;

    if (dnn_json_type(at) != DNN_J_LIST) return 1;
    for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
         it = dnn_json_next(&it))
        n += count_elements(&it);
    return n;
}

/* Read a and b: scale and offset, or mean and variance. */
static int read_pair(struct scale *s, struct dnn_arena *arena,
                     const struct dnn_jobj *first, const struct dnn_jobj *second,
                     double def, double **a, double **b, struct dnn_err *err)
{
    double *x =
        dnn_alloc((size_t)(count_elements(first) + count_elements(second)) * sizeof *x);
    double *y = x + count_elements(first);
    int64_t nx = 0, ny = 0;
    int rc = gather(first, x, &nx, err);

    if (rc == 0 && dnn_json_type(second) <= DNN_J_NULL) {
        y[ny++] = def;
    } else if (rc == 0)
        rc = gather(second, y, &ny, err);
    s->count = nx > ny ? nx : ny;
    if (rc == 0 && (nx == 0 || ny == 0))
        rc = dnn_json_fail(first, err, "must have at least one number");
    if (rc == 0 && nx != ny && nx != 1 && ny != 1)
        rc = dnn_json_fail(second, err, "must have as many numbers as \"%s\", %" PRId64,
                           first->name, nx);
    if (rc == 0) {
        *a = dnn_arena_alloc(arena, (size_t)s->count * sizeof **a);
        *b = dnn_arena_alloc(arena, (size_t)s->count * sizeof **b);
        for (int64_t i = 0; i < s->count; i++) {
            (*a)[i] = x[nx == 1 ? 0 : i];
            (*b)[i] = y[ny == 1 ? 0 : i];
        }
        s->a = *a;
        s->b = *b;
    }
    dnn_free(x);
    return rc;
}

static const struct dnn_field rescaling_fields[] = {
    DNN_LAYER_OTHER("scale", "factor of the input"),
    DNN_LAYER_OTHER("offset", "added to the product"), DNN_LAYER_END};

static int rescaling_read(struct dnn_layer *layer, void *cfg,
                          const struct dnn_jobj *config, struct dnn_err *err)
{
    struct dnn_jobj scale = dnn_json_sub(config, "scale");
    struct dnn_jobj offset = dnn_json_sub(config, "offset");
    double *a, *b;

    if (dnn_json_type(&scale) <= DNN_J_NULL)
        return dnn_json_fail(config, err, "the key \"scale\" is missing");
    return read_pair(cfg, layer->arena, &scale, &offset, 0, &a, &b, err);
}

static const struct dnn_field normalization_fields[] = {
    DNN_LAYER_OTHER("axis", "of the channels, the last"),
    DNN_LAYER_OTHER("mean", "subtracted from the input"),
    DNN_LAYER_OTHER("variance", "divided out"),
    {"invert", DNN_F_OTHER, 0, "false", 0, 0, NULL, "apply the inverse", NULL},
    DNN_LAYER_END
};

static int normalization_read(struct dnn_layer *layer, void *cfg,
                              const struct dnn_jobj *config, struct dnn_err *err)
{
    struct dnn_jobj mean = dnn_json_sub(config, "mean");
    struct dnn_jobj variance = dnn_json_sub(config, "variance");
    struct dnn_jobj invert = dnn_json_sub(config, "invert");
    struct scale *s = cfg;
    double *a, *b;
    bool inverse = false;

    if ((dnn_json_type(&mean) <= DNN_J_NULL) !=
        (dnn_json_type(&variance) <= DNN_J_NULL))
        return dnn_json_fail(config, err, "give both \"mean\" and \"variance\"");
    if (dnn_json_type(&invert) > DNN_J_NULL)
        DNN_TRY(dnn_json_bool(&invert, &inverse, err));
    if (dnn_json_type(&mean) <= DNN_J_NULL) { /* they are in the weights file */
        if (inverse)
            return dnn_json_fail(&invert, err,
                                 "must be false without \"mean\" and \"variance\"");
        return 0;
    }
    DNN_TRY(read_pair(s, layer->arena, &mean, &variance, 1, &a, &b, err));
    for (int64_t i = 0; i < s->count; i++) {
        double center = a[i], deviation;

        if (b[i] < 0) return dnn_json_fail(&variance, err, "must not be negative");
        deviation = fmax(sqrt(b[i]), 1e-7);
        a[i] = inverse ? deviation : 1 / deviation;
        b[i] = inverse ? center : -center / deviation;
    }
    return 0;
}

static int scale_infer(const struct dnn_layer *layer, int nin,
                       const struct dnn_shape *in, struct dnn_shape *out,
                       struct dnn_err *err)
{
    const struct scale *s = layer->cfg;
    char text[DNN_SHAPE_TEXT];

    DNN_TRY(dnn_layer_one(nin, in, 1, err));
    *out = *in;
    if (s->count == 0 && (in->ndim < 2 || in->dim[in->ndim - 1] < 0))
        return dnn_fail(err, DNN_ECONFIG,
                        "needs to know the channels of its input, which is %s",
                        dnn_shape_text(text, sizeof text, in));
    if (s->count > 1 && (in->ndim < 2 || in->dim[in->ndim - 1] != s->count))
        return dnn_fail(err, DNN_ECONFIG,
                        "has values for %" PRId64 " channels, but its input is %s",
                        s->count, dnn_shape_text(text, sizeof text, in));
    return 0;
}

/* The result of Keras's adapt(); with the initial values the layer changes nothing. */
static int normalization_weights(const struct dnn_layer *layer, int nin,
                                 const struct dnn_shape *in,
                                 struct dnn_layer_weight *out)
{
    static const struct dnn_layer_spec zero = {.init = {.kind = DNN_INIT_ZEROS}},
                                       one = {.init = {.kind = DNN_INIT_ONES}};
    struct dnn_shape channels = dnn_layer_shape(1, in->dim[in->ndim - 1], 0, 0, 0, 0);
    int n = 0;

    (void)nin;
    if (((const struct scale *)layer->cfg)->count > 0) return 0;
    dnn_layer_add_weight(out, &n, "mean", channels, false, &zero);
    dnn_layer_add_weight(out, &n, "variance", channels, false, &one);
    dnn_layer_add_weight(out, &n, "count", (struct dnn_shape){0}, false, &zero);
    return n;
}

static int scale_lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct scale *s = layer->cfg;

    if (s->count == 0) {
        union dnn_attr attr = {
            .batchnorm = {.axis = dnn_prog_shape(to->prog, to->in[0])->ndim - 1}};

        return dnn_prog_op(
            to->prog, DNN_OP_BN_INFER, &attr, 5,
            (int[]){to->in[0], to->weight[0], to->weight[1], DNN_NONE, DNN_NONE});
    }
    struct dnn_shape shape = dnn_layer_shape(1, s->count, 0, 0, 0, 0);
    int a = dnn_prog_constant(to->prog, "scale", &shape, s->a);
    int b = dnn_prog_constant(to->prog, "offset", &shape, s->b);

    return dnn_prog_op(to->prog, DNN_OP_SCALE, NULL, 3, (int[]){to->in[0], a, b});
}

static int scale_write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                       struct dnn_err *err)
{
    const struct scale *s = layer->cfg;

    (void)err;
    if (s->count == 0) {
        dnn_layer_put_int(out, "axis", -1);
        return 0;
    }
    out->class_name = "Rescaling";
    dnn_layer_put_reals(out, "scale", s->count, s->a);
    dnn_layer_put_reals(out, "offset", s->count, s->b);
    return 0;
}

const struct dnn_layer_type dnn_layer_rescaling = {.name = "Rescaling",
                                                   .size = sizeof(struct scale),
                                                   .fields = rescaling_fields,
                                                   .read = rescaling_read,
                                                   .infer = scale_infer,
                                                   .lower = scale_lower,
                                                   .write = scale_write};
const struct dnn_layer_type dnn_layer_normalization = {.name = "Normalization",
                                                       .size = sizeof(struct scale),
                                                       .fields = normalization_fields,
                                                       .read = normalization_read,
                                                       .infer = scale_infer,
                                                       .weights = normalization_weights,
                                                       .lower = scale_lower,
                                                       .write = scale_write};

/* ---- LayerScale of ConvNeXt: a learned factor per channel ---- */

struct layer_scale {
    double start;
    int64_t channels;
};

static const struct dnn_field layer_scale_fields[] = {
    DNN_LAYER_REAL("init_values", offsetof(struct layer_scale, start), "1e-6", -1e30,
                   1e30, "initial value of the factors"),
    DNN_LAYER_INT("projection_dim", offsetof(struct layer_scale, channels), NULL, 1,
                  DNN_LAYER_AXIS_MAX, "channels"),
    DNN_LAYER_END};

static int layer_scale_infer(const struct dnn_layer *layer, int nin,
                             const struct dnn_shape *in, struct dnn_shape *out,
                             struct dnn_err *err)
{
    const struct layer_scale *s = layer->cfg;
    char text[DNN_SHAPE_TEXT];

    DNN_TRY(dnn_layer_one(nin, in, 2, err));
    if (in->dim[in->ndim - 1] != s->channels)
        return dnn_fail(err, DNN_ECONFIG,
                        "\"projection_dim\" is %" PRId64 ", but its input is %s",
                        s->channels, dnn_shape_text(text, sizeof text, in));
    *out = *in;
    return 0;
}

static int layer_scale_weights(const struct dnn_layer *layer, int nin,
                               const struct dnn_shape *in, struct dnn_layer_weight *out)
{
    const struct layer_scale *s = layer->cfg;
    struct dnn_layer_spec spec = {
        .init = {.kind = DNN_INIT_CONSTANT, .a = s->start}
    };
    int n = 0;

    (void)nin, (void)in;
    dnn_layer_add_weight(out, &n, "gamma", dnn_layer_shape(1, s->channels, 0, 0, 0, 0),
                         true, &spec);
    return n;
}

static int layer_scale_lower(const struct dnn_layer *layer,
                             const struct dnn_layer_lower *to)
{
    union dnn_attr attr = {.combine = {.fn = DNN_MULTIPLY}};

    (void)layer;
    return dnn_prog_op2(to->prog, DNN_OP_COMBINE, &attr, to->in[0], to->weight[0]);
}

static int layer_scale_write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                             struct dnn_err *err)
{
    const struct layer_scale *s = layer->cfg;

    (void)err;
    out->module = "keras.src.applications.convnext";
    out->registered = "LayerScale";
    dnn_layer_put_reals(out, "init_values", 1, &s->start);
    dnn_layer_put_int(out, "projection_dim", s->channels);
    return 0;
}

const struct dnn_layer_type dnn_layer_layer_scale = {.name = "LayerScale",
                                                     .size = sizeof(struct layer_scale),
                                                     .fields = layer_scale_fields,
                                                     .infer = layer_scale_infer,
                                                     .weights = layer_scale_weights,
                                                     .lower = layer_scale_lower,
                                                     .write = layer_scale_write};

/* ---- CustomScaleLayer of InceptionResNetV2: a + scale b ---- */

struct scaled_sum {
    double scale;
};

static const struct dnn_field scaled_sum_fields[] = {
    DNN_LAYER_REAL("scale", offsetof(struct scaled_sum, scale), NULL, -1e30, 1e30,
                   "factor of the second input"),
    DNN_LAYER_END};

static int scaled_sum_infer(const struct dnn_layer *layer, int nin,
                            const struct dnn_shape *in, struct dnn_shape *out,
                            struct dnn_err *err)
{
    (void)layer;
    if (nin != 2) return dnn_fail(err, DNN_ECONFIG, "takes two inputs, not %d", nin);
    bool fits = in[0].ndim == in[1].ndim;
    *out = in[0];
    for (int i = 1; fits && i < in[0].ndim; i++) {
        if (out->dim[i] < 0) out->dim[i] = in[1].dim[i];
        fits = in[1].dim[i] < 0 || in[1].dim[i] == out->dim[i];
    }
    if (!fits) return dnn_fail(err, DNN_ECONFIG, "takes two inputs of the same shape");
    return 0;
}

static int scaled_sum_lower(const struct dnn_layer *layer,
                            const struct dnn_layer_lower *to)
{
    const struct scaled_sum *s = layer->cfg;
    struct dnn_shape one = dnn_layer_shape(1, 1, 0, 0, 0, 0);
    int a = dnn_prog_constant(to->prog, "scale", &one, &s->scale);
    int b = dnn_prog_op2(to->prog, DNN_OP_SCALE, NULL, to->in[1], a);
    union dnn_attr attr = {.combine = {.fn = DNN_ADD}};

    return dnn_prog_op2(to->prog, DNN_OP_COMBINE, &attr, to->in[0], b);
}

static int scaled_sum_write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                            struct dnn_err *err)
{
    const struct scaled_sum *s = layer->cfg;

    (void)err;
    out->module = "keras.src.applications.inception_resnet_v2";
    out->registered = "CustomScaleLayer";
    dnn_layer_put_reals(out, "scale", 1, &s->scale);
    return 0;
}

const struct dnn_layer_type dnn_layer_scaled_sum = {.name = "CustomScaleLayer",
                                                    .size = sizeof(struct scaled_sum),
                                                    .fields = scaled_sum_fields,
                                                    .infer = scaled_sum_infer,
                                                    .lower = scaled_sum_lower,
                                                    .write = scaled_sum_write};

/* ---- InputLayer ---- */

static const struct dnn_field input_fields[] = {
    DNN_LAYER_OTHER("shape", "without the batch"),
    DNN_LAYER_NEUTRAL("sparse", "false"),
    DNN_LAYER_NEUTRAL("ragged", "false"),
    DNN_LAYER_NEUTRAL("optional", "false"),
    DNN_LAYER_END,
};

static int input_infer(const struct dnn_layer *layer, int nin,
                       const struct dnn_shape *in, struct dnn_shape *out,
                       struct dnn_err *err)
{
    (void)in;
    if (nin != 0) return dnn_fail(err, DNN_ECONFIG, "takes no input, not %d", nin);
    if (!layer->has_input)
        return dnn_fail(err, DNN_ECONFIG,
                        "the key \"batch_input_shape\" is missing: the shape of the "
                        "data, as [null, 64, 64, 1]");
    *out = layer->input;
    return 0;
}

static int input_lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    (void)layer;
    return to->in[0]; /* created by dnn_graph_lower() */
}

const struct dnn_layer_type dnn_layer_input = {.name = "InputLayer",
                                               .alias = {"Input"},
                                               .fields = input_fields,
                                               .infer = input_infer,
                                               .lower = input_lower};
