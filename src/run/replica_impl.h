/* replica_impl.h - internals of a replica.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_REPLICA_IMPL_H
#define DNN_RUN_REPLICA_IMPL_H

#include "run/replica.h"

/* A model, and after which op each gradient bucket is final. */
struct replica_model {
    struct dnn_model *model;   /* owned */
    struct dnn_bucket *bucket; /* owned */
};

enum { REPLICA_DEFERRED = 8 }; /* most deferred gradients of a network */

/* A deferred gradient: micro-batches store only its operands until all are summed up.
 * Elements [first, last) of the flat gradients, in rows. */
struct replica_deferred {
    int64_t first, last, row;
};

/* A micro-batch: its samples, and the model that computes it. */
struct replica_part {
    int64_t first, n;
    int micro_batch;                /* its index over all ranks */
    const struct replica_model *by; /* NULL if n is 0 */
    int op[REPLICA_DEFERRED];       /* ops of the deferred gradients */
    void *stored[REPLICA_DEFERRED]; /* owned; their operands         */
};

/* This rank's micro-batches of a batch of some size. */
struct replica_cut {
    int64_t total;
    int micro_batches;            /* number over all ranks                         */
    const struct dnn_model *lead; /* on a rank without parts, too                  */
    int teams; /* parts at once: a team computes p, p + teams, ...                 */
    int nparts;
    struct replica_part *part; /* owned */
    int ndeferred;
    struct replica_deferred deferred[REPLICA_DEFERRED]; /* in order of first */
    float *rows; /* owned; rows being summed, for each team and part             */
    int64_t rows_stride; /* elements of a part                                      */
};

enum { REPLICA_CUTS = 2 }; /* whole batches, and the last of an epoch */
enum { REPLICA_WAITS = 256, REPLICA_WAITS_SENT = 2048 }; /* per rank; of all ranks */

/* Evaluation. */
struct replica_eval {
    int micro_batches; /* of a batch, over all ranks */
    bool exchanges; /* the program exchanges statistics                              */
    bool lockstep;  /* ... of all micro-batches, which run in lockstep               */
    int nmodels;
    struct replica_model *model; /* owned; without buckets                          */
    int ncuts;
    struct replica_cut cut[REPLICA_CUTS];
    double *loss; /* owned; of this rank's micro-batches, zero elsewhere */
};

/* Waits of a rank in each communication of a step; the same number on all ranks. */
struct replica_waits {
    double all; /* seconds, including those that do not fit into each */
    int n;
    double each[REPLICA_WAITS];
};

/* Autotuning of the gradient bucket size. */
struct replica_tune {
    int n; /* sizes to try; 0: done */
    size_t size[4];
    double best[4]; /* seconds of the fastest step with each, mean over ranks */
    int step;       /* steps done; negative: warm-up                                 */
    double took;    /* seconds of the last step on this rank; 0: ignored             */
};

struct dnn_replica {
    struct dnn_replica_cfg cfg;
    int micro_batches; /* of a batch, over all ranks */
    bool lockstep; /* all micro-batches run in lockstep, because statistics are of the
                    * whole batch                                                     */
    int teams;     /* micro-batches at once, if more than 1 each by one thread        */
    int nmodels;
    struct replica_model *model; /* owned; the first owns the weights */
    int ncuts;
    struct replica_cut cut[REPLICA_CUTS];
    size_t bucket; /* gradient bucket size in bytes */
    int nbuckets;
    struct replica_tune tune;
    const struct dnn_rule *rule;
    void *self; /* the rule's */
    float *grad;
    int64_t count; /* elements of grad, padding included */
    bool f64;      /* gradients are f64: two elements of grad each                    */
    int ninfers;
    struct dnn_model **infer; /* owned; for inference, by number of samples */
    struct replica_eval eval;
    struct replica_waits now, before; /* of this step, and of the one before      */
    double *loss; /* owned; of this rank's micro-batches, zero elsewhere          */
};

/* replica_straggler.c: add the wait in a communication, since then. */
void dnn_replica_add_wait(struct dnn_replica *r, double since);
/* Number of waits of the step before that are exchanged, of all ranks; 0: unknown, or
 * too many. */
int dnn_replica_waits_count(const struct dnn_replica *r);
/* Write them to to, filled with zeros, which is then summed over ranks; the result
 * gives the seconds in which this rank waited for slower ones, NAN: unknown. */
