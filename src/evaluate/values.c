/* values.c - numbers: errors per channel and per sample.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include <math.h>
#include <string.h>

/* Sums per channel of a row: they are exact until the row has all its points. */
enum { SQUARED, ABSOLUTE, TARGET, TARGET2, NSUMS };
/* Values per channel of a row: the rounded sums, and the largest error. */
enum { LARGEST = NSUMS, PER_CHANNEL };

static void sizes(struct dnn_evaluation *e)
{
    e->nsum = e->cfg.classes * NSUMS;
    e->nvalue = e->cfg.classes * PER_CHANNEL;
}

/* ---- adding ---- */

static void complete(const struct dnn_evaluation *e, struct evaluate_row *row)
{
    for (int64_t c = 0; c < e->cfg.classes; c++)
        for (int k = 0; k < NSUMS; k++)
            row->value[c * PER_CHANNEL + k] =
                dnn_evaluate_sum_value(&row->sum[c * NSUMS + k]);
}

/* Add points first ... end - 1 of a part. */
static void add_points(const struct dnn_evaluate_part *part, int64_t channels,
                       int64_t first, int64_t end, struct evaluate_sum *sum,
                       double *largest)
{
    for (int64_t i = first; i < end; i++)
        for (int64_t c = 0; c < channels; c++) {
            const double t = part->values[i * channels + c];
            const double d = fabs(part->output[i * channels + c] - t);

            dnn_evaluate_sum_add(&sum[c * NSUMS + SQUARED], d * d);
            dnn_evaluate_sum_add(&sum[c * NSUMS + ABSOLUTE], d);
            dnn_evaluate_sum_add(&sum[c * NSUMS + TARGET], t);
            dnn_evaluate_sum_add(&sum[c * NSUMS + TARGET2], t * t);
            if (!(largest[c] >= d)) largest[c] = d;
        }
}

static int add(struct dnn_evaluation *e, const struct dnn_evaluate_part *part,
               int64_t n, struct evaluate_row *row, struct dnn_err *err)
{
    const int64_t channels = e->cfg.classes, block = 4096;
    struct evaluate_sum *sum = row->sum != NULL ? row->sum : e->sum;

    DNN_TRY(dnn_evaluate_finite(e, part, "target", part->values, n, err));
    if (row->sum == NULL) memset(sum, 0, (size_t)e->nsum * sizeof *sum);
#pragma omp parallel if (n > block)
    {
        struct evaluate_sum *own = dnn_alloc((size_t)e->nsum * sizeof *own);
        double *largest = dnn_alloc((size_t)channels * sizeof *largest);

#pragma omp for schedule(static)
        for (int64_t at = 0; at < n; at += block)
            add_points(part, channels, at, at + block < n ? at + block : n, own,
                       largest);
#pragma omp critical(evaluate_values)
        {
            for (int64_t k = 0; k < e->nsum; k++)
                dnn_evaluate_sum_merge(&sum[k], &own[k]);
            for (int64_t c = 0; c < channels; c++) {
                double *value = &row->value[c * PER_CHANNEL + LARGEST];

                *value = fmax(*value, largest[c]);
            }
        }
        dnn_free(own);
        dnn_free(largest);
    }
    if (row->sum != NULL) return 0;
    row->sum = sum;
    complete(e, row);
    row->sum = NULL;
    return 0;
}

/* ---- errors from sums ---- */

enum { MSE, MAE, RMSE, R2, REL_L2, LARGEST_ERROR, NCOLUMNS };
static const char *const column[NCOLUMNS] = {"mse", "mae",    "rmse",
                                             "r2",  "rel_l2", "largest_error"};

/* Errors of n values with these sums and largest error. */
static void errors(const double *value, double n, double *out)
{
    /* A smaller variance is rounding error. */
    const double spread = value[TARGET2] - value[TARGET] * value[TARGET] / n;
    const bool varies = spread > 1e-14 * value[TARGET2];

    out[MSE] = n > 0 ? value[SQUARED] / n : NAN;
    out[MAE] = n > 0 ? value[ABSOLUTE] / n : NAN;
    out[RMSE] = sqrt(out[MSE]);
    out[R2] = varies ? 1 - value[SQUARED] / spread : NAN;
    out[REL_L2] = value[TARGET2] > 0 ? sqrt(value[SQUARED] / value[TARGET2]) : NAN;
    out[LARGEST_ERROR] = n > 0 ? value[LARGEST] : NAN;
}

