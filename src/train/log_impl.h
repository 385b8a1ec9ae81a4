/* log_impl.h - state of logging and reporting.
 *
 * log.c       records of steps and epochs, end of the run;
 * header.c    header of the log: ranks, data, network;
 * record.c    run.json: settings and results of the run;
 * pictures.c  pictures of evaluated samples, confusion matrix;
 * report.c    pictures/ and report.html.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_LOG_IMPL_H
#define DNN_TRAIN_LOG_IMPL_H

#include "picture/figure.h"
#include "base/text.h"
#include "train/train_impl.h"

struct train_picture {
    char caption[320];
    struct dnn_canvas canvas;
};

struct train_log {
    struct train_timing epoch;  /* since the start of the epoch or of this process    */
    struct train_timing recent; /* exponentially weighted average                     */
    int64_t from;               /* first step of this process                         */
    double first;               /* time at the end of this step                       */
    bool estimated;
    int nvalues; /* of the last epoch                                                */
    struct train_value value[TRAIN_VALUES + 1];
    struct dnn_metrics *matrix; /* confusion matrix, if t->metrics has none; or NULL  */
    bool evaluated;             /* the matrix is filled                              */
    /* On rank 0. */
    int npictures, wanted;
    struct train_picture *picture; /* owned: wanted elements                         */
    double shown, cost;   /* time of the last report, seconds it took                 */
    struct dnn_buf about; /* run.json: the constant part                           */
    struct dnn_buf resumed; /* run.json: earlier restarts                     */
    char *started;          /* owned: start time of the run                   */
    char *metrics;          /* owned: metrics from before a restart           */
    char *dataset;          /* owned: description of the dataset              */
    char hash[33];          /* of the dataset, or ""                          */
};

/* ---- header.c.  Local. ---- */

void dnn_trainer_header(const struct dnn_trainer *t);
/* Write 1234567 as "1,234,567"; returns out. */
const char *dnn_trainer_count(char out[32], int64_t n);
/* "n[001-200] (4 ranks each), login (1 rank)", for n hosts; for the run. */
void dnn_trainer_list_hosts(int n, const char *const *name, const int *ranks,
                            struct dnn_buf *out);
void dnn_trainer_hosts(const struct dnn_trainer *t, struct dnn_buf *out);
/* "rank 0 on cores 0-3, rank 1 on cores 4-7". */
void dnn_trainer_binding(const struct dnn_trainer *t, struct dnn_buf *out);
/* "input 28x28x1, target one of 10 classes". */
void dnn_trainer_shapes(const struct dnn_trainer *t, struct dnn_buf *out);
/* Memory of this rank in bytes. */
double dnn_trainer_bytes(const struct dnn_trainer *t);

/* ---- record.c.  Local, rank 0. ---- */

int dnn_trainer_record_open(struct dnn_trainer *t, struct dnn_err *err);
/* status: "running", "finished", "stopped", "failed"; why may be NULL. */
int dnn_trainer_record(struct dnn_trainer *t, const char *status, const char *why,
                       struct dnn_err *err);
/* Append what it writes to out. */
void dnn_trainer_record_text(const struct dnn_trainer *t, const char *status,
                             const char *why, struct dnn_buf *out);

/* ---- pictures.c.  Local. ---- */

/* Whether the task is classification or segmentation. */
bool dnn_trainer_classes(const struct dnn_trainer *t);
int dnn_trainer_pictures_open(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_pictures_close(struct dnn_trainer *t);

/* ---- report.c.  Local, rank 0. ---- */

/* Remove report and pictures of an earlier run. */
void dnn_trainer_report_clear(const struct dnn_trainer *t);
/* Write pictures and report.html; failures are logged as warnings. */
void dnn_trainer_report_write(struct dnn_trainer *t, const char *status);
/* Log the paths of all result files. */
void dnn_trainer_list_files(const struct dnn_trainer *t);

#endif
