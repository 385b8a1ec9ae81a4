/* train_log.h - what a run remembers in order to tell it.
 *
 * train_log.c       records, from step to step, and the end;
 * train_header.c    the first lines of the log, and the words they are made of;
 * train_record.c    run.json: all that is needed to do it again;
 * train_pictures.c  a few evaluated samples, and which class was taken for which;
 * train_figure.c      how such a sample is drawn;
 * train_report.c    files for people: pictures, report.html.
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
    struct train_pace epoch;  /* since the epoch, or this process, began            */
    struct train_pace lately; /* weighted: the last seconds count most              */
    int64_t from;             /* the step this process began with                   */
    double first;             /* when its first step was over                       */
    bool estimated;
    int nvalues; /* of the last epoch that was log                                  */
    struct train_value value[TRAIN_VALUES + 1];
    struct dnn_metrics *matrix; /* of classes, where the job asks for none; or NULL  */
    bool evaluated;             /* the matrix is filled                              */
    /* Rank 0's. */
    int npictures, wanted;
    struct train_picture *picture; /* owned, wanted of them                          */
    double shown, cost;   /* when the report was last written, and seconds it took    */
    struct dnn_buf about; /* run.json: what stays as it is                         */
    struct dnn_buf resumed; /* its list of earlier stops                      */
    char *began;            /* owned: when the run did                        */
    char *metrics;          /* owned: those of earlier parts of the run       */
    char *dataset;          /* owned: words about the data                    */
    char hash[33];          /* of the dataset, or ""                          */
};

/* ---- train_header.c.  Local. ---- */

void dnn_trainer_header(const struct dnn_trainer *t);
/* "n[001-200] (4 ranks each), login (1 rank)": of n hosts, and of the run's. */
void dnn_trainer_list_hosts(int n, const char *const *name, const int *ranks,
                            struct dnn_buf *out);
void dnn_trainer_hosts(const struct dnn_trainer *t, struct dnn_buf *out);
/* "rank 0 on cores 0-3, rank 1 on cores 4-7". */
void dnn_trainer_binding(const struct dnn_trainer *t, struct dnn_buf *out);
/* "input 28x28x1, target one of 10 classes". */
void dnn_trainer_shapes(const struct dnn_trainer *t, struct dnn_buf *out);
/* Bytes of this rank. */
double dnn_trainer_bytes(const struct dnn_trainer *t);

/* ---- train_record.c.  Local, rank 0. ---- */

int dnn_trainer_record_open(struct dnn_trainer *t, struct dnn_err *err);
/* status: "running", "finished", "stopped", "failed"; why may be NULL. */
int dnn_trainer_record(struct dnn_trainer *t, const char *status, const char *why,
                       struct dnn_err *err);

/* ---- train_pictures.c.  Local. ---- */

/* Whether the job is about classes. */
bool dnn_trainer_classes(const struct dnn_trainer *t);
int dnn_trainer_pictures_open(struct dnn_trainer *t, struct dnn_err *err);
void dnn_trainer_pictures_close(struct dnn_trainer *t);

/* ---- train_figure.c ---- */

/* One array of a sample, of which the middle plane is seen. */
struct train_view {
    int64_t height, width, channels;
    const float *value;   /* [height][width][channels]; or NULL                     */
    const int32_t *class; /* [height][width]; or NULL                               */
};

/* The middle plane of an array of this shape, channels last; false if it has none. */
bool dnn_figure_view(const struct dnn_shape *shape, const void *data, bool classes,
                     struct train_view *out);
/* The class that n scores mean, and how probable it is: of logits, log-probabilities
 * and probabilities alike. */
int64_t dnn_figure_class(const float *score, int64_t n, double *probability);

struct train_figure {
    const struct train_view *input, *target, *output; /* each may be NULL            */
    bool classes;     /* target and output are of classes                        */
    int64_t nclasses; /* 0: not known                                            */
    const char *const *class_name; /* or NULL                                        */
    const char *line[2];           /* below, or NULL                                 */
    int mood; /* the second line is good (1) or bad news (-1)                        */
};
int dnn_figure_draw(const struct train_figure *sheet, struct dnn_canvas *out,
                    struct dnn_err *err);

/* ---- train_report.c.  Local, rank 0. ---- */

/* A new run begins: what another one left is not shown as its own. */
void dnn_trainer_report_clear(const struct dnn_trainer *t);
/* Pictures and report.html, as the run is now; what cannot be written is a warning. */
void dnn_trainer_report_write(struct dnn_trainer *t, const char *status);
/* Where everything is. */
void dnn_trainer_list_files(const struct dnn_trainer *t);

#endif
