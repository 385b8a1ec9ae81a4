/* confusion.c - the confusion matrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

#include <inttypes.h>

enum { MOST = 4096 }; /* classes */

static int64_t classes_of(const struct dnn_metric_how *how)
{
    return how->classes > 1 ? how->classes : 2;
}

static void count(const struct dnn_view *v, int64_t first, int64_t end, double *cell)
{
    const int64_t n = classes_of(v->how);

    for (int64_t i = first; i < end; i++) {
        int64_t t = dnn_view_target(v, i), o = dnn_view_output(v, i);

        if (t != DNN_NO_CLASS && o != DNN_NO_CLASS) cell[t * n + o]++;
    }
}

static int64_t nsums(const struct dnn_metric_how *how)
{
    return classes_of(how) * classes_of(how);
}

static int add(const struct dnn_view *v, double *sums, struct dnn_err *err)
{
    (void)err;
    dnn_view_count(v, 0, v->rows, count, nsums(v->how), sums);
    return 0;
}

static bool same(const struct dnn_metric_how *a, const struct dnn_metric_how *b)
{
    return a->scores == b->scores && a->threshold == b->threshold &&
           a->ignore == b->ignore;
}

/* It is a table, not a value: dnn_metrics_confusion(). */
static void values(const struct dnn_metric_how *how, const double *sums,
                   const struct dnn_metric_out *out)
{
    (void)how, (void)sums, (void)out;
}

static int check(const struct dnn_metric_how *how, struct dnn_err *err)
{
    if (how->classes > MOST)
        return dnn_fail(err, DNN_ECONFIG,
                        "supports at most %d classes, but the output has %" PRId64,
                        MOST, how->classes);
    if (how->scores == DNN_SCORES_BINARY && how->classes > 1)
        return dnn_fail(err, DNN_ECONFIG,
                        "is not defined for binary scores of %" PRId64 " channels",
                        how->classes);
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
