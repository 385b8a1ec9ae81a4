/* train_impl.h - a training run from inside.
 *
 * train.c        the loop, which reads as prose;
 * train_open.c   network and files made ready;
 * train_data.c   where samples come from: those to train, evaluate and test with;
 * train_batch.c  a batch of the feed as the network takes it;
 * train_hessian.c  training by whole evaluations instead of updates;
 * train_eval.c   how good the network is on samples it does not learn from;
 * train_test.c   a network that is not trained: evaluation, and outputs as files;
 * train_ckpt.c  what a checkpoint holds, and when one is written;
 * train_compat.c   whether a checkpoint is of this run;
 * train_monitor.c   which epoch was the best, and whether a run has ended;
 * train_ema.c    the running mean of the weights;
 * train_model.c  the trained network as files;
 * train_log.c    what people and files are log, with the files of train_log.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_TRAIN_IMPL_H
#define DNN_RUN_TRAIN_IMPL_H

#include "base/text.h"
#include "ckpt/ckpt.h"
#include "data/feed.h"
#include "run/replica.h"
#include "run/train.h"
#include "telemetry/record.h"

/* Samples, and which of their columns the network takes. */
struct train_data {
    struct dnn_source *source;   /* owned; NULL: a dataset, or nothing               */
    struct dnn_augment *augment; /* owned; or NULL                                   */
    struct dnn_feed *feed;       /* owned; NULL: there are no such samples           */
    bool targets;
    int *input, *target; /* owned: a column for each of the network's           */
    size_t *input_row, *target_row; /* owned: bytes of a sample                      */
    void **input_mem, **target_mem; /* owned: converted                              */
    void **input_f64, **target_f64; /* owned: for a network in f64; else NULL      */
};

/* Where the time of some steps went, in seconds. */
struct train_pace {
    double data, compute, comm, straggler, all;
    double samples;
    int64_t steps;
};

struct train_log; /* train_log.h: what is remembered in order to tell it */

/* What a run remembers besides weights: plain numbers, saved as they are. */
struct train_counters {
    int64_t epoch; /* whole ones done                                               */
    int64_t batch; /* batches of the current one done                               */
    int64_t step;  /* updates made                                                  */
    int64_t ended; /* not 0: ended before the last epoch, by rules of this sum      */
};
struct train_sums {
    double seconds;       /* of earlier parts of the run                              */
    double loss, samples; /* of the current epoch, as the next two */
    double norm, steps; /* lengths of gradients, updates                             */
    double bucket, ranks; /* bytes of gradients that travel together, with so many */
};

struct dnn_trainer {
    const struct dnn_job *job;
    const struct dnn_train_opts *opts;
    struct dnn_session *session;
    struct dnn_comm *comm; /* the session's */
    bool root;             /* rank 0                                                 */
    enum dnn_job_mode mode;
    struct train_data train, eval;
    struct train_data own_test; /* where eval is of other samples                   */
    struct train_data *test;    /* eval or own_test: outputs are written; or NULL    */
    int *target_is; /* owned: enum dnn_loss_target of each output                   */
    struct dnn_replica *replica;
    char *cache;   /* owned: the file of measured kernels                             */
    char *network; /* owned: JSON, read at the start, for the file may vanish        */
    int nsets;     /* 0: nothing to evaluate with                                    */
    struct dnn_metrics **set; /* owned: one; deterministic, for each of our parts    */
    struct dnn_metrics *metrics; /* the first, which gets the sums of all; or NULL   */
    int64_t channels, points;    /* of the first output                              */
    float **output;              /* owned: outputs of a batch that is evaluated      */
    struct dnn_ckpts *ckpts;     /* NULL: none are kept                              */
    int narrays;
    struct dnn_ckpt_array *array; /* owned                                          */
    struct dnn_telemetry *telemetry;
    struct train_log *log; /* owned                                                */

    struct train_hessian *hessian; /* owned; NULL: the optimizer makes updates      */

