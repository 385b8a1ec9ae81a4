/* replica_impl.h - a replica from inside.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_REPLICA_IMPL_H
#define DNN_RUN_REPLICA_IMPL_H

#include "run/replica.h"

/* A model, and after which of its ops each bucket of the gradients is final. */
struct replica_model {
    struct dnn_model *model;   /* owned */
    struct dnn_bucket *bucket; /* owned */
};

enum { REPLICA_DEFERRED = 8 }; /* gradients of a network that are made late */

/* A gradient of which parts keep only what it is made of, until all are added up:
 * elements [first, last) of the flat gradients, in rows. */
struct replica_deferred {
    int64_t first, last, row;
};

/* A part of a batch: which samples of it, and what computes them. */
struct replica_part {
    int64_t first, n;
    int micro_batch; /* which of all parts of the batch, over all ranks */
    const struct replica_model *by; /* NULL if n is 0 */
    int op[REPLICA_DEFERRED];       /* ops of the gradients that are made late */
    void *stored[REPLICA_DEFERRED]; /* owned; what they are made of            */
};

/* The parts a rank has in a batch of a certain size. */
struct replica_cut {
    int64_t total;
    int micro_batches;            /* parts over all ranks                          */
    const struct dnn_model *lead; /* of a rank without parts, too                  */
    int teams; /* parts at once: part p, p + teams, ... one after the other        */
    int nparts;
    struct replica_part *part; /* owned */
    int ndeferred;
    struct replica_deferred deferred[REPLICA_DEFERRED]; /* one behind the other */
    float *rows; /* owned; rows of them while they are added up, for each team   */
    int64_t rows_stride; /* elements of it that a part has */
};

enum { REPLICA_CUTS = 2 }; /* whole batches, and the last of an epoch */
enum { REPLICA_WAITS = 256, REPLICA_WAITS_SENT = 2048 }; /* of a rank; of all ranks */

/* How batches are judged. */
struct replica_eval {
    int micro_batches; /* parts of a batch over all ranks */
    bool meets;    /* parts exchange numbers                                         */
    bool lockstep; /* ... and go side by side                                        */
    int nmodels;
    struct replica_model *model; /* owned; without buckets                          */
    int ncuts;
    struct replica_cut cut[REPLICA_CUTS];
    double *loss; /* owned; of this rank's micro-batches, zero elsewhere */
};

/* What a rank waited for others, one meeting after the other: as many on all ranks. */
struct replica_waits {
    double all; /* seconds; of more meetings than there is room for, too */
    int n;
    double each[REPLICA_WAITS];
};

/* The size of buckets being looked for. */
struct replica_tune {
    int n; /* sizes to try; 0: none, or it is found */
    size_t size[4];
    double best[4]; /* seconds of the fastest step with each, the mean over ranks */
    int step;       /* steps done, below 0 while all warms up                        */
    double took;    /* seconds of the last one on this rank; 0: it does not count    */
};

struct dnn_replica {
    struct dnn_replica_cfg cfg;
    int micro_batches; /* parts of a batch over all ranks */
    bool lockstep; /* all parts go through the program side by side, for statistics are
                    * of the whole batch                                              */
    int teams;     /* parts computed at once, if more than 1 each by one thread       */
    int nmodels;
    struct replica_model *model; /* owned; the first owns the weights */
    int ncuts;
    struct replica_cut cut[REPLICA_CUTS];
    size_t bucket; /* bytes of gradients that travel together */
    int nbuckets;
    struct replica_tune tune;
    const struct dnn_rule *rule;
    void *self; /* the rule's */
    float *grad;
    int64_t count; /* of trained weights, as they lie */
    bool f64;      /* gradients are f64, each of which takes two places of grad       */
    int ninfers;
    struct dnn_model **infer; /* owned; for inference, by number of samples */
    struct replica_eval eval;
    struct replica_waits now, before; /* of this step, and of the one before      */
    double *loss; /* owned; of this rank's micro-batches, zero elsewhere          */
};

/* replica_straggler.c: a meeting is over, for which this rank waited since then. */
void dnn_replica_add_wait(struct dnn_replica *r, double since);
/* How many waits of the step before travel, of all ranks together; 0: none are known,
 * or they are too many. */
int dnn_replica_waits_count(const struct dnn_replica *r);
/* They go into zeros at to, which are then added over ranks; back from there: seconds
 * of the step before in which this rank waited for later ones, NAN: not known. */
