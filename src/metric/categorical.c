/* categorical.c - metrics of class probabilities: categorical hinge, squared and
 * absolute error of the target class, KL divergence.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

#include "base/mem.h"

#include <math.h>

enum { N, HINGE, SQUARED, ABSOLUTE, KL, SUMS };

static const double min_p = 1e-7; /* as in Keras: probabilities are clipped to it */

static double clip(double p)
{
    return fmin(fmax(p, min_p), 1);
}

/* The probabilities of a row: the outputs, their sigmoid, or their softmax. */
static void probabilities(const struct dnn_view *v, const float *x, double *p)
{
    double largest = -INFINITY, sum = 0;

    for (int64_t c = 0; c < v->channels; c++) {
        p[c] = (double)x[c];
        largest = fmax(largest, p[c]);
    }
    for (int64_t c = 0; c < v->channels && v->batch->logits == DNN_LOGITS_SIGMOID; c++)
        p[c] = 1 / (1 + exp(-p[c]));
    if (v->batch->logits != DNN_LOGITS_SOFTMAX) return;
    for (int64_t c = 0; c < v->channels; c++)
        sum += p[c] = exp(p[c] - largest);
    for (int64_t c = 0; c < v->channels; c++)
        p[c] /= sum;
}

static void row(const struct dnn_view *v, int64_t i, int64_t label, const double *p,
                double *sums)
{
    const struct dnn_metric_batch *b = v->batch;
    double right = 0, other = -INFINITY, kl = 0, miss = 1 - p[label];

    for (int64_t c = 0; c < v->channels; c++) {
        double t =
            b->values != NULL ? (double)b->values[i * v->channels + c] : c == label;

        right += t * p[c];
        other = fmax(other, (1 - t) * p[c]);
        kl += clip(t) * log(clip(t) / clip(p[c]));
    }
    sums[N]++;
    sums[HINGE] += fmax(0, other - right + 1);
    sums[SQUARED] += miss * miss;
    sums[ABSOLUTE] += fabs(miss);
    sums[KL] += kl;
}

static void sum(const struct dnn_view *v, int64_t first, int64_t end, double *sums)
{
    double *p = dnn_alloc((size_t)v->channels * sizeof *p);

    for (int64_t i = first; i < end; i++) {
        int64_t label = dnn_view_target(v, i);

        if (label == DNN_NO_CLASS) continue;
        probabilities(v, v->batch->output + i * v->channels, p);
        row(v, i, label, p, sums);
    }
    dnn_free(p);
}

static int64_t nsums(const struct dnn_metric_opts *opts)
{
    (void)opts;
    return SUMS;
}

static int add(const struct dnn_view *v, double *sums, struct dnn_err *err)
{
    (void)err;
    dnn_view_sum(v, sum, SUMS, sums);
    return 0;
}

static bool same(const struct dnn_metric_opts *a, const struct dnn_metric_opts *b)
{
    return a->ignore == b->ignore;
}

static int check(const struct dnn_metric_opts *opts, struct dnn_err *err)
{
    if (opts->classes > 1) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "needs one channel per class, but the output has only one "
                    "channel");
}

static void mean(const struct dnn_metric_opts *opts, const double *sums, int what,
                 const struct dnn_metric_out *out)
{
    out->put(out->arg, opts->name, -1, sums[N] == 0 ? NAN : sums[what] / sums[N]);
}

static void hinge_values(const struct dnn_metric_opts *opts, const double *sums,
                         const struct dnn_metric_out *out)
{
    mean(opts, sums, HINGE, out);
}

static void mse_values(const struct dnn_metric_opts *opts, const double *sums,
                       const struct dnn_metric_out *out)
{
    mean(opts, sums, SQUARED, out);
}

static void mae_values(const struct dnn_metric_opts *opts, const double *sums,
                       const struct dnn_metric_out *out)
{
    mean(opts, sums, ABSOLUTE, out);
}

static void kl_values(const struct dnn_metric_opts *opts, const double *sums,
                      const struct dnn_metric_out *out)
{
    mean(opts, sums, KL, out);
}

static const struct dnn_field fields[] = {DNN_METRIC_NAMED, DNN_METRIC_IGNORE,
                                          DNN_METRIC_LAST};

static const struct dnn_tally tally = {nsums, add, same};

const struct dnn_metric_kind dnn_metric_categorical_hinge = {
    "categorical_hinge",
    "mean of max(0, 1 + largest output of another class - output of the target class)",
    fields,
    &tally,
    0,
    check,
    hinge_values};
const struct dnn_metric_kind dnn_metric_categorical_mse = {
    "categorical_mse",
    "mean of (1 - probability of the target class)^2",
    fields,
    &tally,
    0,
    check,
    mse_values};
const struct dnn_metric_kind dnn_metric_categorical_mae = {
    "categorical_mae",
    "mean of |1 - probability of the target class|",
    fields,
    &tally,
    0,
    check,
    mae_values};
const struct dnn_metric_kind dnn_metric_kl_divergence = {
    "kl_divergence",
    "Kullback-Leibler divergence of targets and probabilities",
    fields,
    &tally,
    0,
    check,
    kl_values};
