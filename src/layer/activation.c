/* activation.c - activations, as layers and inside other layers: ReLU, LeakyReLU,
 * PReLU, ELU, SELU, GELU, Softmax, Log_Softmax, Sigmoid, Tanh, Swish, Activation...
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- by name ---- */

static const struct name {
    const char *name;
    int kind, fn;
    bool log;
    double alpha, max;
} names[] = {
    {"linear",         DNN_LAYER_LINEAR,  0,                false, 0,   INFINITY},
    {"relu",           DNN_LAYER_UNARY,   DNN_RELU,         false, 0,   INFINITY},
    {"relu6",          DNN_LAYER_UNARY,   DNN_RELU,         false, 0,   6       },
    {"leaky_relu",     DNN_LAYER_UNARY,   DNN_RELU,         false, 0.2, INFINITY},
    {"sigmoid",        DNN_LAYER_UNARY,   DNN_SIGMOID,      false, 0,   0       },
    {"tanh",           DNN_LAYER_UNARY,   DNN_TANH,         false, 0,   0       },
    {"softmax",        DNN_LAYER_SOFTMAX, 0,                false, 0,   0       },
    {"log_softmax",    DNN_LAYER_SOFTMAX, 0,                true,  0,   0       },
    {"log_softmax_v2", DNN_LAYER_SOFTMAX, 0,                true,  0,   0       },
    {"swish",          DNN_LAYER_UNARY,   DNN_SWISH,        false, 0,   0       },
    {"silu",           DNN_LAYER_UNARY,   DNN_SWISH,        false, 0,   0       },
    {"elu",            DNN_LAYER_UNARY,   DNN_ELU,          false, 1,   0       },
    {"selu",           DNN_LAYER_UNARY,   DNN_SELU,         false, 0,   0       },
    {"gelu",           DNN_LAYER_UNARY,   DNN_GELU,         false, 0,   0       },
    {"softplus",       DNN_LAYER_UNARY,   DNN_SOFTPLUS,     false, 0,   0       },
    {"softsign",       DNN_LAYER_UNARY,   DNN_SOFTSIGN,     false, 0,   0       },
    {"hard_sigmoid",   DNN_LAYER_UNARY,   DNN_HARD_SIGMOID, false, 0.2, 0       },
    {"hard_swish",     DNN_LAYER_UNARY,   DNN_HARD_SWISH,   false, 0,   0       },
    {"hard_silu",      DNN_LAYER_UNARY,   DNN_HARD_SWISH,   false, 0,   0       },
    {"mish",           DNN_LAYER_UNARY,   DNN_MISH,         false, 0,   0       },
    {"log_sigmoid",    DNN_LAYER_UNARY,   DNN_LOG_SIGMOID,  false, 0,   0       },
    {"exponential",    DNN_LAYER_UNARY,   DNN_EXP,          false, 0,   0       },
    {NULL,             0,                 0,                false, 0,   0       },
};

static int by_name(const struct dnn_layer *layer, const struct dnn_jobj *at,
                   const char *word, struct dnn_layer_act *out, struct dnn_err *err)
{
    const char *words[sizeof names / sizeof names[0]];
    char hint[96];
    int i = 0;

    for (; names[i].name != NULL; i++) {
        words[i] = names[i].name;
        if (strcasecmp(names[i].name, word) != 0) continue;
        *out = (struct dnn_layer_act){
            .kind = names[i].kind,
            .unary = {.fn = (enum dnn_unary)names[i].fn,
                      .alpha = names[i].alpha,
                      .max_value = names[i].max},
            .axis = -1,
            .log = names[i].log
        };
        /* Keras 3 changed the slope. */
        if (out->kind == DNN_LAYER_UNARY && out->unary.fn == DNN_HARD_SIGMOID &&
            layer->keras >= 3)
            out->unary.alpha = 1.0 / 6;
        return 0;
    }
    words[i] = NULL;
    return dnn_json_fail(at, err, "there is no activation \"%.60s\"%s", word,
                         dnn_text_hint(hint, sizeof hint, word, words));
}

static int infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                 struct dnn_shape *out, struct dnn_err *err);

int dnn_layer_read_act(const struct dnn_layer *layer, const struct dnn_jobj *at,
                       struct dnn_layer_act *out, struct dnn_err *err)
{
    struct dnn_jobj inside;
    const char *word;

