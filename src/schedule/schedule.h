/* schedule.h - the learning rate as a function of the step.
 *
 * One file per kind or family, one list in schedules.c.  All but plateau are pure
 * functions of where the run is; plateau also looks at a metric once an epoch, and
 * what it remembers is small, plain and part of the run's state.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SCHEDULE_SCHEDULE_H
#define DNN_SCHEDULE_SCHEDULE_H

#include "base/field.h"

struct dnn_schedule; /* one schedule, or several that act one after the other */

/* Local.  From {"type": "Step", "gamma": 0.1, "step_size": 5}, a word for one that
 * needs no keys, or a list of such: each is given the rate the one before gives
 * (chained).  With "from" and "to" (epochs) it acts only there, counts from there, and
 * elsewhere leaves the rate as it is.  obj may be absent or null: a constant rate.
 * Keeps nothing of obj.  The caller owns *out. */
int dnn_schedule_read(const struct dnn_jobj *obj, struct dnn_schedule **out,
                      struct dnn_err *err);
void dnn_schedule_free(struct dnn_schedule *schedule); /* NULL is fine */

/* Where the run is.  epoch counts whole epochs done; step is the update about to be
 * made, from 0. */
struct dnn_schedule_at {
    int64_t step, epoch;
    int64_t per_epoch; /* updates in an epoch                       */
    int64_t total;     /* updates in the whole run                  */
    int64_t ranks;     /* that train together; 0: as 1 (warm_up)    */
};

/* What plateau schedules remember; all zero at the start.  Plain bytes. */
enum { DNN_SCHEDULE_MEMORY = 8 };
struct dnn_schedule_note {
    double best;
    int64_t reduced;   /* how often the rate was                    */
    int64_t bad, cool; /* epochs without improvement, to wait still */
    int64_t seen;      /* epochs there have been                    */
    int64_t looked;    /* those of them in which it acted           */
};
struct dnn_schedule_memory {
    struct dnn_schedule_note part[DNN_SCHEDULE_MEMORY];
};

/* The rate for an update. */
double dnn_schedule_rate(const struct dnn_schedule *schedule,
                         const struct dnn_schedule_memory *memory, double base,
                         const struct dnn_schedule_at *at);

/* Once after each epoch, with the values of metrics by name ("val_loss").  A metric
 * that there is not is an error that lists those there are. */
struct dnn_named {
    const char *name;
    double value;
};
int dnn_schedule_epoch(const struct dnn_schedule *schedule,
                       struct dnn_schedule_memory *memory, int n,
                       const struct dnn_named *metric, struct dnn_err *err);

/* The value of a metric.  If there is none of this name: DNN_ECONFIG, what there is,
 * and who in front. */
int dnn_schedule_find(const char *who, const char *name, int n,
                      const struct dnn_named *metric, double *out, struct dnn_err *err);

/* "Step: x 0.1 every 5 epochs"; one line per part. */
void dnn_schedule_print(const struct dnn_schedule *schedule, FILE *where);

/* Name, help and own keys of the kind at a place of the list; NULL past the end.  Every
 * kind has those of dnn_schedule_common, too. */
const char *dnn_schedule_info(int index, const char **help,
                              const struct dnn_field **fields);
extern const struct dnn_field dnn_schedule_common[];

#endif
