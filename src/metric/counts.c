/* counts.c - accuracy, and ratios of counts per class: Dice, IoU, precision, recall,
 * F1.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Sums per class: correct, in the outputs, in the targets; then of all classes:
 * correct, all. */
enum { HIT, OUT, TARGET, PER_CLASS };
enum { CORRECT, COUNT, TOTALS };
/* Sums per class with average "samples": sum of ratios, number of samples. */
enum { SUM, SAMPLES, PER_RATIO };

/* The ratio of a sample is rounded to 1 / unit and added as an integer, so that these
 * sums are exact, too (up to 2^21 samples). */
static const double unit = 4294967296.0;

/* ---- counting ---- */

static void count_classes(const struct dnn_view *v, int64_t first, int64_t end,
                          double *cell)
{
    double *total = cell + v->channels * PER_CLASS;

    for (int64_t i = first; i < end; i++) {
        int64_t t = dnn_view_target(v, i), o;

        if (t == DNN_NO_CLASS) continue;
        o = dnn_view_output(v, i);
        total[COUNT]++;
        total[CORRECT] += t == o;
        cell[t * PER_CLASS + TARGET]++;
        if (o != DNN_NO_CLASS) cell[o * PER_CLASS + OUT]++;
        if (o == t) cell[t * PER_CLASS + HIT]++;
    }
}

static void count_binary(const struct dnn_view *v, int64_t first, int64_t end,
                         double *cell)
{
    double *total = cell + v->channels * PER_CLASS;

    for (int64_t i = first; i < end; i++)
        for (int64_t c = 0; c < v->channels; c++) {
            int t = dnn_view_target_binary(v, i, c), o;

            if (t == DNN_NO_CLASS) continue;
            o = dnn_view_output_binary(v, i, c);
            total[COUNT]++;
            total[CORRECT] += t == o;
            cell[c * PER_CLASS + TARGET] += t;
            cell[c * PER_CLASS + OUT] += o == 1;
            cell[c * PER_CLASS + HIT] += t == 1 && o == 1;
        }
}

static dnn_count_fn *counter(const struct dnn_view *v)
{
    return v->opts->scores == DNN_SCORES_BINARY ? count_binary : count_classes;
}

/* ---- ratios ---- */

/* NaN: the class is neither in the outputs nor in the targets. */
static double ratio_of(int ratio, const double *cell)
{
    double denominator;

    if (cell[OUT] == 0 && cell[TARGET] == 0) return NAN;
    switch (ratio) {
    case DNN_RATIO_DICE:
        return 2 * cell[HIT] / (cell[OUT] + cell[TARGET]);
    case DNN_RATIO_IOU:
        return cell[HIT] / (cell[OUT] + cell[TARGET] - cell[HIT]);
    case DNN_RATIO_PRECISION:
        denominator = cell[OUT];
        break;
    default:
        denominator = cell[TARGET];
    }
    return denominator == 0 ? 0 : cell[HIT] / denominator;
}

/* ---- ratios over all samples ---- */

static int64_t count_nsums(const struct dnn_metric_opts *opts)
{
    return opts->classes * PER_CLASS + TOTALS;
}

static int count_add(const struct dnn_view *v, double *sums, struct dnn_err *err)
{
    (void)err;
    dnn_view_count(v, 0, v->rows, counter(v), count_nsums(v->opts), sums);
    return 0;
}

/* ---- ratios of each sample ---- */

static int64_t sample_nsums(const struct dnn_metric_opts *opts)
{
    return opts->classes * PER_RATIO;
}

static int sample_add(const struct dnn_view *v, double *sums, struct dnn_err *err)
{
    const int64_t n = count_nsums(v->opts), positions = v->batch->positions;
    double *cell = dnn_alloc((size_t)n * sizeof *cell);

    (void)err;
    for (int64_t s = 0; s < v->batch->n; s++) {
        memset(cell, 0, (size_t)n * sizeof *cell);
        dnn_view_count(v, s * positions, (s + 1) * positions, counter(v), n, cell);
        for (int64_t c = 0; c < v->channels; c++) {
            double r = ratio_of(v->opts->ratio, cell + c * PER_CLASS);

            if (isnan(r)) continue;
            sums[c * PER_RATIO + SUM] += rint(r * unit);
            sums[c * PER_RATIO + SAMPLES]++;
        }
    }
    dnn_free(cell);
    return 0;
}

/* ---- both ---- */

static int64_t nsums(const struct dnn_metric_opts *opts)
{
    return opts->average == DNN_AVERAGE_SAMPLES ? sample_nsums(opts)
                                                : count_nsums(opts);
}