void dnn_replica_waits_put(const struct dnn_replica *r, double *to);
double dnn_replica_straggler_wait(const struct dnn_replica *r, const double *from);

/* replica_exchange.c: statistics over all ranks, while a step runs. */
struct dnn_exchange dnn_replica_exchange(struct dnn_replica *r);
/* Local.  The sums of exchange o are known: move the moving statistics made of them. */
int dnn_replica_update_moving(const struct dnn_model *m, int o, const double *sums,
                              const struct dnn_now *now, struct dnn_err *err);
/* Collective.  Where this rank has no samples: what op o of the program has to do with
 * exchanges.  *begun is NULL before the first op, and is kept from op to op. */
int dnn_replica_pass(struct dnn_replica *r, const struct dnn_model *m, int o,
                     void **begun, const struct dnn_now *now, struct dnn_err *err);

/* replica_compute.c: this part's samples of the batch into its model. */
int dnn_replica_load(const struct replica_part *part,
                     const struct dnn_replica_batch *batch, struct dnn_err *err);
/* Its share of the loss to those of its micro-batch, before another part runs on the
 * model. */
int dnn_replica_add_loss(const struct replica_part *part, double *loss,
                         struct dnn_err *err);
/* Whether its program has numbers that are exchanged. */
bool dnn_replica_exchanges(const struct dnn_model *model);
/* Collective.  Every part of a batch; buckets of gradients go to the rule. */
int dnn_replica_compute(struct dnn_replica *r, const struct replica_cut *cut,
                        const struct dnn_replica_batch *batch,
                        const struct dnn_now *now, struct dnn_err *err);
/* Collective.  In its place on a rank that has nothing to compute, for a reason the
 * others do not know yet. */
int dnn_replica_idle(struct dnn_replica *r, const struct dnn_now *now,
                     struct dnn_err *err);
/* Collective.  Parts side by side, up to where gradients are known. */
int dnn_replica_lockstep(struct dnn_replica *r, const struct replica_cut *cut,
                         const struct dnn_replica_batch *batch,
                         const struct dnn_now *now, double *loss, struct dnn_err *err);

/* replica_deferred.c: find gradients that are better made late, where each thread has
 * parts of its own, and take memory for what they are made of; how much that is. */
int dnn_replica_deferred_make(struct replica_cut *cut, struct dnn_err *err);
void dnn_replica_deferred_free(struct replica_cut *cut);
size_t dnn_replica_deferred_bytes(const struct replica_cut *cut);
/* Which of them op o of a part makes; DNN_NONE: none. */
int dnn_replica_deferred_find(const struct replica_cut *cut,
                              const struct replica_part *part, int o);
/* Add up bucket p of all parts; grad: their flat gradients.  false: nothing of it is
 * made late. */
bool dnn_replica_deferred_send(const struct dnn_replica *r,
                               const struct replica_cut *cut, int p,
                               const float *const *grad);

/* replica.c: with buckets as they are cut now. */
int dnn_replica_start_rule(struct dnn_replica *r, struct dnn_err *err);

/* replica_tune.c: cut the gradients anew, between steps. */
int dnn_replica_cut_grads(struct dnn_replica *r, size_t bucket, struct dnn_err *err);
int dnn_replica_tune_start(struct dnn_replica *r, struct dnn_err *err);
/* What the last step took, all ranks' added. */
void dnn_replica_tune_add(struct dnn_replica *r, double seconds);
/* A step with a batch of so many is done. */
int dnn_replica_tune_next(struct dnn_replica *r, int64_t total, double seconds,
                          struct dnn_err *err);

/* replica_eval.c */
int dnn_replica_eval_make(struct dnn_replica *r, struct dnn_err *err);
void dnn_replica_eval_free(struct dnn_replica *r);

/* replica_infer.c: output i as f32, of a model that has run. */
int dnn_replica_output(const struct dnn_model *m, int i, float *to,
                       struct dnn_err *err);

/* replica_wide.c: length and clipping of gradients that are f64. */
double dnn_replica_wide_norm(const struct dnn_replica *replica);
void dnn_replica_wide_clip(struct dnn_replica *replica, double scale, double most);

/* replica_nan.c.  Collective.  Compute the batch again, looking at every result, and
 * fail with the layer named in which the first number arose that is none. */
int dnn_replica_find_nan(struct dnn_replica *replica, const struct replica_cut *cut,
                         const struct dnn_replica_batch *batch,
                         const struct dnn_now *now, struct dnn_err *err);

#endif
