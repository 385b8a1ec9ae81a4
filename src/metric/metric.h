/* metric.h - metrics, as sums that can be added over ranks.
 *
 * A metric adds to its sums for each batch of outputs and targets, on the host.  Sums
 * are integers (counts) where possible, so that the order of additions does not matter;
 * sums of reals (MSE and others) are computed in chunks whose size does not depend on
 * the number of threads.  The sums of all ranks are added, and one or more values are
 * computed from them.  All functions are Local.
 *
 * Conventions:
 *
 * Ratios (dice, iou, precision, recall, f1) are computed per class from the counts of
 * the complete epoch, then averaged over classes.  A class that is neither in the
 * targets nor in the outputs has no value (NaN) and is not part of the average.  For
 * other classes 0/0 is 0: precision of a class that is never predicted, recall of one
 * that is in no target.  With "average": "samples" the ratios are computed per sample,
 * with the same rules, and averaged.
 *
 * The "background" class is not part of the average, but its positions are counted for
 * the other classes.  A position whose target is ignored is counted for no class, like
 * a one-hot target without a positive value.
 *
 * A NaN in the output is wrong: no class is predicted there.
 *
 * auc: a histogram of the log-odds x of the scores, with 2^16 bins that are equally
 * wide in log(1 + |x|) up to 128, that is 1.5e-4 (1 + |x|) wide; a pair in the same bin
 * counts half, like a tie.  The error is at most half the fraction of pairs (a
 * positive, a negative) in the same bin.  Several classes: each against the rest,
 * averaged over the classes that have positives and negatives.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_METRIC_METRIC_H
#define DNN_METRIC_METRIC_H

#include "base/field.h"
#include "base/tensor.h"

/* The meaning of a network's output. */
enum dnn_scores {
    DNN_SCORES_AUTO,    /* classification: BINARY for one channel, else CLASSES; mse,
                         * mae, r2...: VALUES                                         */
    DNN_SCORES_CLASSES, /* the last axis has one score per class; the largest is the
                         * prediction (of equals the first)                           */
    DNN_SCORES_BINARY,  /* each channel by itself: positive above the threshold;
                         * ratios are of positives alone                              */
    DNN_SCORES_VALUES   /* regression                                                 */
};

/* The activation that an output is before. */
enum dnn_logits { DNN_LOGITS_NONE, DNN_LOGITS_SOFTMAX, DNN_LOGITS_SIGMOID };

/* A batch: output (n samples, positions..., channels) in f32; target either class
 * numbers i32 (n, positions...) or f32 of the output's shape (one-hot, masks, values).
 */
struct dnn_metric_batch {
    int64_t n, positions, channels;
    const float *output;
    const int32_t *labels; /* or NULL */
    const float *values;   /* or NULL */
    int64_t ignore;        /* target to ignore, such as 255; -1: none */
    enum dnn_logits logits;
};

struct dnn_metrics; /* a set of metrics, with their sums */

/* From names ("accuracy", "top_5", "dice", "iou", "precision", "recall", "f1",
 * "confusion", "auc", "mse", "rmse", "mae", "r2", "rel_l2"...) or objects {"type":
 * "dice", "ignore": 0}; one, or a list.  Absent (or NULL): `defaults`, NULL-ended,
 * such as those of the loss.  classes: output channels.  The caller owns *out. */
int dnn_metrics_read(const struct dnn_jobj *list, const char *const *defaults,
                     int64_t classes, struct dnn_metrics **out, struct dnn_err *err);
void dnn_metrics_free(struct dnn_metrics *metrics); /* NULL is fine */

void dnn_metrics_start(struct dnn_metrics *metrics); /* set all sums to 0 */
int dnn_metrics_add(struct dnn_metrics *metrics, const struct dnn_metric_batch *batch,
                    struct dnn_err *err);

/* The sums, to be added over ranks: n doubles (integers are exact up to 2^53). */
double *dnn_metrics_sums(struct dnn_metrics *metrics, int64_t *n);

/* Values by name: "accuracy", "dice", "dice_2" (per class)...; main ones first.  NaN:
 * not defined for this data.  Returns their number; *out lives until the next call. */
struct dnn_metric_value {
    char name[48];
    double value;
    bool main; /* shown while training */
};
int dnn_metrics_values(const struct dnn_metrics *metrics,
                       const struct dnn_metric_value **out);

/* The confusion matrix (rows: target, columns: output), if requested: classes^2
 * values (2 classes if the output has one channel), else NULL.  Lives as long as the
 * set. */
const double *dnn_metrics_confusion(const struct dnn_metrics *metrics,
                                    int64_t *classes);

/* Name, help and keys of the index-th metric; NULL past the end. */
const char *dnn_metric_info(int index, const char **help,
                            const struct dnn_field **fields);
/* The index-th alias and the name it stands for; NULL past the end. */
const char *dnn_metric_alias(int index, const char **name);
/* The name an alias stands for ("acc": "accuracy"); others are returned unchanged. */
const char *dnn_metric_canonical(const char *name);

#endif
