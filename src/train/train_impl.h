/* train_impl.h - a training run as a whole, for the files that put its parts together.
 *
 * run.c       the run as a whole;
 * open.c      set-up: network, metrics, files;
 * train.c     the training loop;
 * eval.c      evaluation: loss and metrics.
 *
 * The parts, each of which has its own struct:
 *
 * progress.c  how far the run is (run_impl.h);
 * state.c     the arrays in a checkpoint (state_impl.h);
 * ckpt.c      checkpoints, resuming; when.c: when they are saved; compat.c: whether one
 * is compatible with the configuration (ckpt_impl.h); monitor.c   early stopping, the
 * best epoch (monitor_impl.h); ema.c       exponential moving average of the weights
 * (ema_impl.h); hessian.c   the second-order optimizer, L-BFGS (hessian_impl.h); log.c
 * logs, results and reports, with the files of log_impl.h; model.c     the trained
 * network as files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_TRAIN_IMPL_H
#define DNN_TRAIN_TRAIN_IMPL_H

#include "train/ckpt_impl.h"
#include "train/ema_impl.h"
#include "train/hessian_impl.h"
#include "train/log_impl.h"

struct train_loop {
    struct train_run run;
    struct train_progress at;
    struct train_monitor monitor;
    struct train_ema ema;
    struct train_hessian *hessian; /* owned; NULL: another optimizer                 */
    struct train_ckpt ckpt;
    struct train_log log;
    struct dnn_err pending; /* error of this rank since its last step, reported in the
                             * next                                                  */
};

/* open.c.  Collective. */
int dnn_train_open(struct train_loop *t, struct dnn_err *err);
void dnn_train_close(struct train_loop *t, bool failed);

/* train.c.  Collective.  Train until the end; DNN_ESTOP: stopped, a checkpoint was
 * saved. */
int dnn_train_epochs(struct train_loop *t, struct dnn_err *err);

/* eval.c.  Collective.  Loss and metrics of the evaluation samples: *n values named
 * "val_...".  DNN_ESTOP: a stop was requested. */
int dnn_train_evaluate(struct train_loop *t, struct train_value *value, int *n,
                       struct dnn_err *err);

/* model.c.  Collective.  Write the network and its weights to the run directory; ema:
 * the weights are their moving average. */
int dnn_train_write_model(const struct train_run *run,
                          const struct train_record *record, bool ema,
                          struct dnn_err *err);

#endif
