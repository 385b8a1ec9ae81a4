/* metric_impl.h - a kind of metric, its sums, and its view of a batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_METRIC_IMPL_H
#define DNN_METRIC_IMPL_H

#include "metric/metric.h"

enum dnn_average { DNN_AVERAGE_ALL, DNN_AVERAGE_SAMPLES };
enum dnn_ratio { DNN_RATIO_DICE, DNN_RATIO_IOU, DNN_RATIO_PRECISION, DNN_RATIO_RECALL };

/* The options of a metric.  The table of a kind has some of these as keys. */
struct dnn_metric_opts {
    const char *type, *name;
    int scores;       /* enum dnn_scores, AUTO resolved                         */
    int average;      /* enum dnn_average                                       */
    int ratio;        /* enum dnn_ratio, by the kind                            */
    int64_t classes;  /* of the output                                          */
    int64_t k;        /* top_k                                                  */
    int64_t ignore;   /* target to ignore, in addition to the batch's; -1: none */
    double threshold; /* as a probability                                       */
    int64_t background, each;
};

/* A batch and the options of a metric. */
struct dnn_view {
    const struct dnn_metric_opts *opts;
    const struct dnn_metric_batch *batch;
    int64_t rows; /* samples times positions */
    int64_t channels;
    double cut; /* the threshold; as a logit if the outputs are logits */
};

/* The sums of a metric; metrics may share them. */
struct dnn_tally {
    int64_t (*nsums)(const struct dnn_metric_opts *opts);
    int (*add)(const struct dnn_view *view, double *sums, struct dnn_err *err);
    /* Whether two metrics have the same sums. */
    bool (*same)(const struct dnn_metric_opts *a, const struct dnn_metric_opts *b);
};

/* Receives values: called name if c < 0, else name_c (of class c). */
struct dnn_metric_out {
    void (*put)(void *arg, const char *name, int64_t c, double value);
    void *arg;
};

struct dnn_metric_kind {
    const char *name, *help;
    const struct dnn_field *fields;
    const struct dnn_tally *tally;
    int ratio;
    /* Further checks; its message has no prefix.  NULL: none. */
    int (*check)(const struct dnn_metric_opts *opts, struct dnn_err *err);
    void (*values)(const struct dnn_metric_opts *opts, const double *sums,
                   const struct dnn_metric_out *out);
};
extern const struct dnn_metric_kind *const dnn_metric_kinds[]; /* ends with NULL */

/* ---- kinds ---- */

extern const struct dnn_metric_kind dnn_metric_accuracy, dnn_metric_top_k,
    dnn_metric_dice, dnn_metric_iou, dnn_metric_precision, dnn_metric_recall,
    dnn_metric_f1, dnn_metric_confusion, dnn_metric_auc, dnn_metric_mse,
    dnn_metric_rmse, dnn_metric_mae, dnn_metric_r2, dnn_metric_rel_l2,
    dnn_metric_categorical_hinge, dnn_metric_categorical_mse,
    dnn_metric_categorical_mae, dnn_metric_kl_divergence;

/* Table rows used by several kinds. */
extern const struct dnn_choice dnn_metric_scores[];
#define DNN_METRIC_AT(f) offsetof(struct dnn_metric_opts, f)
#define DNN_METRIC_NAMED                                                               \
    {"type", DNN_F_TEXT, DNN_METRIC_AT(type),  NULL, 0,                                \
     0,      NULL,       "name of the metric", NULL},                                  \
    {                                                                                  \
        "name", DNN_F_TEXT, DNN_METRIC_AT(name), "null", 0, 0, NULL,                   \
            "name of its values; null: its type", NULL                                 \
    }
#define DNN_METRIC_SCORES                                                              \
    {"scores",                                                                         \
     DNN_F_ENUM,                                                                       \
     DNN_METRIC_AT(scores),                                                            \
     "auto",                                                                           \
     0,                                                                                \
     0,                                                                                \
     dnn_metric_scores,                                                                \
     "meaning of the output: classes (the largest wins) or binary (each channel by "   \
     "itself)",                                                                        \
     NULL},                                                                            \
    {                                                                                  \
        "threshold", DNN_F_REAL, DNN_METRIC_AT(threshold), "0.5", 0, 1, NULL,          \
            "binary: a probability above this is positive", NULL                       \
    }
#define DNN_METRIC_IGNORE                                                              \
    {"ignore",                                                                         \
     DNN_F_INT,                                                                        \
     DNN_METRIC_AT(ignore),                                                            \
     "-1",                                                                             \
     -2147483648.0,                                                                    \
     2147483647.0,                                                                     \
     NULL,                                                                             \
     "target class to ignore; -1: none",                                               \
     NULL}
#define DNN_METRIC_EACH                                                                \
    {"each",                                                                           \
     DNN_F_INT,                                                                        \
     DNN_METRIC_AT(each),                                                              \
     "16",                                                                             \
     0,                                                                                \
     1e6,                                                                              \
     NULL,                                                                             \
     "report each class, too, up to this number of classes",                           \
     NULL}
#define DNN_METRIC_LAST {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}

/* ---- batch.c ---- */

/* A view of the batch; fails if it does not fit the metric or a label is not a class
 * number. */
int dnn_view_make(const struct dnn_metric_opts *opts,
                  const struct dnn_metric_batch *batch, struct dnn_view *out,
                  struct dnn_err *err);

enum { DNN_NO_CLASS = -1 };
/* The target class and the predicted class of a row; DNN_NO_CLASS: the target is
 * ignored, or nothing is predicted (NaN).  For CLASSES, and BINARY with one channel. */
int64_t dnn_view_target(const struct dnn_view *view, int64_t row);
int64_t dnn_view_output(const struct dnn_view *view, int64_t row);
/* The same for one channel of a row with BINARY: 1, 0 or DNN_NO_CLASS. */
int dnn_view_target_binary(const struct dnn_view *view, int64_t row, int64_t channel);
int dnn_view_output_binary(const struct dnn_view *view, int64_t row, int64_t channel);

/* Add the counts of fn in the rows first ... end - 1 to sums, with several threads.
 * The counts are integers, so the result does not depend on the threads. */
typedef void dnn_count_fn(const struct dnn_view *view, int64_t first, int64_t end,
                          double *cell);
void dnn_view_count(const struct dnn_view *view, int64_t first, int64_t end,
                    dnn_count_fn *fn, int64_t ncells, double *sums);
/* The same for reals: sums of chunks of rows, which depend only on the batch, added in
 * order. */
typedef void dnn_sum_fn(const struct dnn_view *view, int64_t first, int64_t end,
                        double *sum);
void dnn_view_sum(const struct dnn_view *view, dnn_sum_fn *fn, int64_t nsums,
                  double *sums);

#endif
