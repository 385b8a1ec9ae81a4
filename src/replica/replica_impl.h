/* replica_impl.h - internals of a replica.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_REPLICA_REPLICA_IMPL_H
#define DNN_REPLICA_REPLICA_IMPL_H

#include "replica/replica.h"

/* A model, and its gradient buckets with the op after which each is final. */
struct replica_model {
    struct dnn_model *model;   /* owned */
    struct dnn_bucket *bucket; /* owned */
};

enum { REPLICA_DEFERRED = 8 }; /* maximum number of deferred gradients of a network */

/* A deferred gradient: elements [first, last) of the flat gradients, in rows of row
 * elements.  Micro-batches store only its operands until all are summed. */
struct replica_deferred {
    int64_t first, last, row;
};

/* A micro-batch: its samples, and the model that computes it. */
struct replica_micro_batch {
    int64_t first, n;
    int index, part; /* its index over all ranks, and among those of this rank */
    const struct replica_model *model; /* NULL if n is 0 */
    int op[REPLICA_DEFERRED];          /* ops that compute the deferred gradients */
    void *stored[REPLICA_DEFERRED];    /* owned: their operands                   */
};

/* How a batch of this size is cut: the micro-batches of this rank. */
struct replica_cut {
    int64_t total;
    int64_t first, n;             /* the samples of this rank                      */
    int micro_batches;            /* number over all ranks                         */
    const struct dnn_model *lead; /* one of the models, not NULL on any rank       */
    int teams; /* run concurrently: team i computes mb[i], mb[i + teams], ... */
    int nmb;
    struct replica_micro_batch *mb; /* owned */
    int ndeferred;
    struct replica_deferred deferred[REPLICA_DEFERRED]; /* in order of first */
    float *rows;         /* owned: rows being summed, for each team and micro-batch */
    int64_t rows_stride; /* elements of rows for one micro-batch */
};

enum { REPLICA_CUTS = 2 }; /* full batches, and the last batch of an epoch */
/* Maximum number of waits of a rank in a step, and of all ranks to be exchanged. */
enum { REPLICA_WAITS = 256, REPLICA_WAITS_SENT = 2048 };

/* The models of a role, and how its batches are cut. */
struct replica_set {
    int micro_batches; /* of a batch, over all ranks; 0: the role is not used        */
    bool lockstep; /* all micro-batches run in lockstep, because statistics are over the
                    * whole batch                                                     */
    int teams;     /* of each cut; if more than 1, of one thread each */
    int nmodels;
    struct replica_model *model; /* owned; buckets only for training                */
    int ncuts;
    struct replica_cut cut[REPLICA_CUTS];
    double *loss; /* owned: by micro-batch; zero for those of other ranks */
};

/* The waits of a rank in the communication of a step; their number is the same on all
 * ranks. */
struct replica_waits {
    double all; /* seconds of all waits, also of those that do not fit into each[] */
    int n;
    double each[REPLICA_WAITS];
};

/* Autotuning of the gradient bucket size. */
struct replica_tune {
    int n; /* sizes to try; 0: done */
    size_t size[4];
    double best[4]; /* by size: seconds of the fastest step, mean over ranks */
    int step;       /* steps done; negative: warm-up                         */
    double took;    /* seconds of the last step on this rank; 0: not counted */
};

struct dnn_replica {
    struct dnn_replica_cfg cfg;
    struct replica_set set[DNN_MODEL_TRAIN + 1]; /* by enum dnn_model_role           */
    struct replica_set *train;                   /* the set of training */
    struct dnn_model *owner; /* the first model made: it owns the weights, unless
                              * cfg.owner does                                     */
    size_t bucket;           /* gradient bucket size in bytes */
    int nbuckets;
    struct replica_tune tune;
    const struct dnn_rule *rule;
    void *self; /* owned: state of the rule */
    float *grad;
    int64_t count; /* elements of grad, with padding */
    bool f64;      /* gradients are f64: each is two elements of grad */
    int failed;    /* error of this rank in the current batch, which it finishes      */
    struct dnn_err why;
    struct replica_waits now, before; /* of this step and of the previous one */
};

/* straggler.c: add a wait that began at the time `since` and ends now. */
void dnn_replica_add_wait(struct dnn_replica *r, double since);
/* Number of waits of the previous step that are exchanged, of all ranks; 0: unknown, or
 * too many. */
int dnn_replica_waits_count(const struct dnn_replica *r);
/* Write the waits of this rank to `to`, which must be filled with zeros; the caller
 * sums it over ranks.  From this sum, dnn_replica_straggler_wait() returns the seconds
 * this rank has waited for slower ranks; NAN: unknown. */
void dnn_replica_waits_put(const struct dnn_replica *r, double *to);
double dnn_replica_straggler_wait(const struct dnn_replica *r, const double *from);

