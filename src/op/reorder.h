/* reorder.h - an order of ops in which ranks wait less for each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OP_REORDER_H
#define DNN_OP_REORDER_H

#include "op/prog.h"

/* Move gradients of weights that nothing waits for to between the op that makes what
 * an exchange of the backward pass adds up and the exchange itself.  Whoever begins
 * exchanges early then has something to do until the others' numbers are there.
 * Results are the same; some values are needed for longer. */
void dnn_prog_reorder(struct dnn_prog *prog);

#endif
