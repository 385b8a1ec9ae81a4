/* batch.c - outputs and targets of a batch, and sums over them by several threads.
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
    GRAIN = 1 << 14,     /* numbers of output that are worth a thread     */
    CELLS = 1 << 22,     /* counters of all threads together              */
    PIECE = 1 << 16,     /* numbers of output in a piece of a sum of reals */
    PIECE_LEAST = 1 << 6 /* and rows, so that pieces stay few             */
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
                    row / b->places, row % b->places, b->labels[row], classes - 1);
}

/* Labels must be classes, or ignored. */
static int check_labels(const struct dnn_view *v, struct dnn_err *err)
{
    const int32_t *label = v->batch->labels;
    const int64_t classes = v->channels > 1 ? v->channels : 2;
    const int64_t ignore = v->batch->ignore, also = v->how->ignore;
    int64_t bad = 0;

#pragma omp parallel for reduction(+ : bad) if (v->rows > GRAIN)
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

    if (b->channels != v->how->classes)
        return dnn_fail(err, DNN_ECONFIG,
                        "the output has %" PRId64 " channels, but %" PRId64
                        " were expected",
                        b->channels, v->how->classes);
    if (b->labels == NULL && b->values == NULL)
        return dnn_fail(err, DNN_ECONFIG, "the data has no targets");
    if (b->labels == NULL || b->channels == 1) return 0;
    if (v->how->scores == DNN_SCORES_BINARY || v->how->scores == DNN_SCORES_VALUES)
        return dnn_fail(err, DNN_ECONFIG,
                        "the targets are class numbers, but the output has %" PRId64
                        " channels; %s",
                        b->channels,
                        v->how->scores == DNN_SCORES_BINARY
                            ? "binary scores need a mask for each channel"
                            : "targets must be values of the output's shape");
    return 0;
}

int dnn_view_make(const struct dnn_metric_how *how,
                  const struct dnn_metric_batch *batch, struct dnn_view *out,
                  struct dnn_err *err)
{
    struct dnn_view v = {how, batch, 0, batch->channels, how->threshold};
    int64_t all;

    if (batch->n < 0 || batch->places < 1 || batch->channels < 1 ||
        __builtin_mul_overflow(batch->n, batch->places, &v.rows) ||
        __builtin_mul_overflow(v.rows, batch->channels, &all))
        return dnn_fail(err, DNN_ECONFIG,
                        "a batch of %" PRId64 " samples of %" PRId64 " x %" PRId64
                        " numbers is too large",
                        batch->n, batch->places, batch->channels);
    if (batch->logits) v.cut = log(how->threshold / (1 - how->threshold));
    DNN_TRY(check_kind(&v, err));
    if (batch->labels != NULL && how->scores != DNN_SCORES_VALUES)
        DNN_TRY(check_labels(&v, err));
    *out = v;
    return 0;
}

/* ---- one row ---- */

static bool ignored(const struct dnn_view *v, double target)
{
    return target == (double)v->batch->ignore || target == (double)v->how->ignore;
}

/* The largest above a floor, the first of equals; a NaN is never larger. */
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

int dnn_view_target_yes(const struct dnn_view *v, int64_t row, int64_t channel)
{
    const struct dnn_metric_batch *b = v->batch;
    double t =
        b->labels != NULL ? b->labels[row] : b->values[row * v->channels + channel];

    return ignored(v, t) || isnan(t) ? DNN_NO_CLASS : t > 0.5;
}

int dnn_view_output_yes(const struct dnn_view *v, int64_t row, int64_t channel)
{
    float x = v->batch->output[row * v->channels + channel];

    return isnan(x) ? DNN_NO_CLASS : x > v->cut;
}

int64_t dnn_view_target(const struct dnn_view *v, int64_t row)
{
    const struct dnn_metric_batch *b = v->batch;

    if (v->how->scores == DNN_SCORES_BINARY) return dnn_view_target_yes(v, row, 0);
    int64_t t = b->labels != NULL
                    ? b->labels[row]
                    : largest(b->values + row * v->channels, v->channels, 0);
    return ignored(v, (double)t) ? DNN_NO_CLASS : t;
}

int64_t dnn_view_output(const struct dnn_view *v, int64_t row)
{
    if (v->how->scores == DNN_SCORES_BINARY) return dnn_view_output_yes(v, row, 0);
    const float *x = v->batch->output + row * v->channels;
    for (int64_t c = 0; c < v->channels; c++)
        if (isnan(x[c])) return DNN_NO_CLASS;
    int64_t best = largest(x, v->channels, -INFINITY);
    return best == DNN_NO_CLASS ? 0 : best; /* all are -infinity */
}

/* ---- many rows ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void dnn_view_count(const struct dnn_view *v, int64_t first, int64_t end,
                    dnn_count_fn *fn, int64_t ncells, double *sums)
{
    const int64_t rows = end - first;
    int64_t parts = least(omp_get_max_threads(), rows * v->channels / GRAIN + 1);

    if (parts * ncells > CELLS) parts = CELLS / ncells;
    if (parts < 2) {
        fn(v, first, end, sums);
        return;
    }
    double *cell = dnn_alloc((size_t)(parts * ncells) * sizeof *cell);
#pragma omp parallel for schedule(static, 1) num_threads((int)parts)
    for (int64_t p = 0; p < parts; p++)
        fn(v, first + rows / parts * p + least(p, rows % parts),
           first + rows / parts * (p + 1) + least(p + 1, rows % parts),
           cell + p * ncells);
    for (int64_t p = 0; p < parts; p++)
        for (int64_t i = 0; i < ncells; i++)
            sums[i] += cell[p * ncells + i];
    dnn_free(cell);
}

void dnn_view_sum(const struct dnn_view *v, dnn_sum_fn *fn, int64_t nsums, double *sums)
{
    int64_t rows = PIECE / v->channels;

    if (rows < PIECE_LEAST) rows = PIECE_LEAST;
    int64_t pieces = (v->rows + rows - 1) / rows;
    double *part = dnn_alloc((size_t)(pieces * nsums) * sizeof *part);
#pragma omp parallel for schedule(static) if (pieces > 1)
    for (int64_t p = 0; p < pieces; p++)
        fn(v, p * rows, least((p + 1) * rows, v->rows), part + p * nsums);
    for (int64_t p = 0; p < pieces; p++)
        for (int64_t i = 0; i < nsums; i++)
            sums[i] += part[p * nsums + i];
    dnn_free(part);
}
