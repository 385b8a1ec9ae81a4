/* gradients.c - every op and pass of the ref backend: backward against finite
 * differences of forward in f64, and f32 against f64.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ops/compare.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_IN = 6, MAX_PROBES = 40 };

/* A row: an op and its operands, each a letter and a shape: x an activation, w a
 * weight, f a frozen one, s a state (positive), c a constant, t a target, i labels, n
 * the weight sum of the two operands before, - absent, and > the fused activation.
 * Batch normalization with batch statistics is the row BN_APPLY with x gamma beta mean
 * var; RATIO takes the overlap of its operands. */
struct row {
    const char *name;
    enum dnn_op_kind kind;
    union dnn_attr attr;
    const char *operands;
    double low, high; /* of the numbers; both 0: from -1 to 1 */
};

#define WIN1(k, s, d, b, a)                                                            \
    {.nspatial = 1,                                                                    \
     .kernel = {k},                                                                    \
     .stride = {s},                                                                    \
     .dilation = {d},                                                                  \
     .before = {b},                                                                    \
     .after = {a},                                                                     \
     .groups = 1}
#define WIN2(k0, k1, s, d, b, a, g)                                                    \
    {                                                                                  \
        .nspatial = 2,                                                                 \
        .kernel = {k0, k1},                                                            \
        .stride = {s,  s },                                                              \
        .dilation = {d,  d },                                                            \
        .before = {b,  b },                                                              \
        .after = {a,  a },                                                               \
        .groups = g \
}
#define WIN3(k0, k1, k2, s, b, a)                                                      \
    {                                                                                  \
        .nspatial = 3,                                                                 \
        .kernel = {k0, k1, k2},                                                        \
        .stride = {s,  s,  s },                                                           \
        .dilation = {1,  1,  1 },                                                         \
        .before = {b,  b,  b },                                                           \
        .after = {a,  a,  a },                                                            \
        .groups = 1 \
    }
#define UNARY(f, ...)                                                                  \
    DNN_OP_UNARY,                                                                      \
    {                                                                                  \
        .unary = {.fn = f, __VA_ARGS__ }                                               \
    }
#define NO_MAX .max_value = INFINITY

/* Activations that can be fused into an op. */
static const struct {
    const char *name;
    struct dnn_op_unary unary;
} posts[] = {
    {"relu",  {.fn = DNN_RELU, NO_MAX}              },
    {"leaky", {.fn = DNN_RELU, .alpha = 0.3, NO_MAX}},
    {"relu6", {.fn = DNN_RELU, .max_value = 0.6}    },
    {"tanh",  {.fn = DNN_TANH}                      },
    {"elu",   {.fn = DNN_ELU, .alpha = 1.5}         },
    {"swish", {.fn = DNN_SWISH}                     },
};

