/* report.c - pictures of predictions, and report.html.
 *
 * They are not needed for the results of a run, so failures are only warnings.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "train/log_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "ckpt/ckpt.h"
#include "picture/png.h"
#include "report/report.h"
#include "stage/eval.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *path_of(const struct train_run *run, const char *name)
{
    return dnn_format("%s/%s", dnn_config_dir(run->config), name);
}

static char *picture_of(const struct train_run *run, int i)
{
    return dnn_format("%s/pictures/prediction-%02d.png", dnn_config_dir(run->config),
                      i + 1);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Whether a table has rows.  One without rows has no header, either. */
static bool has_rows(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && s.st_size > 0;
}

void dnn_train_report_clear(const struct train_run *run)
{
    char *path = path_of(run, "report.html");
    bool removed = true;

    unlink(path);
    dnn_free(path);
    for (int i = 0; removed; i++) {
        path = picture_of(run, i);
        removed = unlink(path) == 0;
        dnn_free(path);
    }
}

/* ---- pictures ---- */

static int save_pictures(const struct train_pictures *p, struct dnn_err *err)
{
    char *dir = path_of(p->run, "pictures");
    int rc = p->n > 0 ? dnn_file_make_dirs(dir, err) : 0;

    for (int i = 0; rc == 0 && i < p->n; i++) {
        const struct dnn_canvas *c = &p->picture[i].canvas;
        char *path = picture_of(p->run, i);

        rc = dnn_png_save(path, DNN_PNG_RGB, c->width, c->height, c->rgb, err);
        dnn_free(path);
    }
    dnn_free(dir);
    return rc;
}

/* List the pictures of this process or, before its first evaluation, the existing files
 * from before the restart. */
static int list_pictures(const struct train_pictures *p, struct dnn_report_image *image)
{
    int n = 0;

    for (; n < p->wanted; n++) {
        char *path = picture_of(p->run, n);

        if (!exists(path) || (p->evaluated && n >= p->n)) {
            dnn_free(path);
            break;
        }
        image[n].png = path;
        image[n].caption = n < p->n ? p->picture[n].caption : NULL;
    }
    return n;
}

/* ---- facts ---- */

static void add_facts(const struct train_record *record, const char *status,
                      struct dnn_buf *out)
{
    const struct train_run *run = record->run;
    const struct dnn_config *config = run->config;
    struct dnn_buf hosts = {0}, cores = {0};
    char bytes[32], params[32], trainable[32];

    dnn_train_hosts(run, &hosts);
    dnn_train_binding(run, &cores);
    dnn_buf_add(out, "status\t%s\n", status);
    dnn_buf_add(out, "version\t%s %s\n", PACKAGE_NAME, PACKAGE_VERSION);
    if (run->opts->command != NULL)
        dnn_buf_add(out, "command\t%s\n", run->opts->command);
    dnn_buf_add(out, "configuration\t%s\n", dnn_json_name(config->file));
    dnn_buf_add(out, "started\t%s\n", record->started);
    dnn_buf_add(out, "data\t%s\n", record->dataset);
    if (record->hash[0] != '\0') dnn_buf_add(out, "dataset hash\t%s\n", record->hash);
    dnn_buf_add(out, "network\t%s\n", config->net.graph->name);
    dnn_buf_add(out, "parameters\t%s (%s trainable)\n",
                dnn_text_count(params, config->net.graph->params),
                dnn_text_count(trainable, config->net.graph->trainable));
    if (config->loss_text != NULL) dnn_buf_add(out, "loss\t%s\n", config->loss_text);
    if (config->optimizer_text != NULL)
        dnn_buf_add(out, "optimizer\t%s\n", config->optimizer_text);
    dnn_buf_add(out, "batch size\t%" PRId64 " (%" PRId64 " steps per epoch)\n",
                config->batch_size, dnn_feed_batches(run->stage->train.feed));
    dnn_buf_add(out, "seed\t%" PRId64 "%s\n", config->seed,
                config->deterministic ? ", deterministic" : "");
    dnn_buf_add(out, "ranks\t%d with %d thread%s each: %s\n", run->session->size,
                run->session->place.threads,
                run->session->place.threads == 1 ? "" : "s", hosts.text);
    dnn_buf_add(out, "binding\t%s\n", cores.text);
    dnn_buf_add(out, "backend\t%s\n", dnn_train_model(run)->backend.name);
    dnn_buf_add(
        out, "memory per rank\t%s\n",
        dnn_text_bytes(bytes, sizeof bytes, (double)dnn_stage_bytes(run->stage, NULL)));
    dnn_buf_free(&hosts);
    dnn_buf_free(&cores);
}

