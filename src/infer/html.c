/* html.c - the results of an evaluation as one HTML file.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "infer/infer_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "ckpt/ckpt.h"
#include "report/report.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ---- tables ---- */

enum { TABLES = 4 };

/* Tables of one column have names and values of their own; all owned. */
struct tables {
    int n;
    struct dnn_report_table table[TABLES];
    const char **row[TABLES];
    double *value[TABLES];
};

static const char *const column[] = {"value"};

/* Add a table of one column with space for n rows. */
static void add_table(struct tables *t, const char *title, const char *corner,
                      const char *const *name, int64_t n)
{
    t->row[t->n] = dnn_alloc((size_t)(n + 1) * sizeof **t->row);
    t->value[t->n] = dnn_alloc((size_t)(n + 1) * sizeof **t->value);
    t->table[t->n] = (struct dnn_report_table){.title = title,
                                               .corner = corner,
                                               .ncolumns = 1,
                                               .column = name,
                                               .nrows = n,
                                               .row = t->row[t->n],
                                               .value = t->value[t->n]};
    t->n++;
}

static void put(struct tables *t, int64_t row, const char *name, double value)
{
    t->row[t->n - 1][row] = name;
    t->value[t->n - 1][row] = value;
}

static void add_totals(struct tables *t, const struct infer_result *r,
                       const struct infer_found *found, const struct dnn_record *values)
{
    const struct dnn_evaluate_value *total;
    int n = dnn_evaluate_totals(r->evaluation, &total);

    add_table(t, "All samples", "measure", column, n);
    for (int i = 0; i < n; i++)
        put(t, i, total[i].name, total[i].value);
    if (found->metrics == NULL) return;
    add_table(t, "Loss and metrics of the configuration", "metric", column, values->n);
    for (int i = 0; i < values->n; i++)
        put(t, i, values->value[i].name + strlen("val_"), values->value[i].value);
}

static void add_classes(struct tables *t, const struct infer_result *r)
{
    bool classes = r->task != DNN_EVALUATE_VALUES;
    struct dnn_report_table *to = &t->table[t->n];

    *to = (struct dnn_report_table){.title = classes ? "Classes" : "Channels",
                                    .corner = classes ? "class" : "channel",
                                    .nrows = r->classes,
                                    .row = r->class_name};
    to->ncolumns = dnn_evaluate_classes(r->evaluation, &to->column, &to->value);
    if (to->ncolumns > 0) t->n++;
}

static void add_worst(struct tables *t, const struct infer_worst *worst)
{
    if (worst->n < 1) return;
    add_table(t, "Worst samples", "sample", &worst->list[0].metric, worst->n);
    for (int i = 0; i < worst->n; i++)
        put(t, i, worst->list[i].name, worst->list[i].value);
}

/* ---- facts ---- */

static void add_weights(const struct dnn_config *config, struct dnn_buf *out)
{
    char *found = NULL;

    if (config->ckpt->load != NULL) {
        dnn_buf_add(out, "weights\t%s\n", dnn_config_path(config, config->ckpt->load));
        return;
    }
    int rc = dnn_ckpt_find(dnn_config_ckpt_dir(config), NULL, &found, NULL);
    dnn_buf_add(out, "weights\t%s\n", rc == 0 ? found : "not trained");
    dnn_free(found);
}

static void add_data(const struct dnn_config *config, struct dnn_buf *out)
{
    struct dnn_config_origin o;

    dnn_config_origin(config, DNN_PART_TEST, &o);
    if (o.from == DNN_FROM_DATASET)
        dnn_buf_add(out, "data\t%s%s%s\n", o.dataset, o.split == NULL ? "" : ", split ",
                    o.split == NULL ? "" : o.split);
    else
        dnn_buf_add(out, "data\t%s\n",
                    o.from == DNN_FROM_FILES ? o.files.input.path
                                             : "generated samples");
}

