/* train_impl.h - what the files of dnn-bench train share.
 *
 * train.c        which runs there are, in turns, and what they show;
 * train_look.c   what the lines of a run tell;
 * train_make.c   samples, datasets and jobs;
 * train_child.c  one run: a process that prints a line for each step;
 * train_print.c  the figures, for people and for programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BENCH_TRAIN_IMPL_H
#define DNN_BENCH_TRAIN_IMPL_H

#include "base/text.h"
#include "bench/bench.h"
#include "bench/turns_impl.h"

#include <stdint.h>

/* ---- train_child.c: a process, ours or theirs ---- */

enum dnn_train_moment { DNN_TRAIN_STEP, DNN_TRAIN_EPOCH, DNN_TRAIN_PROBE };

/* A line of it. */
struct dnn_train_line {
    enum dnn_train_moment moment;
    int64_t epoch, step;
    double seconds;              /* since training began, as it says           */
    double at;                   /* since the process was started, as we saw   */
    double rate;                 /* samples per second; NaN: not said          */
    double comm, late;           /* shares of the step; NaN: not said          */
    char format[16], reader[16]; /* of a probe                    */
};

struct dnn_train_lines {
    struct dnn_train_line *line; /* owned */
    int n;
    size_t cap;
};

struct dnn_train_child {
    const char *const *argv; /* ends with NULL                        */
    int threads;             /* of each of its ranks                  */
    const char *cache;       /* where it keeps its choices of kernels */
};

/* Local.  Run it to its end, and add what it said to *out: dnn_train_forget(). */
int dnn_train_child(const struct dnn_train_child *child, struct dnn_train_lines *out,
                    struct dnn_err *err);
void dnn_train_forget(struct dnn_train_lines *lines);

/* ---- train.c ---- */

/* Numbers of which the median counts, or of rates the largest. */
struct dnn_train_values {
    double *value; /* owned */
    int n;
    size_t cap;
};

/* One way to train the same network. */
struct dnn_train_way {
    const char *key, *name; /* for programs, for people; NULL: there is none        */
    int ranks, threads;
    bool rival, saves;            /* PyTorch's; with checkpoints                      */
    const char *set[6];           /* keys of the job that are others, ends with NULL  */
    char format[16], reader[16];  /* the rival's best                                */
    struct dnn_train_values rate; /* samples per second of training, an epoch each  */
    struct dnn_train_values whole; /* the same with validation and all else         */
    struct dnn_train_values comm;  /* share in which it waits for ranks             */
    struct dnn_train_values late;  /* of it: because another one was later          */
    struct dnn_train_values bare;  /* the rest: communication that nothing hides    */
    struct dnn_train_values start; /* seconds until the first step was made         */
    struct dnn_train_values extra; /* seconds by which steps behind a checkpoint, or
                                      where one would be, take longer than others   */
};

/* A network with its samples, and the ways to train it. */
struct dnn_train_work {
    const char *key, *name, *note;
    char *dir;  /* owned: of job.json, net.json and data.bp; the files of runs */
    char *data; /* owned: what data.bp was made of, for the rival               */
    int64_t samples, tests, batch, test_batch, steps;
    int period; /* steps from one checkpoint to the next                        */
    int nways;
    struct dnn_train_way way[8];
};

struct dnn_train_all {
    const struct dnn_bench_train *cfg;
    struct dnn_bench_train use; /* with all defaults and --quick                 */
    struct dnn_train_work work[2];
    int nworks;
    char *dir, *cache, *train, *prepare; /* owned */
    const char *no_torch, *no_ranks;     /* why not; NULL: there are              */
    struct dnn_err why_torch, why_ranks;
    bool own; /* dir is ours: it goes afterwards                                  */
};

/* ---- train_look.c ---- */

/* Local.  Add the figures of a run to those of its way. */
int dnn_train_look(const struct dnn_train_lines *lines,
                   const struct dnn_train_work *work, struct dnn_train_way *way,
                   struct dnn_err *err);
double
dnn_train_median(const struct dnn_train_values *values); /* NaN: there are none */
double dnn_train_most(const struct dnn_train_values *values);
/* The way of this key, or NULL. */
const struct dnn_train_way *dnn_train_find(const struct dnn_train_all *all,
                                           const char *work, const char *way);

/* ---- train_make.c ---- */

/* Local.  Make samples, the dataset and the job, and fill in counts. */
int dnn_train_make_unet(struct dnn_train_all *all, struct dnn_train_work *work,
                        struct dnn_err *err);
int dnn_train_make_cnn(struct dnn_train_all *all, struct dnn_train_work *work,
                       struct dnn_err *err);

/* ---- train_print.c ---- */

void dnn_train_print(const struct dnn_train_all *all, FILE *where);

#endif