static int add(const struct dnn_view *v, double *sums, struct dnn_err *err)
{
    return v->opts->average == DNN_AVERAGE_SAMPLES ? sample_add(v, sums, err)
                                                   : count_add(v, sums, err);
}

static bool same(const struct dnn_metric_opts *a, const struct dnn_metric_opts *b)
{
    return a->scores == b->scores && a->threshold == b->threshold &&
           a->ignore == b->ignore && a->average == b->average &&
           (a->average == DNN_AVERAGE_ALL || a->ratio == b->ratio);
}

static const struct dnn_tally counts = {nsums, add, same};

static double class_value(const struct dnn_metric_opts *opts, const double *sums,
                          int64_t c)
{
    if (opts->average == DNN_AVERAGE_ALL)
        return ratio_of(opts->ratio, sums + c * PER_CLASS);
    const double *at = sums + c * PER_RATIO;
    return at[SAMPLES] == 0 ? NAN : at[SUM] / unit / at[SAMPLES];
}

static void ratio_values(const struct dnn_metric_opts *opts, const double *sums,
                         const struct dnn_metric_out *out)
{
    double sum = 0;
    int64_t n = 0;

    for (int64_t c = 0; c < opts->classes; c++) {
        double r = class_value(opts, sums, c);

        if (isnan(r) || c == opts->background) continue;
        sum += r;
        n++;
    }
    out->put(out->arg, opts->name, -1, n == 0 ? NAN : sum / (double)n);
    if (opts->classes == 1 || opts->classes > opts->each) return;
    for (int64_t c = 0; c < opts->classes; c++)
        out->put(out->arg, opts->name, c, class_value(opts, sums, c));
}

static void accuracy_values(const struct dnn_metric_opts *opts, const double *sums,
                            const struct dnn_metric_out *out)
{
    const double *total = sums + opts->classes * PER_CLASS;

    out->put(out->arg, opts->name, -1,
             total[COUNT] == 0 ? NAN : total[CORRECT] / total[COUNT]);
}

static int ratio_check(const struct dnn_metric_opts *opts, struct dnn_err *err)
{
    if (opts->background < opts->classes) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "background must be one of the classes 0 to %" PRId64
                    ", not %" PRId64,
                    opts->classes - 1, opts->background);
}

static const struct dnn_field accuracy_fields[] = {
    DNN_METRIC_NAMED,
    DNN_METRIC_SCORES,
    DNN_METRIC_IGNORE,
    DNN_METRIC_LAST,
};

static const struct dnn_choice averages[] = {
    {"all",     DNN_AVERAGE_ALL    },
    {"samples", DNN_AVERAGE_SAMPLES},
    {NULL,      0                  }
};
static const struct dnn_field ratio_fields[] = {
    DNN_METRIC_NAMED,
    DNN_METRIC_SCORES,
    DNN_METRIC_IGNORE,
    {"average",    DNN_F_ENUM, DNN_METRIC_AT(average),    "all", 0,  0,   averages,
      "all: one ratio over all samples; samples: the mean of each sample's ratio", NULL},
    {"background", DNN_F_INT,  DNN_METRIC_AT(background), "-1",  -1, 1e6, NULL,
      "class left out of the average, but counted against the others; -1: none",   NULL},
    DNN_METRIC_EACH,
    DNN_METRIC_LAST,
};

const struct dnn_metric_kind dnn_metric_accuracy = {
    "accuracy",
    "fraction of positions classified correctly",
    accuracy_fields,
    &counts,
    0,
    NULL,
    accuracy_values};
const struct dnn_metric_kind dnn_metric_dice = {
    "dice",
    "2 |output and target| / (|output| + |target|), averaged over classes",
    ratio_fields,
    &counts,
    DNN_RATIO_DICE,
    ratio_check,
    ratio_values};
const struct dnn_metric_kind dnn_metric_iou = {
    "iou",
    "|output and target| / |output or target| (Jaccard), averaged over classes",
    ratio_fields,
    &counts,
    DNN_RATIO_IOU,
    ratio_check,
    ratio_values};
const struct dnn_metric_kind dnn_metric_precision = {
    "precision",         "true positives / predicted positives, averaged over classes",
    ratio_fields,        &counts,
    DNN_RATIO_PRECISION, ratio_check,
    ratio_values};
const struct dnn_metric_kind dnn_metric_recall = {
    "recall",         "true positives / positives, averaged over classes",
    ratio_fields,     &counts,
    DNN_RATIO_RECALL, ratio_check,
    ratio_values};
/* F1 equals Dice. */
const struct dnn_metric_kind dnn_metric_f1 = {
    "f1",
    "harmonic mean of a class's precision and recall, averaged over classes",
    ratio_fields,
    &counts,
    DNN_RATIO_DICE,
    ratio_check,
    ratio_values};