    if (dnn_json_type(at) <= DNN_J_NULL) return by_name(layer, at, "linear", out, err);
    DNN_TRY(dnn_layer_read_object(at, &word, &inside, err));
    if (dnn_json_type(&inside) <= DNN_J_NULL) return by_name(layer, at, word, out, err);
    /* {"class_name": "function", "config": "relu"} */
    if (dnn_json_type(&inside) == DNN_J_TEXT) {
        DNN_TRY(dnn_json_string(&inside, &word, err));
        return by_name(layer, &inside, word, out, err);
    }
    /* A layer used as an activation. */
    const struct dnn_layer_type *type = dnn_layer_find(word);
    const struct dnn_layer *made;
    if (type == NULL || type->infer != infer)
        return dnn_json_fail(
            at, err,
            "\"%.60s\" cannot be the activation of another layer; use an "
            "activation's name, or a layer of its own after it",
            word);
    DNN_TRY(dnn_layer_read(word, layer->name, &inside, layer->keras, layer->arena,
                           &made, err));
    *out = *(const struct dnn_layer_act *)made->cfg;
    return 0;
}

int dnn_layer_infer_act(const struct dnn_layer_act *act, const struct dnn_shape *shape,
                        struct dnn_err *err)
{
    int axis;

    if (act->kind != DNN_LAYER_SOFTMAX) return 0;
    DNN_TRY(dnn_layer_axis(act->axis, shape->ndim, &axis, err));
    if (axis == 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "softmax over the batch axis is not supported");
    return 0;
}

int dnn_layer_lower_act(const struct dnn_layer_act *act, struct dnn_prog *prog, int x)
{
    int ndim = dnn_prog_shape(prog, x)->ndim;
    union dnn_attr attr = {0};

    if (act->kind == DNN_LAYER_LINEAR) return x;
    if (act->kind == DNN_LAYER_UNARY) {
        attr.unary = act->unary;
        return dnn_prog_op1(prog, DNN_OP_UNARY, &attr, x);
    }
    attr.softmax.axis = (int)(act->axis < 0 ? act->axis + ndim : act->axis);
    attr.softmax.log = act->log;
    return dnn_prog_op1(prog, DNN_OP_SOFTMAX, &attr, x);
}

const char *dnn_layer_act_name(const struct dnn_layer_act *act)
{
    const struct dnn_op_unary *u = &act->unary;

    if (act->kind == DNN_LAYER_UNARY && u->fn == DNN_HARD_SIGMOID)
        return u->alpha == 1.0 / 6 ? "hard_sigmoid" : NULL;
    for (const struct name *n = names; n->name != NULL; n++) {
        if (n->kind != act->kind ||
            (act->kind == DNN_LAYER_SOFTMAX && (n->log != act->log || act->axis != -1)))
            continue;
        if (act->kind != DNN_LAYER_UNARY) return n->name;
        if (n->fn != (int)u->fn || (u->fn == DNN_ELU && u->alpha != n->alpha) ||
            (u->fn == DNN_RELU &&
             (u->alpha != n->alpha || u->max_value != n->max || u->threshold != 0)))
            continue;
        return n->name;
    }
    return NULL;
}

int dnn_layer_write_act(const struct dnn_layer_act *act, struct dnn_layer_out *out,
                        struct dnn_err *err)
{
    const struct dnn_op_unary *u = &act->unary;

    if (act->kind == DNN_LAYER_SOFTMAX && !act->log) {
        out->class_name = "Softmax";
        dnn_layer_put_int(out, "axis", act->axis);
    } else if (act->kind == DNN_LAYER_UNARY && u->fn == DNN_RELU) {
        out->class_name = "ReLU";
        if (isfinite(u->max_value))
            dnn_layer_put_reals(out, "max_value", 1, &u->max_value);
        dnn_layer_put_reals(out, "negative_slope", 1, &u->alpha);
        dnn_layer_put_reals(out, "threshold", 1, &u->threshold);
    } else if (act->kind == DNN_LAYER_UNARY && u->fn == DNN_ELU) {
        out->class_name = "ELU";
        dnn_layer_put_reals(out, "alpha", 1, &u->alpha);
    } else
        return dnn_fail(err, DNN_ECONFIG, "Keras 3 has no such activation%s",
                        act->kind == DNN_LAYER_SOFTMAX ? "; \"axis\" must be -1"
                        : u->fn == DNN_HARD_SIGMOID
                            ? ": its hard_sigmoid has a slope of 1/6, not 0.2"
                            : "");
    return 0;
}

