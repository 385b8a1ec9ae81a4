/* replica_impl.h - a replica from inside.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_REPLICA_IMPL_H
#define DNN_RUN_REPLICA_IMPL_H

#include "run/replica.h"

/* A model, and after which of its ops each portion of the gradients is final. */
struct replica_model {
    struct dnn_model *model;   /* owned */
    struct dnn_bucket *bucket; /* owned */
};

/* A part of a batch: which samples of it, and what computes them. */
struct replica_part {
    int64_t first, n;
    int leaf; /* which of all parts of the batch, over all ranks */
    const struct replica_model *by; /* NULL if n is 0 */
};

/* The parts a rank has in a batch of a certain size. */
struct replica_cut {
    int64_t total;
    int nparts;
    struct replica_part *part; /* owned */
};

enum { REPLICA_CUTS = 2 }; /* whole batches, and the last of an epoch */

struct dnn_replica {
    struct dnn_replica_cfg cfg;
    int leaves;    /* parts of a batch over all ranks                                 */
    bool lockstep; /* all parts go through the program side by side, for statistics are
                    * of the whole batch                                              */
    int nmodels;
    struct replica_model *model; /* owned; the first leads                            */
    int ncuts;
    struct replica_cut cut[REPLICA_CUTS];
    int nportions;
    const struct dnn_rule *rule;
    void *self; /* the rule's */
    float *grad;
    int64_t count; /* of trained weights, as they lie */
    int nevals;
    struct dnn_model **eval; /* owned; for inference, by number of samples            */
    double waited;           /* seconds in exchanges of the current step              */
    double *loss;            /* owned; of this rank's leaves, zero elsewhere          */
};

/* replica.c: statistics over all ranks, while a step runs; arg is the replica. */
int dnn_replica_exchange(void *arg, double *data, int64_t n, struct dnn_err *err);

/* replica_step.c: this part's samples of the batch into its model. */
int dnn_replica_load(const struct replica_part *part,
                     const struct dnn_replica_batch *batch, struct dnn_err *err);

/* replica_nan.c.  Collective.  Compute the batch again, looking at every result, and
 * fail with the layer named in which the first number arose that is none. */
int dnn_replica_blame(struct dnn_replica *replica, const struct replica_cut *cut,
                      const struct dnn_replica_batch *batch, const struct dnn_now *now,
                      struct dnn_err *err);

#endif
