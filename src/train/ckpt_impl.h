/* ckpt_impl.h - the checkpoints of a run: saving, when it is due, and resuming.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_CKPT_IMPL_H
#define DNN_TRAIN_CKPT_IMPL_H

#include "base/text.h"
#include "train/monitor_impl.h"
#include "train/state_impl.h"

struct dnn_replica;

struct train_ckpt {
    const struct dnn_config *config;
    struct dnn_comm *comm;
    struct dnn_replica *replica;
    struct train_progress *at;
    struct train_monitor *monitor;
    struct train_state state; /* owned                                               */
    struct dnn_ckpts *ckpts;  /* owned; NULL: none                                   */
    double last;              /* start time of the last one                          */
    double step_time;         /* seconds of the slowest step so far                  */
    double save_time;         /* seconds of the slowest checkpoint                   */
    /* Saved: the autotuned size of gradient buckets, and the number of ranks it is
     * for. */
    int64_t bucket, bucket_ranks;
};

/* ---- ckpt.c ---- */

/* Collective.  Open the directory, and reserve memory.  All parts of the run have added
 * their arrays to c->state. */
int dnn_train_ckpt_open(struct train_ckpt *c, struct dnn_err *err);
/* Collective.  failed: the run has failed, so that an error here is its consequence. */
void dnn_train_ckpt_close(struct train_ckpt *c, bool failed);
/* Collective.  Resume from the newest checkpoint; *step is -1 if there is none. */
int dnn_train_resume(struct train_ckpt *c, int64_t *step, struct dnn_err *err);
int dnn_train_save(struct train_ckpt *c, bool best, struct dnn_err *err);
/* Collective.  After the last step: load the best weights, if configured. */
int dnn_train_restore_best(struct train_ckpt *c, struct dnn_err *err);

/* ---- when.c.  Local. ---- */

/* On rank 0: what to do after this step, according to time limit and checkpoint
 * interval. */
enum train_action { TRAIN_CONTINUE, TRAIN_SAVE, TRAIN_STOP };
enum train_action dnn_train_action(const struct train_run *run,
                                   const struct train_ckpt *c);
/* Whether a checkpoint is due after this epoch. */
bool dnn_train_epoch_due(const struct train_ckpt *c);

/* ---- compat.c.  Local. ---- */

/* Write the settings that a checkpoint stores to out, as JSON. */
void dnn_train_write_settings(struct train_monitor *m, struct dnn_buf *out);
/* Compare the configuration with the settings of a checkpoint: a change is logged, or
 * is an error if it is not allowed; rules that monitor another metric are reset. */
int dnn_train_check_settings(struct train_monitor *m, const char *state,
                             struct dnn_err *err);

#endif
