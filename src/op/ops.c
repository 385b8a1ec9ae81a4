/* ops.c - the table of ops, one row per kind.  To add one: its line in op.h, a row
 * here, its shape rule in shapes.c, its gradient in grad.c, and its loops in
 * backend/ref.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "op/op.h"
#include "op/shapes_impl.h"

#include <assert.h>

enum { FWD = 1u << DNN_FWD, DATA = 1u << DNN_BWD_DATA };
#define SUM DNN_OPERAND_SUM
#define LABEL DNN_OPERAND_LABEL
#define BITS DNN_OPERAND_BITS

/* Passes in the order of enum dnn_pass.  There is no backward data pass where the
 * gradient of x equals that of y, or where a forward op computes it (reshape,
 * transpose). */
/* clang-format off */
static const struct dnn_op_info table[DNN_OP_KINDS] = {
    [DNN_OP_MATMUL] = {
        "matmul", {{.operands = "x w [b] -> y"}, {.operands = "dy w -> dx"}, {.operands = "x dy -> dw [db]"}},
        .recompute = DNN_OP_HEAVY, .shape = dnn_shape_matmul},
    [DNN_OP_BIAS] = {
        "bias", {{.operands = "x b -> y"}, {.operands = NULL}, {.operands = "dy -> db"}},
        .inplace = FWD, .shape = dnn_shape_same},
    [DNN_OP_CONV] = {
        "conv", {{.operands = "x w [b] -> y"}, {.operands = "dy w -> dx"}, {.operands = "x dy -> dw [db]"}},
        .recompute = DNN_OP_HEAVY, .shape = dnn_shape_conv},
    [DNN_OP_DECONV] = {
        "deconv", {{.operands = "x w [b] -> y"}, {.operands = "dy w -> dx"}, {.operands = "x dy -> dw [db]"}},
        .recompute = DNN_OP_HEAVY, .shape = dnn_shape_deconv},
    [DNN_OP_POOL] = {
        "pool",
        {{.operands = "x -> y [index]", .out = {[1] = BITS}},
         {.operands = "dy [index] -> dx", .in = {[1] = BITS}}},
        .shape = dnn_shape_pool},
    [DNN_OP_UPSAMPLE] = {
        "upsample", {{.operands = "x -> y"}, {.operands = "dy -> dx"}},
        .shape = dnn_shape_upsample},
    [DNN_OP_PAD] = {
        "pad", {{.operands = "x -> y"}, {.operands = "dy -> dx"}},
        .shape = dnn_shape_pad},
    [DNN_OP_UNARY] = {
        "unary",
        {{.operands = "x -> y [mask]", .out = {[1] = BITS}},
         {.operands = "dy xym -> dx", .in = {[1] = BITS}}},
        .inplace = FWD | DATA, .shape = dnn_shape_unary},
    [DNN_OP_PRELU] = {
        "prelu", {{.operands = "x a -> y"}, {.operands = "dy x a -> dx"}, {.operands = "dy x -> da"}},
        .inplace = FWD | DATA, .shape = dnn_shape_same},
    [DNN_OP_SOFTMAX] = {
        "softmax", {{.operands = "x -> y"}, {.operands = "dy y -> dx"}},
        .inplace = FWD | DATA, .shape = dnn_shape_same},
    [DNN_OP_COMBINE] = {
        "combine", {{.operands = "x... -> y"}, {.operands = "dy [y] x... -> dx"}},
        .inplace = FWD | DATA, .shape = dnn_shape_combine},
    [DNN_OP_CONCAT] = {
        "concat", {{.operands = "x... -> y"}, {.operands = "dy -> dx"}},
        .recompute = DNN_OP_HEAVY, .shape = dnn_shape_concat},
    [DNN_OP_RESHAPE] = {
        "reshape", {{.operands = "x -> y"}},
        .inplace = FWD, .view = true, .shape = dnn_shape_reshape},
    [DNN_OP_TRANSPOSE] = {
        "transpose", {{.operands = "x -> y"}},
        .shape = dnn_shape_transpose},
    [DNN_OP_REDUCE] = {
        "reduce", {{.operands = "x -> y"}, {.operands = "dy [x] [y] -> dx"}},
        .shape = dnn_shape_reduce},
    [DNN_OP_BN_STATS] = {
        "bn_stats", {{.operands = "x -> sums", .out = {[0] = SUM}}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_bn_stats},
    [DNN_OP_EXCHANGE] = {
        "exchange", {{.operands = "s -> t", .in = {[0] = SUM}, .out = {[0] = SUM}}},
        .inplace = FWD, .recompute = DNN_OP_ONCE, .shape = dnn_shape_same},
    [DNN_OP_BN_UPDATE] = {
        "bn_update", {{.operands = "sums mean var ->", .in = {[0] = SUM}}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_none},
    [DNN_OP_BN_APPLY] = {
        "bn_apply",
        {{.operands = "x sums [gamma] [beta] -> y", .in = {[1] = SUM}},
         {.operands = "dy x sums dsums [gamma] [beta] -> dx", .in = {[2] = SUM, [3] = SUM}},
         {.operands = "dsums -> [dgamma] [dbeta]", .in = {[0] = SUM}},
         {.operands = "dy x sums [gamma] [beta] -> dsums", .in = {[2] = SUM}, .out = {[0] = SUM}}},
        .inplace = FWD | DATA, .shape = dnn_shape_same},
    [DNN_OP_BN_INFER] = {
        "bn_infer",
        {{.operands = "x mean var [gamma] [beta] -> y"},
         {.operands = "dy var [gamma] -> dx"},
         {.operands = "dy x mean var -> [dgamma] [dbeta]"}},
        .inplace = FWD | DATA, .shape = dnn_shape_same},
    [DNN_OP_GROUPNORM] = {
        "groupnorm",
        {{.operands = "x [gamma] [beta] -> y [stats]"},
         {.operands = "dy x stats [gamma] [beta] -> dx"},
         {.operands = "dy x stats [gamma] [beta] -> [dgamma] [dbeta]"}},
        .inplace = FWD | DATA, .shape = dnn_shape_groupnorm},
    [DNN_OP_NOISE] = {
        "noise", {{.operands = "x -> y"}, {.operands = "dy -> dx"}},
        .inplace = FWD | DATA, .shape = dnn_shape_same},
    [DNN_OP_SCALE] = {
        "scale", {{.operands = "x a [b] -> y"}, {.operands = "dy a -> dx"}},
        .inplace = FWD | DATA, .shape = dnn_shape_same},
    [DNN_OP_ACTIVITY] = {
        "activity", {{.operands = "x -> y loss", .out = {[1] = SUM}}, {.operands = "dy x -> dx"}},
        .inplace = FWD | DATA, .recompute = DNN_OP_ONCE, .shape = dnn_shape_activity},
    [DNN_OP_MSE] = {
        "mse",
        {{.operands = "x t -> loss", .out = {[0] = SUM}}, {.operands = "dloss x t -> dx", .in = {[0] = SUM}}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_loss},
    [DNN_OP_XENT] = {
        "xent",
        {{.operands = "x t [w] [sums] -> loss", .in = {[1] = LABEL, [3] = SUM}, .out = {[0] = SUM}},
         {.operands = "dloss x t [w] [sums] -> dx", .in = {[0] = SUM, [2] = LABEL, [4] = SUM}}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_loss},
    [DNN_OP_POINT] = {
        "point",
        {{.operands = "x t [w] [sums] -> loss", .in = {[1] = LABEL, [3] = SUM}, .out = {[0] = SUM}},
         {.operands = "dloss x t [w] [sums] -> dx", .in = {[0] = SUM, [2] = LABEL, [4] = SUM}}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_loss},
    [DNN_OP_MARGIN] = {
        "margin",
        {{.operands = "x t [w] [sums] -> loss", .in = {[1] = LABEL, [3] = SUM}, .out = {[0] = SUM}},
         {.operands = "dloss x t [w] [sums] -> dx", .in = {[0] = SUM, [2] = LABEL, [4] = SUM}}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_loss},
    [DNN_OP_WEIGH] = {
        "weigh", {{.operands = "t [w] -> sums", .in = {[0] = LABEL}, .out = {[0] = SUM}}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_weigh},
    [DNN_OP_OVERLAP] = {
        "overlap",
        {{.operands = "x t -> sums", .in = {[1] = LABEL}, .out = {[0] = SUM}},
         {.operands = "dsums x t -> dx", .in = {[0] = SUM, [2] = LABEL}}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_overlap},
    [DNN_OP_RATIO] = {
        "ratio",
        {{.operands = "s sums [w] -> loss", .in = {[0] = SUM, [1] = SUM}, .out = {[0] = SUM}},
         {.operands = "dloss sums [w] -> dsums", .in = {[0] = SUM, [1] = SUM}, .out = {[0] = SUM}}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_ratio},
    [DNN_OP_LOVASZ] = {
        "lovasz",
        {{.operands = "x t -> loss slope", .in = {[1] = LABEL}, .out = {[0] = SUM}},
         {.operands = "dloss x t slope -> dx", .in = {[0] = SUM, [2] = LABEL}}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_lovasz},
    [DNN_OP_FOLD] = {
        "fold", {{.operands = "w [b] mean var [gamma] [beta] -> v c"}},
        .shape = dnn_shape_fold},
    [DNN_OP_PENALTY] = {
        "penalty", {{.operands = "w -> loss", .out = {[0] = SUM}}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_penalty},
    [DNN_OP_UPDATE] = {
        "update", {{.operands = "w g [m] [v] [s] ->"}},
        .recompute = DNN_OP_ONCE, .shape = dnn_shape_none},
};
/* clang-format on */

const struct dnn_op_info *dnn_op_info(enum dnn_op_kind kind)
{
    assert(kind < DNN_OP_KINDS);
    return &table[kind];
}

enum dnn_operand dnn_op_operand_in(const struct dnn_op *op, int i)
{
    return i < DNN_TYPED_IN ? table[op->kind].pass[op->pass].in[i] : DNN_OPERAND_VALUE;
}

enum dnn_operand dnn_op_operand_out(const struct dnn_op *op, int i)
{
    return table[op->kind].pass[op->pass].out[i];
}

const char *dnn_op_pass_name(enum dnn_pass pass)
{
    static const char *const name[DNN_PASSES] = {
        [DNN_FWD] = "forward",
        [DNN_BWD_DATA] = "backward data",
        [DNN_BWD_WEIGHTS] = "backward weights",
        [DNN_BWD_STATS] = "backward statistics",
    };

    assert(pass < DNN_PASSES);
    return name[pass];
}

const char *dnn_op_unary_name(enum dnn_unary fn)
{
    static const char *const name[DNN_UNARIES] = {
        [DNN_RELU] = "relu",
        [DNN_ELU] = "elu",
        [DNN_SELU] = "selu",
        [DNN_GELU] = "gelu",
        [DNN_GELU_TANH] = "gelu_tanh",
        [DNN_SIGMOID] = "sigmoid",
        [DNN_TANH] = "tanh",
        [DNN_SOFTPLUS] = "softplus",
        [DNN_SOFTSIGN] = "softsign",
        [DNN_HARD_SIGMOID] = "hard_sigmoid",
        [DNN_HARD_SWISH] = "hard_swish",
        [DNN_SWISH] = "swish",
        [DNN_MISH] = "mish",
        [DNN_LOG_SIGMOID] = "log_sigmoid",
        [DNN_EXP] = "exp",
        [DNN_LOG] = "log",
        [DNN_SQUARE] = "square",
        [DNN_SQRT] = "sqrt",
        [DNN_ABS] = "abs",
        [DNN_NEGATE] = "negate",
        [DNN_RECIPROCAL] = "reciprocal",
    };

    assert(fn < DNN_UNARIES);
    return name[fn];
}

bool dnn_op_unary_by_result(const struct dnn_op_unary *unary)
{
    switch (unary->fn) {
    case DNN_RELU:
        /* Only then y determines the branch of x. */
        return unary->threshold == 0 && unary->alpha >= 0 && unary->max_value > 0;
    case DNN_ELU:
        return unary->alpha > 0;
    case DNN_SELU:
    case DNN_SIGMOID:
    case DNN_TANH:
    case DNN_SOFTPLUS:
    case DNN_SOFTSIGN:
    case DNN_LOG_SIGMOID:
    case DNN_EXP:
    case DNN_SQRT:
    case DNN_RECIPROCAL:
        return true;
    case DNN_HARD_SIGMOID:
        return unary->alpha > 0;
    default:
        return false;
    }
}

int64_t dnn_op_window_out(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                          int64_t before, int64_t after)
{
    int64_t space = in + before + after - (dilation * (kernel - 1) + 1);

    return space < 0 ? 0 : space / stride + 1;
}

int64_t dnn_op_transposed_out(int64_t in, int64_t kernel, int64_t stride,
                              int64_t dilation, int64_t before, int64_t after)
{
    return (in - 1) * stride + dilation * (kernel - 1) + 1 - before - after;
}

void dnn_op_same(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                 int64_t *before, int64_t *after)
{
    int64_t out = (in + stride - 1) / stride;
    int64_t all = (out - 1) * stride + dilation * (kernel - 1) + 1 - in;

    if (all < 0) all = 0;
    *before = all / 2;
    *after = all - *before;
}

void dnn_op_same_transposed(int64_t in, int64_t out, int64_t kernel, int64_t stride,
                            int64_t dilation, int64_t *before, int64_t *after)
{
    int64_t all = (in - 1) * stride + dilation * (kernel - 1) + 1 - out;

    *before = all < 0 ? 0 : all / 2;
    *after = all - *before;
}

bool dnn_op_broadcast(const struct dnn_shape *a, const struct dnn_shape *b,
                      struct dnn_shape *out)
{
    const struct dnn_shape *big = a->ndim >= b->ndim ? a : b;
    const struct dnn_shape *small = big == a ? b : a;
    struct dnn_shape all = *big;
    int shift = big->ndim - small->ndim;

    for (int i = 0; i < small->ndim; i++) {
        int64_t *d = &all.dim[i + shift];
        if (*d == 1) *d = small->dim[i];
        if (small->dim[i] != *d && small->dim[i] != 1) return false;
    }
    *out = all;
    return true;
}
