/* confusion.c - the confusion matrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

#include <inttypes.h>

enum { MAX_CLASSES = 4096 }; /* classes */

static int64_t classes_of(const struct dnn_metric_opts *opts)
{
    return opts->classes > 1 ? opts->classes : 2;
}

static void count(const struct dnn_view *v, int64_t first, int64_t end, double *cell)
{
    const int64_t n = classes_of(v->opts);

    for (int64_t i = first; i < end; i++) {
        int64_t t = dnn_view_target(v, i), o = dnn_view_output(v, i);

        if (t != DNN_NO_CLASS && o != DNN_NO_CLASS) cell[t * n + o]++;
    }
}

static int64_t nsums(const struct dnn_metric_opts *opts)
{
    return classes_of(opts) * classes_of(opts);
}

static int add(const struct dnn_view *v, double *sums, struct dnn_err *err)
{
    (void)err;
    dnn_view_count(v, 0, v->rows, count, nsums(v->opts), sums);
    return 0;
}

static bool same(const struct dnn_metric_opts *a, const struct dnn_metric_opts *b)
{
    return a->scores == b->scores && a->threshold == b->threshold &&
           a->ignore == b->ignore;
}

/* A table, not a value: see dnn_metrics_confusion(). */
static void values(const struct dnn_metric_opts *opts, const double *sums,
                   const struct dnn_metric_out *out)
{
    (void)opts, (void)sums, (void)out;
}

static int check(const struct dnn_metric_opts *opts, struct dnn_err *err)
{
    if (opts->classes > MAX_CLASSES)
        return dnn_fail(err, DNN_ECONFIG,
                        "supports at most %d classes, but the output has %" PRId64,
                        MAX_CLASSES, opts->classes);
    if (opts->scores == DNN_SCORES_BINARY && opts->classes > 1)
        return dnn_fail(err, DNN_ECONFIG,
                        "is not defined for binary scores of %" PRId64 " channels",
                        opts->classes);
    return 0;
}

static const struct dnn_field fields[] = {
    DNN_METRIC_NAMED,
    DNN_METRIC_SCORES,
    DNN_METRIC_IGNORE,
    DNN_METRIC_LAST,
};

static const struct dnn_tally tally = {nsums, add, same};

const struct dnn_metric_kind dnn_metric_confusion = {
    "confusion", "confusion matrix (target class, predicted class), for the report",
    fields,      &tally,
    0,           check,
    values};
