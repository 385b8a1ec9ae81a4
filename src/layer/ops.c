/* ops.c - operations of Keras 3 between layers, keras.ops: x + y, 3 - x, relu(x),
 * mean(x, axis)...
 *
 * Most are read as an equivalent layer; operations with a number as an operand are
 * implemented here.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- a tensor and a number ---- */

enum arith { ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM };

static const struct {
    const char *op;
    enum arith fn;
} ariths[] = {
    {"Add",        ADD     },
    {"Subtract",   SUBTRACT},
    {"Multiply",   MULTIPLY},
    {"TrueDivide", DIVIDE  },
    {"Divide",     DIVIDE  },
    {"Maximum",    MAXIMUM },
    {"Minimum",    MINIMUM },
    {NULL,         0       }
};

static int arith_infer(const struct dnn_layer *layer, int nin,
                       const struct dnn_shape *in, struct dnn_shape *out,
                       struct dnn_err *err)
{
    (void)layer;
    DNN_TRY(dnn_layer_one(nin, in, 1, err));
    *out = *in;
    return 0;
}

/* a x + b */
static int scaled(struct dnn_prog *prog, int x, double a, double b)
{
    struct dnn_shape one = dnn_layer_shape(1, 1, 0, 0, 0, 0);

    return dnn_prog_op(prog, DNN_OP_SCALE, NULL, 3,
                       (int[]){x, dnn_prog_constant(prog, "scale", &one, &a),
                               dnn_prog_constant(prog, "offset", &one, &b)});
}

static int unary(struct dnn_prog *prog, int x, enum dnn_unary fn)
{
    union dnn_attr attr = {
        .unary = {.fn = fn, .max_value = INFINITY}
    };

    return dnn_prog_op1(prog, DNN_OP_UNARY, &attr, x);
}

static int arith_lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    double c = layer->op->number;
    bool first = layer->op->first;
    int x = to->in[0];

    switch (*(const enum arith *)layer->cfg) {
    case ADD:
        return scaled(to->prog, x, 1, c);
    case SUBTRACT:
        return first ? scaled(to->prog, x, -1, c) : scaled(to->prog, x, 1, -c);
    case MULTIPLY:
        return scaled(to->prog, x, c, 0);
    case DIVIDE:
        if (!first) return scaled(to->prog, x, 1 / c, 0);
        return scaled(to->prog, unary(to->prog, x, DNN_RECIPROCAL), c, 0);
    case MAXIMUM: /* max(x - c, 0) + c */
        return scaled(to->prog, unary(to->prog, scaled(to->prog, x, 1, -c), DNN_RELU),
                      1, c);
    default: /* c - max(c - x, 0) */
        return scaled(to->prog, unary(to->prog, scaled(to->prog, x, -1, c), DNN_RELU),
                      -1, c);
    }
}

static const struct dnn_layer_type arith_type = {.name = "arithmetic",
                                                 .size = sizeof(enum arith),
                                                 .infer = arith_infer,
                                                 .lower = arith_lower};

/* ---- mean, sum and maximum over axes ---- */

struct reduce {
    struct dnn_list axis;
    bool keepdims;
};

static const struct dnn_sub axes_sub = {.max = DNN_MAX_DIMS, .single = true};
static const struct dnn_field reduce_fields[] = {
    DNN_LAYER_INTS("axis", offsetof(struct reduce, axis), "null", -DNN_MAX_DIMS,
                   DNN_MAX_DIMS - 1, "axes to reduce", &axes_sub),
    DNN_LAYER_BOOL("keepdims", offsetof(struct reduce, keepdims), "false",
                   "keep the reduced axes with size 1"),
    DNN_LAYER_NEUTRAL("initial", "null"), DNN_LAYER_END};

static int reduce_bits(const struct reduce *r, int ndim, unsigned *bits,
                       struct dnn_err *err)
{
    *bits = 0;
    for (int64_t i = 0; i < r->axis.count; i++) {
        int axis;

        DNN_TRY(dnn_layer_axis(r->axis.ints[i], ndim, &axis, err));
        *bits |= 1u << axis;
    }
    if (r->axis.count == 0 || (*bits & 1) != 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "\"axis\" must name the axes to reduce, not the batch");
    return 0;
}