static void add_facts(const struct infer_result *r, const struct dnn_infer_opts *opts,
                      const struct infer_found *found, struct dnn_buf *out)
{
    const struct dnn_config *config = r->config;
    const struct dnn_session *session = r->session;
    int nodes = dnn_comm_nodes(session->comm), threads = session->place.threads;
    char took[32];

    dnn_buf_add(out, "version\t%s %s\n", PACKAGE_NAME, PACKAGE_VERSION);
    if (opts->command != NULL) dnn_buf_add(out, "command\t%s\n", opts->command);
    /* A model alone has no configuration file. */
    if (access(dnn_json_name(config->file), F_OK) == 0)
        dnn_buf_add(out, "configuration\t%s\n", dnn_json_name(config->file));
    dnn_buf_add(out, "directory\t%s\n", dnn_config_dir(config));
    dnn_buf_add(out, "network\t%s, %" PRId64 " parameters\n", config->net.graph->name,
                config->net.graph->params);
    add_weights(config, out);
    add_data(config, out);
    dnn_buf_add(out, "samples\t%" PRId64 "\n", found->samples);
    dnn_buf_add(out, "ranks\t%d with %d thread%s each, on %d node%s\n", session->size,
                threads, threads == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s");
    dnn_buf_add(out, "time\t%s\n", dnn_text_seconds(took, sizeof took, found->seconds));
}

/* ---- the report ---- */

static int add_bins(const struct infer_result *r, struct dnn_report_bin **out)
{
    const struct dnn_evaluate_bin *bin;
    int n = dnn_evaluate_bins(r->evaluation, &bin);

    *out = dnn_alloc((size_t)(n + 1) * sizeof **out);
    for (int i = 0; i < n; i++)
        (*out)[i] = (struct dnn_report_bin){.low = bin[i].low,
                                            .high = bin[i].high,
                                            .confidence = bin[i].confidence,
                                            .accuracy = bin[i].accuracy,
                                            .count = bin[i].count};
    return n;
}

static int add_images(const struct infer_worst *worst, struct dnn_report_image *image)
{
    int n = 0;

    for (int i = 0; i < worst->n; i++) {
        const struct dnn_evaluate_worst *w = &worst->list[i];

        if (worst->drawn[i] == 0) continue;
        image[n].png = dnn_infer_worst_path(worst->r, i);
        image[n++].caption =
            dnn_format("%d. %s: %s %.4g", i + 1, w->name, w->metric, w->value);
    }
    return n;
}

static int write_html(const char *path, const struct infer_result *r,
                      const struct infer_worst *worst, const struct tables *tables,
                      const char *facts, struct dnn_err *err)
{
    char *title = dnn_format("%s: evaluation", r->config->net.graph->name);
    struct dnn_report_image *image = dnn_alloc((size_t)(worst->n + 1) * sizeof *image);
    struct dnn_report_bin *bin;
    struct dnn_report report = {.title = title,
                                .facts = facts,
                                .confusion = dnn_evaluate_confusion(r->evaluation),
                                .class_name = r->class_name,
                                .ntables = tables->n,
                                .table = tables->table,
                                .image_title = "Pictures of the worst samples",
                                .image = image};

    if (report.confusion != NULL) report.classes = r->classes;
    report.nbins = add_bins(r, &bin);
    report.bin = bin;
    report.nimages = add_images(worst, image);
    int rc = dnn_report_write(path, &report, err);
    for (int i = 0; i < report.nimages; i++) {
        dnn_free((void *)(uintptr_t)image[i].png);
        dnn_free((void *)(uintptr_t)image[i].caption);
    }
    dnn_free(image);
    dnn_free(bin);
    dnn_free(title);
    return rc;
}

void dnn_infer_html(const struct infer_result *r, const struct dnn_infer_opts *opts,
                    const struct infer_found *found, const struct dnn_record *values,
                    const struct infer_worst *worst)
{
    char *path = dnn_format("%s/test.html", dnn_config_dir(r->config));
    struct tables tables = {0};
    struct dnn_buf facts = {0};
    struct dnn_err err = {0};

    add_totals(&tables, r, found, values);
    add_classes(&tables, r);
    add_worst(&tables, worst);
    add_facts(r, opts, found, &facts);
    if (!r->config->telemetry->report)
        unlink(path); /* of an earlier evaluation */
    else if (write_html(path, r, worst, &tables, facts.text, &err) < 0)
        dnn_log(DNN_WARN, "infer", "the report is not written: %s", err.text);
    else
        dnn_log(DNN_INFO, "infer", "report: %s", path);
    for (int i = 0; i < tables.n; i++) {
        dnn_free(tables.row[i]);
        dnn_free(tables.value[i]);
    }
    dnn_buf_free(&facts);
    dnn_free(path);
}