/* exchange.c: batch statistics over all ranks, during a step. */
struct dnn_exchange dnn_replica_exchange(struct dnn_replica *r);
/* Local.  Update the moving statistics from the sums of exchange o. */
int dnn_replica_update_moving(const struct dnn_model *m, int o, const double *sums,
                              const struct dnn_now *now, struct dnn_err *err);
/* Collective.  On a rank without samples: join the exchanges of op o.  *pending must be
 * NULL before the first op, and is passed from op to op. */
int dnn_replica_join_exchange(struct dnn_replica *r, const struct dnn_model *m, int o,
                              void **pending, const struct dnn_now *now,
                              struct dnn_err *err);

/* compute.c: read the samples of a micro-batch into its model. */
int dnn_replica_load(const struct replica_micro_batch *mb,
                     const struct dnn_replica_batch *batch, struct dnn_err *err);
/* The same, but an error is stored in r->failed, because the other ranks expect this
 * one in the exchanges of the batch. */
void dnn_replica_try_load(struct dnn_replica *r, const struct replica_micro_batch *mb,
                          const struct dnn_replica_batch *batch);
/* Add the loss of a micro-batch to loss[mb->index].  Call it before another micro-batch
 * runs on the same model. */
int dnn_replica_add_loss(const struct replica_micro_batch *mb, double *loss,
                         struct dnn_err *err);
/* Whether the program exchanges statistics. */
bool dnn_replica_exchanges(const struct dnn_model *model);
/* Collective.  Compute all micro-batches of a batch, and pass the gradient buckets to
 * the rule. */
int dnn_replica_compute(struct dnn_replica *r, const struct replica_cut *cut,
                        const struct dnn_replica_batch *batch,
                        const struct dnn_now *now, struct dnn_err *err);
/* Collective.  Instead of dnn_replica_compute() on a rank that has failed, as long as
 * the other ranks do not know it. */
int dnn_replica_idle(struct dnn_replica *r, const struct dnn_now *now,
                     struct dnn_err *err);
/* Collective.  Run all micro-batches in lockstep, up to the gradients. */
int dnn_replica_lockstep(struct dnn_replica *r, const struct replica_cut *cut,
                         const struct dnn_replica_batch *batch,
                         const struct dnn_now *now, double *loss, struct dnn_err *err);

/* deferred.c: choose the gradients to defer, if each thread computes its own
 * micro-batches, and allocate memory for their operands; the bytes of this memory. */
int dnn_replica_deferred_make(struct replica_cut *cut, struct dnn_err *err);
void dnn_replica_deferred_free(struct replica_cut *cut);
size_t dnn_replica_deferred_bytes(const struct replica_cut *cut);
/* The index of the deferred gradient that op o of a micro-batch computes; DNN_NONE:
 * none. */
int dnn_replica_deferred_find(const struct replica_cut *cut,
                              const struct replica_micro_batch *mb, int o);
/* Sum bucket p over all micro-batches; grad: their flat gradients.  false: no gradient
 * in the bucket is deferred, and nothing was done. */
bool dnn_replica_deferred_send(const struct dnn_replica *r,
                               const struct replica_cut *cut, int p,
                               const float *const *grad);

/* cut.c: make the models of a role, and cut its batches. */
int dnn_replica_set_make(struct dnn_replica *r, enum dnn_model_role role,
                         struct dnn_err *err);
void dnn_replica_set_free(struct replica_set *set);
size_t dnn_replica_set_bytes(const struct replica_set *set);
/* The cut of a batch; NULL with a message: none has its size and this rank's share. */
const struct replica_cut *dnn_replica_find_cut(const struct dnn_replica *r,
                                               enum dnn_model_role role,
                                               const struct dnn_replica_batch *batch,
                                               struct dnn_err *err);
/* The micro-batches [*first, *last) of this rank. */
void dnn_replica_own_range(const struct dnn_comm *comm, int micro_batches, int *first,
                           int *last);

/* replica.c: start the rule with the current buckets. */
int dnn_replica_start_rule(struct dnn_replica *r, struct dnn_err *err);

/* tune.c: make buckets of this size; only between steps. */
int dnn_replica_make_buckets(struct dnn_replica *r, size_t bucket, struct dnn_err *err);
int dnn_replica_tune_start(struct dnn_replica *r, struct dnn_err *err);
/* Add the time of the last step, summed over ranks. */
void dnn_replica_tune_add(struct dnn_replica *r, double seconds);
/* To be called after each step, with the samples of its batch. */
int dnn_replica_tune_next(struct dnn_replica *r, int64_t total, double seconds,
                          struct dnn_err *err);

/* nan.c.  Collective.  Recompute the batch op by op, and fail with the name of
 * the layer where the first NaN or infinity occurred. */
int dnn_replica_find_nan(struct dnn_replica *replica, const struct replica_cut *cut,
                         const struct dnn_replica_batch *batch,
                         const struct dnn_now *now, struct dnn_err *err);

#endif
