/* curves.c - curves of metrics.csv, and the best values.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "report/report_impl.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- columns ---- */

/* Whether all records have this column; it has its own chart. */
static bool is_fixed(const char *name)
{
    const struct dnn_record empty = {0};
    double value;

    for (int i = 0; i < dnn_record_count(&empty); i++)
        if (strcmp(dnn_record_number(&empty, i, &value), name) == 0) return true;
    return false;
}

static bool is_val(const char *name)
{
    return strncmp(name, "val_", 4) == 0;
}

/* Whether a column is a class of a metric: dice_2 is class 2 of dice, if there is a
 * column dice; top_5 is a metric. */
static bool is_class(const struct dnn_csv *csv, const char *name, char family[64])
{
    size_t len = strlen(name), n = len;
    const double *column;

    while (n > 0 && isdigit((unsigned char)name[n - 1]))
        n--;
    if (n == len || n < 2 || name[n - 1] != '_' || n > 64) return false;
    memcpy(family, name, n - 1);
    family[n - 1] = '\0';
    return dnn_csv_column(csv, family, &column) >= 0;
}

static void add_series(const struct dnn_csv *csv, struct dnn_chart *chart,
                       const char *x, const char *y, const char *name)
{
    struct dnn_series s = {.n = dnn_csv_rows(csv)};

    if (dnn_csv_column(csv, x, &s.x) < 0 || dnn_csv_column(csv, y, &s.y) < 0) return;
    snprintf(s.name, sizeof s.name, "%s", name);
    if (chart->n == DNN_CHART_SERIES)
        chart->left_out++;
    else
        chart->series[chart->n++] = s;
}

static void add_chart(struct dnn_buf *out, const struct dnn_chart *chart)
{
    if (dnn_chart_any(chart)) dnn_chart_add(out, chart);
}

/* ---- curves ---- */

/* Add a chart of a metric in training and validation. */
static void add_metric(struct dnn_buf *out, const struct dnn_csv *csv, const char *name)
{
    struct dnn_chart chart = {.xlabel = "epoch",
                              .may_log = strstr(name, "loss") != NULL ||
                                         strstr(name, "mse") != NULL};
    char val[128];

    snprintf(chart.title, sizeof chart.title, "%.80s", name);
    snprintf(val, sizeof val, "val_%.120s", name);
    add_series(csv, &chart, "epoch", name, "training");
    add_series(csv, &chart, "epoch", val, "validation");
    if (chart.n == 1 && strcmp(chart.series[0].name, "validation") == 0)
        snprintf(chart.title, sizeof chart.title, "%.80s", val); /* without legend */
    add_chart(out, &chart);
}

struct named {
    int64_t n;
    const char *const *name; /* or NULL */
};

/* Add a chart of all classes of a metric. */
static void add_classes(struct dnn_buf *out, const struct dnn_csv *csv,
                        const char *family, const struct named *classes)
{
    struct dnn_chart chart = {.xlabel = "epoch"};
    char of[64], label[64];

    snprintf(chart.title, sizeof chart.title, "%s by class", family);
    for (int k = 0; k < dnn_csv_columns(csv); k++) {
        const char *name = dnn_csv_name(csv, k);

        if (!is_class(csv, name, of) || strcmp(of, family) != 0) continue;
        const char *number = name + strlen(family) + 1;
        long long c = 0;
        bool known = classes->name != NULL && dnn_text_int(number, &c) &&
                     c < classes->n && classes->name[c] != NULL;
        snprintf(label, sizeof label, "%.60s", known ? classes->name[c] : number);
        add_series(csv, &chart, "epoch", name, label);
    }
    add_chart(out, &chart);
}

static void add_one(struct dnn_buf *out, const struct dnn_csv *csv, const char *title,
                    const char *column, bool may_log)
{
    struct dnn_chart chart = {.xlabel = "epoch", .may_log = may_log};

    snprintf(chart.title, sizeof chart.title, "%s", title);
    add_series(csv, &chart, "epoch", column, column);
    add_chart(out, &chart);
}

/* Add charts of the metrics (classes NULL) or of classes of metrics, in the order of
 * the columns.  A validation metric is in the chart of its training metric, and each
 * class in the chart of its metric. */
static void add_metrics(struct dnn_buf *out, const struct dnn_csv *csv,
                        const struct named *classes)
{
    char family[64], last[64] = "";
    const double *column;

    for (int k = 0; k < dnn_csv_columns(csv); k++) {
        const char *name = dnn_csv_name(csv, k);

        if (is_fixed(name)) continue;
        if (is_class(csv, name, family)) {
            if (classes != NULL && strcmp(last, family) != 0)
                add_classes(out, csv, family, classes);
            snprintf(last, sizeof last, "%s", family);
            continue;
        }
        if (classes != NULL ||
            (is_val(name) && dnn_csv_column(csv, name + 4, &column) >= 0))
            continue;
        add_metric(out, csv, is_val(name) ? name + 4 : name);
    }
}

