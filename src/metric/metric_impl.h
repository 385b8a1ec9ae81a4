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

/* The keys of all kinds; each kind's table has some of them. */
struct dnn_metric_how {
    const char *type, *name;
    int scores;       /* enum dnn_scores, AUTO resolved                            */
    int average;      /* enum dnn_average                                          */
    int ratio;        /* enum dnn_ratio, by the kind                               */
    int64_t classes;  /* of the output                                             */
    int64_t k;        /* top_k                                                     */
    int64_t ignore;   /* a target that does not count, besides the batch's; or -1  */
    double threshold; /* as a probability                                          */
    int64_t background, each;
};

/* A batch as a metric sees it. */
struct dnn_view {
    const struct dnn_metric_how *how;
    const struct dnn_metric_batch *batch;
    int64_t rows; /* samples times positions */
    int64_t channels;
    double cut; /* the threshold, as a logit if the outputs are */
};

/* The sums of a metric.  Metrics with the same sums share one. */
struct dnn_tally {
    int64_t (*nsums)(const struct dnn_metric_how *how);
    int (*add)(const struct dnn_view *view, double *sums, struct dnn_err *err);
    /* Whether two metrics have the same sums. */
    bool (*same)(const struct dnn_metric_how *a, const struct dnn_metric_how *b);
};

/* Where values go: name with "_c" behind it for c >= 0. */
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
    int (*check)(const struct dnn_metric_how *how, struct dnn_err *err);
    void (*values)(const struct dnn_metric_how *how, const double *sums,
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

/* Rows of tables that several kinds have. */
extern const struct dnn_choice dnn_metric_scores[];
#define DNN_METRIC_AT(f) offsetof(struct dnn_metric_how, f)
#define DNN_METRIC_NAMED                                                               \
    {"type", DNN_F_TEXT, DNN_METRIC_AT(type), NULL, 0, 0, NULL, "which metric", NULL}, \
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

/* A view of the batch; fails if it does not fit the metric, and on labels that are no
 * classes. */
int dnn_view_make(const struct dnn_metric_how *how,
                  const struct dnn_metric_batch *batch, struct dnn_view *out,
                  struct dnn_err *err);

enum { DNN_NO_CLASS = -1 };
/* The target of a row and what was output there; DNN_NO_CLASS: it does not count, or
 * nothing was output.  CLASSES, and BINARY of one channel. */
int64_t dnn_view_target(const struct dnn_view *view, int64_t row);
int64_t dnn_view_output(const struct dnn_view *view, int64_t row);
/* BINARY, one channel of a row: 1, 0 or DNN_NO_CLASS. */
int dnn_view_target_yes(const struct dnn_view *view, int64_t row, int64_t channel);
int dnn_view_output_yes(const struct dnn_view *view, int64_t row, int64_t channel);

/* Add what fn counts in the rows first ... end - 1, by several threads, to sums: whole
 * numbers in doubles, so it does not matter who counts what. */
typedef void dnn_count_fn(const struct dnn_view *view, int64_t first, int64_t end,
                          double *cell);
void dnn_view_count(const struct dnn_view *view, int64_t first, int64_t end,
                    dnn_count_fn *fn, int64_t ncells, double *sums);
/* The same for reals: in pieces of rows that depend on the batch alone, added in order.
 */
typedef void dnn_sum_fn(const struct dnn_view *view, int64_t first, int64_t end,
                        double *sum);
void dnn_view_sum(const struct dnn_view *view, dnn_sum_fn *fn, int64_t nsums,
                  double *sums);

#endif