/* clang-format off */
static const struct row rows[] = {
    {"matmul", DNN_OP_MATMUL, {{0}}, "x3x5 w5x7", 0, 0},
    {"matmul 1x1", DNN_OP_MATMUL, {{0}}, "x1x1 w1x1", 0, 0},
    {"matmul of more axes", DNN_OP_MATMUL, {{0}}, "x2x3x4 w4x3", 0, 0},
    {"matmul of activations", DNN_OP_MATMUL, {{0}}, "x3x2 x2x3", 0, 0},
    {"bias", DNN_OP_BIAS, {{0}}, "x2x3x5 w5", 0, 0},
    {"conv 1d", DNN_OP_CONV, {.window = WIN1(3, 2, 1, 1, 0)}, "x2x7x3 w3x3x2", 0, 0},
    {"conv 1d dilated", DNN_OP_CONV, {.window = WIN1(3, 1, 2, 4, 0)}, "x1x6x2 w3x2x3", 0, 0},
    {"conv 2d same, even", DNN_OP_CONV, {.window = WIN2(2, 4, 1, 1, 1, 2, 1)}, "x2x5x3x3 w2x4x3x2", 0, 0},
    {"conv 2d stride 3", DNN_OP_CONV, {.window = WIN2(2, 3, 3, 1, 0, 1, 1)}, "x1x7x8x2 w2x3x2x3", 0, 0},
    {"conv 2d pointwise", DNN_OP_CONV, {.window = WIN2(1, 1, 1, 1, 0, 0, 1)}, "x2x3x2x5 w1x1x5x1", 0, 0},
    {"conv 2d groups", DNN_OP_CONV, {.window = WIN2(3, 2, 1, 1, 1, 0, 2)}, "x2x4x3x4 w3x2x2x6", 0, 0},
    {"conv 2d depthwise", DNN_OP_CONV, {.window = WIN2(3, 3, 2, 1, 1, 1, 3)}, "x2x5x4x3 w3x3x3x2", 0, 0},
    {"conv 2d depthwise, as groups", DNN_OP_CONV, {.window = WIN2(3, 3, 1, 2, 2, 2, 3)}, "x1x5x4x3 w3x3x1x3", 0, 0},
    {"conv 3d", DNN_OP_CONV, {.window = WIN3(3, 2, 1, 1, 1, 1)}, "x1x3x4x2x2 w3x2x1x2x3", 0, 0},
    {"conv 3d stride 2", DNN_OP_CONV, {.window = WIN3(2, 2, 2, 2, 0, 1)}, "x2x3x4x5x1 w2x2x2x1x2", 0, 0},
    {"deconv 1d", DNN_OP_DECONV, {.window = WIN1(3, 2, 1, 0, 1)}, "x2x4x3 w3x2x3", 0, 0},
    {"deconv 1d, kernel below stride", DNN_OP_DECONV, {.window = WIN1(1, 2, 1, 0, -1)}, "x1x3x2 w1x2x2", 0, 0},
    {"deconv 1d dilated", DNN_OP_DECONV, {.window = WIN1(2, 1, 3, 1, 2)}, "x1x5x2 w2x3x2", 0, 0},
    {"deconv 2d", DNN_OP_DECONV, {.window = WIN2(2, 3, 2, 1, 0, 0, 1)}, "x2x2x3x2 w2x3x3x2", 0, 0},
    {"deconv 3d", DNN_OP_DECONV, {.window = WIN3(2, 2, 3, 2, 0, 0)}, "x1x2x1x2x3 w2x2x3x1x3", 0, 0},
    {"max pool 1d", DNN_OP_POOL, {.pool = {WIN1(3, 2, 1, 1, 0), DNN_POOL_MAX, false}}, "x2x7x3", 0, 0},
    {"max pool 2d", DNN_OP_POOL, {.pool = {WIN2(3, 2, 2, 1, 0, 1, 1), DNN_POOL_MAX, false}}, "x2x5x6x3", 0, 0},
    {"max pool 3d", DNN_OP_POOL, {.pool = {WIN3(2, 2, 2, 1, 0, 1), DNN_POOL_MAX, false}}, "x1x3x4x2x2", 0, 0},
    {"max pool, wide index", DNN_OP_POOL, {.pool = {WIN1(300, 300, 1, 0, 0), DNN_POOL_MAX, false}}, "x1x300x1", 0, 0},
    {"average pool 1d", DNN_OP_POOL, {.pool = {WIN1(2, 2, 1, 0, 1), DNN_POOL_AVERAGE, false}}, "x2x5x3", 0, 0},
    {"average pool 2d", DNN_OP_POOL, {.pool = {WIN2(3, 3, 2, 1, 1, 1, 1), DNN_POOL_AVERAGE, false}}, "x2x4x5x2", 0, 0},
    {"average pool 3d", DNN_OP_POOL, {.pool = {WIN3(3, 2, 2, 1, 1, 0), DNN_POOL_AVERAGE, false}}, "x1x3x3x2x2", 0, 0},
    {"upsample nearest", DNN_OP_UPSAMPLE, {.upsample = {2, {2, 3}, DNN_UP_NEAREST}}, "x2x3x2x3", 0, 0},
    {"upsample linear 1d", DNN_OP_UPSAMPLE, {.upsample = {1, {3}, DNN_UP_LINEAR}}, "x2x4x3", 0, 0},
    {"upsample linear 2d", DNN_OP_UPSAMPLE, {.upsample = {2, {2, 3}, DNN_UP_LINEAR}}, "x2x3x4x2", 0, 0},
    {"upsample linear 3d", DNN_OP_UPSAMPLE, {.upsample = {3, {2, 1, 2}, DNN_UP_LINEAR}}, "x1x2x3x1x2", 0, 0},
    {"pad", DNN_OP_PAD, {.pad = {{0, 1, 2, 0}, {0, 3, 0, 0}}}, "x2x3x2x2", 0, 0},
    {"pad and crop", DNN_OP_PAD, {.pad = {{0, -1, 2}, {0, -2, -1}}}, "x2x5x4", 0, 0},
    {"relu", UNARY(DNN_RELU, NO_MAX), "x3x7", 0, 0},
    {"relu leaky", UNARY(DNN_RELU, NO_MAX, .alpha = 0.3), "x3x7", 0, 0},
    {"relu with a negative slope below 0", UNARY(DNN_RELU, NO_MAX, .alpha = -0.5), "x3x7", 0, 0},
    {"relu clipped", UNARY(DNN_RELU, .max_value = 0.5), "x5x7", 0, 0},
    {"relu threshold", UNARY(DNN_RELU, .max_value = 0.8, .alpha = 0.1, .threshold = 0.25), "x5x7", 0, 0},
    {"elu", UNARY(DNN_ELU, .alpha = 1.3), "x3x7", -3, 3},
    {"elu alpha below 0", UNARY(DNN_ELU, .alpha = -0.5), "x3x7", -3, 3},
    {"selu", UNARY(DNN_SELU, .alpha = 0), "x3x7", -3, 3},
    {"gelu", UNARY(DNN_GELU, .alpha = 0), "x3x7", -3, 3},
    {"gelu tanh", UNARY(DNN_GELU_TANH, .alpha = 0), "x3x7", -3, 3},
    {"sigmoid", UNARY(DNN_SIGMOID, .alpha = 0), "x3x7", -3, 3},
    {"tanh", UNARY(DNN_TANH, .alpha = 0), "x3x7", -2, 2},
    {"softplus", UNARY(DNN_SOFTPLUS, .alpha = 0), "x3x7", -3, 3},
    {"softsign", UNARY(DNN_SOFTSIGN, .alpha = 0), "x3x7", -3, 3},
    {"hard sigmoid, Keras 2", UNARY(DNN_HARD_SIGMOID, .alpha = 0.2), "x3x7", -5, 5},
    {"hard sigmoid, Keras 3", UNARY(DNN_HARD_SIGMOID, .alpha = 1.0 / 6), "x3x7", -5, 5},
    {"hard swish", UNARY(DNN_HARD_SWISH, .alpha = 0), "x3x7", -5, 5},
    {"swish", UNARY(DNN_SWISH, .alpha = 0), "x3x7", -3, 3},
    {"mish", UNARY(DNN_MISH, .alpha = 0), "x3x7", -3, 3},
    {"log sigmoid", UNARY(DNN_LOG_SIGMOID, .alpha = 0), "x3x7", -3, 3},
    {"exp", UNARY(DNN_EXP, .alpha = 0), "x3x7", 0, 0},
    {"log", UNARY(DNN_LOG, .alpha = 0), "x3x7", 0.5, 2},
    {"square", UNARY(DNN_SQUARE, .alpha = 0), "x3x7", 0, 0},
    {"sqrt", UNARY(DNN_SQRT, .alpha = 0), "x3x7", 0.5, 2},
    {"abs", UNARY(DNN_ABS, .alpha = 0), "x3x7", 0, 0},
    {"negate", UNARY(DNN_NEGATE, .alpha = 0), "x3x7", 0, 0},
    {"prelu", DNN_OP_PRELU, {{0}}, "x2x3x4x3 w3x4x3", 0, 0},
    {"prelu, shared axes", DNN_OP_PRELU, {{0}}, "x2x3x4x3 w1x1x3", 0, 0},
    {"softmax", DNN_OP_SOFTMAX, {.softmax = {1, false}}, "x3x5", -3, 3},
    {"softmax, middle axis", DNN_OP_SOFTMAX, {.softmax = {1, false}}, "x2x3x4", 0, 0},
    {"log softmax", DNN_OP_SOFTMAX, {.softmax = {2, true}}, "x2x3x4", -3, 3},
    {"add", DNN_OP_COMBINE, {.combine = {DNN_ADD, 0, 0}}, "x2x3x4 x2x3x4 x2x3x4", 0, 0},
    {"add, broadcast", DNN_OP_COMBINE, {.combine = {DNN_ADD, 0, 0}}, "x2x1x4 x1x3x1", 0, 0},
    {"subtract", DNN_OP_COMBINE, {.combine = {DNN_SUBTRACT, 0, 0}}, "x2x3 x2x3", 0, 0},
    {"subtract, broadcast", DNN_OP_COMBINE, {.combine = {DNN_SUBTRACT, 0, 0}}, "x1x3 x2x1", 0, 0},
    {"multiply", DNN_OP_COMBINE, {.combine = {DNN_MULTIPLY, 0, 0}}, "x2x3 x2x3 x2x3", 0, 0},
    {"multiply, broadcast", DNN_OP_COMBINE, {.combine = {DNN_MULTIPLY, 0, 0}}, "x2x3x4 x2x1x4 x4", 0, 0},
    {"maximum", DNN_OP_COMBINE, {.combine = {DNN_MAXIMUM, 0, 0}}, "x3x4 x3x4 x3x4", 0, 0},
    {"maximum, broadcast", DNN_OP_COMBINE, {.combine = {DNN_MAXIMUM, 0, 0}}, "x3x4 x1x4", 0, 0},
    {"minimum", DNN_OP_COMBINE, {.combine = {DNN_MINIMUM, 0, 0}}, "x3x4 x3x4", 0, 0},
    {"average", DNN_OP_COMBINE, {.combine = {DNN_AVERAGE, 0, 0}}, "x3x4 x3x4 x3x1", 0, 0},
    {"concat, last axis", DNN_OP_CONCAT, {.concat = {2, 0}}, "x2x3x1 x2x3x4 x2x3x2", 0, 0},
    {"concat, middle axis", DNN_OP_CONCAT, {.concat = {1, 0}}, "x2x3x2 x2x1x2", 0, 0},
    {"concat of one", DNN_OP_CONCAT, {.concat = {1, 0}}, "x2x3", 0, 0},
    {"reshape", DNN_OP_RESHAPE, {.reshape = {{3, {2, 2, 6}}}}, "x2x3x4", 0, 0},
    {"transpose", DNN_OP_TRANSPOSE, {.transpose = {{0, 3, 1, 2}}}, "x2x3x4x5", 0, 0},
    {"reduce mean", DNN_OP_REDUCE, {.reduce = {DNN_REDUCE_MEAN, 6, false}}, "x2x3x4x2", 0, 0},
    {"reduce mean, keepdims", DNN_OP_REDUCE, {.reduce = {DNN_REDUCE_MEAN, 2, true}}, "x2x3x4", 0, 0},
    {"reduce sum of all", DNN_OP_REDUCE, {.reduce = {DNN_REDUCE_SUM, 3, false}}, "x2x3", 0, 0},
    {"reduce max", DNN_OP_REDUCE, {.reduce = {DNN_REDUCE_MAX, 6, false}}, "x2x3x4x2", 0, 0},
    {"batch norm", DNN_OP_BN_APPLY, {.batchnorm = {2, 1e-3, 0.9, false}}, "x3x5x4 w4 w4 s4 s4", 0, 0},
    {"batch norm, middle axis", DNN_OP_BN_APPLY, {.batchnorm = {1, 1e-3, 0.9, true}}, "x3x4x5 w4 w4 s4 s4", 0, 0},
    {"batch norm, no gamma", DNN_OP_BN_APPLY, {.batchnorm = {1, 1e-2, 0.9, false}}, "x7x3 - w3 s3 s3", 0, 0},
    {"batch norm, no beta", DNN_OP_BN_APPLY, {.batchnorm = {1, 1e-2, 0.9, false}}, "x7x3 w3 - s3 s3", 0, 0},
    {"batch norm, neither", DNN_OP_BN_APPLY, {.batchnorm = {1, 1e-2, 0.9, false}}, "x7x3 - - s3 s3", 0, 0},
    {"batch norm, moving", DNN_OP_BN_INFER, {.batchnorm = {2, 1e-3, 0.9, false}}, "x2x3x4 s4 s4 w4 w4", 0, 0},
    {"batch norm, moving, middle axis", DNN_OP_BN_INFER, {.batchnorm = {1, 1e-3, 0.9, false}}, "x2x4x3 s4 s4 - w4", 0, 0},
    {"layer norm", DNN_OP_GROUPNORM, {.groupnorm = {4, 4, 1, 1e-3, false}}, "x2x3x5 w5 w5", 0, 0},
    {"layer norm over two axes", DNN_OP_GROUPNORM, {.groupnorm = {6, 6, 1, 1e-3, false}}, "x2x3x5 w3x5 w3x5", 0, 0},
    {"group norm", DNN_OP_GROUPNORM, {.groupnorm = {14, 8, 2, 1e-3, false}}, "x2x3x2x6 w6 w6", 0, 0},
    {"group norm, no gamma", DNN_OP_GROUPNORM, {.groupnorm = {6, 4, 3, 1e-3, false}}, "x2x5x6 - w6", 0, 0},
    {"instance norm", DNN_OP_GROUPNORM, {.groupnorm = {6, 4, 3, 1e-3, false}}, "x2x5x3 w3 -", 0, 0},
    {"norm along a middle axis", DNN_OP_GROUPNORM, {.groupnorm = {2, 2, 1, 1e-3, false}}, "x2x5x3 w5 w5", 0, 0},
    {"dropout", DNN_OP_NOISE, {.noise = {DNN_DROPOUT, 0.4, 0, 0, 0}}, "x3x4x5", 0, 0},
    {"dropout, shared axes", DNN_OP_NOISE, {.noise = {DNN_DROPOUT, 0.4, 5, 0, 2}}, "x3x4x5", 0, 0},
    {"dropout, shared by samples", DNN_OP_NOISE, {.noise = {DNN_DROPOUT, 0.4, 0, 3, 1}}, "x3x4x5", 0, 0},
    {"gaussian noise", DNN_OP_NOISE, {.noise = {DNN_GAUSSIAN_NOISE, 0.4, 0, 0, 0}}, "x3x4x5", 0, 0},
    {"gaussian dropout", DNN_OP_NOISE, {.noise = {DNN_GAUSSIAN_DROPOUT, 0.4, 0, 0, 0}}, "x3x4x5", 0, 0},
    {"alpha dropout", DNN_OP_NOISE, {.noise = {DNN_ALPHA_DROPOUT, 0.4, 0, 0, 0}}, "x3x4x5", 0, 0},
    {"scale", DNN_OP_SCALE, {{0}}, "x2x3x4 c4 c4", 0, 0},
    {"scale by one number", DNN_OP_SCALE, {{0}}, "x2x3x4 c1 -", 0, 0},
    {"mse", DNN_OP_MSE, {.loss = {.scale = 0.5}}, "x2x3x5 t2x3x5", 0, 0},
    {"cross-entropy", DNN_OP_XENT, {.loss = {.scale = 0.3}}, "x2x3x5 t2x3x5", 0, 0},
    {"cross-entropy of labels", DNN_OP_XENT, {.loss = {.scale = 0.3}}, "x3x7x4 i3x7", -1, 4},
    {"cross-entropy of one class", DNN_OP_XENT, {.loss = {.scale = 1}}, "x3x1 t3x1", 0, 0},
    {"cross-entropy, weights, smoothing", DNN_OP_XENT, {.loss = {.scale = 0.3, .smoothing = 0.2}}, "x2x3x5 t2x3x5 c5 -", 0, 0},
    {"cross-entropy of labels, weighed", DNN_OP_XENT, {.loss = {.scale = 0.3, .smoothing = 0.1, .ignores = true, .ignore = 2}}, "x3x7x4 i3x7 c4 n", -1, 4},
    {"cross-entropy of log p", DNN_OP_XENT, {.loss = {.scale = 0.3, .raw = true}}, "x3x7x4 i3x7 c4 n", -1, 4},
    {"focal of classes", DNN_OP_XENT, {.loss = {.scale = 0.3, .gamma = 2}}, "x3x7x4 i3x7 c4 -", -1, 4},
    {"focal of classes, gamma 0.7", DNN_OP_XENT, {.loss = {.scale = 0.3, .gamma = 0.7}}, "x2x3x5 t2x3x5 - -", 0, 0},
    {"squared", DNN_OP_POINT, {.loss = {.scale = 0.5}}, "x2x3x5 t2x3x5", 0, 0},
    {"absolute", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_ABSOLUTE}}, "x2x3x5 t2x3x5 c5 -", 0, 0},
    {"huber", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_HUBER, .delta = 0.3}}, "x2x3x5 t2x3x5", 0, 0},
    {"hinge", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_HINGE}}, "x2x7x5 t2x7x5", -2, 2},
    {"binary cross-entropy", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_BCE}}, "x2x3x5 t2x3x5 c5 -", 0.1, 0.9},
    {"binary cross-entropy of labels", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_BCE_LOGITS, .ignores = true, .ignore = 1}}, "x2x8x3 i2x8 c3 n", -1, 4},
    {"binary cross-entropy of a mask", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_BCE_LOGITS}}, "x2x8x1 i2x8 - n", -1, 3},
    {"focal", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_FOCAL, .gamma = 2, .alpha = 0.25}}, "x2x8x3 i2x8 - -", -1, 4},
    {"focal, no alpha", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_FOCAL, .gamma = 1.5, .alpha = -1}}, "x2x3x5 t2x3x5", 0, 1},
    {"kl", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_KL}}, "x2x3x5 t2x3x5", 0, 0},
    {"mape", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_MAPE, .delta = 0.5}}, "x2x3x5 t2x3x5", 0, 0},
    {"poisson, rates", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_POISSON, .delta = 1e-8}}, "x2x3x5 t2x3x5", 0.2, 2},
    {"poisson, logarithms", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_POISSON, .raw = true}}, "x2x3x5 t2x3x5 c5 -", 0, 0},
    {"hinge embedding", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_HINGE_EMBEDDING, .delta = 0.7}}, "x2x7x5 t2x7x5", -2, 2},
    {"soft margin", DNN_OP_POINT, {.loss = {.scale = 0.5, .fn = DNN_POINT_SOFT_MARGIN}}, "x2x7x5 t2x7x5", -2, 2},
    {"categorical hinge", DNN_OP_MARGIN, {.loss = {.scale = 0.5, .margin = DNN_MARGIN_CATEGORICAL, .delta = 1}}, "x2x7x5 t2x7x5", 0, 1},
    {"categorical hinge of labels", DNN_OP_MARGIN, {.loss = {.scale = 0.5, .margin = DNN_MARGIN_CATEGORICAL, .delta = 1, .ignores = true, .ignore = 2}}, "x3x7x4 i3x7 - n", -1, 4},
    {"multi margin", DNN_OP_MARGIN, {.loss = {.scale = 0.5, .margin = DNN_MARGIN_MULTI, .delta = 1, .power = 2}}, "x3x7x4 i3x7 c4 n", -1, 4},
    {"multilabel margin", DNN_OP_MARGIN, {.loss = {.scale = 0.5, .margin = DNN_MARGIN_MULTILABEL, .delta = 1}}, "x2x7x5 t2x7x5", -1, 1},
    {"margin ranking", DNN_OP_MARGIN, {.loss = {.scale = 0.5, .margin = DNN_MARGIN_RANKING, .delta = 0.3}}, "x3x7x4 i3x7", 0, 2},
    {"cosine embedding", DNN_OP_MARGIN, {.loss = {.scale = 0.5, .margin = DNN_MARGIN_COSINE, .delta = 0.1}}, "x3x7x6 i3x7", 0, 2},
    {"triplet margin", DNN_OP_MARGIN, {.loss = {.scale = 0.5, .margin = DNN_MARGIN_TRIPLET, .delta = 1, .power = 2}}, "x3x7x9 i3x7", 0, 2},
    {"triplet margin, swap", DNN_OP_MARGIN, {.loss = {.scale = 0.5, .margin = DNN_MARGIN_TRIPLET, .delta = 1, .power = 3, .swap = true}}, "x3x7x6 t3x7x6", 0, 2},
    {"overlap", DNN_OP_OVERLAP, {.overlap = {.source = DNN_HEAD_SOFTMAX}}, "x2x3x4 t2x3x4", 0, 0},
    {"overlap, sigmoid, labels", DNN_OP_OVERLAP, {.overlap = {.source = DNN_HEAD_SIGMOID, .ignores = true, .ignore = 1}}, "x2x7x4 i2x7", -1, 5},
    {"overlap, mask", DNN_OP_OVERLAP, {.overlap = {.source = DNN_HEAD_SIGMOID, .whole = true}}, "x2x7x1 i2x7", -1, 3},
    {"overlap of p", DNN_OP_OVERLAP, {.overlap = {.source = DNN_HEAD_NONE}}, "x2x3x2x4 i2x3x2", 0, 4},
    {"dice", DNN_OP_RATIO, {.ratio = {.a = 2, .u = 1, .v = 1, .eps = 1e-7, .scale = 0.5, .slope = 0.5}}, "x2x7x4 i2x7 c4", 0, 4},
    {"jaccard", DNN_OP_RATIO, {.ratio = {.a = 1, .b = -1, .u = 1, .v = 1, .eps = 1e-7, .scale = 0.5, .slope = 0.5}}, "x2x7x4 t2x7x4 -", 0, 1},
    {"tversky of the batch", DNN_OP_RATIO, {.ratio = {.a = 1, .b = 0, .u = 0.3, .v = 0.7, .eps = 1e-3, .scale = 1.5, .slope = 0.75, .whole = true}}, "x2x7x4 i2x7 c4", 0, 4},
    {"lovasz", DNN_OP_LOVASZ, {.overlap = {.source = DNN_HEAD_SOFTMAX, .scale = 0.5}}, "x2x9x4 i2x9", -1, 4},
    {"lovasz, ignoring", DNN_OP_LOVASZ, {.overlap = {.source = DNN_HEAD_SIGMOID, .scale = 0.5, .ignores = true, .ignore = 0}}, "x2x9x3 i2x9", -1, 4},
    {"lovasz of p", DNN_OP_LOVASZ, {.overlap = {.source = DNN_HEAD_NONE, .scale = 0.5}}, "x2x9x3 t2x9x3", 0.1, 0.9},
    {"lovasz hinge", DNN_OP_LOVASZ, {.overlap = {.source = DNN_HEAD_HINGE, .scale = 0.5}}, "x2x12x1 i2x12", -2, 2},
    {"matmul, bias", DNN_OP_MATMUL, {{0}}, "x3x5 w5x7 w7", 0, 0},
    {"matmul, frozen bias", DNN_OP_MATMUL, {{0}}, "x3x5 w5x7 f7", 0, 0},
    {"matmul, bias, frozen kernel", DNN_OP_MATMUL, {{0}}, "x3x5 f5x7 w7", 0, 0},
    {"matmul, bias, relu", DNN_OP_MATMUL, {{0}}, "x2x3x5 w5x4 w4 >relu", 0, 0},
    {"matmul, tanh", DNN_OP_MATMUL, {{0}}, "x2x3x5 w5x4 >tanh", 0, 0},
    {"conv 1d, bias", DNN_OP_CONV, {.window = WIN1(3, 2, 1, 1, 0)}, "x2x7x3 w3x3x2 w2", 0, 0},
    {"conv 2d, relu", DNN_OP_CONV, {.window = WIN2(2, 3, 1, 1, 0, 1, 1)}, "x2x4x3x2 w2x3x2x3 - >relu", 0, 0},
    {"conv 2d groups, bias, elu", DNN_OP_CONV, {.window = WIN2(3, 2, 1, 1, 1, 0, 2)}, "x2x4x3x4 w3x2x2x6 w6 >elu", 0, 0},
    {"conv 2d depthwise, bias, relu6", DNN_OP_CONV, {.window = WIN2(3, 3, 2, 1, 1, 1, 3)}, "x2x5x4x3 w3x3x3x2 w6 >relu6", 0, 0},
    {"conv 3d, bias, frozen kernel, leaky", DNN_OP_CONV, {.window = WIN3(3, 2, 1, 1, 1, 1)}, "x1x3x4x2x2 f3x2x1x2x3 w3 >leaky", 0, 0},
    {"deconv 1d, bias, relu", DNN_OP_DECONV, {.window = WIN1(3, 2, 1, 0, 1)}, "x2x4x3 w3x2x3 w2 >relu", 0, 0},
    {"deconv 3d, bias", DNN_OP_DECONV, {.window = WIN3(2, 2, 3, 2, 0, 0)}, "x1x2x1x2x3 w2x2x3x1x3 w1", 0, 0},
    {"add, relu", DNN_OP_COMBINE, {.combine = {DNN_ADD, 0, 0}}, "x2x3x4 x2x3x4 >relu", 0, 0},
    {"add, broadcast, leaky", DNN_OP_COMBINE, {.combine = {DNN_ADD, 0, 0}}, "x2x1x4 x1x3x1 x4 >leaky", 0, 0},
    {"multiply, tanh", DNN_OP_COMBINE, {.combine = {DNN_MULTIPLY, 0, 0}}, "x2x3 x2x3 >tanh", 0, 0},
    {"batch norm, relu", DNN_OP_BN_APPLY, {.batchnorm = {2, 1e-3, 0.9, false}}, "x3x5x4 w4 w4 s4 s4 >relu", 0, 0},
    {"batch norm, frozen gamma, relu6", DNN_OP_BN_APPLY, {.batchnorm = {2, 1e-3, 0.9, false}}, "x3x5x4 f4 w4 s4 s4 >relu6", 0, 0},
    {"batch norm, no gamma, leaky", DNN_OP_BN_APPLY, {.batchnorm = {1, 1e-2, 0.9, false}}, "x7x3 - w3 s3 s3 >leaky", 0, 0},
    {"batch norm, neither, swish", DNN_OP_BN_APPLY, {.batchnorm = {1, 1e-2, 0.9, false}}, "x7x3 - - s3 s3 >swish", 0, 0},
    {"batch norm, moving, relu", DNN_OP_BN_INFER, {.batchnorm = {2, 1e-3, 0.9, false}}, "x2x3x4 s4 s4 w4 w4 >relu", 0, 0},
    {"layer norm, relu", DNN_OP_GROUPNORM, {.groupnorm = {4, 4, 1, 1e-3, false}}, "x2x3x5 w5 w5 >relu", 0, 0},
    {"group norm, leaky", DNN_OP_GROUPNORM, {.groupnorm = {14, 8, 2, 1e-3, false}}, "x2x3x2x6 w6 w6 >leaky", 0, 0},
    {"group norm, no gamma, relu6", DNN_OP_GROUPNORM, {.groupnorm = {6, 4, 3, 1e-3, false}}, "x2x5x6 - w6 >relu6", 0, 0},
    {"instance norm, frozen gamma, elu", DNN_OP_GROUPNORM, {.groupnorm = {6, 4, 3, 1e-3, false}}, "x2x5x3 f3 w3 >elu", 0, 0},
    {"relu with a mask", UNARY(DNN_RELU, NO_MAX, .mask = true), "x3x7", 0, 0},
    {"relu leaky with a mask", UNARY(DNN_RELU, NO_MAX, .alpha = 0.3, .mask = true), "x3x7", 0, 0},
    {"activity", DNN_OP_ACTIVITY, {.activity = {0.3, 0.2}}, "x3x5", 0, 0},
};
/* clang-format on */

