/* ends.c - how the outputs of a network become probabilities.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "loss/losses_impl.h"

#include "base/mem.h"

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

/* What the kinds of losses apply to outputs that do not end in a softmax or sigmoid, if
 * source is auto, and none.  Others apply nothing.  The classes of hinge and
 * soft_margin are divided at 0, as by a sigmoid at 0.5. */
static const struct {
    const char *kind;
    enum dnn_probability automatic, none;
} kinds[] = {
    {"bce",           DNN_PROBABILITY_GIVEN,   DNN_PROBABILITY_GIVEN  },
    {"bce_logits",    DNN_PROBABILITY_SIGMOID, DNN_PROBABILITY_SIGMOID},
    {"hinge",         DNN_PROBABILITY_SIGMOID, DNN_PROBABILITY_NONE   },
    {"soft_margin",   DNN_PROBABILITY_SIGMOID, DNN_PROBABILITY_NONE   },
    {"nll",           DNN_PROBABILITY_SOFTMAX, DNN_PROBABILITY_EXP    },
    {"cross_entropy", DNN_PROBABILITY_SOFTMAX, DNN_PROBABILITY_SOFTMAX},
    {"kl_divergence", DNN_PROBABILITY_SOFTMAX, DNN_PROBABILITY_EXP    },
    {"focal",         DNN_PROBABILITY_SOFTMAX, DNN_PROBABILITY_NONE   },
    {"dice",          DNN_PROBABILITY_NONE,    DNN_PROBABILITY_GIVEN  },
    {"jaccard",       DNN_PROBABILITY_NONE,    DNN_PROBABILITY_GIVEN  },
    {"tversky",       DNN_PROBABILITY_NONE,    DNN_PROBABILITY_GIVEN  },
    {"lovasz",        DNN_PROBABILITY_NONE,    DNN_PROBABILITY_GIVEN  },
};

/* What a term applies to an output of so many channels. */
static enum dnn_probability applied(const struct loss_term *term, int64_t channels)
{
    enum dnn_probability how = DNN_PROBABILITY_NONE;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(term->kind->name, kinds[i].kind) == 0)
            how = term->source == LOSS_NONE ? kinds[i].none : kinds[i].automatic;
    if (term->source == LOSS_SIGMOID) how = DNN_PROBABILITY_SIGMOID;
    if (term->source == LOSS_SOFTMAX || term->source == LOSS_LOG_SOFTMAX)
        how = DNN_PROBABILITY_SOFTMAX;
    /* One channel is the score of class 1. */
    return how == DNN_PROBABILITY_SOFTMAX && channels == 1 ? DNN_PROBABILITY_SIGMOID
                                                           : how;
}

enum dnn_probability dnn_loss_probability(const struct dnn_loss *loss,
                                          const struct dnn_prog *prog,
                                          const struct dnn_loss_net *net, int i)
{
    const int y = net->output[i];
    const struct dnn_op *op = last_op(prog, y);
    enum dnn_probability found = DNN_PROBABILITY_NONE;

    if (op != NULL && is_softmax(prog, op))
        return op->attr.softmax.log ? DNN_PROBABILITY_EXP : DNN_PROBABILITY_GIVEN;
    if (op != NULL && op->kind == DNN_OP_UNARY && op->attr.unary.fn == DNN_SIGMOID)
        return DNN_PROBABILITY_GIVEN;
    int *term = dnn_alloc((size_t)net->noutputs * sizeof *term);
    for (int k = 0; k < net->noutputs; k++)
        term[k] = DNN_NONE;
    for (int k = 0; k < loss->nterms && found == DNN_PROBABILITY_NONE; k++) {
        int of = dnn_loss_every(loss) ? i : dnn_loss_output(&loss->term[k], net, term);

        if (of >= 0) term[of] = k;
        if (of == i) found = applied(&loss->term[k], dnn_prog_dim(prog, y, -1));
    }
    dnn_free(term);
    return found;
}