/* ---- as layers ---- */

static int write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                 struct dnn_err *err)
{
    const struct dnn_layer_act *act = layer->cfg;
    const char *own = layer->type->name, *name = dnn_layer_act_name(act);

    if (strcmp(own, "LeakyReLU") == 0) {
        dnn_layer_put_reals(out, "negative_slope", 1, &act->unary.alpha);
        return 0;
    }
    if (name == NULL || strcmp(own, "ReLU") == 0 || strcmp(own, "ELU") == 0 ||
        strcmp(own, "Softmax") == 0)
        return dnn_layer_write_act(act, out, err);
    out->class_name = "Activation";
    dnn_layer_put(out, "\"activation\": \"%s\"", name);
    return 0;
}

static int infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                 struct dnn_shape *out, struct dnn_err *err)
{
    const struct dnn_layer_act *act = layer->cfg;

    DNN_TRY(dnn_layer_one(nin, in, 1, err));
    *out = *in;
    return dnn_layer_infer_act(act, in, err);
}

static int lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    return dnn_layer_lower_act(layer->cfg, to->prog, to->in[0]);
}

static int read_axis(const struct dnn_jobj *config, int64_t *out, struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(config, "axis"), one = at;

    *out = -1;
    if (dnn_json_type(&at) == DNN_J_LIST) {
        if (dnn_json_count(&at) != 1)
            return dnn_json_fail(&at, err, "must be one axis, not %zu",
                                 dnn_json_count(&at));
        one = dnn_json_first(&at);
    }
    return dnn_json_type(&at) <= DNN_J_NULL ? 0 : dnn_json_int(&one, out, err);
}

/* A number or null. */
static int read_real(const struct dnn_jobj *at, double def, double *out,
                     struct dnn_err *err)
{
    *out = def;
    if (dnn_json_type(at) <= DNN_J_NULL) return 0;
    struct dnn_jobj value = *at;
    /* Keras 2 wrote a learned scalar as an object. */
    if (dnn_json_type(at) == DNN_J_OBJECT) value = dnn_json_sub(at, "value");
    DNN_TRY(dnn_json_real(&value, out, err));
    if (!(fabs(*out) <= 1e30))
        return dnn_json_fail(at, err, "must be between -1e30 and 1e30");
    return 0;
}

static int read_activation(struct dnn_layer *layer, void *cfg,
                           const struct dnn_jobj *config, struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(config, "activation");
    struct dnn_layer_act *act = cfg;

    if (at.val == NULL)
        return dnn_json_fail(config, err, "the key \"activation\" is missing");
    DNN_TRY(dnn_layer_read_act(layer, &at, act, err));
    return act->kind == DNN_LAYER_SOFTMAX ? read_axis(config, &act->axis, err) : 0;
}

static int read_relu(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                     struct dnn_err *err)
{
    struct dnn_jobj max = dnn_json_sub(config, "max_value");
    struct dnn_jobj slope = dnn_json_sub(config, "negative_slope");
    struct dnn_jobj from = dnn_json_sub(config, "threshold");
    struct dnn_layer_act *act = cfg;

    (void)layer;
    act->kind = DNN_LAYER_UNARY;
    act->unary.fn = DNN_RELU;
    DNN_TRY(read_real(&max, INFINITY, &act->unary.max_value, err));
    DNN_TRY(read_real(&slope, 0, &act->unary.alpha, err));
    DNN_TRY(read_real(&from, 0, &act->unary.threshold, err));
    if (act->unary.max_value < 0)
        return dnn_json_fail(&max, err, "must not be negative");
    return 0;
}

/* LeakyReLU and ELU; Keras 3 renamed the key of LeakyReLU. */
static int read_slope(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                      struct dnn_err *err)
{
    struct dnn_jobj at = dnn_layer_either(config, "alpha", "negative_slope");
    struct dnn_layer_act *act = cfg;

    act->kind = DNN_LAYER_UNARY;
    act->unary.fn = (enum dnn_unary)layer->type->kind;
    act->unary.max_value = INFINITY;
    return read_real(&at, act->unary.fn == DNN_ELU ? 1 : 0.3, &act->unary.alpha, err);
}