static int reduce_infer(const struct dnn_layer *layer, int nin,
                        const struct dnn_shape *in, struct dnn_shape *out,
                        struct dnn_err *err)
{
    const struct reduce *r = layer->cfg;
    unsigned bits;

    DNN_TRY(dnn_layer_one(nin, in, 2, err));
    DNN_TRY(reduce_bits(r, in->ndim, &bits, err));
    *out = (struct dnn_shape){0};
    for (int i = 0; i < in->ndim; i++)
        if ((bits >> i & 1) == 0)
            out->dim[out->ndim++] = in->dim[i];
        else if (r->keepdims)
            out->dim[out->ndim++] = 1;
    return 0;
}

static int reduce_lower(const struct dnn_layer *layer, const struct dnn_layer_lower *to)
{
    const struct reduce *r = layer->cfg;
    union dnn_attr attr = {
        .reduce = {.fn = (enum dnn_reduce)layer->type->kind, .keepdims = r->keepdims}
    };

    reduce_bits(r, dnn_prog_shape(to->prog, to->in[0])->ndim, &attr.reduce.axes, NULL);
    return dnn_prog_op1(to->prog, DNN_OP_REDUCE, &attr, to->in[0]);
}

#define REDUCE(which)                                                                  \
    {.name = "reduction",                                                              \
     .kind = which,                                                                    \
     .size = sizeof(struct reduce),                                                    \
     .fields = reduce_fields,                                                          \
     .infer = reduce_infer,                                                            \
     .lower = reduce_lower}
static const struct dnn_layer_type mean = REDUCE(DNN_REDUCE_MEAN),
                                   sum = REDUCE(DNN_REDUCE_SUM),
                                   max = REDUCE(DNN_REDUCE_MAX);

/* ---- element-wise operations without keys ---- */

static const struct {
    const char *op;
    enum dnn_unary fn;
    double alpha, max;
} unaries[] = {
    {"Relu",        DNN_RELU,         0,       INFINITY},
    {"Relu6",       DNN_RELU,         0,       6       },
    {"Sigmoid",     DNN_SIGMOID,      0,       0       },
    {"Tanh",        DNN_TANH,         0,       0       },
    {"Silu",        DNN_SWISH,        0,       0       },
    {"Selu",        DNN_SELU,         0,       0       },
    {"Softplus",    DNN_SOFTPLUS,     0,       0       },
    {"Softsign",    DNN_SOFTSIGN,     0,       0       },
    {"HardSigmoid", DNN_HARD_SIGMOID, 1.0 / 6, 0       },
    {"HardSilu",    DNN_HARD_SWISH,   0,       0       },
    {"LogSigmoid",  DNN_LOG_SIGMOID,  0,       0       },
    {"Exp",         DNN_EXP,          0,       0       },
    {"Log",         DNN_LOG,          0,       0       },
    {"Square",      DNN_SQUARE,       0,       0       },
    {"Sqrt",        DNN_SQRT,         0,       0       },
    {"Absolute",    DNN_ABS,          0,       0       },
    {"Abs",         DNN_ABS,          0,       0       },
    {"Negative",    DNN_NEGATE,       0,       0       },
    {"Reciprocal",  DNN_RECIPROCAL,   0,       0       },
    {NULL,          0,                0,       0       }
};

/* ---- operations equivalent to a layer, with the same keys ---- */

extern const struct dnn_layer_type dnn_layer_add, dnn_layer_subtract,
    dnn_layer_multiply, dnn_layer_divide, dnn_layer_maximum, dnn_layer_minimum,
    dnn_layer_concatenate, dnn_layer_leaky_relu, dnn_layer_elu, dnn_layer_gelu,
    dnn_layer_softmax, dnn_layer_log_softmax, dnn_layer_activation;

