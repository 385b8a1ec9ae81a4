/* schedule_impl.h - a kind of schedule, and macros for its keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SCHEDULE_SCHEDULE_IMPL_H
#define DNN_SCHEDULE_SCHEDULE_IMPL_H

#include "schedule/schedule.h"

#include <math.h>
#include <stddef.h>

/* Progress within the epochs in which the schedule applies, from 0. */
struct schedule_progress {
    int64_t step, epoch;
    int64_t per_epoch, total; /* total: updates from its start to its end */
    int64_t ranks;
    int64_t reduced; /* number of reductions by this schedule because of a metric */
};

struct schedule_kind {
    const char *name, *help;
    const struct dnn_field *fields; /* its own keys, into its struct */
    size_t size;                    /* of that struct                */
    /* Checks in addition to the table; NULL: none. */
    int (*check)(const struct dnn_jobj *obj, const void *cfg, struct dnn_err *err);
    /* The rate for an update; rate: that of the schedule before. */
    double (*rate)(const void *cfg, const struct schedule_progress *at, double rate);
    /* After an epoch, with element i of the state; NULL: it depends on no metric. */
    int (*epoch)(const void *cfg, struct dnn_schedule_state *state, int i, int n,
                 const struct dnn_named *metric, struct dnn_err *err);
    /* A description without its name and newline. */
    void (*print)(const void *cfg, FILE *where);
};

extern const struct schedule_kind dnn_schedule_constant;      /* constant.c */
extern const struct schedule_kind dnn_schedule_step;          /* step.c */
extern const struct schedule_kind dnn_schedule_multistep;     /* step.c */
extern const struct schedule_kind dnn_schedule_exponential;   /* step.c */
extern const struct schedule_kind dnn_schedule_every_nepochs; /* step.c */
extern const struct schedule_kind dnn_schedule_warmup;        /* warmup.c */
extern const struct schedule_kind dnn_schedule_warm_up;       /* warmup.c */
extern const struct schedule_kind dnn_schedule_scale_up;      /* warmup.c */
extern const struct schedule_kind dnn_schedule_cosine;        /* cosine.c */
extern const struct schedule_kind dnn_schedule_polynomial;    /* polynomial.c */
extern const struct schedule_kind dnn_schedule_one_cycle;     /* one_cycle.c */
extern const struct schedule_kind dnn_schedule_plateau;       /* plateau.c */
extern const struct schedule_kind dnn_schedule_on_plateau;    /* plateau.c */

/* schedules.c: NULL past the end. */
const struct schedule_kind *dnn_schedule_kind(int index);

/* by.c: kinds that change the rate each epoch, or each update. */
enum schedule_by { SCHEDULE_BY_EPOCH, SCHEDULE_BY_STEP };
extern const struct dnn_choice dnn_schedule_bys[];
/* Number of complete epochs; by step: with the fraction of the current one. */
double dnn_schedule_done(const struct schedule_progress *at, int by);
/* Number of epochs from start to end: epochs or, if 0, all. */
double dnn_schedule_length(const struct schedule_progress *at, int64_t epochs);

/* rate * factor^times, with fewer times if the result would be below min. */
double dnn_schedule_reduced(double rate, double factor, int64_t times, double min);

#define REAL(key, at, def, min, max, help)                                             \
    {key, DNN_F_REAL, at, def, min, max, NULL, help, NULL}
#define INT(key, at, def, min, help)                                                   \
    {key, DNN_F_INT, at, def, min, INFINITY, NULL, help, NULL}
#define ENUM(key, at, def, choices, help)                                              \
    {key, DNN_F_ENUM, at, def, 0, 0, choices, help, NULL}
#define BY(at)                                                                         \
    ENUM("by", at, "epoch", dnn_schedule_bys,                                          \
         "change the rate after each epoch or each step")
#define MINIMUM(at) REAL("minimum", at, "0", 0, INFINITY, "learning rate at the end")
#define END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}

#endif
