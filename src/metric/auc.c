/* auc.c - area under the ROC curve: how often a positive scores above a negative.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

#include <inttypes.h>
#include <math.h>

/* Histograms instead of sorted scores, so that those of all ranks can be added.  Bins
 * follow the log-odds x, because a good network's probabilities crowd at 0 and 1; they
 * are equally wide in log(1 + |x|), which is finest where it is undecided. */
enum { BINS = 1 << 16, NO = 0, YES = BINS, PER_CLASS = 2 * BINS, MOST = 64 };
static const double reach = 128; /* f32's least probability has -103 */

static int64_t bin_of(double odds)
{
    double at = copysign(log1p(fabs(odds)) / log1p(reach), odds);

    at = (at + 1) * (BINS / 2);
    if (!(at > 0)) return 0;
    return at < BINS ? (int64_t)at : BINS - 1;
}

/* Of a probability, or the logit itself. */
static double odds_of(const struct dnn_view *v, double x)
{
    if (v->batch->logits) return x;
    return x <= 0 ? -INFINITY : x >= 1 ? INFINITY : log(x / (1 - x));
}

/* A NaN is never right. */
static void put(double *cell, int target, double odds)
{
    int64_t bin = !isnan(odds) ? bin_of(odds) : target == 1 ? 0 : BINS - 1;

    cell[(target == 1 ? YES : NO) + bin]++;
}

static void count_yes(const struct dnn_view *v, int64_t first, int64_t end,
                      double *cell)
{
    for (int64_t i = first; i < end; i++)
        for (int64_t c = 0; c < v->channels; c++) {
            int t = dnn_view_target_yes(v, i, c);

            if (t != DNN_NO_CLASS)
                put(cell + c * PER_CLASS, t,
                    odds_of(v, v->batch->output[i * v->channels + c]));
        }
}

/* Each class against the others.  Before the softmax, the odds of a class are e^x over
 * the sum of the others', which must not be the sum of all less its own: nothing would
 * be left of it for a sure class. */
static void row_odds(const struct dnn_view *v, const float *x, double *odds)
{
    double e[MOST], top = -INFINITY;

    if (!v->batch->logits) {
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
    double odds[MOST];

    for (int64_t i = first; i < end; i++) {
        int64_t t = dnn_view_target(v, i);

        if (t == DNN_NO_CLASS) continue;
        row_odds(v, v->batch->output + i * v->channels, odds);
        for (int64_t c = 0; c < v->channels; c++)
            put(cell + c * PER_CLASS, t == c, odds[c]);
    }
}

/* Rounding may carry a probability a little beyond its ends. */
static int check_range(const struct dnn_view *v, struct dnn_err *err)
{
    const float *x = v->batch->output, slack = 1e-3f;
    const int64_t n = v->rows * v->channels;
    int64_t bad = 0;

#pragma omp parallel for reduction(+ : bad) if (n > 16384)
    for (int64_t i = 0; i < n; i++)
        bad += x[i] < -slack || x[i] > 1 + slack;
    if (bad == 0) return 0;
    int64_t i = 0;
    while (!(x[i] < -slack || x[i] > 1 + slack))
        i++;
    return dnn_fail(err, DNN_EDATA,
                    "sample %" PRId64 " of the batch has the output %g, which is not a "
                    "probability between 0 and 1; end the network in sigmoid or "
                    "softmax",
                    i / (v->batch->places * v->channels), x[i]);
}

static int64_t nsums(const struct dnn_metric_how *how)
{
    return how->classes * PER_CLASS;
}

static int add(const struct dnn_view *v, double *sums, struct dnn_err *err)
{
    if (!v->batch->logits) DNN_TRY(check_range(v, err));
    dnn_view_count(v, 0, v->rows,
                   v->how->scores == DNN_SCORES_BINARY ? count_yes : count_classes,
                   nsums(v->how), sums);
    return 0;
}

static bool same(const struct dnn_metric_how *a, const struct dnn_metric_how *b)
{
    return a->scores == b->scores && a->ignore == b->ignore;
}

/* NaN: there are no pairs. */
static double area(const double *sums)
{
    double below = 0, won = 0, yes = 0;

    for (int64_t i = 0; i < BINS; i++) {
        won += sums[YES + i] * (below + sums[NO + i] / 2);
        below += sums[NO + i];
        yes += sums[YES + i];
    }
    return yes == 0 || below == 0 ? NAN : won / yes / below;
}

static void values(const struct dnn_metric_how *how, const double *sums,
                   const struct dnn_metric_out *out)
{
    double each[MOST], all = 0;
    int64_t n = 0;

    for (int64_t c = 0; c < how->classes; c++) {
        each[c] = area(sums + c * PER_CLASS);
        if (isnan(each[c])) continue;
        all += each[c];
        n++;
    }
    out->put(out->arg, how->name, -1, n == 0 ? NAN : all / (double)n);
    if (how->classes == 1 || how->classes > how->each) return;
    for (int64_t c = 0; c < how->classes; c++)
        out->put(out->arg, how->name, c, each[c]);
}

static int check(const struct dnn_metric_how *how, struct dnn_err *err)
{
    if (how->classes <= MOST) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "supports at most %d classes, but the output has %" PRId64, MOST,
                    how->classes);
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
