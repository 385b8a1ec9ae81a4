/* train_impl.h - internals of a training run.
 *
 * train.c          the training loop;
 * train_open.c     set-up: network, metrics, files;
 * train_data.c     training, validation and test data;
 * train_batch.c    conversion of a batch to the inputs of the network;
 * train_hessian.c  the second-order optimizer (L-BFGS);
 * train_eval.c     evaluation: loss and metrics;
 * train_test.c     runs without training: evaluation, inference;
 * train_ckpt.c     what a checkpoint stores, and when one is written;
 * train_compat.c   whether a checkpoint fits the configuration;
 * train_monitor.c  the best epoch, early stopping;
 * train_ema.c      exponential moving average of the weights;
 * train_model.c    the trained network as files;
 * train_log.c      logs and reports, with the files of train_log.h.
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

/* A dataset or source, and the columns the network uses. */
struct train_data {
    struct dnn_source *source;   /* owned; NULL: a dataset, or none                  */
    struct dnn_augment *augment; /* owned; or NULL                                   */
    struct dnn_feed *feed;       /* owned; NULL: no samples                          */
    bool targets;
    int *input, *target; /* owned: column of each input and output              */
    size_t *input_row, *target_row; /* owned: bytes of a sample                      */
    void **input_mem, **target_mem; /* owned: converted                              */
    void **input_f64, **target_f64; /* owned: for a network in f64; else NULL        */
};

/* Seconds of some steps: data, compute, communication (of which waiting for slower
 * ranks), in total. */
struct train_pace {
    double data, compute, comm, straggler, all;
    double samples;
    int64_t steps;
};

struct train_log; /* train_log.h */

/* Progress of a run besides weights: plain numbers, stored in checkpoints as bytes. */
struct train_counters {
    int64_t epoch; /* epochs done                                                   */
    int64_t batch; /* batches of the current one done                               */
    int64_t step;  /* updates made                                                  */
    int64_t ended; /* not 0: ended early, by stopping rules with this checksum      */
};
struct train_sums {
    double seconds;       /* before the last restart                                  */
    double loss, samples; /* of the current epoch, as the next two   */
    double norm, steps; /* sum of gradient norms, updates                            */
    double bucket, ranks; /* gradient bucket size found, with so many ranks        */
};

struct dnn_trainer {
    const struct dnn_config *config;
    const struct dnn_train_opts *opts;
    struct dnn_session *session;
    struct dnn_comm *comm; /* the session's */
    bool root;             /* rank 0                                                 */
    enum dnn_config_mode mode;
    struct train_data train, eval;
    struct train_data own_test; /* if eval has other samples                        */
    struct train_data *test;    /* eval or own_test, to write outputs of; or NULL    */
    int *target_is; /* owned: enum dnn_loss_target of each output                   */
    struct dnn_replica *replica;
    char *cache;   /* owned: path of the autotuning cache                             */
    char *network; /* owned: JSON, read at the start                                 */
    int nsets;     /* 0: no evaluation                                               */
    struct dnn_metrics **set; /* owned: one; deterministic: one per micro-batch      */
    struct dnn_metrics *metrics; /* set[0], which gets the sums of all; or NULL      */
    int64_t channels, points;    /* of the first output                              */
    float **output;              /* owned: outputs of an evaluated batch             */
    struct dnn_ckpts *ckpts;     /* NULL: none                                       */
    int narrays;
    struct dnn_ckpt_array *array; /* owned                                          */
    struct dnn_telemetry *telemetry;
    struct train_log *log; /* owned                                                */

    struct train_hessian *hessian; /* owned; NULL: the optimizer makes updates      */

    struct train_counters at;
    struct train_sums sum;
    struct dnn_schedule_memory memory;
    struct dnn_stopping_memory early, goal, best;
    struct dnn_stopping best_by; /* the monitored metric and its mode                */
    float *ema;                  /* owned: EMA of the trained weights; NULL: none     */
    int64_t ema_count;
    bool ema_in_use;  /* weights and EMA are swapped                               */
    double began;     /* start time of this process                                */
    double last_ckpt; /* start time of the last checkpoint                         */
    double step_time; /* the slowest step so far                                   */
    double ckpt_time; /* the slowest checkpoint                                    */
    bool best_so_far; /* the epoch just evaluated                                  */
    struct dnn_err
        pending; /* error of this rank after its last step, raised at the next */
};

