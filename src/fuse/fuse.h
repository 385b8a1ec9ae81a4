/* fuse.h - the same program in fewer steps.
 *
 * What one op writes and only the next one reads never needs to reach memory: a bias,
 * an activation, a batch norm in inference are done by the op before them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_FUSE_FUSE_H
#define DNN_FUSE_FUSE_H

#include "op/prog.h"

/* A new program that computes the n values given from the same inputs, weights and
 * states, for the forward program prog, which stays as it is: nothing may have been
 * differentiated yet.  The caller owns the result: dnn_prog_free().
 *
 * value: what is wanted, outputs and losses; also inputs and targets, if their numbers
 * are.  Their numbers in the new program take their place.  Whatever nobody wants is
 * left out, but every input, weight and state stays, in its order.
 *
 * CONV, DECONV and MATMUL take in a bias; they, sums and norms take in an activation
 * (in training only one whose gradient needs its result alone, or can be found again
 * from the norm's operand); CONV takes in zeros padded around its input.  In inference
 * a batch norm goes into the weights before it (FOLD).  In training a ReLU whose result
 * no other gradient needs leaves a mask instead of it.  A fused op bears the layer and
 * line of its first part. */
struct dnn_prog *dnn_fuse(const struct dnn_prog *prog, int n, int *value);

#endif
