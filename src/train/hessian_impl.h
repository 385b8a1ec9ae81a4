/* hessian_impl.h - the second-order optimizer: training by L-BFGS.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_HESSIAN_IMPL_H
#define DNN_TRAIN_HESSIAN_IMPL_H

#include "train/run_impl.h"

struct dnn_replica_batch;

/* With other optimizers it is NULL, and functions for which this is fine do nothing. */
struct train_hessian;

struct train_outcome {
    bool epoch;      /* an iteration is done, which is reported as an epoch          */
    const char *why; /* why training has ended; or NULL                              */
};

/* Local.  run and at must outlive it; at: its sums and batch are set.  The caller owns
 * *out, also on failure: dnn_hessian_close(). */
int dnn_hessian_open(const struct train_run *run, struct train_progress *at,
                     struct train_hessian **out, struct dnn_err *err);
void dnn_hessian_close(struct train_hessian *h); /* NULL is fine */
/* Local.  Add its arrays to the state; NULL is fine. */
void dnn_hessian_state(struct train_hessian *h, struct train_state *state);
/* Local.  Why the resumed run had ended already, or NULL.  h may be NULL. */
const char *dnn_hessian_resumed(struct train_hessian *h);
/* Collective.  Called for a batch instead of dnn_replica_run(). */
int dnn_hessian_batch(struct train_hessian *h, const struct dnn_replica_batch *batch,
                      struct dnn_replica_step *step, double *extra, int n,
                      struct dnn_err *err);
/* Local.  Called after the last batch; NULL is fine. */
int dnn_hessian_next(struct train_hessian *h, struct train_outcome *outcome,
                     struct dnn_err *err);
/* Local.  Set the weights to the best point instead of the line search's; NULL is
 * fine. */
void dnn_hessian_use_best(struct train_hessian *h);

#endif
