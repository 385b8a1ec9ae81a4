/* batch.c - checks and reads outputs and targets of a batch; sums with several threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <string.h>

enum {
    MIN_ELEMENTS = 1 << 14, /* output elements per thread, at least         */
    MAX_CELLS = 1 << 22,    /* counters of all threads, at most             */
    CHUNK = 1 << 16,        /* output elements in a chunk of dnn_view_sum() */
    MIN_CHUNK_ROWS = 1 << 6 /* and rows, at least                           */
};

/* ---- checks ---- */

static int bad_label(const struct dnn_view *v, int64_t row, int64_t classes,
                     struct dnn_err *err)
{
    const struct dnn_metric_batch *b = v->batch;

    return dnn_fail(err, DNN_EDATA,
                    "sample %" PRId64 " of the batch, position %" PRId64
                    ": label %" PRId32 " is not a class number from 0 to %" PRId64
                    "; set \"ignore\" for labels that do not count",
                    row / b->positions, row % b->positions, b->labels[row],
                    classes - 1);
}

/* Labels must be class numbers or ignored. */
static int check_labels(const struct dnn_view *v, struct dnn_err *err)
{
    const int32_t *label = v->batch->labels;
    const int64_t classes = v->channels > 1 ? v->channels : 2;
    const int64_t ignore = v->batch->ignore, also = v->opts->ignore;
    int64_t bad = 0;

#pragma omp parallel for reduction(+ : bad) if (v->rows > MIN_ELEMENTS)
    for (int64_t i = 0; i < v->rows; i++)
        bad += (label[i] < 0 || label[i] >= classes) && label[i] != ignore &&
               label[i] != also;
    if (bad == 0) return 0;
    for (int64_t i = 0; i < v->rows; i++)
        if ((label[i] < 0 || label[i] >= classes) && label[i] != ignore &&
            label[i] != also)
            return bad_label(v, i, classes, err);
    return 0;
}

static int check_kind(const struct dnn_view *v, struct dnn_err *err)
{
    const struct dnn_metric_batch *b = v->batch;

    if (b->channels != v->opts->classes)
        return dnn_fail(err, DNN_ECONFIG,
                        "the output has %" PRId64 " channels, but %" PRId64
                        " were expected",
                        b->channels, v->opts->classes);
    if (b->labels == NULL && b->values == NULL)
        return dnn_fail(err, DNN_ECONFIG, "the data has no targets");
    if (b->labels == NULL || b->channels == 1) return 0;
    if (v->opts->scores == DNN_SCORES_BINARY || v->opts->scores == DNN_SCORES_VALUES)
        return dnn_fail(err, DNN_ECONFIG,
                        "the targets are class numbers, but the output has %" PRId64
                        " channels; %s",
                        b->channels,
                        v->opts->scores == DNN_SCORES_BINARY
                            ? "binary scores need a mask for each channel"
                            : "targets must be values of the output's shape");
    return 0;
}

int dnn_view_make(const struct dnn_metric_opts *opts,
                  const struct dnn_metric_batch *batch, struct dnn_view *out,
                  struct dnn_err *err)
{
    struct dnn_view v = {opts, batch, 0, batch->channels, opts->threshold};
    int64_t all;

    if (batch->n < 0 || batch->positions < 1 || batch->channels < 1 ||
        __builtin_mul_overflow(batch->n, batch->positions, &v.rows) ||
        __builtin_mul_overflow(v.rows, batch->channels, &all))
        return dnn_fail(err, DNN_ECONFIG,
                        "a batch of %" PRId64 " samples of %" PRId64 " x %" PRId64
                        " values is too large",
                        batch->n, batch->positions, batch->channels);
    if (batch->logits) v.cut = log(opts->threshold / (1 - opts->threshold));
    DNN_TRY(check_kind(&v, err));
    if (batch->labels != NULL && opts->scores != DNN_SCORES_VALUES)
        DNN_TRY(check_labels(&v, err));
    *out = v;
    return 0;
}