static int read_softmax(struct dnn_layer *layer, void *cfg,
                        const struct dnn_jobj *config, struct dnn_err *err)
{
    struct dnn_layer_act *act = cfg;

    act->kind = DNN_LAYER_SOFTMAX;
    act->log = layer->type->kind != 0;
    return read_axis(config, &act->axis, err);
}

static int read_gelu(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                     struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(config, "approximate");
    struct dnn_layer_act *act = cfg;
    bool tanh = false;

    (void)layer;
    if (dnn_json_type(&at) > DNN_J_NULL) DNN_TRY(dnn_json_bool(&at, &tanh, err));
    act->kind = DNN_LAYER_UNARY;
    act->unary.fn = tanh ? DNN_GELU_TANH : DNN_GELU;
    return 0;
}

/* Activations without parameters. */
static int read_plain(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                      struct dnn_err *err)
{
    static const char *const words[] = {[DNN_SIGMOID] = "sigmoid",
                                        [DNN_TANH] = "tanh",
                                        [DNN_SWISH] = "swish",
                                        [DNN_SELU] = "selu",
                                        [DNN_SOFTPLUS] = "softplus",
                                        [DNN_SOFTSIGN] = "softsign",
                                        [DNN_MISH] = "mish",
                                        [DNN_HARD_SIGMOID] = "hard_sigmoid",
                                        [DNN_HARD_SWISH] = "hard_swish"};

    return by_name(layer, config, words[layer->type->kind], cfg, err);
}

#define AXIS DNN_LAYER_OTHER("axis", "axis of the softmax")
static const struct dnn_field activation_fields[] = {
    DNN_LAYER_OTHER("activation", "its name"), AXIS, DNN_LAYER_END};
static const struct dnn_field relu_fields[] = {
    DNN_LAYER_OTHER("max_value", "largest output; null: no limit"),
    DNN_LAYER_OTHER("negative_slope", "slope below the threshold"),
    DNN_LAYER_OTHER("threshold", "input above which it is linear"), DNN_LAYER_END};
static const struct dnn_field slope_fields[] = {
    DNN_LAYER_OTHER("alpha", "slope, or scale, below 0"),
    DNN_LAYER_OTHER("negative_slope", "the same, as Keras 3 calls it"), DNN_LAYER_END};
static const struct dnn_field softmax_fields[] = {AXIS, DNN_LAYER_END};
static const struct dnn_field gelu_fields[] = {
    DNN_LAYER_OTHER("approximate", "true: with tanh"), DNN_LAYER_END};

#define KIND(id, class_name, other, number, table, reader)                             \
    const struct dnn_layer_type dnn_layer_##id = {                                     \
        .name = class_name,                                                            \
        .alias = {other},                                                              \
        .kind = number,                                                                \
        .size = sizeof(struct dnn_layer_act),                                          \
        .fields = table,                                                               \
        .read = reader,                                                                \
        .infer = infer,                                                                \
        .lower = lower,                                                                \
        .write = write,                                                                \
    }

KIND(activation, "Activation", NULL, 0, activation_fields, read_activation);
KIND(relu, "ReLU", NULL, 0, relu_fields, read_relu);
KIND(leaky_relu, "LeakyReLU", NULL, DNN_RELU, slope_fields, read_slope);
KIND(elu, "ELU", NULL, DNN_ELU, slope_fields, read_slope);
KIND(softmax, "Softmax", NULL, 0, softmax_fields, read_softmax);
KIND(log_softmax, "Log_Softmax", "LogSoftmax", 1, softmax_fields, read_softmax);
KIND(gelu, "GELU", "Gelu", 0, gelu_fields, read_gelu);
KIND(sigmoid, "Sigmoid", NULL, DNN_SIGMOID, NULL, read_plain);
KIND(tanh, "Tanh", NULL, DNN_TANH, NULL, read_plain);
KIND(swish, "Swish", "SiLU", DNN_SWISH, NULL, read_plain);
KIND(selu, "SELU", "Selu", DNN_SELU, NULL, read_plain);
KIND(softplus, "Softplus", NULL, DNN_SOFTPLUS, NULL, read_plain);
KIND(softsign, "Softsign", NULL, DNN_SOFTSIGN, NULL, read_plain);
KIND(hard_sigmoid, "HardSigmoid", "Hard_Sigmoid", DNN_HARD_SIGMOID, NULL, read_plain);
KIND(hard_swish, "HardSwish", "HardSiLU", DNN_HARD_SWISH, NULL, read_plain);
KIND(mish, "Mish", NULL, DNN_MISH, NULL, read_plain);

