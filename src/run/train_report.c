/* train_report.c - files for people: pictures of predictions, and report.html.
 *
 * They say how a run went and change nothing of what it made, so what cannot be written
 * is a warning.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "run/train_log.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "telemetry/picture.h"
#include "telemetry/report.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *path_of(const struct dnn_trainer *t, const char *name)
{
    return dnn_format("%s/%s", dnn_job_dir(t->job), name);
}

static char *picture_of(const struct dnn_trainer *t, int i)
{
    return dnn_format("%s/pictures/prediction-%02d.png", dnn_job_dir(t->job), i + 1);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* A table that nothing was written to yet has no header, either. */
static bool is_filled(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && s.st_size > 0;
}

void dnn_trainer_report_clear(const struct dnn_trainer *t)
{
    char *path = path_of(t, "report.html");
    bool gone = true;

    unlink(path);
    dnn_free(path);
    for (int i = 0; gone; i++) {
        path = picture_of(t, i);
        gone = unlink(path) == 0;
        dnn_free(path);
    }
}

/* ---- pictures ---- */

static int save_pictures(const struct dnn_trainer *t, struct dnn_err *err)
{
    const struct train_log *log = t->log;
    char *dir = path_of(t, "pictures");
    int rc = log->npictures > 0 ? dnn_file_make_dirs(dir, err) : 0;

    for (int i = 0; rc == 0 && i < log->npictures; i++) {
        const struct dnn_canvas *c = &log->picture[i].canvas;
        char *path = picture_of(t, i);

        rc = dnn_png_save(path, c->width, c->height, c->rgb, err);
        dnn_free(path);
    }
    dnn_free(dir);
    return rc;
}

/* Those of this process or, if it evaluated nothing, of an earlier part of the run. */
static int list_pictures(const struct dnn_trainer *t, struct dnn_report_image *image)
{
    const struct train_log *log = t->log;
    int n = 0;

    for (; n < log->wanted; n++) {
        char *path = picture_of(t, n);

        if (!is_there(path) || (log->evaluated && n >= log->npictures)) {
            dnn_free(path);
            break;
        }
        image[n].png = path;
        image[n].caption = n < log->npictures ? log->picture[n].caption : NULL;
    }
    return n;
}

/* ---- facts ---- */

static void add_facts(const struct dnn_trainer *t, const char *status,
                      struct dnn_buf *out)
{
    const struct dnn_job *job = t->job;
    const struct train_log *log = t->log;
    struct dnn_buf hosts = {0}, cores = {0};
    char bytes[32];

    dnn_trainer_hosts(t, &hosts);
    dnn_trainer_binding(t, &cores);
    dnn_buf_add(out, "status\t%s\n", status);
    dnn_buf_add(out, "version\t%s %s\n", PACKAGE_NAME, PACKAGE_VERSION);
    if (t->opts->command != NULL) dnn_buf_add(out, "command\t%s\n", t->opts->command);
    dnn_buf_add(out, "job\t%s\n", dnn_json_name(job->file));
    dnn_buf_add(out, "began\t%s\n", log->began);
    dnn_buf_add(out, "data\t%s\n", log->dataset);
    if (log->hash[0] != '\0') dnn_buf_add(out, "hash of the data\t%s\n", log->hash);
    dnn_buf_add(out, "network\t%s: %" PRId64 " weights, %" PRId64 " of them trained\n",
                job->net.graph->name, job->net.graph->params,
                job->net.graph->trainable);
    if (job->loss_text != NULL) dnn_buf_add(out, "loss\t%s\n", job->loss_text);
    if (job->optimizer_text != NULL)
        dnn_buf_add(out, "optimizer\t%s\n", job->optimizer_text);
    dnn_buf_add(out, "batch size\t%" PRId64 " (%" PRId64 " batches an epoch)\n",
                job->batch_size, dnn_feed_batches(t->train.feed));
    dnn_buf_add(out, "seed\t%" PRId64 "%s\n", job->seed,
                job->deterministic ? ", deterministic" : "");
    dnn_buf_add(out, "ranks\t%d with %d thread%s each: %s\n", t->session->size,
                t->session->place.threads, t->session->place.threads == 1 ? "" : "s",
                hosts.text);
    dnn_buf_add(out, "binding\t%s\n", cores.text);
    dnn_buf_add(out, "backend\t%s\n", dnn_replica_model(t->replica)->backend.name);
    dnn_buf_add(out, "memory of a rank\t%s\n",
                dnn_text_bytes(bytes, sizeof bytes, dnn_trainer_bytes(t)));
    dnn_buf_free(&hosts);
    dnn_buf_free(&cores);
}