    struct train_counters at;
    struct train_sums sum;
    struct dnn_schedule_memory memory;
    struct dnn_stopping_memory early, goal, best;
    struct dnn_stopping best_by; /* the metric, and what is better                   */
    float *ema;                  /* owned: EMA of the trained weights; NULL: none     */
    int64_t ema_count;
    bool ema_in_use;  /* weights and EMA are swapped                               */
    double began;     /* the clock                                                 */
    double last_ckpt; /* when the last one was begun                               */
    double step_time; /* the slowest step so far                                   */
    double ckpt_time; /* the slowest checkpoint                                    */
    bool best_so_far; /* the epoch just evaluated                                  */
    struct dnn_err pending; /* of this rank after its last step; the next tells all */
};

/* train_open.c.  Collective but the last. */
int dnn_trainer_open(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_close(struct dnn_trainer *t);
/* The directory of the checkpoints; the caller's, dnn_free(). */
char *dnn_trainer_ckpt_dir(const struct dnn_trainer *t);

/* train_data.c.  Collective: all there is to read, and what its targets are. */
int dnn_trainer_data(struct dnn_trainer *t, struct dnn_err *err);
/* Local.  Into how many parts batches of this size are cut, over all ranks. */
int64_t dnn_trainer_micro_batches(const struct dnn_trainer *t, int64_t batch,
                                  int64_t accumulate);

/* train_batch.c.  Local. */
int dnn_trainer_columns(const struct dnn_trainer *t, struct train_data *data,
                        struct dnn_err *err);
int dnn_trainer_make_batch(const struct dnn_trainer *t, struct train_data *data,
                           const struct dnn_batch *batch, struct dnn_replica_batch *out,
                           struct dnn_err *err);
void dnn_trainer_data_free(struct train_data *data);

/* train_eval.c.  Collective: loss and metrics over all samples of t->eval; *n values
 * into value, named "val_...".  DNN_ESTOP, without a message: asked to stop. */
enum { TRAIN_VALUES = 128 };
struct train_value {
    char name[64];
    double value;
    bool main;
};
int dnn_trainer_evaluate(struct dnn_trainer *t, struct train_value *value, int *n,
                         struct dnn_err *err);
/* The same of any samples; those of t->eval have values, if they have targets.  After
 * each batch take, unless NULL, gets it; t->output has this rank's outputs then.
 * Collective, too. */
typedef int train_take(void *arg, const struct dnn_batch *batch, struct dnn_err *err);
int dnn_trainer_run_samples(struct dnn_trainer *t, struct train_data *data,
                            train_take *take, void *arg, struct train_value *value,
                            int *n, struct dnn_err *err);
/* Local.  The same values in the same order, of what was seen so far. */
void dnn_trainer_values(const struct dnn_trainer *t, double loss,
                        struct train_value *value, int *n);

/* train_hessian.c: the second-order optimizer; with any other these do nothing. */
enum { TRAIN_HESSIAN_ARRAYS = 5 };
struct train_outcome {
    bool epoch;      /* weights are new ones: an epoch is done                       */
    const char *why; /* it is at its end, for this reason; or NULL                   */
};
int dnn_hessian_open(struct dnn_trainer *t, struct dnn_err *err); /* Local */
void dnn_hessian_close(struct dnn_trainer *t);
/* Local.  What a checkpoint holds of it; returns how many. */
int dnn_hessian_arrays(struct dnn_trainer *t, struct dnn_ckpt_array array[]);
/* Local.  Why the run that is gone on with had ended already, or NULL. */
const char *dnn_hessian_resumed(struct dnn_trainer *t);
/* Collective.  In place of an update. */
int dnn_hessian_batch(struct dnn_trainer *t, const struct dnn_replica_batch *batch,
                      struct dnn_replica_step *step, double *extra, int n,
                      struct dnn_err *err);
/* Local.  After the last batch. */
int dnn_hessian_next(struct dnn_trainer *t, struct train_outcome *turn,
                     struct dnn_err *err);
/* Local.  The best weights in place of those that are being tried. */
void dnn_hessian_use_best(struct dnn_trainer *t);

/* train_test.c.  Collective.  The weights of a job that trains nothing and does not say
 * which: those of its own run's newest checkpoint, if there is one. */
int dnn_trainer_own_weights(struct dnn_trainer *t, struct dnn_err *err);
/* A job that trains nothing: loss and metrics of the test
 * data, its outputs, or both. */
int dnn_trainer_test(struct dnn_trainer *t, struct dnn_err *err);
/* The outputs of t->test, if the job wants them; number: of the file.  Values as in
 * dnn_trainer_evaluate(). */
int dnn_trainer_outputs(struct dnn_trainer *t, int64_t number,
                        struct train_value *value, int *n, struct dnn_err *err);

/* train_ckpt.c.  Collective. */
int dnn_trainer_arrays(struct dnn_trainer *t, struct dnn_err *err);
int dnn_trainer_resume(struct dnn_trainer *t, struct dnn_err *err);
int dnn_trainer_save(struct dnn_trainer *t, bool best, struct dnn_err *err);
/* Local.  Rank 0's opinion: is it time to stop (2), to save (1), or neither (0)? */
int dnn_trainer_action(const struct dnn_trainer *t);
/* Whether the job wants a checkpoint after this epoch. */
bool dnn_trainer_epoch_due(const struct dnn_trainer *t);

/* train_compat.c.  Local.  What the job says, for a checkpoint (JSON, added to out),
 * and whether that of a checkpoint is of the same run: what must not have changed is an
 * error, what else has is log, and rules that look at another metric forget. */
void dnn_trainer_write_settings(struct dnn_trainer *t, struct dnn_buf *out);
int dnn_trainer_check_settings(struct dnn_trainer *t, const char *state,
                               struct dnn_err *err);

/* train_monitor.c.  Local.  Before the first epoch: what is the best is settled, and
 * every metric that somebody looks at is there. */
int dnn_trainer_check_metrics(struct dnn_trainer *t, struct dnn_err *err);
/* After an epoch, with its values: sets t->best_so_far. */
int dnn_trainer_update_best(struct dnn_trainer *t, int n, const struct dnn_named *value,
                            struct dnn_err *err);
/* A rule has ended the run; and whether one had, when it was resumed, and would still.
 */
void dnn_trainer_end(struct dnn_trainer *t);
bool dnn_trainer_ended(const struct dnn_trainer *t);
/* Collective.  After the last step: the best weights, if the job wants them. */
int dnn_trainer_restore_best(struct dnn_trainer *t, struct dnn_err *err);

/* train_ema.c.  Local, all no more than a return if the job has no "ema". */
int dnn_trainer_ema_make(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_ema_start(struct dnn_trainer *t); /* at the weights there are now */
void dnn_trainer_ema_step(struct dnn_trainer *t);  /* after t->at.step updates     */
/* The network computes with the mean, or with the weights again.  Returns whether this
 * was a change, for whoever changes back. */
bool dnn_trainer_ema_use(struct dnn_trainer *t, bool mean);

/* train_model.c.  Collective.  The network and its weights into the run's directory. */
int dnn_trainer_write_model(struct dnn_trainer *t, struct dnn_err *err);

/* train_log.c.  Local. */
int dnn_trainer_log_open(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_log_close(struct dnn_trainer *t);
int dnn_trainer_log_step(struct dnn_trainer *t, const struct dnn_replica_step *step,
                         const struct train_pace *pace, struct dnn_err *err);
int dnn_trainer_log_eval(struct dnn_trainer *t, int64_t batch, struct dnn_err *err);
int dnn_trainer_log_epoch(struct dnn_trainer *t, const struct train_value *value, int n,
                          double rate, struct dnn_err *err);
int dnn_trainer_log_test(struct dnn_trainer *t, const struct train_value *value, int n,
                         struct dnn_err *err);
int dnn_trainer_log_end(struct dnn_trainer *t, struct dnn_err *err);
/* However it ended (rc, and why if that is negative): report, pictures, run.json. */
void dnn_trainer_log_finish(struct dnn_trainer *t, int rc, const struct dnn_err *why);

/* train_pictures.c: around the batches of an evaluation.  Local but the last, which is
 * Collective. */
void dnn_trainer_pictures_start(struct dnn_trainer *t);
int dnn_trainer_pictures_add(struct dnn_trainer *t, const struct dnn_batch *batch,
                             const struct dnn_metric_batch *seen, struct dnn_err *err);
int dnn_trainer_pictures_end(struct dnn_trainer *t, struct dnn_err *err);

#endif
