/* train_log.h - state of logging and reporting.
 *
 * train_log.c       records of steps and epochs, end of the run;
 * train_header.c    header of the log: ranks, data, network;
 * train_record.c    run.json: settings and results of the run;
 * train_pictures.c  pictures of evaluated samples, confusion matrix;
 * train_figure.c    drawing of one sample: input, target, prediction;
 * train_report.c    pictures/ and report.html.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_TRAIN_LOG_H
#define DNN_RUN_TRAIN_LOG_H

#include "base/canvas.h"
#include "base/text.h"
#include "run/train_impl.h"

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

/* ---- train_header.c.  Local. ---- */

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

/* ---- train_record.c.  Local, rank 0. ---- */

int dnn_trainer_record_open(struct dnn_trainer *t, struct dnn_err *err);
/* status: "running", "finished", "stopped", "failed"; why may be NULL. */
int dnn_trainer_record(struct dnn_trainer *t, const char *status, const char *why,
                       struct dnn_err *err);

/* ---- train_pictures.c.  Local. ---- */

/* Whether the task is classification or segmentation. */
bool dnn_trainer_classes(const struct dnn_trainer *t);
int dnn_trainer_pictures_open(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_pictures_close(struct dnn_trainer *t);

/* ---- train_figure.c ---- */

/* One array of a sample; of a volume the middle slice is drawn. */
struct train_view {
    int64_t height, width, channels;
    const float *value;   /* [height][width][channels]; or NULL                     */
    const int32_t *class; /* [height][width]; or NULL                               */
};

/* The image or middle slice of an array of this shape, channels last; false: not an
 * image. */
bool dnn_figure_view(const struct dnn_shape *shape, const void *data, bool classes,
                     struct train_view *out);
/* The predicted class of n scores and its probability; scores are logits,
 * log-probabilities or probabilities. */
int64_t dnn_figure_class(const float *score, int64_t n, double *probability);

struct train_figure {
    const struct train_view *input, *target, *output; /* each may be NULL            */
    bool classes;     /* target and output are classes                           */
    int64_t nclasses; /* 0: unknown                                              */
    const char *const *class_name; /* or NULL                                        */
    const char *line[2];           /* text below the panels, or NULL                 */
    int correct; /* colour of the second line: 1 green, -1 red, 0 default */
};
int dnn_figure_draw(const struct train_figure *figure, struct dnn_canvas *out,
                    struct dnn_err *err);

/* ---- train_report.c.  Local, rank 0. ---- */

/* Remove report and pictures of an earlier run. */
void dnn_trainer_report_clear(const struct dnn_trainer *t);
/* Write pictures and report.html; failures are logged as warnings. */
void dnn_trainer_report_write(struct dnn_trainer *t, const char *status);
/* Log the paths of all result files. */
void dnn_trainer_list_files(const struct dnn_trainer *t);

#endif
