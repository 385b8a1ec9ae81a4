/* table.c - the facts of a run, tables of numbers, and the coloured confusion matrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "report/report_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Maximum classes of a matrix, and rows of the list of errors and of a table. */
enum { MAX_CLASSES = 40, MAX_ERRORS = 20, MAX_ROWS = 200 };

void dnn_report_facts(struct dnn_buf *out, const char *facts)
{
    char *copy = dnn_strdup(facts), *remaining = copy, *line;

    dnn_buf_add(out, "<section><h2>Run</h2>\n<table class=\"facts\">\n");
    while ((line = strsep(&remaining, "\n")) != NULL) {
        char *tab = strchr(line, '\t');

        if (line[0] == '\0') continue;
        if (tab != NULL) *tab = '\0';
        dnn_buf_add(out, "<tr><th>");
        dnn_html_text(out, line);
        dnn_buf_add(out, "</th><td>");
        dnn_html_text(out, tab == NULL ? "" : tab + 1);
        dnn_buf_add(out, "</td></tr>\n");
    }
    dnn_buf_add(out, "</table></section>\n");
    dnn_free(copy);
}

/* ---- numbers ---- */

static void add_row(struct dnn_buf *out, const struct dnn_report_table *t, int64_t row)
{
    dnn_buf_add(out, "<tr><th>");
    if (t->row != NULL && t->row[row] != NULL)
        dnn_html_text(out, t->row[row]);
    else
        dnn_buf_add(out, "%" PRId64, row);
    dnn_buf_add(out, "</th>");
    for (int k = 0; k < t->ncolumns; k++) {
        dnn_buf_add(out, "<td>");
        dnn_html_number(out, t->value[row * t->ncolumns + k]);
        dnn_buf_add(out, "</td>");
    }
    dnn_buf_add(out, "</tr>\n");
}

void dnn_report_table(struct dnn_buf *out, const struct dnn_report_table *t)
{
    const int64_t rows = t->nrows < MAX_ROWS ? t->nrows : MAX_ROWS;

    dnn_buf_add(out, "<section><h2>");
    dnn_html_text(out, t->title);
    dnn_buf_add(out, "</h2>\n<div class=\"scroll\"><table class=\"matrix\">\n<tr><th>");
    dnn_html_text(out, t->corner == NULL ? "" : t->corner);
    dnn_buf_add(out, "</th>");
    for (int k = 0; k < t->ncolumns; k++) {
        dnn_buf_add(out, "<th>");
        dnn_html_text(out, t->column[k]);
        dnn_buf_add(out, "</th>");
    }
    dnn_buf_add(out, "</tr>\n");
    for (int64_t i = 0; i < rows; i++)
        add_row(out, t, i);
    dnn_buf_add(out, "</table></div>\n");
    if (rows < t->nrows)
        dnn_buf_add(out, "<p>and %" PRId64 " more rows</p>\n", t->nrows - rows);
    dnn_buf_add(out, "</section>\n");
}

/* ---- the matrix ---- */

struct matrix {
    struct dnn_buf *out;
    int64_t n;
    const double *count;
    const char *const *name;
};

static void add_class(const struct matrix *m, int64_t c)
{
    if (m->name != NULL && m->name[c] != NULL)
        dnn_html_text(m->out, m->name[c]);
    else
        dnn_buf_add(m->out, "%" PRId64, c);
}

static double row_sum(const struct matrix *m, int64_t row)
{
    double sum = 0;

    for (int64_t c = 0; c < m->n; c++)
        sum += m->count[row * m->n + c];
    return sum;
}

static double column_sum(const struct matrix *m, int64_t column)
{
    double sum = 0;

    for (int64_t c = 0; c < m->n; c++)
        sum += m->count[c * m->n + column];
    return sum;
}

static void add_percent(struct dnn_buf *out, double part, double whole)
{
    dnn_buf_add(out, "<td class=\"sum\">");
    if (whole > 0)
        dnn_buf_add(out, "%.1f %%", 100 * part / whole);
    else
        dnn_buf_add(out, "&#8211;");
    dnn_buf_add(out, "</td>");
}

/* Correct predictions are blue, wrong ones red; darker colours are larger shares of the
 * row. */
