/* auc.c - area under the ROC curve: the fraction of pairs (positive, negative) in which
 * the positive has the higher score.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

#include <inttypes.h>
#include <math.h>

/* Histograms instead of sorted scores, so that they can be added over ranks.  They are
 * of the log-odds x, because the probabilities of a good network are close to 0 and 1.
 * Bins are equally wide in log(1 + |x|), so they are finest around probability 1/2. */
enum {
    BINS = 1 << 16,
    NEGATIVES = 0,
    POSITIVES = BINS,
    PER_CLASS = 2 * BINS,
    MAX_CLASSES = 64
};
static const double reach = 128; /* the smallest f32 has log-odds -103 */

static int64_t bin_of(double odds)
{
    double at = copysign(log1p(fabs(odds)) / log1p(reach), odds);

    at = (at + 1) * (BINS / 2);
    if (!(at > 0)) return 0;
    return at < BINS ? (int64_t)at : BINS - 1;
}

/* The log-odds of a probability, or the logit itself. */
static double odds_of(const struct dnn_view *v, double x)
{
    if (v->batch->logits) return x;
    return x <= 0 ? -INFINITY : x >= 1 ? INFINITY : log(x / (1 - x));
}

/* A NaN counts as wrong. */
static void put(double *cell, int target, double odds)
{
    int64_t bin = !isnan(odds) ? bin_of(odds) : target == 1 ? 0 : BINS - 1;

    cell[(target == 1 ? POSITIVES : NEGATIVES) + bin]++;
}

static void count_binary(const struct dnn_view *v, int64_t first, int64_t end,
                         double *cell)
{
    for (int64_t i = first; i < end; i++)
        for (int64_t c = 0; c < v->channels; c++) {
            int t = dnn_view_target_binary(v, i, c);

            if (t != DNN_NO_CLASS)
                put(cell + c * PER_CLASS, t,
                    odds_of(v, v->batch->output[i * v->channels + c]));
        }
}

/* The log-odds of each class against the others.  For logits they are e^x over the sum
 * of the other classes.  That sum is not computed as the sum of all minus e^x, which
 * cancels for a class with a probability near 1. */
static void row_odds(const struct dnn_view *v, const float *x, double *odds)
{
    double e[MAX_CLASSES], top = -INFINITY;

    if (v->batch->logits != DNN_LOGITS_SOFTMAX) {
        for (int64_t c = 0; c < v->channels; c++)
            odds[c] = odds_of(v, x[c]);
        return;
    }
    for (int64_t c = 0; c < v->channels; c++)
        if (x[c] > top) top = x[c];
    for (int64_t c = 0; c < v->channels; c++)
        e[c] = exp(x[c] - top);
    for (int64_t c = 0; c < v->channels; c++) {
        double others = 0;

        for (int64_t k = 0; k < v->channels; k++)
            if (k != c) others += e[k];
        odds[c] = log(e[c] / others);
    }
}

static void count_classes(const struct dnn_view *v, int64_t first, int64_t end,
                          double *cell)
{
    double odds[MAX_CLASSES];

    for (int64_t i = first; i < end; i++) {
        int64_t t = dnn_view_target(v, i);

        if (t == DNN_NO_CLASS) continue;
        row_odds(v, v->batch->output + i * v->channels, odds);
        for (int64_t c = 0; c < v->channels; c++)
            put(cell + c * PER_CLASS, t == c, odds[c]);
    }
}

/* The range has a tolerance, because of rounding. */
static int check_range(const struct dnn_view *v, struct dnn_err *err)
{
    const float *x = v->batch->output, tolerance = 1e-3f;
    const int64_t n = v->rows * v->channels;
    int64_t bad = 0;

#pragma omp parallel for reduction(+ : bad) if (n > 16384)
    for (int64_t i = 0; i < n; i++)
        bad += x[i] < -tolerance || x[i] > 1 + tolerance;
    if (bad == 0) return 0;
    int64_t i = 0;
    while (!(x[i] < -tolerance || x[i] > 1 + tolerance))
        i++;
    return dnn_fail(err, DNN_EDATA,
                    "sample %" PRId64 " of the batch has the output %g, which is not a "
                    "probability between 0 and 1; end the network in sigmoid or "
                    "softmax",
                    i / (v->batch->positions * v->channels), x[i]);
}

static int64_t nsums(const struct dnn_metric_opts *opts)
{
    return opts->classes * PER_CLASS;
}

static int add(const struct dnn_view *v, double *sums, struct dnn_err *err)
{
    if (!v->batch->logits) DNN_TRY(check_range(v, err));
    dnn_view_count(v, 0, v->rows,
                   v->opts->scores == DNN_SCORES_BINARY ? count_binary : count_classes,
                   nsums(v->opts), sums);
    return 0;
}

static bool same(const struct dnn_metric_opts *a, const struct dnn_metric_opts *b)
{
    return a->scores == b->scores && a->ignore == b->ignore;
}

/* The AUC; NaN: there are no pairs. */
static double area(const double *sums)
{
    double below = 0, won = 0, positives = 0;

    for (int64_t i = 0; i < BINS; i++) {
        won += sums[POSITIVES + i] * (below + sums[NEGATIVES + i] / 2);
        below += sums[NEGATIVES + i];
        positives += sums[POSITIVES + i];
    }
    return positives == 0 || below == 0 ? NAN : won / positives / below;
}

static void values(const struct dnn_metric_opts *opts, const double *sums,
                   const struct dnn_metric_out *out)
{
    double each[MAX_CLASSES], all = 0;
    int64_t n = 0;

    for (int64_t c = 0; c < opts->classes; c++) {
        each[c] = area(sums + c * PER_CLASS);
        if (isnan(each[c])) continue;
        all += each[c];
        n++;
    }
    out->put(out->arg, opts->name, -1, n == 0 ? NAN : all / (double)n);
    if (opts->classes == 1 || opts->classes > opts->each) return;
    for (int64_t c = 0; c < opts->classes; c++)
        out->put(out->arg, opts->name, c, each[c]);
}

static int check(const struct dnn_metric_opts *opts, struct dnn_err *err)
{
    if (opts->classes <= MAX_CLASSES) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "supports at most %d classes, but the output has %" PRId64,
                    MAX_CLASSES, opts->classes);
}

static const struct dnn_field fields[] = {
    DNN_METRIC_NAMED,
    {"scores", DNN_F_ENUM, DNN_METRIC_AT(scores), "auto", 0, 0, dnn_metric_scores,
      "meaning of the output: classes, or binary (each channel by itself)", NULL},
    DNN_METRIC_IGNORE,
    DNN_METRIC_EACH,
    DNN_METRIC_LAST,
};

static const struct dnn_tally tally = {nsums, add, same};

const struct dnn_metric_kind dnn_metric_auc = {
    "auc",  "area under the ROC curve, one class against the others, averaged",
    fields, &tally,
    0,      check,
    values};
