/* write.c - results as JSON, and as CSV files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include "base/file.h"
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- JSON ---- */

static void add_number(struct dnn_buf *out, double value)
{
    char text[DNN_TEXT_NUMBER];

    dnn_buf_add(out, "%s", isfinite(value) ? dnn_text_number(text, value) : "null");
}

static void add_member(struct dnn_buf *out, const char *name, double value)
{
    dnn_buf_add(out, ", ");
    dnn_json_quoted(out, name);
    dnn_buf_add(out, ": ");
    add_number(out, value);
}

static void add_totals(const struct evaluate_results *r, struct dnn_buf *out)
{
    dnn_buf_add(out, "\"totals\": {");
    for (int k = 0; k < r->ntotals; k++) {
        dnn_buf_add(out, k > 0 ? ", " : "");
        dnn_json_quoted(out, r->total[k].name);
        dnn_buf_add(out, ": ");
        add_number(out, r->total[k].value);
    }
    dnn_buf_add(out, "}");
}

static void add_classes(const struct dnn_evaluation *e, struct dnn_buf *out)
{
    const struct evaluate_results *r = &e->results;
    const bool values = e->cfg.task == DNN_EVALUATE_VALUES;

    dnn_buf_add(out, ",\n\"%s\": [", values ? "channels" : "classes");
    for (int64_t c = 0; c < e->cfg.classes; c++) {
        const char *name = e->cfg.class_name == NULL ? NULL : e->cfg.class_name[c];

        dnn_buf_add(out, "%s\n{\"%s\": %" PRId64, c > 0 ? "," : "",
                    values ? "channel" : "class", c);
        if (name != NULL) {
            dnn_buf_add(out, ", \"name\": ");
            dnn_json_quoted(out, name);
        }
        for (int k = 0; k < r->ncolumns; k++)
            add_member(out, r->column[k], r->table[c * r->ncolumns + k]);
        dnn_buf_add(out, "}");
    }
    dnn_buf_add(out, "]");
}

static void add_bins(const struct evaluate_results *r, struct dnn_buf *out)
{
    dnn_buf_add(out, ",\n\"calibration\": [");
    for (int b = 0; b < r->nbins; b++) {
        const struct dnn_evaluate_bin *bin = &r->bin[b];

        dnn_buf_add(out, "%s\n{\"count\": %" PRId64, b > 0 ? "," : "", bin->count);
        add_member(out, "low", bin->low);
        add_member(out, "high", bin->high);
        add_member(out, "confidence", bin->confidence);
        add_member(out, "accuracy", bin->accuracy);
        dnn_buf_add(out, "}");
    }
    dnn_buf_add(out, "]");
}

static void add_confusion(const struct dnn_evaluation *e, struct dnn_buf *out)
{
    const int64_t n = e->cfg.classes;

    dnn_buf_add(out, ",\n\"confusion\": [");
    for (int64_t i = 0; i < n * n; i++)
        dnn_buf_add(out, "%s%.0f%s",
                    i % n > 0 ? ", "
                    : i > 0   ? ",\n["
                              : "\n[",
                    e->results.confusion[i], i % n == n - 1 ? "]" : "");
    dnn_buf_add(out, "]");
}

static void add_worst(const struct evaluate_results *r, struct dnn_buf *out)
{
    dnn_buf_add(out, ",\n\"worst\": [");
    for (int i = 0; i < r->nworst; i++) {
        dnn_buf_add(out, "%s\n{\"sample\": %" PRId64 ", \"name\": ", i > 0 ? "," : "",
                    r->worst[i].sample);
        dnn_json_quoted(out, r->worst[i].name);
        add_member(out, r->worst[i].metric, r->worst[i].value);
        dnn_buf_add(out, "}");
    }
    dnn_buf_add(out, "]");
}

void dnn_evaluate_json(const struct dnn_evaluation *e, struct dnn_buf *out)
{
    dnn_buf_add(out, "{\"task\": \"%s\", ", e->kind->name);
    add_totals(&e->results, out);
    add_classes(e, out);
    if (e->results.nbins > 0) add_bins(&e->results, out);
    if (e->results.confusion != NULL) add_confusion(e, out);
    add_worst(&e->results, out);
    dnn_buf_add(out, "}\n");
}

/* ---- CSV ---- */

static void add_text(struct dnn_buf *out, const char *text)
{
    dnn_buf_add(out, ",");
    dnn_buf_csv(out, text);
}

void dnn_evaluate_csv_number(struct dnn_buf *out, double value)
{
    char text[DNN_TEXT_NUMBER];

    dnn_buf_add(out, ",%s", isnan(value) ? "" : dnn_text_number(text, value));
}

static void class_rows(const struct dnn_evaluation *e, struct dnn_buf *out)
{
    const struct evaluate_results *r = &e->results;

    dnn_buf_add(out, "%s,name",
                e->cfg.task == DNN_EVALUATE_VALUES ? "channel" : "class");
    for (int k = 0; k < r->ncolumns; k++)
        add_text(out, r->column[k]);
    for (int64_t c = 0; c < e->cfg.classes; c++) {
        const char *name = e->cfg.class_name == NULL ? NULL : e->cfg.class_name[c];

        dnn_buf_add(out, "\n%" PRId64, c);
        add_text(out, name == NULL ? "" : name);
        for (int k = 0; k < r->ncolumns; k++)
            dnn_evaluate_csv_number(out, r->table[c * r->ncolumns + k]);
    }
    dnn_buf_add(out, "\n");
}

static void sample_rows(const struct dnn_evaluation *e, struct dnn_buf *out)
{
    dnn_buf_add(out, "sample,name");
    e->kind->columns(e, out);
    for (size_t i = 0; i < e->nrows; i++) {
        dnn_buf_add(out, "\n%" PRId64, e->row[i].sample);
        add_text(out, e->row[i].name);
        e->kind->cells(e, &e->row[i], out);
    }
    dnn_buf_add(out, "\n");
}

int dnn_evaluate_csv(const struct dnn_evaluation *e, const char *dir,
                     struct dnn_err *err)
{
    static const struct {
        const char *name;
        void (*rows)(const struct dnn_evaluation *e, struct dnn_buf *out);
    } file[] = {
        {"evaluation.csv", class_rows },
        {"samples.csv",    sample_rows}
    };
    int rc = 0;

    for (size_t i = 0; i < sizeof file / sizeof file[0] && rc == 0; i++) {
        struct dnn_buf out = {0};
        char *path = dnn_format("%s/%s", dir, file[i].name);

        file[i].rows(e, &out);
        rc = dnn_file_write(path, out.text, out.len, err);
        dnn_buf_free(&out);
        dnn_free(path);
    }
    return rc;
}
