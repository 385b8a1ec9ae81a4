/* monitor_impl.h - what follows from the values of an epoch: plateau schedules, early
 * stopping, the best epoch.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_MONITOR_IMPL_H
#define DNN_TRAIN_MONITOR_IMPL_H

#include "train/run_impl.h"

struct train_monitor {
    const struct train_run *run;
    const struct train_progress *at;
    struct dnn_stopping best_rule; /* metric of the best epoch, and its mode         */
    bool is_best;                  /* the last evaluated epoch is the best so far    */
    /* Saved in checkpoints: */
    struct dnn_schedule_state schedule;
    struct dnn_stopping_state early, goal, best;
    int64_t ended; /* not 0: ended by early stopping; checksum of the stopping rules */
};

/* All are Local.  Choose the monitored metric, and check that all metrics in the
 * configuration exist.  run and at must outlive it. */
int dnn_train_monitor_open(struct train_monitor *m, const struct train_run *run,
                           const struct train_progress *at, struct dnn_err *err);
void dnn_train_monitor_state(struct train_monitor *m, struct train_state *state);
/* The learning rate of the next update. */
double dnn_train_rate(const struct train_monitor *m);
/* After an epoch, with its loss and the n values of its evaluation.  stop: the reason
 * to end the run, or "". */
int dnn_train_monitor_epoch(struct train_monitor *m, double loss, int n,
                            const struct train_value *value, char stop[256],
                            struct dnn_err *err);
/* Whether a stopping rule has ended the run, and the rules are still the same. */
bool dnn_train_ended(const struct train_monitor *m);

#endif
