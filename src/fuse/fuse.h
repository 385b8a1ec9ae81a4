/* fuse.h - op fusion: the same program with fewer ops.
 *
 * A value that only the next op reads does not need to be stored: the op that
 * computes it also applies the bias, the activation or, in inference, the batch norm
 * after it.
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
 * value: numbers of the values to keep: outputs and losses, and inputs and targets
 * whose new numbers are needed. They are replaced by the numbers in the new program.
 * Unused values are dropped, but every input, weight and state stays, in order.
 *
 * CONV, DECONV and MATMUL fuse a bias; they, sums and norms fuse an activation (in
 * training only one whose gradient needs its result alone, or can be recomputed from
 * the operand of the norm); CONV fuses zero padding. In inference a batch norm is
 * folded into the weights before it (FOLD). In training a ReLU whose result no other
 * gradient needs stores a mask instead of it. A fused op has the layer and line of
 * the first of its ops. */
struct dnn_prog *dnn_fuse(const struct dnn_prog *prog, int n, int *value);

#endif
