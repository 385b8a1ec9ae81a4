/* loss.h - the loss to minimise, as ops: targets, and a scalar for each term.
 *
 * One file per family, one list in losses.c.  A loss is lowered to ops like a layer, so
 * it works with every backend that has the ops.  The terms of all micro-batches add up
 * to the loss of the global batch.  Where the divisor of a mean depends on the data
 * (class weights, ignored labels), it is first summed over all micro-batches
 * (DNN_OP_EXCHANGE).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_LOSS_LOSS_H
#define DNN_LOSS_LOSS_H

#include "base/field.h"
#include "op/prog.h"

#include <stdio.h>

struct dnn_loss; /* terms, each of one output */

extern const struct dnn_choice dnn_loss_names[]; /* for options; mse is 0 */

/* Local.  From a name ("NLL"), an object {"function": "Dice", "source": "softmax",
 * "eps": 1e-7, "weight": [...]}, or a list of these, which are added, each with its
 * "factor" (default 1) and, if the network has several outputs, its "output" (a name;
 * default: the first without a term; deep supervision: one term each with decreasing
 * factors).  A single loss without "output" is used for every output.  Absent: MSE.
 * The caller owns *out.
 *
 * The loss is computed from the input of the softmax or sigmoid the network ends in.
 * If "source" is one that the network does not end in, it is applied; "none": the
 * outputs are used unchanged.  Class numbers without a channel are ignored. */
int dnn_loss_read(const struct dnn_jobj *obj, struct dnn_loss **out,
                  struct dnn_err *err);
/* Local.  The loss with this name, with its defaults: "mse", "nll"... */
int dnn_loss_make(const char *function, struct dnn_loss **out, struct dnn_err *err);
void dnn_loss_free(struct dnn_loss *loss);                     /* NULL is fine */
void dnn_loss_print(const struct dnn_loss *loss, FILE *where); /* as JSON, one line */

/* The kind of target the data has for an output. */
enum dnn_loss_target {
    DNN_TARGET_ANY,    /* the one the loss prefers                     */
    DNN_TARGET_LABELS, /* class numbers, i32, without the channel axis */
    DNN_TARGET_VALUES  /* values, of the output's shape                */
};

struct dnn_loss_net {
    int noutputs;
    const int *output;       /* values of prog                                     */
    const char *const *name; /* of the outputs                                     */
    const int *target_is;    /* enum dnn_loss_target of each; NULL: ANY            */
    int64_t batch, total;    /* samples here, and of the global batch              */
};

/* Append the terms.  target[i] gets the new target value of output i (DNN_NONE: it has
 * no term), of[i] the value output i's first term is computed from (such as the input
 * of the final softmax; without a term it is the output); *terms the scalars, f64,
 * which live as long as the program.  Returns the number of terms, or an error that
 * names output and loss. */
int dnn_loss_append(const struct dnn_loss *loss, struct dnn_prog *prog,
                    const struct dnn_loss_net *net, int *target, int *of,
                    const int **terms, struct dnn_err *err);

/* How values of an output become probabilities of classes. */
enum dnn_probability {
    DNN_PROBABILITY_NONE,  /* they are values                                       */
    DNN_PROBABILITY_GIVEN, /* they are probabilities                                */
    DNN_PROBABILITY_SOFTMAX,
    DNN_PROBABILITY_SIGMOID,
    DNN_PROBABILITY_EXP /* the network ends in a log-softmax */
};
/* Local.  What the terms of output i apply to it, in a program made for inference;
 * net: noutputs, output and name are used. */
enum dnn_probability dnn_loss_probability(const struct dnn_loss *loss,
                                          const struct dnn_prog *prog,
                                          const struct dnn_loss_net *net, int i);
/* Local.  Whether output y ends in a softmax, log-softmax, sigmoid or tanh: its values
 * are then from -1 to 1, except for a log-softmax. */
bool dnn_loss_bounded(const struct dnn_prog *prog, int y);

/* The default metrics: names for dnn_metrics_read(), NULL-ended; may be none. */
const char *const *dnn_loss_metrics(const struct dnn_loss *loss);

const char *dnn_loss_info(int index, const char **help,
                          const struct dnn_field **fields);
/* The index-th alias and the name it stands for; NULL past the end. */
const char *dnn_loss_alias(int index, const char **name);

#endif
