/* results.c - tables and totals of an evaluation, and its worst samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

void dnn_evaluate_results_free(struct evaluate_results *r)
{
    dnn_free(r->table);
    dnn_free(r->confusion);
    dnn_free(r->bin);
    dnn_free(r->worst);
}

/* ---- averages ---- */

void dnn_evaluate_mean_add(struct evaluate_mean *mean, double value)
{
    if (isnan(value)) return;
    mean->sum += value;
    mean->n++;
}

double dnn_evaluate_mean(const struct evaluate_mean *mean)
{
    return mean->n == 0 ? NAN : mean->sum / (double)mean->n;
}

bool dnn_evaluate_averaged(const struct dnn_evaluation *e, int64_t c)
{
    if (e->cfg.channels == 1 && c == 0) return false;
    return e->cfg.task != DNN_EVALUATE_MASKS || c != e->cfg.background;
}

struct evaluate_ratios dnn_evaluate_ratios(int64_t hits, int64_t targets,
                                           int64_t outputs)
{
    const double h = (double)hits, t = (double)targets, o = (double)outputs;

    if (targets == 0 && outputs == 0)
        return (struct evaluate_ratios){NAN, NAN, NAN, NAN};
    return (struct evaluate_ratios){.precision = outputs == 0 ? 0 : h / o,
                                    .recall = targets == 0 ? 0 : h / t,
                                    .f1 = 2 * h / (t + o),
                                    .iou = h / (t + o - h)};
}

/* ---- tables ---- */

void dnn_evaluate_total(struct dnn_evaluation *e, const char *name, double value)
{
    struct evaluate_results *r = &e->results;

    assert(r->ntotals < EVALUATE_TOTALS);
    r->total[r->ntotals++] = (struct dnn_evaluate_value){name, value};
}

void dnn_evaluate_table(struct dnn_evaluation *e, const char *const *column, int n)
{
    struct evaluate_results *r = &e->results;
    const int64_t cells = e->cfg.classes * n;

    assert(n <= EVALUATE_COLUMNS);
    r->ncolumns = n;
    r->table = dnn_alloc((size_t)cells * sizeof *r->table);
    for (int k = 0; k < n; k++)
        r->column[k] = column[k];
    for (int64_t i = 0; i < cells; i++)
        r->table[i] = NAN;
}

double *dnn_evaluate_cell(struct dnn_evaluation *e, int64_t c, int column)
{
    return e->results.table + c * e->results.ncolumns + column;
}

double dnn_evaluate_average(const struct dnn_evaluation *e, int column, int weight)
{
    const int n = e->results.ncolumns;
    double sum = 0, weights = 0;

    for (int64_t c = 0; c < e->cfg.classes; c++) {
        const double *row = e->results.table + c * n;
        const double w = weight >= 0 ? row[weight] : dnn_evaluate_averaged(e, c);

        if (isnan(row[column])) continue;
        sum += w * row[column];
        weights += w;
    }
    return weights == 0 ? NAN : sum / weights;
}

/* ---- worst samples ---- */

static int worse(const void *a, const void *b)
{
    const struct dnn_evaluate_worst *x = a, *y = b;

    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

void dnn_evaluate_sort_worst(struct dnn_evaluation *e)
{
    struct evaluate_results *r = &e->results;
    const int sign = e->kind->descending ? -1 : 1;
    int64_t n = 0;

    if (e->cfg.worst < 1) return;
    r->worst = dnn_alloc((e->nrows + 1) * sizeof *r->worst);
    for (size_t i = 0; i < e->nrows; i++) {
        const struct evaluate_row *row = &e->row[i];
        const double value = e->kind->badness(e, row);

        if (isnan(value)) continue;
        r->worst[n++] = (struct dnn_evaluate_worst){row->sample, row->name,
                                                    e->kind->worst, sign * value};
    }
    qsort(r->worst, (size_t)n, sizeof *r->worst, worse);
    r->nworst = n < e->cfg.worst ? (int)n : e->cfg.worst;
    for (int i = 0; i < r->nworst; i++)
        r->worst[i].value *= sign;
}
