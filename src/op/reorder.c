/* reorder.c - moves gradients of weights, to overlap them with exchanges.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "op/reorder.h"

/* Whether an op in [from, to) reads a result of op o. */
static bool used(const struct dnn_prog *prog, int o, int from, int to)
{
    for (int k = from; k < to; k++)
        for (int i = 0; i < prog->op[k].nin; i++)
            for (int j = 0; j < prog->op[o].nout; j++)
                if (prog->op[k].in[i] != DNN_NONE &&
                    prog->op[k].in[i] == prog->op[o].out[j])
                    return true;
    return false;
}

/* Whether the op takes about as long as an exchange. */
static bool long_enough(const struct dnn_op *op)
{
    return op->pass == DNN_BWD_WEIGHTS &&
           (op->kind == DNN_OP_CONV || op->kind == DNN_OP_DECONV ||
            op->kind == DNN_OP_MATMUL);
}

static void move(struct dnn_prog *prog, int from, int to)
{
    struct dnn_op moved = prog->op[from];

    for (int o = from; o < to; o++)
        prog->op[o] = prog->op[o + 1];
    prog->op[to] = moved;
    for (int o = from; o <= to; o++)
        for (int j = 0; j < prog->op[o].nout; j++)
            if (prog->op[o].out[j] != DNN_NONE) prog->value[prog->op[o].out[j]].op = o;
}

/* Move the gradients between the previous exchange and the op whose result exchange e
 * sums to just before e. */
static void fill(struct dnn_prog *prog, int e)
{
    int to = e - 1;

    for (int o = prog->value[prog->op[e].in[0]].op - 1; o >= prog->nforward; o--) {
        if (prog->op[o].kind == DNN_OP_EXCHANGE) break;
        if (long_enough(&prog->op[o]) && !used(prog, o, o + 1, e)) move(prog, o, to--);
    }
}

void dnn_prog_reorder(struct dnn_prog *prog)
{
    for (int e = prog->nforward; e < prog->nops; e++)
        if (prog->op[e].kind == DNN_OP_EXCHANGE) fill(prog, e);
}