void dnn_replica_waits_put(const struct dnn_replica *r, double *to);
double dnn_replica_straggler_wait(const struct dnn_replica *r, const double *from);

/* replica_exchange.c: batch statistics over all ranks, during a step. */
struct dnn_exchange dnn_replica_exchange(struct dnn_replica *r);
/* Local.  Update the moving statistics from the sums of exchange o. */
int dnn_replica_update_moving(const struct dnn_model *m, int o, const double *sums,
                              const struct dnn_now *now, struct dnn_err *err);
/* Collective.  On a rank without samples: take part in the exchanges of op o.  *begun
 * is NULL before the first op, and passed from op to op. */
int dnn_replica_pass(struct dnn_replica *r, const struct dnn_model *m, int o,
                     void **begun, const struct dnn_now *now, struct dnn_err *err);

/* replica_compute.c: copy the samples of a part into its model. */
int dnn_replica_load(const struct replica_part *part,
                     const struct dnn_replica_batch *batch, struct dnn_err *err);
/* Add its loss to that of its micro-batch, before another part runs on the model. */
int dnn_replica_add_loss(const struct replica_part *part, double *loss,
                         struct dnn_err *err);
/* Whether its program exchanges statistics. */
bool dnn_replica_exchanges(const struct dnn_model *model);
/* Collective.  Compute all parts of a batch; gradient buckets go to the rule. */
int dnn_replica_compute(struct dnn_replica *r, const struct replica_cut *cut,
                        const struct dnn_replica_batch *batch,
                        const struct dnn_now *now, struct dnn_err *err);
/* Collective.  The same on a rank that has failed, which the others do not know yet. */
int dnn_replica_idle(struct dnn_replica *r, const struct dnn_now *now,
                     struct dnn_err *err);
/* Collective.  Run all parts in lockstep, up to the gradients. */
int dnn_replica_lockstep(struct dnn_replica *r, const struct replica_cut *cut,
                         const struct dnn_replica_batch *batch,
                         const struct dnn_now *now, double *loss, struct dnn_err *err);

/* replica_deferred.c: choose gradients to defer, where each thread has parts of its
 * own, and allocate memory for their operands; its size. */
int dnn_replica_deferred_make(struct replica_cut *cut, struct dnn_err *err);
void dnn_replica_deferred_free(struct replica_cut *cut);
size_t dnn_replica_deferred_bytes(const struct replica_cut *cut);
/* Which of them op o of a part computes; DNN_NONE: none. */
int dnn_replica_deferred_find(const struct replica_cut *cut,
                              const struct replica_part *part, int o);
/* Sum bucket p of all parts; grad: their flat gradients.  false: nothing of it is
 * deferred. */
bool dnn_replica_deferred_send(const struct dnn_replica *r,
                               const struct replica_cut *cut, int p,
                               const float *const *grad);

/* replica.c: the micro-batches [*first, *last) of this rank. */
void dnn_replica_own_range(const struct dnn_replica *r, int micro_batches, int *first,
                           int *last);
/* Start the rule with the current buckets. */
int dnn_replica_start_rule(struct dnn_replica *r, struct dnn_err *err);

/* replica_tune.c: change the bucket size, between steps. */
int dnn_replica_cut_grads(struct dnn_replica *r, size_t bucket, struct dnn_err *err);
int dnn_replica_tune_start(struct dnn_replica *r, struct dnn_err *err);
/* Time of the last step, summed over ranks. */
void dnn_replica_tune_add(struct dnn_replica *r, double seconds);
/* A step with a batch of total samples is done. */
int dnn_replica_tune_next(struct dnn_replica *r, int64_t total, double seconds,
                          struct dnn_err *err);

/* replica_eval.c */
int dnn_replica_eval_make(struct dnn_replica *r, struct dnn_err *err);
void dnn_replica_eval_free(struct dnn_replica *r);

/* replica_infer.c: output i as f32, of a model that has run. */
int dnn_replica_output(const struct dnn_model *m, int i, float *to,
                       struct dnn_err *err);

/* replica_nan.c.  Collective.  Recompute the batch op by op, and fail with the name of
 * the layer where the first NaN or infinity occurred. */
int dnn_replica_find_nan(struct dnn_replica *replica, const struct replica_cut *cut,
                         const struct dnn_replica_batch *batch,
                         const struct dnn_now *now, struct dnn_err *err);

#endif