/* A row as a program. */
struct made {
    struct dnn_prog *prog; /* owned */
    int nin, in[MAX_IN];
    int y, seed;
};

static int operand(struct dnn_prog *prog, const struct row *row, const char *word,
                   int i)
{
    static const struct dnn_init zeros = {.kind = DNN_INIT_ZEROS};
    struct dnn_shape shape;
    char name[8];
    int v;

    if (word[0] == '-') return DNN_NONE;
    if (dnn_shape_parse(word + 1, &shape, NULL) < 0) abort();
    snprintf(name, sizeof name, "%c%d", word[0], i);
    switch (word[0]) {
    case 'x':
        return dnn_prog_input(prog, name, prog->dtype, &shape);
    case 'w':
        return dnn_prog_weight(prog, name, &shape, &zeros);
    case 'f':
        v = dnn_prog_weight(prog, name, &shape, &zeros);
        prog->value[v].trainable = false;
        return v;
    case 't':
        return dnn_prog_target(prog, name, prog->dtype, &shape);
    case 'i':
        return dnn_prog_target(prog, name, DNN_I32, &shape);
    case 's':
        return dnn_prog_state(prog, name, &shape, &zeros);
    default: {
        double data[16];
        ops_fill(data, 16, 0.5, 2, (uint64_t)i + (uint64_t)row->kind);
        return dnn_prog_constant(prog, name, &shape, data);
    }
    }
}

