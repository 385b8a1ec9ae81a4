/* train_impl.h - a training run from inside.
 *
 * train.c        the loop, which reads as prose;
 * train_open.c   data, network and files made ready;
 * train_batch.c  a batch of the feed as the network takes it;
 * train_eval.c   how good the network is on samples it does not learn from;
 * train_state.c  what a checkpoint holds, and when one is written;
 * train_say.c    what people and files are told.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_TRAIN_IMPL_H
#define DNN_RUN_TRAIN_IMPL_H

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
};

/* What a run remembers besides weights: plain numbers, saved as they are. */
struct train_counters {
    int64_t epoch; /* whole ones done                                               */
    int64_t batch; /* batches of the current one done                               */
    int64_t step;  /* updates made                                                  */
    int64_t best_step;
};
struct train_sums {
    double seconds;       /* of earlier parts of the run                              */
    double loss, samples; /* of the current epoch                                     */
    double best;
};

struct dnn_trainer {
    const struct dnn_job *job;
    const struct dnn_train_opts *opts;
    struct dnn_seat *seat;
    struct dnn_comm *comm; /* the seat's                                             */
    bool speaks;           /* rank 0                                                 */
    struct train_data train, eval;
    int *target_is; /* owned: enum dnn_loss_target of each output                   */
    struct dnn_replica *replica;
    char *cache; /* owned: the file of measured kernels                             */
    struct dnn_metrics *metrics; /* NULL: nothing to evaluate with                   */
    int64_t channels, places;    /* of the first output                              */
    float **output;              /* owned: outputs of a batch that is evaluated      */
    struct dnn_ckpts *ckpts;     /* NULL: none are kept                              */
    int narrays;
    struct dnn_ckpt_array *array; /* owned                                          */
    struct dnn_telemetry *telemetry;

    struct train_counters at;
    struct train_sums sum;
    struct dnn_schedule_memory memory;
    struct dnn_stopping_memory early, goal;
    double began;     /* the clock                                                 */
    double last_ckpt; /* when the last one was begun                               */
    double step_time; /* the slowest step so far                                   */
    double ckpt_time; /* the slowest checkpoint                                    */
    bool best_so_far; /* the epoch just evaluated                                  */
};

/* train_open.c.  Collective. */
int dnn_trainer_open(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_close(struct dnn_trainer *t);

/* train_batch.c.  Local. */
int dnn_trainer_columns(const struct dnn_trainer *t, struct train_data *data,
                        struct dnn_err *err);
int dnn_trainer_load(const struct dnn_trainer *t, struct train_data *data,
                     const struct dnn_batch *batch, struct dnn_replica_batch *out,
                     struct dnn_err *err);
void dnn_trainer_forget(struct train_data *data);

/* train_eval.c.  Collective: loss and metrics over all samples of t->eval; *n values
 * into value, named "val_...". */
enum { TRAIN_VALUES = 128 };
struct train_value {
    char name[64];
    double value;
    bool main;
};
int dnn_trainer_evaluate(struct dnn_trainer *t, struct train_value *value, int *n,
                         struct dnn_err *err);

/* train_state.c.  Collective. */
int dnn_trainer_arrays(struct dnn_trainer *t, struct dnn_err *err);
int dnn_trainer_resume(struct dnn_trainer *t, struct dnn_err *err);
int dnn_trainer_save(struct dnn_trainer *t, bool best, struct dnn_err *err);
/* Local.  Rank 0's opinion: is it time to stop (2), to save (1), or neither (0)? */
int dnn_trainer_urge(const struct dnn_trainer *t);
/* Whether the job wants a checkpoint after this epoch. */
bool dnn_trainer_epoch_due(const struct dnn_trainer *t);

/* train_say.c.  Local. */
void dnn_trainer_header(const struct dnn_trainer *t);
int dnn_trainer_say_step(struct dnn_trainer *t, const struct dnn_replica_step *step,
                         int64_t samples, double waited, struct dnn_err *err);
int dnn_trainer_say_epoch(struct dnn_trainer *t, const struct train_value *value, int n,
                          double rate, struct dnn_err *err);
int dnn_trainer_say_end(struct dnn_trainer *t, struct dnn_err *err);

#endif
