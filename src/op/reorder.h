/* reorder.h - reorders ops so that ranks wait less for each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OP_REORDER_H
#define DNN_OP_REORDER_H

#include "op/prog.h"

/* In the backward pass, move gradients of weights to just before an exchange, after the
 * op whose result it sums, if no op in between reads them: they are computed while the
 * exchange is in progress. Results are the same; some values live longer. */
void dnn_prog_reorder(struct dnn_prog *prog);

#endif