/* ---- one row ---- */

static bool ignored(const struct dnn_view *v, double target)
{
    return target == (double)v->batch->ignore || target == (double)v->opts->ignore;
}

/* The index of the largest element above floor, the first of equals; NaN is skipped. */
static int64_t largest(const float *x, int64_t n, float floor)
{
    int64_t best = DNN_NO_CLASS;

    for (int64_t c = 0; c < n; c++)
        if (x[c] > floor) {
            floor = x[c];
            best = c;
        }
    return best;
}

int dnn_view_target_binary(const struct dnn_view *v, int64_t row, int64_t channel)
{
    const struct dnn_metric_batch *b = v->batch;
    double t =
        b->labels != NULL ? b->labels[row] : b->values[row * v->channels + channel];

    return ignored(v, t) || isnan(t) ? DNN_NO_CLASS : t > 0.5;
}

int dnn_view_output_binary(const struct dnn_view *v, int64_t row, int64_t channel)
{
    float x = v->batch->output[row * v->channels + channel];

    return isnan(x) ? DNN_NO_CLASS : x > v->cut;
}

int64_t dnn_view_target(const struct dnn_view *v, int64_t row)
{
    const struct dnn_metric_batch *b = v->batch;

    if (v->opts->scores == DNN_SCORES_BINARY) return dnn_view_target_binary(v, row, 0);
    int64_t t = b->labels != NULL
                    ? b->labels[row]
                    : largest(b->values + row * v->channels, v->channels, 0);
    return ignored(v, (double)t) ? DNN_NO_CLASS : t;
}

int64_t dnn_view_output(const struct dnn_view *v, int64_t row)
{
    if (v->opts->scores == DNN_SCORES_BINARY) return dnn_view_output_binary(v, row, 0);
    const float *x = v->batch->output + row * v->channels;
    for (int64_t c = 0; c < v->channels; c++)
        if (isnan(x[c])) return DNN_NO_CLASS;
    int64_t best = largest(x, v->channels, -INFINITY);
    return best == DNN_NO_CLASS ? 0 : best; /* all are -infinity */
}

/* ---- many rows ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void dnn_view_count(const struct dnn_view *v, int64_t first, int64_t end,
                    dnn_count_fn *fn, int64_t ncells, double *sums)
{
    const int64_t rows = end - first;
    int64_t parts =
        smaller(omp_get_max_threads(), rows * v->channels / MIN_ELEMENTS + 1);

    if (parts * ncells > MAX_CELLS) parts = MAX_CELLS / ncells;
    if (parts < 2) {
        fn(v, first, end, sums);
        return;
    }
    double *cell = dnn_alloc((size_t)(parts * ncells) * sizeof *cell);
#pragma omp parallel for schedule(static, 1) num_threads((int)parts)
    for (int64_t p = 0; p < parts; p++)
        fn(v, first + rows / parts * p + smaller(p, rows % parts),
           first + rows / parts * (p + 1) + smaller(p + 1, rows % parts),
           cell + p * ncells);
    for (int64_t p = 0; p < parts; p++)
        for (int64_t i = 0; i < ncells; i++)
            sums[i] += cell[p * ncells + i];
    dnn_free(cell);
}

void dnn_view_sum(const struct dnn_view *v, dnn_sum_fn *fn, int64_t nsums, double *sums)
{
    int64_t rows = CHUNK / v->channels;

    if (rows < MIN_CHUNK_ROWS) rows = MIN_CHUNK_ROWS;
    int64_t chunks = (v->rows + rows - 1) / rows;
    double *part = dnn_alloc((size_t)(chunks * nsums) * sizeof *part);
#pragma omp parallel for schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++)
        fn(v, p * rows, smaller((p + 1) * rows, v->rows), part + p * nsums);
    for (int64_t p = 0; p < chunks; p++)
        for (int64_t i = 0; i < nsums; i++)
            sums[i] += part[p * nsums + i];
    dnn_free(part);
}
