/* schedule.h - the learning rate as a function of the step.
 *
 * One file per kind or family, one list in schedules.c.  The rate depends only on the
 * progress of the run, except for plateau schedules: these also read a metric after
 * each epoch, and their state is part of the run's state.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SCHEDULE_SCHEDULE_H
#define DNN_SCHEDULE_SCHEDULE_H

#include "base/field.h"

struct dnn_schedule; /* one schedule, or several that are chained */

/* Local.  From {"type": "Step", "gamma": 0.1, "step_size": 5}, a name for one that
 * needs no keys, or a list of these: each gets the rate of the one before (chained).
 * With "from" and "to" (epochs) it applies only in these epochs, counts from "from",
 * and does not change the rate in others.  obj may be absent or null: a constant rate.
 * Keeps nothing of obj.  The caller owns *out. */
int dnn_schedule_read(const struct dnn_jobj *obj, struct dnn_schedule **out,
                      struct dnn_err *err);
void dnn_schedule_free(struct dnn_schedule *schedule); /* NULL is fine */

/* Progress of the run.  epoch: complete epochs; step: number of the next update, from
 * 0. */
struct dnn_schedule_at {
    int64_t step, epoch;
    int64_t per_epoch; /* updates in an epoch           */
    int64_t total;     /* updates in the complete run   */
    int64_t ranks;     /* in the run; 0: as 1 (warm_up) */
};

/* State of plateau schedules, an element for each.  Initially 0. */
enum { DNN_SCHEDULE_STATES = 8 };
struct dnn_schedule_state {
    double best[DNN_SCHEDULE_STATES];
    int64_t reduced[DNN_SCHEDULE_STATES]; /* number of reductions of the rate        */
    int64_t bad[DNN_SCHEDULE_STATES];     /* epochs without improvement              */
    int64_t wait[DNN_SCHEDULE_STATES];    /* epochs left to wait                     */
    int64_t seen[DNN_SCHEDULE_STATES];    /* epochs so far                           */
    int64_t applied[DNN_SCHEDULE_STATES]; /* epochs in which it applied              */
};

/* The rate for an update. */
double dnn_schedule_rate(const struct dnn_schedule *schedule,
                         const struct dnn_schedule_state *state, double base,
                         const struct dnn_schedule_at *at);

/* Call once after each epoch, with the values of metrics by name ("val_loss").  A
 * metric that does not exist is an error that lists the available ones. */
struct dnn_named {
    const char *name;
    double value;
};
int dnn_schedule_epoch(const struct dnn_schedule *schedule,
                       struct dnn_schedule_state *state, int n,
                       const struct dnn_named *metric, struct dnn_err *err);

/* The value of a metric, by its name or an alias (metric.h); names of cross-entropy
 * mean the loss.  DNN_ECONFIG: there is none; the message begins with who and lists the
 * available ones. */
int dnn_schedule_find(const char *who, const char *name, int n,
                      const struct dnn_named *metric, double *out, struct dnn_err *err);

/* "Step: x 0.1 every 5 epochs"; one line per part. */
void dnn_schedule_print(const struct dnn_schedule *schedule, FILE *where);

/* Name, help and own keys of the index-th kind; NULL past the end.  Every
 * kind has those of dnn_schedule_common, too. */
const char *dnn_schedule_info(int index, const char **help,
                              const struct dnn_field **fields);
extern const struct dnn_field dnn_schedule_common[];

#endif