void dnn_report_curves(struct dnn_buf *out, const struct dnn_csv *csv, int64_t classes,
                       const char *const *name)
{
    const struct named named = {classes, name};
    struct dnn_chart shares = {.xlabel = "epoch", .scale = 100};

    dnn_buf_add(out, "<section><h2>Curves</h2>\n<div class=\"charts\">\n");
    add_metrics(out, csv, NULL);
    add_metrics(out, csv, &named);
    add_one(out, csv, "learning rate", "learning_rate", true);
    add_one(out, csv, "gradient norm", "grad_norm", true);
    add_one(out, csv, "samples per second", "samples_per_second", false);
    snprintf(shares.title, sizeof shares.title, "share of time, %%");
    add_series(csv, &shares, "epoch", "data", "data");
    add_series(csv, &shares, "epoch", "compute", "compute");
    add_series(csv, &shares, "epoch", "comm", "communication");
    add_chart(out, &shares);
    dnn_buf_add(out, "</div></section>\n");
}

void dnn_report_steps(struct dnn_buf *out, const struct dnn_csv *csv)
{
    static const char *const column[] = {"loss", "grad_norm"};
    static const char *const title[] = {"loss by step", "gradient norm by step"};

    dnn_buf_add(out, "<section><h2>Steps</h2>\n<div class=\"charts\">\n");
    for (int i = 0; i < 2; i++) {
        struct dnn_chart chart = {.xlabel = "step", .may_log = true};

        snprintf(chart.title, sizeof chart.title, "%s", title[i]);
        add_series(csv, &chart, "step", column[i], column[i]);
        add_chart(out, &chart);
    }
    dnn_buf_add(out, "</div></section>\n");
}

/* ---- cards ---- */

static bool more_is_better(const char *name)
{
    static const char *const word[] = {"accuracy", "top_", "dice", "iou", "precision",
                                       "recall",   "f1",   "auc",  "r2"};

    for (size_t k = 0; k < sizeof word / sizeof word[0]; k++)
        if (strstr(name, word[k]) != NULL) return true;
    return false;
}

static void add_card(struct dnn_buf *out, const char *name, const char *value,
                     const char *note)
{
    dnn_buf_add(out, "<div class=\"card\"><span>");
    dnn_html_text(out, name);
    dnn_buf_add(out, "</span><b>%s</b><small>", value);
    dnn_html_text(out, note);
    dnn_buf_add(out, "</small></div>\n");
}

static void add_best(struct dnn_buf *out, const struct dnn_csv *csv, const char *name)
{
    const double *y, *epoch;
    const bool more = more_is_better(name);
    int64_t best = -1;
    struct dnn_buf value = {0};
    char title[80], note[64] = "";

    dnn_csv_column(csv, name, &y);
    for (int64_t i = 0; i < dnn_csv_rows(csv); i++)
        if (isfinite(y[i]) && (best < 0 || (more ? y[i] > y[best] : y[i] < y[best])))
            best = i;
    if (best < 0) return;
    dnn_html_number(&value, y[best]);
    if (dnn_csv_column(csv, "epoch", &epoch) >= 0)
        snprintf(note, sizeof note, "in epoch %.0f", epoch[best]);
    snprintf(title, sizeof title, "best %.64s", name);
    add_card(out, title, value.text, note);
    dnn_buf_free(&value);
}

static void add_last(struct dnn_buf *out, const struct dnn_csv *csv, const char *column,
                     const char *title)
{
    const double *y;
    int64_t last = dnn_csv_rows(csv) - 1;
    struct dnn_buf value = {0};
    char text[32];

    if (last < 0 || dnn_csv_column(csv, column, &y) < 0 || !isfinite(y[last])) return;
    if (strcmp(column, "seconds") == 0)
        dnn_buf_add(&value, "%s", dnn_text_seconds(text, sizeof text, y[last]));
    else
        dnn_html_number(&value, y[last]);
    add_card(out, title, value.text, "");
    dnn_buf_free(&value);
}

void dnn_report_cards(struct dnn_buf *out, const struct dnn_csv *csv)
{
    enum { MAX_CARDS = 6 };
    char family[64];
    bool val = false;
    int shown = 0;

    for (int k = 0; k < dnn_csv_columns(csv); k++)
        val = val || is_val(dnn_csv_name(csv, k));
    dnn_buf_add(out, "<div class=\"cards\">\n");
    add_last(out, csv, "epoch", "epochs");
    add_last(out, csv, "step", "steps");
    add_last(out, csv, "seconds", "time");
    for (int k = 0; k < dnn_csv_columns(csv) && shown < MAX_CARDS; k++) {
        const char *name = dnn_csv_name(csv, k);

        if (is_fixed(name) || is_class(csv, name, family) || is_val(name) != val)
            continue;
        add_best(out, csv, name);
        shown++;
    }
    dnn_buf_add(out, "</div>\n");
}
