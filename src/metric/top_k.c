/* top_k.c - whether the right class is among the k largest outputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

#include <inttypes.h>
#include <math.h>

enum { HIT, COUNT, SUMS };

/* Of equal outputs the first is the larger, as for accuracy. */
static bool in_top_k(const float *x, int64_t n, int64_t t, int64_t k)
{
    int64_t larger = 0;

    for (int64_t c = 0; c < n; c++) {
        if (isnan(x[c])) return false;
        larger += x[c] > x[t] || (x[c] == x[t] && c < t);
    }
    return larger < k;
}

static void count(const struct dnn_view *v, int64_t first, int64_t end, double *cell)
{
    for (int64_t i = first; i < end; i++) {
        int64_t t = dnn_view_target(v, i);

        if (t == DNN_NO_CLASS) continue;
        cell[COUNT]++;
        cell[HIT] +=
            in_top_k(v->batch->output + i * v->channels, v->channels, t, v->opts->k);
    }
}

static int64_t nsums(const struct dnn_metric_opts *opts)
{
    (void)opts;
    return SUMS;
}

static int add(const struct dnn_view *v, double *sums, struct dnn_err *err)
{
    (void)err;
    dnn_view_count(v, 0, v->rows, count, SUMS, sums);
    return 0;
}

static bool same(const struct dnn_metric_opts *a, const struct dnn_metric_opts *b)
{
    return a->k == b->k && a->ignore == b->ignore;
}

static void values(const struct dnn_metric_opts *opts, const double *sums,
                   const struct dnn_metric_out *out)
{
    out->put(out->arg, opts->name, -1,
             sums[COUNT] == 0 ? NAN : sums[HIT] / sums[COUNT]);
}

static int check(const struct dnn_metric_opts *opts, struct dnn_err *err)
{
    if (opts->classes < 2)
        return dnn_fail(err, DNN_ECONFIG,
                        "needs one channel per class, but the output has only one "
                        "channel");
    if (opts->k > opts->classes)
        return dnn_fail(err, DNN_ECONFIG,
                        "k is %" PRId64 ", but the output has only %" PRId64 " classes",
                        opts->k, opts->classes);
    return 0;
}

static const struct dnn_field fields[] = {
    DNN_METRIC_NAMED,
    {"k", DNN_F_INT, DNN_METRIC_AT(k), NULL, 1, 1e6, NULL,
      "how many of the largest outputs count", NULL},
    DNN_METRIC_IGNORE,
    DNN_METRIC_LAST,
};

static const struct dnn_tally tally = {nsums, add, same};

const struct dnn_metric_kind dnn_metric_top_k = {
    "top_k",
    "fraction of positions whose class is among the k largest outputs; top_5 sets k",
    fields,
    &tally,
    0,
    check,
    values};