/* Errors of all channels of values together; R2 is the mean of those of channels. */
static void join(const double *value, int64_t channels, double n, double *out)
{
    double all[PER_CHANNEL] = {0}, one[NCOLUMNS];
    struct evaluate_mean r2 = {0};

    for (int64_t c = 0; c < channels; c++, value += PER_CHANNEL) {
        for (int k = 0; k < NSUMS; k++)
            all[k] += value[k];
        all[LARGEST] = fmax(all[LARGEST], value[LARGEST]);
        errors(value, n, one);
        dnn_evaluate_mean_add(&r2, one[R2]);
    }
    errors(all, n * (double)channels, out);
    out[R2] = dnn_evaluate_mean(&r2);
}

static void sample_errors(const struct dnn_evaluation *e,
                          const struct evaluate_row *row, double *out)
{
    join(row->value, e->cfg.classes, (double)row->points, out);
}

/* ---- results ---- */

/* Sums of all rows, as the values of one. */
static double add_rows(const struct dnn_evaluation *e, double *value)
{
    struct evaluate_sum *sum = dnn_alloc((size_t)e->nsum * sizeof *sum);
    double n = 0;

    for (size_t i = 0; i < e->nrows; i++) {
        n += (double)e->row[i].points;
        for (int64_t c = 0; c < e->cfg.classes; c++) {
            const double *row = e->row[i].value + c * PER_CHANNEL;
            double *largest = &value[c * PER_CHANNEL + LARGEST];

            for (int k = 0; k < NSUMS; k++)
                dnn_evaluate_sum_add(&sum[c * NSUMS + k], row[k]);
            *largest = fmax(*largest, row[LARGEST]);
        }
    }
    for (int64_t c = 0; c < e->cfg.classes; c++)
        for (int k = 0; k < NSUMS; k++)
            value[c * PER_CHANNEL + k] = dnn_evaluate_sum_value(&sum[c * NSUMS + k]);
    dnn_free(sum);
    return n;
}

static void results(struct dnn_evaluation *e)
{
    const int64_t channels = e->cfg.classes;
    double *value = dnn_alloc((size_t)e->nvalue * sizeof *value), all[NCOLUMNS];
    const double n = add_rows(e, value);
    struct evaluate_mean rel_l2 = {0};

    dnn_evaluate_table(e, column, NCOLUMNS);
    for (int64_t c = 0; c < channels; c++)
        errors(value + c * PER_CHANNEL, n, dnn_evaluate_cell(e, c, 0));
    join(value, channels, n, all);
    dnn_free(value);
    for (size_t i = 0; i < e->nrows; i++) {
        double one[NCOLUMNS];

        sample_errors(e, &e->row[i], one);
        dnn_evaluate_mean_add(&rel_l2, one[REL_L2]);
    }
    dnn_evaluate_total(e, "samples", (double)e->nrows);
    for (int k = 0; k < NCOLUMNS; k++)
        dnn_evaluate_total(e, column[k], all[k]);
    dnn_evaluate_total(e, "sample_rel_l2", dnn_evaluate_mean(&rel_l2));
}

static double badness(const struct dnn_evaluation *e, const struct evaluate_row *row)
{
    double out[NCOLUMNS];

    sample_errors(e, row, out);
    return out[RMSE];
}

static void columns(const struct dnn_evaluation *e, struct dnn_buf *out)
{
    (void)e;
    for (int k = 0; k < NCOLUMNS; k++)
        dnn_buf_add(out, ",%s", column[k]);
}

static void cells(const struct dnn_evaluation *e, const struct evaluate_row *row,
                  struct dnn_buf *out)
{
    double value[NCOLUMNS];

    sample_errors(e, row, value);
    for (int k = 0; k < NCOLUMNS; k++)
        dnn_evaluate_csv_number(out, value[k]);
}

const struct evaluate_kind dnn_evaluate_values = {.name = "values",
                                                  .worst = "rmse",
                                                  .descending = true,
                                                  .sizes = sizes,
                                                  .add = add,
                                                  .complete = complete,
                                                  .results = results,
                                                  .badness = badness,
                                                  .columns = columns,
                                                  .cells = cells};