/* ---- the report ---- */

static const double *confusion(const struct dnn_trainer *t, int64_t *classes)
{
    if (!t->log->evaluated || t->metrics == NULL || !dnn_trainer_classes(t))
        return NULL;
    return dnn_metrics_confusion(t->log->matrix != NULL ? t->log->matrix : t->metrics,
                                 classes);
}

static int save_report(const struct dnn_trainer *t, const char *path,
                       const char *status, struct dnn_err *err)
{
    const struct dnn_job_telemetry *how = t->job->telemetry;
    struct dnn_report_image *image =
        dnn_alloc(((size_t)t->log->wanted + 1) * sizeof *image);
    struct dnn_report r = {.image = image};
    struct dnn_buf facts = {0};
    const struct dnn_column *col;
    char *title = dnn_format("%s: %s", t->job->net.graph->name,
                             strrchr(dnn_job_dir(t->job), '/') == NULL
                                 ? dnn_job_dir(t->job)
                                 : strrchr(dnn_job_dir(t->job), '/') + 1);
    char *csv = path_of(t, "metrics.csv"), *steps = path_of(t, "steps.csv");

    add_facts(t, status, &facts);
    r.title = title;
    r.facts = facts.text;
    if (how->csv && is_filled(csv)) r.csv = csv;
    if (how->csv && how->steps > 0 && is_filled(steps)) r.steps = steps;
    r.confusion = confusion(t, &r.classes);
    if (r.confusion == NULL) r.classes = 0;
    dnn_feed_columns(t->train.feed, &col);
    const struct dnn_column *target = &col[t->train.target[0]];
    if (r.classes > 0 && target->classes == r.classes)
        r.class_name = target->class_name;
    r.nimages = list_pictures(t, image);
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

void dnn_trainer_report_write(struct dnn_trainer *t, const char *status)
{
    struct dnn_err said = {0};
    char *path = path_of(t, "report.html");
    double began = dnn_clock_now();

    if (save_pictures(t, &said) < 0)
        dnn_log_once(DNN_WARN, "train", "no pictures: %s", said.text);
    /* Without an epoch of our own the report of an earlier part says more. */
    if (t->job->telemetry->report && (t->log->nvalues > 0 || !is_there(path)) &&
        save_report(t, path, status, &said) < 0)
        dnn_log_once(DNN_WARN, "train", "no report: %s", said.text);
    dnn_free(path);
    t->log->shown = dnn_clock_now();
    t->log->cost = t->log->shown - began;
}

/* ---- where things are ---- */

static void say_file(const struct dnn_trainer *t, const char *what, const char *name)
{
    char *path = path_of(t, name);

    if (is_there(path)) dnn_log(DNN_INFO, "train", "%s: %s", what, path);
    dnn_free(path);
}

void dnn_trainer_list_files(const struct dnn_trainer *t)
{
    const struct dnn_job_telemetry *how = t->job->telemetry;
    char *dir = dnn_trainer_ckpt_dir(t), *best = dnn_format("%s/best.bp", dir);
    char *newest = NULL;

    if (t->ckpts != NULL && dnn_ckpt_find(dir, NULL, &newest, NULL) == 0)
        dnn_log(DNN_INFO, "train", "checkpoint: %s%s%s%s", newest,
                is_there(best) ? " (the best: " : "", is_there(best) ? best : "",
                is_there(best) ? ")" : "");
    if (how->csv) say_file(t, "metrics", "metrics.csv");
    if (how->tensorboard) say_file(t, "TensorBoard", "events");
    say_file(t, "record", "run.json");
    if (how->report) say_file(t, "report", "report.html");
    if (t->log->wanted > 0) say_file(t, "pictures", "pictures");
    dnn_free(newest);
    dnn_free(best);
    dnn_free(dir);
}