static const struct dnn_op_unary *post_of(const char *name)
{
    for (size_t i = 0; i < sizeof posts / sizeof posts[0]; i++)
        if (strcmp(posts[i].name, name) == 0) return &posts[i].unary;
    abort();
}

/* The divisor of a mean, from the labels and weights before it. */
static int weighed(const struct made *m, const struct row *row)
{
    union dnn_attr attr = row->attr;

    attr.loss.classes = dnn_prog_dim(m->prog, m->in[0], -1);
    int sums = dnn_prog_op(m->prog, DNN_OP_WEIGH, &attr, 2, m->in + 1);
    return dnn_prog_op1(m->prog, DNN_OP_EXCHANGE, NULL, sums);
}

static int ratio(const struct made *m, const struct row *row)
{
    bool whole = row->attr.ratio.whole;
    const union dnn_attr attr = {
        .overlap = {.source = DNN_HEAD_SOFTMAX, .whole = whole}
    };
    int s = dnn_prog_op(m->prog, DNN_OP_OVERLAP, &attr, 2, m->in);
    int all = whole ? dnn_prog_op1(m->prog, DNN_OP_EXCHANGE, NULL, s) : s;

    return dnn_prog_op(m->prog, DNN_OP_RATIO, &row->attr, 3, (int[]){s, all, m->in[2]});
}

