/* train_impl.h - internals of a training run.
 *
 * train.c          the training loop;
 * open.c     set-up: network, metrics, files;
 * hessian.c  the second-order optimizer (L-BFGS);
 * eval.c     evaluation: loss and metrics;
 * test.c     runs without training: evaluation, inference;
 * ckpt.c     the content of checkpoints, and when they are written;
 * compat.c   whether a checkpoint is compatible with the configuration;
 * monitor.c  the best epoch, early stopping;
 * ema.c      exponential moving average of the weights;
 * model.c    the trained network as files;
 * log.c      logs and reports, with the files of log_impl.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_TRAIN_IMPL_H
#define DNN_TRAIN_TRAIN_IMPL_H

#include "base/text.h"
#include "ckpt/ckpt.h"
#include "stage/eval.h"
#include "train/train.h"
#include "telemetry/record.h"

/* Seconds of some steps: waiting for data, computing, communication; waiting for slower
 * ranks, which is a part of communication; in total. */
struct train_timing {
    double data, compute, comm, straggler, all;
    double samples;
    int64_t steps;
};

struct train_log; /* log_impl.h */

/* Progress of a run in addition to the weights; stored in checkpoints as bytes. */
struct train_counters {
    int64_t epoch; /* completed epochs                                              */
    int64_t batch; /* completed batches of the current epoch                        */
    int64_t step;  /* updates made                                                  */
    int64_t ended; /* not 0: ended by early stopping; checksum of the stopping rules */
};
struct train_sums {
    double seconds;       /* of training before the last restart                      */
    double loss, samples; /* of the current epoch                    */
    double norm, steps;   /* of the current epoch: sum of gradient norms, updates  */
    double bucket, ranks; /* autotuned gradient bucket size, and its number of ranks */
};

struct dnn_trainer {
    const struct dnn_config *config;
    const struct dnn_train_opts *opts;
    struct dnn_session *session;
    struct dnn_comm *comm; /* the session's */
    bool root;             /* rank 0                                                 */
    struct dnn_stage *stage;     /* owned */
    char *network;               /* owned: JSON, read at the start                   */
    struct dnn_stage_eval *eval; /* owned; NULL: nothing is evaluated               */
    struct dnn_metrics *metrics; /* those of eval, or NULL                           */
    struct dnn_ckpts *ckpts;     /* NULL: none                                       */
    int narrays;
    struct dnn_ckpt_array *array; /* owned                                          */
    struct dnn_telemetry *telemetry;
    struct train_log *log; /* owned                                                */

    struct train_hessian *hessian; /* owned; NULL: another optimizer              */

    struct train_counters at;
    struct train_sums sum;
    struct dnn_schedule_state memory;
    struct dnn_stopping_state early, goal, best;
    struct dnn_stopping best_rule; /* metric of the best epoch, and its mode */
    float *ema; /* owned: EMA of the trainable weights; NULL: none       */
    int64_t ema_count;
    bool ema_in_use;  /* weights and EMA are swapped                               */
    double began;     /* start time of this process                                */
    double last_ckpt; /* start time of the last checkpoint                         */
    double step_time; /* the slowest step so far                                   */
    double ckpt_time; /* the slowest checkpoint                                    */
    bool is_best;     /* the last evaluated epoch is the best so far */
    struct dnn_err
        pending; /* error of this rank since its last step, reported in the next */
};

