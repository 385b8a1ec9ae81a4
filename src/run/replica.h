/* replica.h - this rank's copy of the network, and steps made together with all others.
 *
 * A batch is cut into parts: one per rank; or, if results must not depend on the number
 * of ranks, into a fixed number of micro-batches, of which each rank computes some,
 * every micro-batch by the same kernels wherever it is computed.  Each size of part has
 * a model of its own; all share one set of weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_REPLICA_H
#define DNN_RUN_REPLICA_H

#include "comm/comm.h"
#include "parallel/rule.h"
#include "run/model.h"

struct dnn_replica_cfg {
    const struct dnn_graph *graph;
    struct dnn_model_opts model; /* batch, total, owner, exchange are set here      */
    struct dnn_comm *comm;
    bool infer;       /* nothing is trained: no gradients, no optimizer              */
    const char *rule; /* NULL: bsp                                                   */
    struct dnn_rule_cfg how;
    int64_t batch; /* global                                                    */
    int64_t last;  /* the epoch's last, short batch; 0: there is none           */
    int64_t micro_batches; /* deterministic: parts of a batch; 0: 8, or batch if less */
    int64_t accumulate; /* else: parts a rank computes one after the other; 0: 1     */
    int64_t eval_batch,
        eval_last;              /* the same two of batches that are judged; 0: none */
    int64_t eval_micro_batches; /* deterministic: their parts; 0: as above          */
    size_t bucket; /* bytes of gradients exchanged together; 0: the first steps
                           show what is best                                         */
};

struct dnn_replica;

/* Collective.  Makes and starts every model that is needed: what does not fit is
 * refused here.  graph, comm and cfg->model's pointers must outlive it.  The caller
 * owns *out. */
int dnn_replica_make(const struct dnn_replica_cfg *cfg, struct dnn_replica **out,
                     struct dnn_err *err);
void dnn_replica_free(struct dnn_replica *replica); /* NULL is fine */

/* Local.  Into how many parts a batch is cut, over all ranks, with these settings. */
int dnn_replica_micro_batches(struct dnn_comm *comm, int64_t batch, bool deterministic,
                              int64_t micro_batches, int64_t accumulate);

/* Local.  The model that holds the weights: for filling, saving, printing. */
struct dnn_model *dnn_replica_model(struct dnn_replica *replica);
/* Local.  Which samples of a batch of so many this rank computes. */
void dnn_replica_part(const struct dnn_replica *replica, int64_t total, int64_t *first,
                      int64_t *n);
/* Local.  Bytes of all models together. */
size_t dnn_replica_bytes(const struct dnn_replica *replica);

/* Local.  Bytes of gradients that travel together; 0: not known yet.  A run that is
 * gone on with sets what was found, before its first step. */
size_t dnn_replica_bucket_size(const struct dnn_replica *replica);
int dnn_replica_set_bucket_size(struct dnn_replica *replica, size_t bytes,
                                struct dnn_err *err);

/* This rank's samples of a batch, one after the other; n may be 0. */
struct dnn_replica_batch {
    int64_t total, first, n;
    const void *const *input;  /* one per input of the network  */
    const void *const *target; /* one per output                */
};

struct dnn_replica_step {
    double rate;
    uint64_t seed, step; /* of random numbers; updates made before this one       */
    double clip_norm;    /* 0: no                                                 */
    double clip_value;   /* 0: no                                                 */
    /* Results, the same on all ranks. */
    double loss;      /* of the whole batch, with penalties                        */
    double grad_norm; /* before clipping                                           */
    /* This rank's. */
    double compute, comm; /* seconds: computing, and waiting for others            */
    double straggler;     /* of the step before: waiting for ranks that were later;
                        NAN: not known                                        */
};

/* Collective.  One update with one batch; NULL: this rank has none, for the reason in
 * err, on which all ranks then agree instead of an update.  extra: n numbers of the
 * caller's that are added over all ranks on the way (NULL if none).  A loss or gradient
 * that is not a number is DNN_EDATA with the layer named in which the first one arose;
 * weights are then as they were. */
int dnn_replica_run(struct dnn_replica *replica, const struct dnn_replica_batch *batch,
                    struct dnn_replica_step *step, double *extra, int n,
                    struct dnn_err *err);

/* Collective.  Of a replica whose optimizer is DNN_OPTIM_HESSIAN: loss and gradient of
 * one batch, and no update.  The gradient, without that of regularizers, is then in
 * dnn_replica_flat()'s grad.  Numbers that are none are an error only if first is set,
 * for somebody who tries a point that is too far wants to know just that. */
int dnn_replica_loss_grad(struct dnn_replica *replica,
                          const struct dnn_replica_batch *batch,
                          struct dnn_replica_step *step, bool first, double *extra,
                          int n, struct dnn_err *err);

/* Local.  The trained weights and their gradients as flat vectors; what lies between
 * them for alignment is zero.  Who writes weights calls dnn_exec_changed(). */
struct dnn_flat {
    float *weight, *grad;
    int64_t count;
};
void dnn_replica_flat(const struct dnn_replica *replica, struct dnn_flat *out);

/* Local.  Outputs of n samples in inference, and the sum over them of the loss
 * (*loss, unless NULL; target is then needed): output i is copied to output[i]. */
int dnn_replica_infer(struct dnn_replica *replica,
                      const struct dnn_replica_batch *batch, float *const *output,
                      double *loss, struct dnn_err *err);

/* The loss of many samples in inference, batch by batch, as many on all ranks and of
 * the sizes announced: results do not depend on the number of ranks but by rounding,
 * and not at all if that was asked for.
 *
 *   start, judge ... judge, end
 *
 * Collective: judge, also for a rank without samples, for losses may exchange numbers,
 * and end, which gives the sum over all samples.  Outputs of this rank's samples are
 * copied to output[i]. */
void dnn_replica_eval_start(struct dnn_replica *replica);
int dnn_replica_eval(struct dnn_replica *replica, const struct dnn_replica_batch *batch,
                     float *const *output, struct dnn_err *err);
int dnn_replica_eval_end(struct dnn_replica *replica, double *loss,
                         struct dnn_err *err);
/* Local.  The parts of such a batch over all ranks; and this rank's i-th, samples
 * [*first, *first + *n) of it: returns which of all it is, -1 if there is none. */
int dnn_replica_eval_micro_batches(const struct dnn_replica *replica);
int dnn_replica_eval_part(const struct dnn_replica *replica, int64_t total, int i,
                          int64_t *first, int64_t *n);

#endif
