/* replica.h - data-parallel training: this rank's copy of the network.
 *
 * A batch is split into micro-batches: one per rank, or several with gradient
 * accumulation.  Deterministic: a fixed number that does not depend on the number of
 * ranks; every rank would compute a micro-batch with the same kernels.  Each size of
 * micro-batch has its own model; all models share one set of weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_REPLICA_REPLICA_H
#define DNN_REPLICA_REPLICA_H

#include "comm/comm.h"
#include "parallel/rule.h"
#include "engine/model.h"

struct dnn_replica_cfg {
    const struct dnn_graph *graph;
    struct dnn_model_opts model; /* batch, total, owner, exchange are ignored */
    struct dnn_comm *comm;
    bool infer;       /* inference only: no gradients, no optimizer                  */
    const char *rule; /* NULL: bsp                                                   */
    struct dnn_rule_cfg how;
    int64_t batch; /* global batch size                                         */
    int64_t last;  /* size of the smaller last batch of an epoch; 0: none       */
    int64_t micro_batches; /* deterministic: their number; 0: 8, or batch if smaller  */
    int64_t accumulate; /* not deterministic: micro-batches per rank; 0: 1           */
    int64_t eval_batch, eval_last; /* batch and last of the evaluation; 0: none */
    int64_t eval_micro_batches;    /* as micro_batches, for the evaluation */
    size_t bucket; /* gradient bucket size in bytes; 0: autotuned in the first
                           steps                                                     */
};

struct dnn_replica;

/* Collective.  Make and start all models; DNN_ENOMEM if they do not fit.  graph, comm
 * and the pointers in cfg->model must outlive it.  The caller owns *out:
 * dnn_replica_free(). */
int dnn_replica_make(const struct dnn_replica_cfg *cfg, struct dnn_replica **out,
                     struct dnn_err *err);
void dnn_replica_free(struct dnn_replica *replica); /* NULL is fine */

/* Local.  Number of micro-batches of a batch, over all ranks. */
int dnn_replica_micro_batches(struct dnn_comm *comm, int64_t batch, bool deterministic,
                              int64_t micro_batches, int64_t accumulate);

/* Local.  The model that owns the weights. */
struct dnn_model *dnn_replica_model(struct dnn_replica *replica);
/* Local.  Bytes of all models together. */
size_t dnn_replica_bytes(const struct dnn_replica *replica);

/* Local.  Gradient bucket size in bytes; 0: still being autotuned.  A resumed run sets
 * the size that was found earlier, before its first step. */
size_t dnn_replica_bucket_size(const struct dnn_replica *replica);
int dnn_replica_set_bucket_size(struct dnn_replica *replica, size_t bytes,
                                struct dnn_err *err);

/* This rank's samples of a batch, consecutive; n may be 0. */
struct dnn_replica_batch {
    int64_t total, first, n;
    const void *const *input;  /* one per input of the network  */
    const void *const *target; /* one per output                */
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

/* Local.  Run inference for n samples.  Output i is copied to output[i]; *loss, unless
 * NULL, is the sum of their losses, and then batch->target is required. */
int dnn_replica_infer(struct dnn_replica *replica,
                      const struct dnn_replica_batch *batch, float *const *output,
                      double *loss, struct dnn_err *err);

/* Evaluation: the loss in inference, batch by batch.  All ranks run the same number of
 * batches, of the configured sizes.  Results depend on the number of ranks only by
 * rounding; if deterministic, not at all.
 *
 *   start, eval ... eval, end
 *
 * Collective: eval, also on a rank without samples, because losses may exchange
 * statistics; and end, which returns the sum of the losses of all samples.  The outputs
 * of the samples of this rank are copied to output[i]. */
void dnn_replica_eval_start(struct dnn_replica *replica);
int dnn_replica_eval(struct dnn_replica *replica, const struct dnn_replica_batch *batch,
                     float *const *output, struct dnn_err *err);
int dnn_replica_eval_end(struct dnn_replica *replica, double *loss,
                         struct dnn_err *err);
/* Local.  Number of micro-batches of an evaluated batch over all ranks; and the samples
 * [*first, *first + *n) of micro-batch i of this rank: returns its index over all
 * ranks, -1 if there is none. */
int dnn_replica_eval_micro_batches(const struct dnn_replica *replica);
int dnn_replica_eval_part(const struct dnn_replica *replica, int64_t total, int i,
                          int64_t *first, int64_t *n);

#endif