/* ---- the report ---- */

static const double *confusion(const struct train_pictures *p, int64_t *classes)
{
    const struct dnn_metrics *metrics = p->run->metrics;

    if (!p->evaluated || metrics == NULL || !dnn_train_classes(p->run)) return NULL;
    return dnn_metrics_confusion(p->matrix != NULL ? p->matrix : metrics, classes);
}

static int save_report(const struct train_report *report, const char *path,
                       const char *status, struct dnn_err *err)
{
    const struct train_run *run = report->record->run;
    const struct dnn_config_telemetry *how = run->config->telemetry;
    struct dnn_report_image *image =
        dnn_alloc(((size_t)report->pictures->wanted + 1) * sizeof *image);
    struct dnn_report r = {.image = image};
    struct dnn_buf facts = {0};
    const struct dnn_column *col;
    char *title = dnn_format("%s: %s", run->config->net.graph->name,
                             strrchr(dnn_config_dir(run->config), '/') == NULL
                                 ? dnn_config_dir(run->config)
                                 : strrchr(dnn_config_dir(run->config), '/') + 1);
    char *csv = path_of(run, "metrics.csv"), *steps = path_of(run, "steps.csv");

    add_facts(report->record, status, &facts);
    r.title = title;
    r.facts = facts.text;
    if (how->csv && has_rows(csv)) r.csv = csv;
    if (how->csv && how->steps > 0 && has_rows(steps)) r.steps = steps;
    r.confusion = confusion(report->pictures, &r.classes);
    if (r.confusion == NULL) r.classes = 0;
    dnn_feed_columns(run->stage->train.feed, &col);
    const struct dnn_column *target = &col[run->stage->train.target[0]];
    if (r.classes > 0 && target->classes == r.classes)
        r.class_name = target->class_name;
    r.nimages = list_pictures(report->pictures, image);
    int rc = dnn_report_write(path, &r, err);
    for (int i = 0; i < r.nimages; i++)
        dnn_free((void *)(uintptr_t)image[i].png);
    dnn_free(image);
    dnn_free(title);
    dnn_free(csv);
    dnn_free(steps);
    dnn_buf_free(&facts);
    return rc;
}

void dnn_train_report_write(struct train_report *report, const char *status)
{
    const struct train_run *run = report->record->run;
    struct dnn_err err = {0};
    char *path = path_of(run, "report.html");
    double began = dnn_clock_now();

    if (save_pictures(report->pictures, &err) < 0)
        dnn_log_once(DNN_WARN, "train", "pictures are not written: %s", err.text);
    /* After a restart, the old report is kept until the first epoch is done. */
    if (run->config->telemetry->report &&
        (report->record->nvalues > 0 || !exists(path)) &&
        save_report(report, path, status, &err) < 0)
        dnn_log_once(DNN_WARN, "train", "report.html is not written: %s", err.text);
    dnn_free(path);
    report->shown = dnn_clock_now();
    report->cost = report->shown - began;
}

/* ---- paths ---- */

static void log_file(const struct train_run *run, const char *what, const char *name)
{
    char *path = path_of(run, name);

    if (exists(path)) dnn_log(DNN_INFO, "train", "%s: %s", what, path);
    dnn_free(path);
}

void dnn_train_list_files(const struct train_report *report)
{
    const struct train_run *run = report->record->run;
    const struct dnn_config_telemetry *how = run->config->telemetry;
    const char *ckpts = dnn_config_ckpt_dir(run->config);
    char *best = dnn_format("%s/best.bp", ckpts), *newest = NULL;

    if (dnn_ckpt_find(ckpts, NULL, &newest, NULL) == 0)
        dnn_log(DNN_INFO, "train", "checkpoint: %s%s%s%s", newest,
                exists(best) ? " (best: " : "", exists(best) ? best : "",
                exists(best) ? ")" : "");
    if (how->csv) log_file(run, "metrics", "metrics.csv");
    if (how->tensorboard) log_file(run, "TensorBoard", "events");
    log_file(run, "run record", "run.json");
    if (how->report) log_file(run, "report", "report.html");
    if (report->pictures->wanted > 0) log_file(run, "pictures", "pictures");
    dnn_free(newest);
    dnn_free(best);
}