static void add_cell(const struct matrix *m, int64_t row, int64_t column, double sum)
{
    double count = m->count[row * m->n + column], share = sum > 0 ? count / sum : 0;
    double shade = sqrt(share); /* emphasise small shares */

    dnn_buf_add(m->out, "<td");
    if (count > 0)
        dnn_buf_add(m->out, " style=\"background:rgba(%s,%.2f)%s\"",
                    row == column ? "37,99,235" : "220,38,38",
                    (row == column ? 0.75 : 0.85) * shade,
                    shade > 0.75 ? ";color:#fff" : "");
    dnn_buf_add(m->out, " title=\"%.2f %% of ", 100 * share);
    add_class(m, row);
    dnn_buf_add(m->out, " predicted as ");
    add_class(m, column);
    dnn_buf_add(m->out, count > 0 ? "\">%.0f</td>" : "\" class=\"none\">%.0f</td>",
                count);
}

static void add_matrix(const struct matrix *m)
{
    struct dnn_buf *out = m->out;

    dnn_buf_add(out,
                "<div class=\"scroll\"><table class=\"matrix\">\n<tr><th>target \\ "
                "prediction</th>");
    for (int64_t c = 0; c < m->n; c++) {
        dnn_buf_add(out, "<th>");
        add_class(m, c);
        dnn_buf_add(out, "</th>");
    }
    dnn_buf_add(out, "<th class=\"sum\">recall</th></tr>\n");
    for (int64_t r = 0; r < m->n; r++) {
        double sum = row_sum(m, r);

        dnn_buf_add(out, "<tr><th>");
        add_class(m, r);
        dnn_buf_add(out, "</th>");
        for (int64_t c = 0; c < m->n; c++)
            add_cell(m, r, c, sum);
        add_percent(out, m->count[r * m->n + r], sum);
        dnn_buf_add(out, "</tr>\n");
    }
    dnn_buf_add(out, "<tr><th class=\"sum\">precision</th>");
    double correct = 0, all = 0;
    for (int64_t c = 0; c < m->n; c++) {
        add_percent(out, m->count[c * m->n + c], column_sum(m, c));
        correct += m->count[c * m->n + c];
        all += row_sum(m, c);
    }
    add_percent(out, correct, all);
    dnn_buf_add(out, "</tr>\n</table></div>\n");
}

/* ---- most frequent errors ---- */

struct error {
    double count;
    int64_t row, column;
};

static int by_count(const void *a, const void *b)
{
    const struct error *x = a, *y = b;

    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

static void add_worst(const struct matrix *m)
{
    struct error *list = NULL;
    size_t n = 0, cap = 0;

    for (int64_t i = 0; i < m->n * m->n; i++) {
        if (i / m->n == i % m->n || !(m->count[i] > 0)) continue;
        list = dnn_grow(list, &cap, n + 1, sizeof *list);
        list[n++] = (struct error){m->count[i], i / m->n, i % m->n};
    }
    if (n > 0) {
        qsort(list, n, sizeof *list, by_count);
        dnn_buf_add(m->out, "<h3>Most frequent errors</h3>\n<table class=\"facts\">\n"
                            "<tr><th>target</th><th>prediction</th><th>count</th>"
                            "<th>share of the target</th></tr>\n");
    }
    for (size_t i = 0; i < n && i < MAX_ERRORS; i++) {
        dnn_buf_add(m->out, "<tr><td>");
        add_class(m, list[i].row);
        dnn_buf_add(m->out, "</td><td>");
        add_class(m, list[i].column);
        dnn_buf_add(m->out, "</td><td>%.0f</td>", list[i].count);
        add_percent(m->out, list[i].count, row_sum(m, list[i].row));
        dnn_buf_add(m->out, "</tr>\n");
    }
    if (n > 0) dnn_buf_add(m->out, "</table>\n");
    dnn_free(list);
}

void dnn_report_confusion(struct dnn_buf *out, int64_t classes, const double *count,
                          const char *const *name)
{
    struct matrix m = {out, classes, count, name};

    dnn_buf_add(out, "<section><h2>Confusion matrix</h2>\n");
    if (classes <= MAX_CLASSES)
        add_matrix(&m);
    else
        dnn_buf_add(out, "<p>The matrix of %" PRId64 " classes is not shown.</p>\n",
                    classes);
    if (classes > 8) add_worst(&m);
    dnn_buf_add(out, "</section>\n");
}