static struct made make(const struct row *row, enum dnn_dtype dtype)
{
    const struct dnn_op_unary *post = NULL;
    struct made m = {.prog = dnn_prog_make(dtype, true)};
    char words[128], *save = NULL;

    snprintf(words, sizeof words, "%s", row->operands);
    dnn_prog_set_layer(m.prog, row->name, 1, false);
    for (char *w = strtok_r(words, " ", &save); w != NULL;
         w = strtok_r(NULL, " ", &save)) {
        if (w[0] == '>') {
            post = post_of(w + 1);
            continue;
        }
        if (w[0] == 'n')
            m.in[m.nin] = weighed(&m, row);
        else
            m.in[m.nin] = operand(m.prog, row, w, m.nin);
        m.nin++;
    }
    if (row->kind == DNN_OP_BN_APPLY)
        m.y = dnn_prog_batchnorm(m.prog, &row->attr.batchnorm, true, m.in[0], m.in[1],
                                 m.in[2], m.in[3], m.in[4]);
    else if (row->kind == DNN_OP_RATIO)
        m.y = ratio(&m, row);
    else
        m.y = dnn_prog_op(m.prog, row->kind, &row->attr, m.nin, m.in);
    m.prog->op[m.prog->nops - 1].post = post;
    m.seed = dnn_prog_input(m.prog, "seed", m.prog->dtype, dnn_prog_shape(m.prog, m.y));
    dnn_grad(m.prog, 1, &(struct dnn_grad_of){m.y, m.seed}, true);
    return m;
}

