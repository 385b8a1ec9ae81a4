/* print.c - results as tables for a terminal.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_ROWS = 40, WIDEST = 40 };

/* A number in a column of a table; "-": not defined. */
static void print_number(FILE *where, int width, double value)
{
    char text[32];

    if (isnan(value))
        snprintf(text, sizeof text, "-");
    else if (value == rint(value) && fabs(value) < 1e15)
        snprintf(text, sizeof text, "%.0f", value);
    else
        snprintf(text, sizeof text, "%.4g", value);
    fprintf(where, "  %*s", width, text);
}

static int longer(int width, const char *text)
{
    const int len = (int)strlen(text);

    return len > width ? len : width;
}

static void print_totals(const struct evaluate_results *r, FILE *where)
{
    int width = 0;

    for (int k = 0; k < r->ntotals; k++)
        width = longer(width, r->total[k].name);
    for (int k = 0; k < r->ntotals; k++) {
        fprintf(where, "  %-*s", width, r->total[k].name);
        print_number(where, 1, r->total[k].value);
        fprintf(where, "\n");
    }
}

static const char *name_of(const struct dnn_evaluation *e, int64_t c, char number[24])
{
    if (e->cfg.class_name != NULL && e->cfg.class_name[c] != NULL)
        return e->cfg.class_name[c];
    snprintf(number, 24, "%" PRId64, c);
    return number;
}

static void print_classes(const struct dnn_evaluation *e, FILE *where)
{
    const struct evaluate_results *r = &e->results;
    const char *what = e->cfg.task == DNN_EVALUATE_VALUES ? "channel" : "class";
    const int64_t rows = e->cfg.classes < MOST_ROWS ? e->cfg.classes : MOST_ROWS;
    int width = longer(0, what);
    char number[24];

    for (int64_t c = 0; c < rows; c++)
        width = longer(width, name_of(e, c, number));
    if (width > WIDEST) width = WIDEST;
    fprintf(where, "\n  %-*s", width, what);
    for (int k = 0; k < r->ncolumns; k++)
        fprintf(where, "  %*s", longer(9, r->column[k]), r->column[k]);
    fprintf(where, "\n");
    for (int64_t c = 0; c < rows; c++) {
        fprintf(where, "  %-*.*s", width, width, name_of(e, c, number));
        for (int k = 0; k < r->ncolumns; k++)
            print_number(where, longer(9, r->column[k]), r->table[c * r->ncolumns + k]);
        fprintf(where, "\n");
    }
    if (rows < e->cfg.classes)
        fprintf(where, "  and %" PRId64 " more\n", e->cfg.classes - rows);
}

static void print_bins(const struct evaluate_results *r, FILE *where)
{
    if (r->nbins == 0) return;
    fprintf(where, "\n  %-14s  %9s  %10s  %9s\n", "confidence", "samples", "mean",
            "accuracy");
    for (int b = 0; b < r->nbins; b++) {
        const struct dnn_evaluate_bin *bin = &r->bin[b];

        if (bin->count == 0) continue;
        fprintf(where, "  %.3f to %.3f", bin->low, bin->high);
        print_number(where, 9, (double)bin->count);
        print_number(where, 10, bin->confidence);
        print_number(where, 9, bin->accuracy);
        fprintf(where, "\n");
    }
}

static void print_worst(const struct evaluate_results *r, FILE *where)
{
    int width = longer(0, "worst samples");

    if (r->nworst == 0) return;
    for (int i = 0; i < r->nworst; i++)
        width = longer(width, r->worst[i].name);
    fprintf(where, "\n  %-*s  %9s  %9s\n", width, "worst samples", "number",
            r->worst[0].metric);
    for (int i = 0; i < r->nworst; i++) {
        fprintf(where, "  %-*s", width, r->worst[i].name);
        print_number(where, 9, (double)r->worst[i].sample);
        print_number(where, 9, r->worst[i].value);
        fprintf(where, "\n");
    }
}

void dnn_evaluate_print(const struct dnn_evaluation *e, FILE *where)
{
    print_totals(&e->results, where);
    print_classes(e, where);
    print_bins(&e->results, where);
    print_worst(&e->results, where);
}
