/* fuse.h - op fusion: the same program in fewer steps.
 *
 * A value that one op writes and only the next one reads never needs to reach
 * memory: the op before computes a bias, an activation or, in inference, a batch
 * norm as well.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_FUSE_FUSE_H
#define DNN_FUSE_FUSE_H

#include "op/prog.h"

/* A new program that computes the n values given from the same inputs, weights and
 * states, for the forward program prog, which is not changed: it must not have been
 * differentiated yet. The caller owns the result: dnn_prog_free().
 *
 * value: the values to keep, outputs and losses; also inputs and targets, if their
 * numbers are needed. Replaced by their numbers in the new program. Unused values are
 * dropped, but every input, weight and state stays, in its order.
 *
 * CONV, DECONV and MATMUL fuse a bias; they, sums and norms fuse an activation (in
 * training only one whose gradient needs its result alone, or can be recomputed from
 * the operand of the norm); CONV fuses zero padding. In inference a batch norm is
 * folded into the weights before it (FOLD). In training a ReLU whose result no other
 * gradient needs stores a mask instead of it. A fused op has the layer and line of
 * its first part. */
struct dnn_prog *dnn_fuse(const struct dnn_prog *prog, int n, int *value);

#endif
