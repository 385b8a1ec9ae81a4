/* grad.h - autodiff: appends the backward ops to a program.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OP_GRAD_H
#define DNN_OP_GRAD_H

#include "op/prog.h"

/* A value to differentiate. */
struct dnn_grad_of {
    int value; /* such as the output, or a loss                             */
    int seed;  /* its gradient: a value of its shape, such as an input or a
                  constant made for it                                      */
};

/* Append the backward ops of every forward op between the n values given and the
 * trainable weights (with inputs, also the inputs), in reverse order, and set grad of
 * those values. The gradient of a value used several times is a sum. Gradients that are
 * not needed are not computed, such as those of frozen weights and of ops before them.
 * Once per program; the program must have been made for training. */
void dnn_grad(struct dnn_prog *prog, int n, const struct dnn_grad_of *of, bool inputs);

#endif