/* ---- PReLU: the slope is learned ---- */

struct prelu {
    struct dnn_list shared; /* axes that share one slope, from 1 */
    struct dnn_layer_spec alpha;
};

#define AT(f) offsetof(struct prelu, f)
static const struct dnn_sub axes = {.single = true};
#define SHARED_AXES                                                                    \
    DNN_LAYER_INTS("shared_axes", AT(shared), "null", 1, DNN_MAX_DIMS - 1,             \
                   "axes along which the slope is the same", &axes)
static const struct dnn_field prelu_fields[] = {DNN_LAYER_WEIGHT("alpha"), SHARED_AXES,
                                                DNN_LAYER_END};
static const struct dnn_field prelu_keras1[] = {
    DNN_LAYER_OTHER("init", "initializer of the slopes"), SHARED_AXES, DNN_LAYER_END};

static int prelu_read(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                      struct dnn_err *err)
{
    (void)layer;
    return dnn_layer_read_spec(config, "alpha", "init", NULL, "zeros",
                               &((struct prelu *)cfg)->alpha, err);
}

static struct dnn_shape prelu_shape(const struct prelu *p, const struct dnn_shape *in)
{
    struct dnn_shape shape = {.ndim = in->ndim - 1};

    for (int i = 0; i < shape.ndim; i++)
        shape.dim[i] = in->dim[i + 1];
    for (int64_t i = 0; i < p->shared.count; i++)
        shape.dim[p->shared.ints[i] - 1] = 1;
    return shape;
}

static int prelu_infer(const struct dnn_layer *layer, int nin,
                       const struct dnn_shape *in, struct dnn_shape *out,
                       struct dnn_err *err)
{
    const struct prelu *p = layer->cfg;
    char text[DNN_SHAPE_TEXT];

    DNN_TRY(dnn_layer_one(nin, in, 2, err));
    for (int64_t i = 0; i < p->shared.count; i++)
        if (p->shared.ints[i] >= in->ndim)
            return dnn_fail(
                err, DNN_ECONFIG,
                "\"shared_axes\" must be below %d for this input, not %" PRId64,
                in->ndim, p->shared.ints[i]);
    struct dnn_shape alpha = prelu_shape(p, in);
    if (!dnn_shape_known(&alpha))
        return dnn_fail(err, DNN_ECONFIG,
                        "has a slope for each element of its input %s; name the "
                        "unknown axes in \"shared_axes\"",
                        dnn_shape_text(text, sizeof text, in));
    *out = *in;
    return 0;
}

static int prelu_weights(const struct dnn_layer *layer, int nin,
                         const struct dnn_shape *in, struct dnn_layer_weight *out)
{
    const struct prelu *p = layer->cfg;
    int n = 0;

    (void)nin;
    dnn_layer_add_weight(out, &n, "alpha", prelu_shape(p, in), true, &p->alpha);
    return n;
}

static int prelu_lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    (void)layer;
    return dnn_prog_op2(to->prog, DNN_OP_PRELU, NULL, to->in[0], to->weight[0]);
}

static int prelu_write(const struct dnn_layer *layer, struct dnn_layer_out *out,
                       struct dnn_err *err)
{
    const struct prelu *p = layer->cfg;

    (void)err;
    dnn_layer_put_spec(out, "alpha", &p->alpha);
    if (p->shared.count > 0)
        dnn_layer_put_ints(out, "shared_axes", p->shared.count, p->shared.ints);
    return 0;
}

const struct dnn_layer_type dnn_layer_prelu = {.name = "PReLU",
                                               .size = sizeof(struct prelu),
                                               .fields = prelu_fields,
                                               .keras1 = prelu_keras1,
                                               .read = prelu_read,
                                               .infer = prelu_infer,
                                               .weights = prelu_weights,
                                               .lower = prelu_lower,
                                               .write = prelu_write};
