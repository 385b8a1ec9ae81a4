/* report.c - the results of an evaluation: terminal, test.json, CSV files, report.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/infer_impl.h"

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Loss and metrics, named as those of the validation during training. */
struct values {
    struct dnn_record record;
    char name[DNN_RECORD_VALUES][64];
};

static void put(struct values *v, const char *name, double value, bool main)
{
    struct dnn_record *r = &v->record;

    if (r->n == DNN_RECORD_VALUES) return;
    snprintf(v->name[r->n], sizeof v->name[r->n], "val_%s", name);
    r->value[r->n].name = v->name[r->n];
    r->value[r->n].value = value;
    r->value[r->n++].main = main;
}

static void find_values(const struct infer_result *r, const struct infer_found *found,
                        struct values *out)
{
    const struct dnn_metric_value *metric;
    const struct dnn_evaluate_value *total;

    *out = (struct values){
        .record = {.event = DNN_EVENT_EPOCH,
                   .epoch = 1,
                   .epochs = 1,
                   .batch = 1,
                   .batches = 1,
                   .seconds = found->seconds}
    };
    out->record.grad_norm = out->record.rate = out->record.samples_per_second = NAN;
    out->record.data = out->record.compute = out->record.comm = out->record.straggler =
        NAN;
    if (found->metrics != NULL) {
        int n = dnn_metrics_values(found->metrics, &metric);

        put(out, "loss", found->loss, true);
        for (int i = 0; i < n; i++)
            put(out, metric[i].name, metric[i].value, metric[i].main);
        return;
    }
    if (r->evaluation == NULL) return;
    int n = dnn_evaluate_totals(r->evaluation, &total);
    for (int i = 0; i < n; i++)
        if (strcmp(total[i].name, "samples") != 0)
            put(out, total[i].name, total[i].value, i < 5);
}

/* ---- files ---- */

static void add_json(const struct infer_result *r, const struct infer_found *found,
                     const struct values *v, struct dnn_buf *out)
{
    dnn_buf_add(out, "\"samples\": %" PRId64, found->samples);
    for (int i = 0; i < v->record.n; i++) {
        dnn_buf_add(out, ", ");
        dnn_json_quoted(out, v->name[i] + strlen("val_"));
        if (isfinite(v->record.value[i].value))
            dnn_buf_add(out, ": %.17g", v->record.value[i].value);
        else
            dnn_buf_add(out, ": null");
    }
    if (r->evaluation != NULL) {
        dnn_buf_add(out, ", \"evaluation\": ");
        dnn_evaluate_json(r->evaluation, out);
    }
}

/* --json: one line on stdout, also without an evaluation. */
static void print_json(const struct infer_result *r, const struct infer_found *found,
                       const struct values *v)
{
    struct dnn_buf text = {0};
    const char *path;

    dnn_buf_add(&text, "{\"event\": \"inference\", \"seconds\": %.6g, \"outputs\": [",
                found->seconds);
    for (int i = 0; r->files != NULL && (path = dnn_output_path(r->files, i)) != NULL;
         i++) {
        dnn_buf_add(&text, "%s", i == 0 ? "" : ", ");
        dnn_json_quoted(&text, path);
    }
    dnn_buf_add(&text, "], ");
    add_json(r, found, v, &text);
    printf("%s}\n", text.text);
    dnn_buf_free(&text);
}

/* test.json; files of the training run are not replaced. */
static int write_json(const struct infer_result *r, const struct infer_found *found,
                      const struct values *v, struct dnn_err *err)
{
    struct dnn_buf text = {0};
    char *path = dnn_format("%s/test.json", dnn_config_dir(r->config));
    int rc = dnn_file_make_dirs(dnn_config_dir(r->config), err);

    dnn_buf_add(&text, "{");
    add_json(r, found, v, &text);
    dnn_buf_add(&text, "}\n");
    if (rc == 0) rc = dnn_file_write(path, text.text, text.len, err);
    dnn_buf_free(&text);
    dnn_free(path);
    return rc;
}

/* X_test.txt of rmldnn. */
static int write_record(const struct infer_result *r, const struct values *v,
                        struct dnn_err *err)
{
    const struct dnn_telemetry_cfg cfg = {
        .dir = dnn_config_dir(r->config),
        .outfile = dnn_config_path(r->config, r->config->outfile),
        .tests = true};
    struct dnn_telemetry *to = NULL;

    DNN_TRY(dnn_telemetry_open(&cfg, &to, err));
    int rc = dnn_telemetry_write(to, &v->record, err);
    if (rc == 0) rc = dnn_telemetry_flush(to, err);
    dnn_telemetry_close(to);
    return rc;
}

/* ---- terminal ---- */

static void log_values(const struct infer_found *found, const struct values *v)
{
    struct dnn_buf text = {0};
    char took[32];

    for (int i = 0; i < v->record.n; i++)
        if (v->record.value[i].main)
            dnn_buf_add(&text, ", %s %.6g", v->name[i], v->record.value[i].value);
    dnn_log(DNN_INFO, "infer", "test: %" PRId64 " samples in %s%s", found->samples,
            dnn_text_seconds(took, sizeof took, found->seconds),
            text.text == NULL ? "" : text.text);
    dnn_buf_free(&text);
}

/* Rank 0. */
static int report(const struct infer_result *r, const struct dnn_infer_opts *opts,
                  const struct infer_found *found, struct values *v,
                  struct dnn_err *err)
{
    int rc = 0;

    find_values(r, found, v);
    log_values(found, v);
    if (v->record.n > 0 || r->evaluation != NULL) {
        rc = write_json(r, found, v, err);
        if (rc == 0) rc = write_record(r, v, err);
    }
    if (rc == 0 && r->evaluation != NULL) {
        rc = dnn_evaluate_csv(r->evaluation, dnn_config_dir(r->config), err);
        if (!opts->json && dnn_log_enabled(DNN_INFO, "infer"))
            dnn_evaluate_print(r->evaluation, stdout);
    }
    if (rc == 0 && opts->json) print_json(r, found, v);
    return rc;
}

int dnn_infer_report(struct infer_result *r, const struct dnn_infer_opts *opts,
                     const struct infer_found *found, struct dnn_err *err)
{
    struct dnn_comm *comm = r->session->comm;
    bool root = dnn_comm_rank(comm) == 0;
    struct infer_worst worst = {0};

    if (r->evaluation != NULL) DNN_TRY(dnn_evaluate_combine(r->evaluation, comm, err));
    struct values *v = dnn_alloc(sizeof *v);
    int rc = dnn_comm_agree(comm, root ? report(r, opts, found, v, err) : 0, err);
    /* Pictures come last, because they compute the metrics anew. */
    if (rc == 0 && r->evaluation != NULL) {
        dnn_infer_worst_draw(r, found, &worst);
        if (root) dnn_infer_html(r, opts, found, &v->record, &worst);
        dnn_infer_worst_free(&worst);
    }
    dnn_free(v);
    return rc;
}
