/* replica.h - this rank's copy of the network, and its share of each batch.
 *
 * A batch is split into micro-batches: one per rank, or several with gradient
 * accumulation.  Deterministic: a fixed number that does not depend on the number of
 * ranks; every rank would compute a micro-batch with the same kernels.  Training,
 * evaluation and inference cut their batches in the same way.  Each size of micro-batch
 * has its own model; all models share one set of weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_REPLICA_REPLICA_H
#define DNN_REPLICA_REPLICA_H

#include "comm/comm.h"
#include "parallel/rule.h"
#include "engine/model.h"

#include <stdio.h>

/* The batches of one role. */
struct dnn_replica_batches {
    int64_t size; /* global batch size; 0: the role is not used                      */
    int64_t last; /* size of the smaller last batch of an epoch; 0: none             */
    /* Deterministic: the number of micro-batches of a batch; 0: 8, or size if smaller.
     * Else the number per rank; 0: 1. */
    int64_t micro_batches;
};

struct dnn_replica_cfg {
    const struct dnn_graph *graph;
    struct dnn_model_opts
        model; /* batch, total, role, owner and exchange are ignored */
    struct dnn_comm *comm;
    const char *rule; /* training; NULL: bsp                                         */
    struct dnn_rule_cfg how;
    struct dnn_replica_batches
        batches[DNN_MODEL_TRAIN + 1]; /* by enum dnn_model_role */
    size_t bucket; /* gradient bucket size in bytes; 0: autotuned in the first
                           steps                                                     */
    /* A replica of the same network, perhaps at other extents, whose weights are
     * shared; NULL: none.  It must outlive the new one, and only one of them may run at
     * a time. */
    struct dnn_replica *owner;
};

struct dnn_replica;

/* Collective.  Make and start all models; DNN_ENOMEM if they do not fit.  With
 * model.dry_run it has the same models and bytes, but cannot run.  graph, comm
 * and the pointers in cfg->model must outlive it.  The caller owns *out:
 * dnn_replica_free(). */
int dnn_replica_make(const struct dnn_replica_cfg *cfg, struct dnn_replica **out,
                     struct dnn_err *err);
void dnn_replica_free(struct dnn_replica *replica); /* NULL is fine */

/* Local.  Number of micro-batches of a batch, over all ranks. */
int dnn_replica_micro_batches(struct dnn_comm *comm, bool deterministic,
                              const struct dnn_replica_batches *batches);

/* Local.  The number that the replica uses for a role; 0: it is not used. */
int dnn_replica_parts(const struct dnn_replica *replica, enum dnn_model_role role);

/* Local.  The model that owns the weights. */
struct dnn_model *dnn_replica_model(struct dnn_replica *replica);
/* Local.  Bytes of all models together. */
size_t dnn_replica_bytes(const struct dnn_replica *replica);
/* Local.  Model i of all, those of training first; NULL past the end. */
const struct dnn_model *dnn_replica_nth_model(const struct dnn_replica *replica, int i);
/* Local.  Print how batches are cut, and the share of the rank of comm, which must have
 * as many ranks as the replica's. */
void dnn_replica_print_cuts(const struct dnn_replica *replica,
                            const struct dnn_comm *comm, FILE *where);

/* Local.  Gradient bucket size in bytes; 0: still being autotuned.  A resumed run sets
 * the size that was found earlier, before its first step. */
size_t dnn_replica_bucket_size(const struct dnn_replica *replica);
int dnn_replica_set_bucket_size(struct dnn_replica *replica, size_t bytes,
                                struct dnn_err *err);

/* This rank's samples of a batch, consecutive; n may be 0. */
struct dnn_replica_batch {
    int64_t total, first, n;
    /* Write samples [skip, skip + count) of them to `to`: input i of the network, or
     * the target of output i; f32, or i32 for class labels.  `to` is the plan's own
     * memory if the host can access it.  Several threads may call it at once. */
    int (*read)(void *arg, bool target, int i, int64_t skip, int64_t count, void *to,
                struct dnn_err *err);
    void *arg;
};

struct dnn_replica_step {
    double rate;
    uint64_t seed, step; /* of random numbers; number of updates so far           */
    double clip_norm;    /* 0: no clipping                                        */
    double clip_value;   /* 0: no clipping                                        */
    /* Results, the same on all ranks. */
    double loss;      /* of the whole batch, with regularization losses            */
    double grad_norm; /* before clipping                                           */
    /* Results of this rank. */
    double compute, comm; /* seconds: computing; communication not overlapped      */
    double straggler;     /* of the previous step: seconds of waiting for slower
                             ranks; NAN: unknown                                   */
};

/* Collective.  One update with one batch.  batch NULL: this rank has failed with err;
 * all ranks agree on the error and make no update.  extra: n values of the caller, or
 * NULL, that are summed over ranks in the same message.  If loss or gradient is NaN or
 * infinite, the result is DNN_EDATA, the error names the layer where it first occurred,
 * and the weights are not changed. */
int dnn_replica_run(struct dnn_replica *replica, const struct dnn_replica_batch *batch,
                    struct dnn_replica_step *step, double *extra, int n,
                    struct dnn_err *err);

/* Collective.  With DNN_OPTIM_HESSIAN: loss and gradient of one batch, without an
 * update.  The gradient, without regularizers, is in grad of dnn_replica_flat().  NaN
 * and infinity are an error only if first is set, because a line search may evaluate
 * points that are too far. */
int dnn_replica_loss_grad(struct dnn_replica *replica,
                          const struct dnn_replica_batch *batch,
                          struct dnn_replica_step *step, bool first, double *extra,
                          int n, struct dnn_err *err);

/* Local.  The trainable weights and their gradients as flat vectors; padding is zero.
 * Call dnn_exec_changed() after changing weights. */
struct dnn_flat {
    float *weight, *grad;
    int64_t count;
};
void dnn_replica_flat(const struct dnn_replica *replica, struct dnn_flat *out);

/* Evaluation and inference, batch by batch.  All ranks run the same number of batches,
 * of the configured sizes.  Results depend on the number of ranks only by rounding; if
 * deterministic, not at all.
 *
 *   start, run ... run, loss
 *
 * Collective: run, also on a rank without samples, because losses may exchange
 * statistics; and loss, which returns the sum of the losses of all samples.  After each
 * micro-batch of this rank, run() calls `seen` with its outputs. */
struct dnn_replica_seen {
    int part;         /* index among the micro-batches of this rank                  */
    int64_t first, n; /* its samples of the batch                                    */
    const float *const *output; /* of each output: n samples, dense                  */
};
typedef int dnn_replica_seen_fn(void *arg, const struct dnn_replica_seen *seen,
                                struct dnn_err *err);
void dnn_replica_eval_start(struct dnn_replica *replica);
/* role: DNN_MODEL_EVALUATE or DNN_MODEL_INFER, without loss and targets. */
int dnn_replica_eval(struct dnn_replica *replica, enum dnn_model_role role,
                     const struct dnn_replica_batch *batch, dnn_replica_seen_fn *seen,
                     void *arg, struct dnn_err *err);
int dnn_replica_eval_loss(struct dnn_replica *replica, double *loss,
                          struct dnn_err *err);
/* Local.  The losses since the start, by micro-batch: those of other ranks are 0. */
double *dnn_replica_eval_sums(struct dnn_replica *replica);
/* Local.  The micro-batches of an evaluated batch: returns their number over all ranks;
 * those of this rank are [*first, *last). */
int dnn_replica_eval_parts(const struct dnn_replica *replica, int *first, int *last);

#endif