static void fill_value(struct ops_run *run, const struct row *row, int v)
{
    int64_t n = ops_count(run->prog, v);
    double *data = dnn_alloc((size_t)n * sizeof *data);
    bool state = run->prog->value[v].role == DNN_STATE;
    double low = row->low, high = row->high;

    if (low == 0 && high == 0) low = -1, high = 1;
    ops_fill(data, n, state ? 0.5 : low, state ? 1.5 : high, (uint64_t)v + 11);
    ops_put(run, v, data);
    dnn_free(data);
}

static double *values(struct ops_run *run, int v)
{
    double *data = dnn_alloc((size_t)(ops_count(run->prog, v) + 1) * sizeof *data);

    ops_get(run, v, data);
    return data;
}

/* sum seed y, and the penalty where there is one */
static double loss(const struct made *m, struct ops_run *run)
{
    double *y, *seed = values(run, m->seed), sum = 0;

    ops_go(run, 0, m->prog->nforward, NULL);
    y = values(run, m->y);
    for (int64_t i = 0; i < ops_count(m->prog, m->y); i++)
        sum += seed[i] * y[i];
    if (m->prog->op[0].kind == DNN_OP_ACTIVITY) {
        double *penalty = values(run, m->y + 1);
        sum += penalty[0];
        dnn_free(penalty);
    }
    dnn_free(y);
    dnn_free(seed);
    return sum;
}