/* train_open.c.  Collective but the last. */
int dnn_trainer_open(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_close(struct dnn_trainer *t);
/* The directory of the checkpoints; the caller's, dnn_free(). */
char *dnn_trainer_ckpt_dir(const struct dnn_trainer *t);

/* train_data.c.  Collective.  Open all data, find the kind of the targets. */
int dnn_trainer_data(struct dnn_trainer *t, struct dnn_err *err);
/* Local.  Number of micro-batches of a batch of this size, over all ranks. */
int64_t dnn_trainer_micro_batches(const struct dnn_trainer *t, int64_t batch,
                                  int64_t accumulate);

/* train_batch.c.  Local. */
int dnn_trainer_columns(const struct dnn_trainer *t, struct train_data *data,
                        struct dnn_err *err);
int dnn_trainer_make_batch(const struct dnn_trainer *t, struct train_data *data,
                           const struct dnn_batch *batch, struct dnn_replica_batch *out,
                           struct dnn_err *err);
void dnn_trainer_data_free(struct train_data *data);

/* train_eval.c.  Collective.  Loss and metrics of t->eval: *n values named "val_...".
 * DNN_ESTOP: asked to stop. */
enum { TRAIN_VALUES = 128 };
struct train_value {
    char name[64];
    double value;
    bool main;
};
int dnn_trainer_evaluate(struct dnn_trainer *t, struct train_value *value, int *n,
                         struct dnn_err *err);
/* Collective.  The same for any samples; values only for t->eval with targets.  After
 * each batch take() is called, unless NULL, with this rank's outputs in t->output. */
typedef int train_take(void *arg, const struct dnn_batch *batch, struct dnn_err *err);
int dnn_trainer_run_samples(struct dnn_trainer *t, struct train_data *data,
                            train_take *take, void *arg, struct train_value *value,
                            int *n, struct dnn_err *err);
/* Local.  The same values in the same order, of the metrics so far. */
void dnn_trainer_values(const struct dnn_trainer *t, double loss,
                        struct train_value *value, int *n);

/* train_hessian.c: the second-order optimizer; with any other these do nothing. */
enum { TRAIN_HESSIAN_ARRAYS = 5 };
struct train_outcome {
    bool epoch;      /* an iteration, reported as epoch, is done                     */
    const char *why; /* reason why training has ended; or NULL                       */
};
int dnn_hessian_open(struct dnn_trainer *t, struct dnn_err *err); /* Local */
void dnn_hessian_close(struct dnn_trainer *t);
/* Local.  Its arrays in a checkpoint; returns how many. */
int dnn_hessian_arrays(struct dnn_trainer *t, struct dnn_ckpt_array array[]);
/* Local.  Why the resumed run had ended already, or NULL. */
const char *dnn_hessian_resumed(struct dnn_trainer *t);
/* Collective.  In place of an update. */
int dnn_hessian_batch(struct dnn_trainer *t, const struct dnn_replica_batch *batch,
                      struct dnn_replica_step *step, double *extra, int n,
                      struct dnn_err *err);
/* Local.  After the last batch. */
int dnn_hessian_next(struct dnn_trainer *t, struct train_outcome *outcome,
                     struct dnn_err *err);
/* Local.  Set the best weights instead of those of the line search. */
void dnn_hessian_use_best(struct dnn_trainer *t);

/* train_test.c.  Collective.  Without training and without checkpoints.load: load the
 * newest checkpoint of the run directory, if there is one. */
int dnn_trainer_own_weights(struct dnn_trainer *t, struct dnn_err *err);
/* Evaluation or inference: loss and metrics of the test data, its outputs, or both. */
int dnn_trainer_test(struct dnn_trainer *t, struct dnn_err *err);
/* Write the outputs of t->test, if there is one; number: of the file.  Values as in
 * dnn_trainer_evaluate(). */
int dnn_trainer_outputs(struct dnn_trainer *t, int64_t number,
                        struct train_value *value, int *n, struct dnn_err *err);

/* train_ckpt.c.  Collective. */
int dnn_trainer_arrays(struct dnn_trainer *t, struct dnn_err *err);
int dnn_trainer_resume(struct dnn_trainer *t, struct dnn_err *err);
int dnn_trainer_save(struct dnn_trainer *t, bool best, struct dnn_err *err);
/* Local, rank 0.  What to do after this step, by time limit and checkpoint interval. */
enum train_action { TRAIN_CONTINUE, TRAIN_SAVE, TRAIN_STOP };
enum train_action dnn_trainer_action(const struct dnn_trainer *t);
/* Whether a checkpoint is due after this epoch. */
bool dnn_trainer_epoch_due(const struct dnn_trainer *t);

/* train_compat.c.  Local.  Add the settings that a checkpoint stores to out, as JSON;
 * and compare those of a checkpoint: settings that must not change are an error, other
 * changes are logged, and rules that monitor another metric start anew. */
void dnn_trainer_write_settings(struct dnn_trainer *t, struct dnn_buf *out);
int dnn_trainer_check_settings(struct dnn_trainer *t, const char *state,
                               struct dnn_err *err);

/* train_monitor.c.  Local.  Before the first epoch: choose the monitored metric, check
 * that all metrics named in the configuration exist. */
int dnn_trainer_check_metrics(struct dnn_trainer *t, struct dnn_err *err);
/* After an epoch, with its values: sets t->best_so_far. */
int dnn_trainer_update_best(struct dnn_trainer *t, int n, const struct dnn_named *value,
                            struct dnn_err *err);
/* Early stopping has ended the run; whether it had, by the same rules. */
void dnn_trainer_end(struct dnn_trainer *t);
bool dnn_trainer_ended(const struct dnn_trainer *t);
/* Collective.  After the last step: load the best weights, if configured. */
int dnn_trainer_restore_best(struct dnn_trainer *t, struct dnn_err *err);

/* train_ema.c.  Local.  Without "ema" these do nothing. */
int dnn_trainer_ema_make(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_ema_start(struct dnn_trainer *t); /* from the current weights     */
void dnn_trainer_ema_step(struct dnn_trainer *t);  /* after t->at.step updates     */
/* Swap weights and EMA, or back.  Returns whether this was a change. */
bool dnn_trainer_ema_use(struct dnn_trainer *t, bool ema);

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
/* At the end, with its result: write report, pictures, run.json. */
void dnn_trainer_log_finish(struct dnn_trainer *t, int rc, const struct dnn_err *why);

/* train_pictures.c: around the batches of an evaluation.  Local but the last, which is
 * Collective. */
void dnn_trainer_pictures_start(struct dnn_trainer *t);
int dnn_trainer_pictures_add(struct dnn_trainer *t, const struct dnn_batch *batch,
                             const struct dnn_metric_batch *seen, struct dnn_err *err);
int dnn_trainer_pictures_end(struct dnn_trainer *t, struct dnn_err *err);

#endif
