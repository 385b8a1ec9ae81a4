/* log_impl.h - logs, results and reports of a run.
 *
 * log.c       records of steps and epochs, end of the run;
 * header.c    descriptions of the run as text, header of the log;
 * record.c    run.json: settings and results of the run;
 * pictures.c  pictures of evaluated samples, confusion matrix;
 * report.c    pictures/ and report.html.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_LOG_IMPL_H
#define DNN_TRAIN_LOG_IMPL_H

#include "base/text.h"
#include "picture/canvas.h"
#include "telemetry/record.h"
#include "train/run_impl.h"

struct dnn_stage_seen;

/* ---- header.c.  Local. ---- */

void dnn_train_header(const struct train_run *run, const char *dataset);
/* "n[001-200] (4 ranks each), login (1 rank)", for n hosts; for the run. */
void dnn_train_list_hosts(int n, const char *const *name, const int *ranks,
                          struct dnn_buf *out);
void dnn_train_hosts(const struct train_run *run, struct dnn_buf *out);
/* "rank 0 on cores 0-3, rank 1 on cores 4-7". */
void dnn_train_binding(const struct train_run *run, struct dnn_buf *out);
/* "input 28x28x1, target one of 10 classes". */
void dnn_train_shapes(const struct train_run *run, struct dnn_buf *out);

/* ---- record.c.  Local, rank 0. ---- */

struct train_record {
    const struct train_run *run;
    const struct train_progress *at;
    int nvalues; /* of the last epoch                                                */
    struct train_value value[TRAIN_VALUES + 1];
    struct dnn_buf about;   /* the constant part                                     */
    struct dnn_buf resumed; /* earlier restarts                                      */
    char *started;          /* owned: start time of the run                          */
    char *metrics;          /* owned: metrics from before a restart                  */
    char *dataset;          /* owned: description of the dataset                     */
    char hash[33];          /* of the dataset, or ""                                 */
};
/* Write run.json, with what it says of the time before a restart.  run and at must
 * outlive it. */
int dnn_train_record_open(struct train_record *record, const struct train_run *run,
                          const struct train_progress *at, struct dnn_err *err);
void dnn_train_record_close(struct train_record *record);
/* status: "running", "finished", "stopped", "failed"; why may be NULL. */
int dnn_train_record(const struct train_record *record, const char *status,
                     const char *why, struct dnn_err *err);
/* Append what it writes to out. */
void dnn_train_record_text(const struct train_record *record, const char *status,
                           const char *why, struct dnn_buf *out);

/* ---- pictures.c ---- */

struct train_picture {
    char caption[320];
    struct dnn_canvas canvas;
};
/* All 0: none. */
struct train_pictures {
    const struct train_run *run;
    int n, wanted;                 /* wanted: on rank 0                              */
    struct train_picture *picture; /* owned: wanted elements                         */
    struct dnn_metrics *matrix;    /* owned: confusion matrix, if the metrics have none;
                                    * or NULL                                        */
    bool evaluated;                /* the matrix is filled                           */
};
/* Local.  run must outlive it. */
int dnn_train_pictures_open(struct train_pictures *p, const struct train_run *run,
                            struct dnn_err *err);
void dnn_train_pictures_close(struct train_pictures *p);
/* Local.  Whether the task is classification or segmentation. */
bool dnn_train_classes(const struct train_run *run);
/* Called before, during and after an evaluation.  Local, except the last one, which is
 * Collective. */
void dnn_train_pictures_start(struct train_pictures *p);
int dnn_train_pictures_add(struct train_pictures *p, const struct dnn_stage_seen *seen,
                           struct dnn_err *err);
int dnn_train_pictures_end(struct train_pictures *p, struct dnn_err *err);

/* ---- report.c.  Local, rank 0. ---- */

struct train_report {
    const struct train_record *record;
    const struct train_pictures *pictures;
    double shown, cost; /* time of the last report, seconds it took                  */
};
/* Remove report and pictures of an earlier run. */
void dnn_train_report_clear(const struct train_run *run);
/* Write pictures and report.html; failures are logged as warnings. */
void dnn_train_report_write(struct train_report *report, const char *status);
/* Log the paths of all result files. */
void dnn_train_list_files(const struct train_report *report);

/* ---- log.c.  Local. ---- */

/* Seconds of some steps: waiting for data, computing, communication; waiting for slower
 * ranks, which is a part of communication; in total. */
struct train_timing {
    double data, compute, comm, straggler, all;
    double samples;
    int64_t steps;
};

struct train_log {
    const struct train_run *run;
    const struct train_progress *at;
    struct dnn_telemetry *telemetry; /* owned; NULL: not rank 0                      */
    struct train_timing epoch;  /* since the start of the epoch or of this process   */
    struct train_timing recent; /* exponentially weighted average                    */
    int64_t from;               /* first step of this process                        */
    double first;               /* time at the end of this step                      */
    bool estimated;
    struct train_pictures pictures;
    struct train_record record; /* on rank 0 */
    struct train_report report; /* on rank 0 */
};
/* run and at must outlive it. */
int dnn_train_log_open(struct train_log *log, const struct train_run *run,
                       const struct train_progress *at, struct dnn_err *err);
void dnn_train_log_close(struct train_log *log);
int dnn_train_log_step(struct train_log *log, const struct dnn_replica_step *step,
                       const struct train_timing *timing, struct dnn_err *err);
int dnn_train_log_eval(struct train_log *log, int64_t batch, struct dnn_err *err);
int dnn_train_log_epoch(struct train_log *log, const struct train_value *value, int n,
                        double rate, struct dnn_err *err);
int dnn_train_log_end(struct train_log *log, struct dnn_err *err);
/* At the end of the run, with its result: write report, pictures, run.json. */
void dnn_train_log_finish(struct train_log *log, int rc, const struct dnn_err *why);

#endif