/* The derivative by element at of value v, to the fourth order of the step. */
static double derivative(const struct made *m, struct ops_run *run, int v, double *data,
                         int64_t at)
{
    static const double far[4] = {-2, -1, 1, 2}, times[4] = {1, -8, 8, -1};
    double here = data[at], step = 1e-4, sum = 0;

    for (int i = 0; i < 4; i++) {
        data[at] = here + far[i] * step;
        ops_put(run, v, data);
        sum += times[i] * loss(m, run);
    }
    data[at] = here;
    ops_put(run, v, data);
    return sum / (12 * step);
}

static bool close_enough(const struct ops_diff *d, double limit, const char *name,
                         const char *what)
{
    bool good = ok(d->worst <= limit, "%s: %s", name, what);

    if (!good)
        printf("#   element %lld: got %.17g, want %.17g; worst %.3g of the largest, "
               "limit %.3g; norms: difference %.3g, wanted %.3g\n",
               (long long)d->at, d->got, d->want, d->worst, limit, d->l2, d->norm);
    return good;
}

static void check_value(const struct row *row, const struct made *m,
                        struct ops_run *run, int v)
{
    int64_t n = ops_count(m->prog, v), step = 1 + (n - 1) / MAX_PROBES, k = 0;
    double *data = values(run, v), *grad = values(run, m->prog->value[v].grad);
    double *want = dnn_alloc((size_t)n * sizeof *want);
    char what[96];

