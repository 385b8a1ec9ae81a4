/* reorder.h - an order of ops in which ranks wait less for each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OP_REORDER_H
#define DNN_OP_REORDER_H

#include "op/prog.h"

/* Move gradients of weights between the op whose result an exchange of the backward
 * pass adds up and the exchange itself, where nothing waits for them: they are
 * computed while the exchange is under way. Results are the same; some values live
 * longer. */
void dnn_prog_reorder(struct dnn_prog *prog);

#endif
