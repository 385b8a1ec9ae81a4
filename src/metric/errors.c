/* errors.c - regression metrics: MSE, RMSE, MAE, R2, relative L2.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

#include <math.h>

/* Sums per channel. */
enum { N, SQUARED, ABSOLUTE, TARGET, TARGET2, PER_CHANNEL };

static void sum(const struct dnn_view *v, int64_t first, int64_t end, double *sums)
{
    const struct dnn_metric_batch *b = v->batch;

    for (int64_t i = first; i < end; i++)
        for (int64_t c = 0; c < v->channels; c++) {
            int64_t at = i * v->channels + c;
            double t = b->values != NULL ? b->values[at] : b->labels[i];
            double e = b->output[at] - t, *s = sums + c * PER_CHANNEL;

            s[N]++;
            s[SQUARED] += e * e;
            s[ABSOLUTE] += fabs(e);
            s[TARGET] += t;
            s[TARGET2] += t * t;
        }
}

static int64_t nsums(const struct dnn_metric_opts *opts)
{
    return opts->classes * PER_CHANNEL;
}

static int add(const struct dnn_view *v, double *sums, struct dnn_err *err)
{
    (void)err;
    dnn_view_sum(v, sum, nsums(v->opts), sums);
    return 0;
}

static bool same(const struct dnn_metric_opts *a, const struct dnn_metric_opts *b)
{
    (void)a, (void)b;
    return true;
}

static double total(const struct dnn_metric_opts *opts, const double *sums, int what)
{
    double all = 0;

    for (int64_t c = 0; c < opts->classes; c++)
        all += sums[c * PER_CHANNEL + what];
    return all;
}

static double mean(const struct dnn_metric_opts *opts, const double *sums, int what)
{
    double n = total(opts, sums, N);

    return n == 0 ? NAN : total(opts, sums, what) / n;
}

static void mse_values(const struct dnn_metric_opts *opts, const double *sums,
                       const struct dnn_metric_out *out)
{
    out->put(out->arg, opts->name, -1, mean(opts, sums, SQUARED));
}

static void rmse_values(const struct dnn_metric_opts *opts, const double *sums,
                        const struct dnn_metric_out *out)
{
    out->put(out->arg, opts->name, -1, sqrt(mean(opts, sums, SQUARED)));
}

static void mae_values(const struct dnn_metric_opts *opts, const double *sums,
                       const struct dnn_metric_out *out)
{
    out->put(out->arg, opts->name, -1, mean(opts, sums, ABSOLUTE));
}

static void rel_l2_values(const struct dnn_metric_opts *opts, const double *sums,
                          const struct dnn_metric_out *out)
{
    double e = total(opts, sums, SQUARED), t = total(opts, sums, TARGET2);

    out->put(out->arg, opts->name, -1, t == 0 ? NAN : sqrt(e / t));
}

/* R2 of a channel; NaN if its targets are constant. */
static double r2_of(const double *s)
{
    double spread = s[N] == 0 ? 0 : s[TARGET2] - s[TARGET] * s[TARGET] / s[N];

    /* A smaller variance is rounding error. */
    return !(spread > 1e-14 * s[TARGET2]) ? NAN : 1 - s[SQUARED] / spread;
}

static void r2_values(const struct dnn_metric_opts *opts, const double *sums,
                      const struct dnn_metric_out *out)
{
    double all = 0;
    int64_t n = 0;

    for (int64_t c = 0; c < opts->classes; c++) {
        double r = r2_of(sums + c * PER_CHANNEL);

        if (isnan(r)) continue;
        all += r;
        n++;
    }
    out->put(out->arg, opts->name, -1, n == 0 ? NAN : all / (double)n);
    if (opts->classes == 1 || opts->classes > opts->each) return;
    for (int64_t c = 0; c < opts->classes; c++)
        out->put(out->arg, opts->name, c, r2_of(sums + c * PER_CHANNEL));
}

static const struct dnn_field fields[] = {DNN_METRIC_NAMED, DNN_METRIC_LAST};
static const struct dnn_field r2_fields[] = {
    DNN_METRIC_NAMED,
    DNN_METRIC_EACH,
    DNN_METRIC_LAST,
};

static const struct dnn_tally tally = {nsums, add, same};

const struct dnn_metric_kind dnn_metric_mse = {
    "mse", "mean squared error", fields, &tally, 0, NULL, mse_values};
const struct dnn_metric_kind dnn_metric_rmse = {
    "rmse", "root mean squared error", fields, &tally, 0, NULL, rmse_values};
const struct dnn_metric_kind dnn_metric_mae = {
    "mae", "mean absolute error", fields, &tally, 0, NULL, mae_values};
const struct dnn_metric_kind dnn_metric_r2 = {
    "r2",      "coefficient of determination, averaged over channels",
    r2_fields, &tally,
    0,         NULL,
    r2_values};
const struct dnn_metric_kind dnn_metric_rel_l2 = {
    "rel_l2",
    "L2 norm of the error over that of the target",
    fields,
    &tally,
    0,
    NULL,
    rel_l2_values};
