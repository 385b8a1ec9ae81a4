/* metric.h - metrics, as sums that can be added over ranks.
 *
 * A metric takes a batch of outputs and targets on the host and adds to sums: counts
 * as whole numbers wherever possible, so that the order of adding does not matter; sums
 * of reals (MSE and its kin) are made in pieces whose size does not depend on the
 * number of threads.  Sums of all ranks are added, then a value (or several) is made of
 * them. All of this is Local.
 *
 * Conventions:
 *
 * Ratios (dice, iou, precision, recall, f1) are made of the counts of the whole epoch,
 * each class for itself, then averaged over classes.  A class that is neither in the
 * targets nor in the outputs has no value (NaN) and does not count in the average; one
 * that is in either has one, and 0/0 is then 0: precision of what was never output,
 * recall of what is in no target.  "average": "samples" makes the ratio of each sample
 * and averages those, with the same rule for each sample.
 *
 * A class left out of the average by "background" still counts against the others; a
 * position whose target is ignored counts for no class.  A one-hot target with no
 * positive number belongs to no class and does not count, either.
 *
 * A NaN in the output is never right: nothing was output there.
 *
 * auc: scores are sorted into 2^16 bins of their log-odds x, equally wide in
 * log(1 + |x|) up to 128, that is 1.5e-4 (1 + |x|) wide; pairs in one bin count half,
 * as ties do.  The error is at most half the share of pairs (a positive, a negative)
 * that fall into the same bin.  Several classes: each against the rest, averaged over
 * those that have both.
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
                         * mae, r2...: VALUES                                        */
    DNN_SCORES_CLASSES, /* the last axis has one score per class; the largest wins (of
                         * equals the first)                                         */
    DNN_SCORES_BINARY,  /* each channel by itself: positive above the threshold;
                         * ratios are of positives alone                             */
    DNN_SCORES_VALUES   /* numbers                                                   */
};

/* A batch: output (n samples, positions..., channels) in f32; target either class
 * numbers i32 (n, positions...) or f32 of the output's shape (one-hot, masks, values).
 */
struct dnn_metric_batch {
    int64_t n, places, channels;
    const float *output;
    const int32_t *labels; /* or NULL */
    const float *values;   /* or NULL */
    int64_t ignore;        /* the target that does not count, such as 255; -1: none  */
    bool logits;           /* output is before the sigmoid or softmax                */
};

struct dnn_metrics; /* a set of them, with their sums */

/* From names ("accuracy", "top_5", "dice", "iou", "precision", "recall", "f1",
 * "confusion", "auc", "mse", "rmse", "mae", "r2", "rel_l2"...) or objects {"type":
 * "dice", "ignore": 0}; one, or a list.  Absent (or NULL): `usual`, NULL-ended, the
 * defaults of the loss.  classes: channels of the output.  The caller owns *out.
 */
int dnn_metrics_read(const struct dnn_jobj *list, const char *const *usual,
                     int64_t classes, struct dnn_metrics **out, struct dnn_err *err);
void dnn_metrics_free(struct dnn_metrics *metrics); /* NULL is fine */

void dnn_metrics_start(struct dnn_metrics *metrics); /* all sums zero */
int dnn_metrics_add(struct dnn_metrics *metrics, const struct dnn_metric_batch *batch,
                    struct dnn_err *err);

/* The sums, to be added over ranks: n doubles (whole numbers up to 2^53 stay
 * exact). */
double *dnn_metrics_sums(struct dnn_metrics *metrics, int64_t *n);

/* Values by name: "accuracy", "dice", "dice_2" (per class)...; main ones first.  NaN:
 * there was nothing to make it of.  Returns how many; *out lives until the next call.
 */
struct dnn_metric_value {
    char name[48];
    double value;
    bool main; /* shown while training */
};
int dnn_metrics_values(const struct dnn_metrics *metrics,
                       const struct dnn_metric_value **out);

/* The confusion matrix (rows: target, columns: output), if requested: classes^2
 * numbers (2 classes if the output has one channel), else NULL.  Lives as long as the
 * set. */
const double *dnn_metrics_confusion(const struct dnn_metrics *metrics,
                                    int64_t *classes);

/* The index-th metric's name, what it is and the keys of its object; NULL past the end.
 */
const char *dnn_metric_info(int index, const char **help,
                            const struct dnn_field **fields);
/* The index-th alias and the name it stands for; NULL past the end. */
const char *dnn_metric_alias(int index, const char **name);
/* The name an alias stands for ("acc": "accuracy"); others are returned as they are. */
const char *dnn_metric_canonical(const char *name);

#endif
