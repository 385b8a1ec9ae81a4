/* ends.c - how the outputs of a network become probabilities.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "loss/losses_impl.h"

#include <string.h>

/* The op that makes an output, apart from reshapes that keep the channels; NULL: the
 * output is an input. */
static const struct dnn_op *last_op(const struct dnn_prog *prog, int y)
{
    int o = prog->value[y].op;

    if (o == DNN_NONE) return NULL;
    const struct dnn_op *op = &prog->op[o];
    if (op->kind == DNN_OP_RESHAPE &&
        dnn_prog_dim(prog, y, -1) == dnn_prog_dim(prog, op->in[0], -1))
        return last_op(prog, op->in[0]);
    return op;
}

static bool is_softmax(const struct dnn_prog *prog, const struct dnn_op *op)
{
    return op->kind == DNN_OP_SOFTMAX &&
           op->attr.softmax.axis == dnn_prog_shape(prog, op->out[0])->ndim - 1;
}

bool dnn_loss_bounded(const struct dnn_prog *prog, int y)
{
    const struct dnn_op *op = last_op(prog, y);

    if (op == NULL) return false;
    if (op->kind == DNN_OP_UNARY)
        return op->attr.unary.fn == DNN_SIGMOID || op->attr.unary.fn == DNN_TANH;
    return is_softmax(prog, op) && !op->attr.softmax.log;
}

static bool is_binary(const struct dnn_loss *loss)
{
    for (int i = 0; i < loss->nterms; i++)
        if (loss->term[i].source == LOSS_SIGMOID ||
            strncmp(loss->term[i].kind->name, "bce", 3) == 0)
            return true;
    return false;
}

enum dnn_probability dnn_loss_probability(const struct dnn_loss *loss,
                                          const struct dnn_prog *prog, int y)
{
    const struct dnn_op *op = last_op(prog, y);
    const char *const *metrics = dnn_loss_metrics(loss);

    if (op != NULL && is_softmax(prog, op))
        return op->attr.softmax.log ? DNN_PROBABILITY_EXP : DNN_PROBABILITY_NONE;
    if (op != NULL && op->kind == DNN_OP_UNARY && op->attr.unary.fn == DNN_SIGMOID)
        return DNN_PROBABILITY_NONE;
    if (metrics[0] == NULL ||
        (strcmp(metrics[0], "accuracy") != 0 && strcmp(metrics[0], "dice") != 0))
        return DNN_PROBABILITY_NONE;
    return dnn_prog_dim(prog, y, -1) == 1 || is_binary(loss) ? DNN_PROBABILITY_SIGMOID
                                                             : DNN_PROBABILITY_SOFTMAX;
}