static const struct {
    const char *op;
    const struct dnn_layer_type *type;
} layers[] = {
    {"Add",         &dnn_layer_add        },
    {"Subtract",    &dnn_layer_subtract   },
    {"Multiply",    &dnn_layer_multiply   },
    {"Divide",      &dnn_layer_divide     },
    {"TrueDivide",  &dnn_layer_divide     },
    {"Maximum",     &dnn_layer_maximum    },
    {"Minimum",     &dnn_layer_minimum    },
    {"Concatenate", &dnn_layer_concatenate},
    {"LeakyRelu",   &dnn_layer_leaky_relu },
    {"Elu",         &dnn_layer_elu        },
    {"Gelu",        &dnn_layer_gelu       },
    {"Softmax",     &dnn_layer_softmax    },
    {"LogSoftmax",  &dnn_layer_log_softmax},
    {"Mean",        &mean                 },
    {"Sum",         &sum                  },
    {"Max",         &max                  },
    {NULL,          NULL                  }
};

/* ---- reading ---- */

static int unknown(const struct dnn_layer_op *op, const struct dnn_jobj *config,
                   struct dnn_err *err)
{
    const char *words[64];
    char hint[128];
    int n = 0;

    for (int i = 0; unaries[i].op != NULL; i++)
        words[n++] = unaries[i].op;
    for (int i = 0; layers[i].op != NULL; i++)
        words[n++] = layers[i].op;
    words[n] = NULL;
    return dnn_json_fail(config, err, "the operation %.60s%s is not supported%s",
                         op->class_name, op->has_number ? " with a number" : "",
                         dnn_text_hint(hint, sizeof hint, op->class_name, words));
}

static int read_op(struct dnn_layer *layer, const struct dnn_jobj *config,
                   struct dnn_err *err)
{
    const struct dnn_layer_op *op = layer->op;

    for (int i = 0; op->has_number && ariths[i].op != NULL; i++)
        if (strcmp(ariths[i].op, op->class_name) == 0) {
            enum arith *fn = dnn_arena_alloc(layer->arena, sizeof *fn);

            *fn = ariths[i].fn;
            if (*fn == DIVIDE && !op->first && op->number == 0)
                return dnn_json_fail(config, err, "divides by 0");
            layer->type = &arith_type;
            layer->cfg = fn;
            return 0;
        }
    for (int i = 0; !op->has_number && unaries[i].op != NULL; i++)
        if (strcmp(unaries[i].op, op->class_name) == 0) {
            struct dnn_layer_act *act = dnn_arena_alloc(layer->arena, sizeof *act);

            *act = (struct dnn_layer_act){
                .kind = DNN_LAYER_UNARY,
                .unary = {.fn = unaries[i].fn,
                          .alpha = unaries[i].alpha,
                          .max_value = unaries[i].max}
            };
            layer->type = &dnn_layer_activation;
            layer->cfg = act;
            return 0;
        }
    for (int i = 0; !op->has_number && layers[i].op != NULL; i++)
        if (strcmp(layers[i].op, op->class_name) == 0) {
            layer->type = layers[i].type;
            return dnn_layer_read_keys(layer, config, err);
        }
    return unknown(op, config, err);
}

int dnn_layer_read_op(const struct dnn_layer_op *op, const char *name,
                      const struct dnn_jobj *config, struct dnn_arena *arena,
                      const struct dnn_layer **out, struct dnn_err *err)
{
    struct dnn_layer *layer = dnn_arena_alloc(arena, sizeof *layer);
    struct dnn_layer_op *own = dnn_arena_alloc(arena, sizeof *own);
    struct dnn_jobj at = *config;
    char *text = dnn_json_compact(config);

    *own = *op;
    own->class_name = dnn_arena_strdup(arena, op->class_name);
    own->module = dnn_arena_strdup(arena, op->module);
    own->config = dnn_arena_strdup(arena, text == NULL ? "{}" : text);
    dnn_free(text);
    at.up = NULL;
    at.name = NULL;
    *layer = (struct dnn_layer){
        .name = name, .trainable = true, .keras = 3, .arena = arena, .op = own};
    *out = layer;
    if (read_op(layer, &at, err) < 0)
        return dnn_layer_error_at(config, name, op->class_name, err);
    return 0;
}