/* open.c.  Collective, except the last one. */
int dnn_trainer_open(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_close(struct dnn_trainer *t);
/* The directory of the checkpoints; the caller owns it: dnn_free(). */
char *dnn_trainer_ckpt_dir(const struct dnn_trainer *t);

/* eval.c.  Collective.  Loss and metrics of t->eval: *n values named "val_...".
 * DNN_ESTOP: a stop was requested. */
enum { TRAIN_VALUES = 128 };
struct train_value {
    char name[64];
    double value;
    bool main;
};
int dnn_trainer_evaluate(struct dnn_trainer *t, struct train_value *value, int *n,
                         struct dnn_err *err);
/* The callbacks of an evaluation by this run: pictures, log, stopping. */
struct dnn_stage_watch dnn_trainer_watch(struct dnn_trainer *t);
/* Local.  The same values in the same order, from the current state of the metrics. */
void dnn_trainer_values(const struct dnn_trainer *t, double loss,
                        struct train_value *value, int *n);

/* hessian.c: the second-order optimizer.  With other optimizers these functions
 * do nothing. */
enum { TRAIN_HESSIAN_ARRAYS = 5 };
struct train_outcome {
    bool epoch;      /* an iteration is done, which is reported as an epoch          */
    const char *why; /* why training has ended; or NULL                              */
};
int dnn_hessian_open(struct dnn_trainer *t, struct dnn_err *err); /* Local */
void dnn_hessian_close(struct dnn_trainer *t);
/* Local.  Get its arrays in a checkpoint; returns their number. */
int dnn_hessian_arrays(struct dnn_trainer *t, struct dnn_ckpt_array array[]);
/* Local.  Why the resumed run had ended already, or NULL. */
const char *dnn_hessian_resumed(struct dnn_trainer *t);
/* Collective.  Called for a batch instead of dnn_replica_run(). */
int dnn_hessian_batch(struct dnn_trainer *t, const struct dnn_replica_batch *batch,
                      struct dnn_replica_step *step, double *extra, int n,
                      struct dnn_err *err);
/* Local.  Called after the last batch. */
int dnn_hessian_next(struct dnn_trainer *t, struct train_outcome *outcome,
                     struct dnn_err *err);
/* Local.  Set the weights to the best point instead of the line search's. */
void dnn_hessian_use_best(struct dnn_trainer *t);

/* test.c.  Collective.  Load the newest checkpoint of the run directory, if there
 * is one; for runs without training and without checkpoints.load. */
int dnn_trainer_load_newest(struct dnn_trainer *t, struct dnn_err *err);
/* Evaluation or inference: loss and metrics of the test data, its outputs, or both. */
int dnn_trainer_test(struct dnn_trainer *t, struct dnn_err *err);
/* Write the outputs of t->stage->test, unless it is NULL; number: in the name of the file.
 * value, n: as in dnn_trainer_evaluate(). */
int dnn_trainer_outputs(struct dnn_trainer *t, int64_t number,
                        struct train_value *value, int *n, struct dnn_err *err);

/* ckpt.c.  Collective. */
int dnn_trainer_arrays(struct dnn_trainer *t, struct dnn_err *err);
int dnn_trainer_resume(struct dnn_trainer *t, struct dnn_err *err);
int dnn_trainer_save(struct dnn_trainer *t, bool best, struct dnn_err *err);
/* Local, rank 0.  What to do after this step, according to time limit and checkpoint
 * interval. */
enum train_action { TRAIN_CONTINUE, TRAIN_SAVE, TRAIN_STOP };
enum train_action dnn_trainer_action(const struct dnn_trainer *t);
/* Whether a checkpoint is due after this epoch. */
bool dnn_trainer_epoch_due(const struct dnn_trainer *t);

/* compat.c.  Local.  Write the settings that a checkpoint stores to out, as JSON;
 * and compare the configuration with those of a checkpoint: a change is logged, or is
 * an error if it is not allowed; rules that monitor another metric are reset. */
void dnn_trainer_write_settings(struct dnn_trainer *t, struct dnn_buf *out);
int dnn_trainer_check_settings(struct dnn_trainer *t, const char *state,
                               struct dnn_err *err);

/* monitor.c.  Local.  Before the first epoch: choose the monitored metric, and
 * check that all metrics in the configuration exist. */
int dnn_trainer_check_metrics(struct dnn_trainer *t, struct dnn_err *err);
/* After an epoch, with its values: set t->is_best. */
int dnn_trainer_update_best(struct dnn_trainer *t, int n, const struct dnn_named *value,
                            struct dnn_err *err);
/* Store that early stopping has ended the run; whether this is stored, for the same
 * stopping rules. */
void dnn_trainer_end(struct dnn_trainer *t);
bool dnn_trainer_ended(const struct dnn_trainer *t);
/* Collective.  After the last step: load the best weights, if configured. */
int dnn_trainer_restore_best(struct dnn_trainer *t, struct dnn_err *err);

/* ema.c.  Local.  Without "ema" these functions do nothing. */
int dnn_trainer_ema_make(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_ema_start(struct dnn_trainer *t); /* from the current weights     */
void dnn_trainer_ema_step(struct dnn_trainer *t);  /* after t->at.step updates     */
/* Use the EMA as weights (ema), or the weights again.  Returns whether they were
 * swapped. */
bool dnn_trainer_ema_use(struct dnn_trainer *t, bool ema);

/* model.c.  Collective.  Write the network and its weights to the run
 * directory. */
int dnn_trainer_write_model(struct dnn_trainer *t, struct dnn_err *err);

/* log.c.  Local. */
int dnn_trainer_log_open(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_log_close(struct dnn_trainer *t);
int dnn_trainer_log_step(struct dnn_trainer *t, const struct dnn_replica_step *step,
                         const struct train_timing *timing, struct dnn_err *err);
int dnn_trainer_log_eval(struct dnn_trainer *t, int64_t batch, struct dnn_err *err);
int dnn_trainer_log_epoch(struct dnn_trainer *t, const struct train_value *value, int n,
                          double rate, struct dnn_err *err);
int dnn_trainer_log_test(struct dnn_trainer *t, const struct train_value *value, int n,
                         struct dnn_err *err);
int dnn_trainer_log_end(struct dnn_trainer *t, struct dnn_err *err);
/* At the end of the run, with its result: write report, pictures, run.json. */
void dnn_trainer_log_finish(struct dnn_trainer *t, int rc, const struct dnn_err *why);

/* pictures.c: called before, during and after an evaluation.  Local, except the
 * last one, which is Collective. */
void dnn_trainer_pictures_start(struct dnn_trainer *t);
int dnn_trainer_pictures_add(struct dnn_trainer *t, const struct dnn_stage_seen *seen,
                             struct dnn_err *err);
int dnn_trainer_pictures_end(struct dnn_trainer *t, struct dnn_err *err);

#endif
