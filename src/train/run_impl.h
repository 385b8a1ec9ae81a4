/* run_impl.h - what all files of a training run share: its parts, its progress, and
 * the values of an evaluation.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_RUN_IMPL_H
#define DNN_TRAIN_RUN_IMPL_H

#include "train/train.h"

struct dnn_comm;
struct dnn_metrics;
struct dnn_model;
struct dnn_replica_step;
struct dnn_stage;
struct dnn_stage_eval;
struct train_state;

/* Made by open.c, then read-only. */
struct train_run {
    const struct dnn_config *config;
    const struct dnn_train_opts *opts;
    struct dnn_session *session;
    struct dnn_comm *comm;       /* the session's                                    */
    bool root;                   /* rank 0                                           */
    struct dnn_stage *stage;     /* owned                                            */
    struct dnn_stage_eval *eval; /* owned; NULL: nothing is evaluated                */
    struct dnn_metrics *metrics; /* those of eval, or NULL                           */
    char *network;               /* owned: JSON, read at the start, on rank 0        */
};

/* run.c.  Local.  The model that is trained; the number of samples of an evaluation. */
struct dnn_model *dnn_train_model(const struct train_run *run);
int64_t dnn_train_eval_samples(const struct train_run *run);

/* ---- progress.c.  Local. ---- */

/* How far the run is.  All but `began` is saved in checkpoints. */
struct train_progress {
    int64_t epoch;        /* completed epochs                                        */
    int64_t batch;        /* completed batches of the current epoch                  */
    int64_t step;         /* updates made                                            */
    double loss, samples; /* of the current epoch: sum of losses, samples            */
    double norm, steps;   /* of the current epoch: sum of gradient norms, updates    */
    double seconds;       /* of training before this process                         */
    double began;         /* start time of training in this process; 0: not yet      */
};
void dnn_train_progress_state(struct train_progress *at, struct train_state *state);
void dnn_train_progress_add(struct train_progress *at, double samples,
                            const struct dnn_replica_step *step);
void dnn_train_progress_clear(struct train_progress *at); /* sums of the epoch */
/* Seconds of training, of this process and those before. */
double dnn_train_seconds(const struct train_progress *at);

/* ---- eval.c.  Local. ---- */

enum { TRAIN_VALUES = 128 };
struct train_value {
    char name[64];
    double value;
    bool main;
};
/* The loss and the current values of the metrics: *n values named "val_...". */
void dnn_train_values(const struct train_run *run, double loss,
                      struct train_value *value, int *n);

#endif
