/* optim.h - the optimizer: how weights follow their gradients.
 *
 * It is part of the program: a slot or two beside each weight and one UPDATE op, which
 * also knows the weight's regularizer and constraint.  Defaults are Keras's.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OPTIM_OPTIM_H
#define DNN_OPTIM_OPTIM_H

#include "base/field.h"
#include "op/prog.h"

struct dnn_optim {
    int rule;    /* enum dnn_update                                            */
    double rate; /* learning rate; 0: the rule's own, see dnn_optim_rate()     */
    double momentum;
    bool nesterov;
    double beta1, beta2, epsilon;
};

/* Of {"name": "adam", "learning_rate": 0.001, "beta_1": 0.9...}. */
extern const struct dnn_field dnn_optim_fields[];

struct dnn_optim dnn_optim_defaults(enum dnn_update rule);

/* The rate to begin with: what was asked for, else 0.01 (SGD) or 0.001 (Adam).  The
 * rate of each step is given when it is run (struct dnn_now). */
double dnn_optim_rate(const struct dnn_optim *optim);

/* Append to a program that dnn_grad() has differentiated: a PENALTY for each weight
 * that has a gradient and a regularizer, then the slots and the UPDATE of each weight
 * that has a gradient.  Returns how many penalties there are; *penalty gets their
 * values, f64 scalars, which live with the program: whoever reports the loss adds
 * them. */
int dnn_optim_append(struct dnn_prog *prog, const struct dnn_optim *optim,
                     const int **penalty);

#endif
