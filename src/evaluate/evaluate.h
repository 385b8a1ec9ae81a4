/* evaluate.h - how good outputs are: per class, per sample, calibration, worst samples.
 *
 * Each rank adds samples, or boxes of samples; combine() adds up those of all ranks.
 * The results do not depend on the number of ranks or on the order of samples and
 * boxes: they are bitwise the same.
 *
 * Definitions.  precision, recall, f1, dice, iou: per class, from the counts of all
 * samples; the total is the mean of the classes that occur in targets or outputs, as in
 * metric/metric.h.  weighted_*: weighted by the number of targets.  sample_*: the mean
 * of the values of samples.
 *
 * auc: each class against the others, from histograms of the log-odds.  nll: negative
 * log likelihood; probabilities that are given and below 2^-23 count as that.  brier:
 * squared distance of the probabilities from the target, of two classes its half.
 * calibration_error, max_calibration_error: mean and largest difference of confidence
 * and accuracy of bins of equal width (ECE, MCE).
 *
 * Surface distances: the surface of a class are its points with a face neighbour
 * outside of the class or of the sample.  hausdorff95: the larger one of the 95th
 * percentiles of the distances from each surface to the other.  surface_distance: the
 * mean of these distances over both surfaces.  Both per sample and class, then averaged
 * over samples and over classes.  A sample in which only target or only output has a
 * class has no distance and counts as unmatched.  Points that are ignored are outside
 * of all classes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_EVALUATE_EVALUATE_H
#define DNN_EVALUATE_EVALUATE_H

#include "base/text.h"
#include "comm/comm.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum dnn_evaluate_task {
    DNN_EVALUATE_LABELS, /* a class per sample: accuracy, top-k, precision, recall, F1,
                          * AUC, calibration, confusion */
    DNN_EVALUATE_MASKS,  /* a class per point: Dice, IoU, volumes, surface distances,
                          * confusion                                                 */
    DNN_EVALUATE_VALUES /* numbers: MSE, MAE, RMSE, R2, relative L2, largest error    */
};

struct dnn_evaluate_cfg {
    enum dnn_evaluate_task task;
    int64_t classes;  /* or channels of values.  2 with one channel of scores         */
    int64_t channels; /* of the output: as many as classes; or 1: the score of class 1
                       * of 2, and averages are of class 1                            */
    const char *const *class_name; /* [classes], or NULL                              */
    int64_t ignore;     /* class of targets whose points are not counted; -1: none    */
    int64_t background; /* class of masks that is not part of averages; -1: none      */
    bool surfaces;      /* masks: surface distances: 95th percentile of the Hausdorff
                         * distance, mean                                             */
    int ndim;           /* spatial axes of masks and values                           */
    bool logits;        /* scores are not probabilities: softmax, or sigmoid of one
                         * channel, first                                             */
    int bins;           /* of the calibration of labels                               */
    int worst;          /* number of worst samples to list                            */
};

struct dnn_evaluation;

/* Local.  Strings must outlive it.  The caller owns *out: dnn_evaluate_close(). */
int dnn_evaluate_open(const struct dnn_evaluate_cfg *cfg, struct dnn_evaluation **out,
                      struct dnn_err *err);
void dnn_evaluate_close(struct dnn_evaluation *evaluation); /* NULL is fine */

/* A sample, or a box of one. */
struct dnn_evaluate_part {
    int64_t sample;
    const char *name;
    int64_t full[3], start[3], extent[3]; /* spatial axes; labels: none               */
    double spacing[3];   /* of the spatial axes, for surface distances; if one is 0, all
                          * are 1                                                      */
    const float *output; /* [extent][channels]: scores or values                    */
    const int32_t *labels; /* [extent]: target classes; or                            */
    const float *values;   /* [extent][channels]: target values                       */
};
/* Local.  A sample's boxes must not overlap, but may be added by different ranks.  The
 * part is not needed after the call.  A number that is not finite or a target that is
 * not a class is an error that names the sample and the position.  After a failure the
 * evaluation can only be closed. */
int dnn_evaluate_add(struct dnn_evaluation *evaluation,
                     const struct dnn_evaluate_part *part, struct dnn_err *err);
/* Local, before combining.  Append all that has been added, as bytes. */
void dnn_evaluate_save(const struct dnn_evaluation *evaluation, struct dnn_buf *out);
/* Local.  Add what an evaluation with the same settings saved, on any rank; several
 * states can be loaded.  A sample may have boxes in several of them and more may be
 * added, but none twice.  After a failure the evaluation can only be closed, except
 * if the bytes are damaged (DNN_EDATA): then nothing was added. */
int dnn_evaluate_load(struct dnn_evaluation *evaluation, const void *bytes, size_t len,
                      struct dnn_err *err);
/* Collective.  Add up the parts of all ranks and compute what needs whole samples; then
 * all ranks have the results.  A sample that is incomplete or was added twice is an
 * error. */
int dnn_evaluate_combine(struct dnn_evaluation *evaluation, struct dnn_comm *comm,
                         struct dnn_err *err);

/* ---- results, after combining.  Local. ---- */

/* Named values of all samples together: "accuracy", "dice", "hausdorff95",
 * "calibration_error"...; returns their number. */
struct dnn_evaluate_value {
    const char *name;
    double value; /* NaN: not defined                                                 */
};
int dnn_evaluate_totals(const struct dnn_evaluation *evaluation,
                        const struct dnn_evaluate_value **out);
/* Values per class, or per channel of values: *value is [classes][columns]; NaN: not
 * defined.  Returns the number of columns; *column are their names. */
int dnn_evaluate_classes(const struct dnn_evaluation *evaluation,
                         const char *const **column, const double **value);
/* Bins of the confidence of predicted classes; returns their number, 0: none. */
struct dnn_evaluate_bin {
    double low, high;            /* confidences: low < c <= high                      */
    int64_t count;               /* of samples                                        */
    double confidence, accuracy; /* means; NaN: no samples                            */
};
int dnn_evaluate_bins(const struct dnn_evaluation *evaluation,
                      const struct dnn_evaluate_bin **out);
/* [classes][classes], rows: target; NULL: of values, or more than 1024 classes. */
const double *dnn_evaluate_confusion(const struct dnn_evaluation *evaluation);

/* The samples, worst first; returns how many are listed.  Samples without a value are
 * not. */
struct dnn_evaluate_worst {
    int64_t sample;
    const char *name, *metric; /* what they are sorted by                             */
    double value;
};
int dnn_evaluate_worst(const struct dnn_evaluation *evaluation,
                       const struct dnn_evaluate_worst **out);

/* Tables for a terminal: totals, classes, calibration, worst samples. */
void dnn_evaluate_print(const struct dnn_evaluation *evaluation, FILE *where);
/* All results as one JSON object. */
void dnn_evaluate_json(const struct dnn_evaluation *evaluation, struct dnn_buf *out);
/* DIR/evaluation.csv: a row per class; DIR/samples.csv: a row per sample.  Only on rank
 * 0, which has the rows of all samples. */
int dnn_evaluate_csv(const struct dnn_evaluation *evaluation, const char *dir,
                     struct dnn_err *err);

#endif