    for (int64_t i = 0; i < n; i += step) {
        grad[k] = grad[i];
        want[k++] = derivative(m, run, v, data, i);
    }
    struct ops_diff d = ops_compare(grad, want, k);
    snprintf(what, sizeof what, "gradient of %s against differences",
             m->prog->value[v].is.name);
    close_enough(&d, 1e-6, row->name, what);
    dnn_free(data);
    dnn_free(grad);
    dnn_free(want);
}

/* Which passes of which kinds some row has run. */
static bool ran[DNN_OP_KINDS][DNN_PASSES];

static int start(const struct row *row, const struct made *m, struct ops_run *run)
{
    struct dnn_err err = {0};
    int rc = ops_start(m->prog, dnn_backend_find("ref", NULL), NULL, run, &err);

    if (rc < 0) {
        ok(false, "%s: %s", row->name, err.text);
        return rc;
    }
    for (int i = 0; i < m->nin; i++)
        if (m->in[i] != DNN_NONE && m->prog->value[m->in[i]].role != DNN_CONSTANT &&
            m->prog->value[m->in[i]].role != DNN_TEMP)
            fill_value(run, row, m->in[i]);
    fill_value(run, row, m->seed);
    ops_go(run, 0, m->prog->nops, NULL);
    return 0;
}

/* f32 against f64: everything either program computes. */
static void check_single(const struct row *row, const struct made *wide,
                         struct ops_run *run)
{
    struct made m = make(row, DNN_F32);
    struct ops_run single;
    double worst = 0;
    bool same = m.prog->nvalues == wide->prog->nvalues;

    if (start(row, &m, &single) < 0) {
        dnn_prog_free(m.prog);
        return;
    }
    for (int v = 0; v < m.prog->nvalues && same; v++) {
        double *a = values(&single, v), *b = values(run, v);
        struct ops_diff d = ops_compare(a, b, ops_count(m.prog, v));
        worst = fmax(worst, d.worst);
        dnn_free(a);
        dnn_free(b);
    }
    if (!ok(same && worst <= 1e-5, "%s: f32 as f64", row->name))
        printf("#   worst difference %.3g of the largest\n", worst);
    ops_stop(&single);
    dnn_prog_free(m.prog);
}

static void check_row(const struct row *row)
{
    struct made m = make(row, DNN_F64);
    struct ops_run run;

    if (start(row, &m, &run) < 0) {
        dnn_prog_free(m.prog);
        return;
    }
    check_single(row, &m, &run); /* before the states are updated again */
    for (int i = 0; i < m.prog->nops; i++) {
        struct ops_diff d;
        ran[m.prog->op[i].kind][m.prog->op[i].pass] = true;
        if (ops_in_place(&run, i, &d)) close_enough(&d, 0, row->name, "in place");
    }
    for (int i = 0; i < m.nin; i++) {
        if (m.in[i] == DNN_NONE) continue;
        const struct dnn_value *v = &m.prog->value[m.in[i]];
        if (v->role == DNN_INPUT || (v->role == DNN_WEIGHT && v->trainable))
            check_value(row, &m, &run, m.in[i]);
        else
            is_int(m.prog->value[m.in[i]].grad, DNN_NONE, "no gradient of a constant");
    }
    ops_stop(&run);
    dnn_prog_free(m.prog);
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_row(&rows[i]);
    for (int k = 0; k < DNN_OP_KINDS; k++) {
        const struct dnn_op_info *info = dnn_op_info(k);
        /* These have no gradient; values.c and known.c test them. */
        if (k == DNN_OP_FOLD || k == DNN_OP_PENALTY || k == DNN_OP_UPDATE) continue;
        for (int p = 0; p < DNN_PASSES; p++)
            is_int(ran[k][p], info->pass[p].operands != NULL,
                   "every pass of every op is tested, and no other");
    }
    return done();
}
