/* log.c - records of steps and epochs for the telemetry, and the end of a run.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/log_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "stage/stage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const double smoothing = 3; /* seconds over which step timings are averaged */
static const double report_every = 30; /* seconds between two updates of the report */

/* ---- open ---- */

static int open_telemetry(struct train_log *log, struct dnn_err *err)
{
    const struct train_run *run = log->run;
    const struct dnn_config_telemetry *how = run->config->telemetry;
    const struct dnn_telemetry_cfg cfg = {
        .dir = dnn_config_dir(run->config),
        .outfile = dnn_config_path(run->config, run->config->outfile),
        .csv = how->csv,
        .jsonl = how->jsonl,
        .tensorboard = how->tensorboard,
        .progress = run->opts->progress,
        .json_to_stdout = run->opts->json,
        .resumed_step = log->at->step,
        .interval = how->interval,
        .every = how->steps};

    return dnn_telemetry_open(&cfg, &log->telemetry, err);
}

int dnn_train_log_open(struct train_log *log, const struct train_run *run,
                       const struct train_progress *at, struct dnn_err *err)
{
    log->run = run;
    log->at = at;
    log->from = at->step;
    log->report = (struct train_report){&log->record, &log->pictures, 0, 0};
    if (run->root) DNN_TRY(open_telemetry(log, err));
    DNN_TRY(dnn_train_pictures_open(&log->pictures, run, err));
    if (!run->root) return 0;
    if (at->step == 0) dnn_train_report_clear(run);
    DNN_TRY(dnn_train_record_open(&log->record, run, at, err));
    dnn_train_header(run, log->record.dataset);
    return 0;
}

void dnn_train_log_close(struct train_log *log)
{
    dnn_train_pictures_close(&log->pictures);
    dnn_train_record_close(&log->record);
    dnn_telemetry_close(log->telemetry);
}

/* ---- records ---- */

static void put(struct dnn_record *r, const char *name, double value, bool main)
{
    if (r->n == DNN_RECORD_VALUES) return;
    r->value[r->n].name = name;
    r->value[r->n].value = value;
    r->value[r->n++].main = main;
}

static void fill(const struct train_log *log, struct dnn_record *r)
{
    r->epochs = log->run->config->num_epochs;
    r->batches = dnn_feed_batches(log->run->stage->train.feed);
    r->step = log->at->step;
    r->seconds = dnn_train_seconds(log->at);
    r->grad_norm = r->rate = NAN;
    r->samples_per_second = r->data = r->compute = r->comm = r->straggler = NAN;
}

static void fill_timing(const struct train_timing *p, struct dnn_record *r)
{
    const double sum = p->data + p->compute + p->comm;

    if (p->steps == 0 || !(p->all > 0) || !(sum > 0)) return;
    r->samples_per_second = p->samples / p->all;
    r->data = p->data / sum;
    r->compute = p->compute / sum;
    r->comm = p->comm / sum;
    r->straggler = p->straggler / sum;
}

static void add_timing(struct train_timing *p, double keep,
                       const struct train_timing *step)
{
    p->data = keep * p->data + step->data;
    p->compute = keep * p->compute + step->compute;
    p->comm = keep * p->comm + step->comm;
    p->straggler = keep * p->straggler + step->straggler;
    p->all = keep * p->all + step->all;
    p->samples = keep * p->samples + step->samples;
    p->steps += step->steps;
}

/* ---- steps ---- */

/* Log the estimated time once, after some steps.  The first step is slower and not
 * counted.  To evaluate a sample takes about a third of the time to train with it. */
static void estimate(struct train_log *log)
{
    const struct train_progress *at = log->at;
    const struct dnn_config *config = log->run->config;
    const struct dnn_feed *eval = log->run->stage->eval.feed;
    const double now = dnn_clock_now();
    const int64_t n = at->step - log->from;
    const int64_t batches = dnn_feed_batches(log->run->stage->train.feed);
    char epoch[32], run[32];

    if (log->estimated) return;
    if (n == 1) log->first = now;
    if (n < 3 || (n < 10 && now - log->first < 1 && at->batch < batches)) return;
    log->estimated = true;
    double step = (now - log->first) / (double)(n - 1);
    double each = step * (double)batches;
    if (eval != NULL)
        each += step / 3 * (double)dnn_feed_count(eval) / (double)config->batch_size;
    double remaining = each * ((double)(config->num_epochs - at->epoch) -
                               (double)at->batch / (double)batches);
    dnn_telemetry_hide(log->telemetry);
    dnn_log(DNN_INFO, "train", "estimated time: %s per epoch, %s in total",
            dnn_text_seconds(epoch, sizeof epoch, each),
            dnn_text_seconds(run, sizeof run, remaining > 0 ? remaining : 0));
}

int dnn_train_log_step(struct train_log *log, const struct dnn_replica_step *step,
                       const struct train_timing *timing, struct dnn_err *err)
{
    struct dnn_record r = {.event = DNN_EVENT_STEP};

    if (log->telemetry == NULL) return 0;
    add_timing(&log->epoch, 1, timing);
    add_timing(&log->recent, exp(-timing->all / smoothing), timing);
    fill(log, &r);
    fill_timing(&log->recent, &r);
    r.epoch = log->at->epoch + 1;
    r.batch = log->at->batch;
    r.grad_norm = step->grad_norm;
    r.rate = step->rate;
    put(&r, "loss", step->loss, true);
    DNN_TRY(dnn_telemetry_write(log->telemetry, &r, err));
    estimate(log);
    return 0;
}

int dnn_train_log_eval(struct train_log *log, int64_t batch, struct dnn_err *err)
{
    struct dnn_record r = {.event = DNN_EVENT_EVAL_STEP};

    if (log->telemetry == NULL) return 0;
    fill(log, &r);
    r.epoch = log->at->epoch + 1;
    r.batch = batch;
    r.batches = dnn_feed_batches(log->run->stage->eval.feed);
    return dnn_telemetry_write(log->telemetry, &r, err);
}

/* ---- epochs ---- */

/* Write histograms of all weights, and the pictures, for TensorBoard. */
static int log_weights(struct train_log *log, struct dnn_err *err)
{
    const struct dnn_model *m = dnn_train_model(log->run);

    for (int v = 0; v < m->prog->nvalues; v++) {
        const struct dnn_value *x = &m->prog->value[v];
        const struct dnn_spot *s = &m->plan->spot[v];
        const char *block = dnn_exec_block(m->exec, s->block);
        int64_t n;

        if (x->role != DNN_WEIGHT || x->is.dtype != DNN_F32) continue;
        DNN_TRY(dnn_shape_count(&x->is.shape, &n, err));
        char *name = dnn_format("%s/%s", x->layer == NULL ? "" : x->layer, x->is.name);
        int rc = dnn_telemetry_histogram(
            log->telemetry, name, log->at->step,
            (const float *)(const void *)(block + s->offset), n, err);
        dnn_free(name);
        DNN_TRY(rc);
    }
    for (int i = 0; i < log->pictures.n; i++) {
        const struct dnn_canvas *c = &log->pictures.picture[i].canvas;
        char name[32];

        snprintf(name, sizeof name, "prediction/%d", i + 1);
        DNN_TRY(dnn_telemetry_image(log->telemetry, name, log->at->step, c->width,
                                    c->height, c->rgb, err));
    }
    return 0;
}

static void remember(struct train_record *record, const struct dnn_record *r)
{
    record->nvalues = 0;
    for (int i = 0; i < r->n && i <= TRAIN_VALUES; i++) {
        struct train_value *v = &record->value[record->nvalues++];

        snprintf(v->name, sizeof v->name, "%s", r->value[i].name);
        v->value = r->value[i].value;
    }
}

int dnn_train_log_epoch(struct train_log *log, const struct train_value *value, int n,
                        double rate, struct dnn_err *err)
{
    struct dnn_record r = {.event = DNN_EVENT_EPOCH};

    if (log->telemetry == NULL) return 0;
    fill(log, &r);
    fill_timing(&log->epoch, &r);
    r.grad_norm = log->at->norm / log->at->steps; /* including steps before a restart */
    log->epoch = (struct train_timing){0};
    r.epoch = log->at->epoch;
    r.batch = r.batches;
    r.rate = rate;
    put(&r, "loss", log->at->loss / log->at->samples, true);
    for (int i = 0; i < n; i++)
        put(&r, value[i].name, value[i].value, value[i].main);
    remember(&log->record, &r);
    if (log->run->config->telemetry->tensorboard) DNN_TRY(log_weights(log, err));
    DNN_TRY(dnn_telemetry_write(log->telemetry, &r, err));
    /* Write the report so rarely that it takes at most 1 % of the time. */
    const double pause = fmax(100 * log->report.cost, report_every);
    if (dnn_clock_now() - log->report.shown >= pause &&
        log->at->epoch < log->run->config->num_epochs)
        dnn_train_report_write(&log->report, "running");
    return 0;
}

/* ---- end of the run ---- */

int dnn_train_log_end(struct train_log *log, struct dnn_err *err)
{
    struct dnn_record r = {.event = DNN_EVENT_END};

    if (log->telemetry == NULL) return 0;
    fill(log, &r);
    r.epoch = log->at->epoch;
    DNN_TRY(dnn_telemetry_write(log->telemetry, &r, err));
    return dnn_telemetry_flush(log->telemetry, err);
}

void dnn_train_log_finish(struct train_log *log, int rc, const struct dnn_err *why)
{
    const char *status = rc == 0 ? "finished" : rc == DNN_ESTOP ? "stopped" : "failed";
    struct dnn_err failure = {0};

    /* Only a run that has begun to train. */
    if (log->record.run == NULL || log->at->began <= 0) return;
    dnn_telemetry_hide(log->telemetry);
    dnn_train_report_write(&log->report, status);
    if (dnn_train_record(&log->record, status, rc == 0 ? NULL : why->text, &failure) <
        0)
        dnn_log(DNN_WARN, "train", "%s", failure.text);
    if (rc == 0 || rc == DNN_ESTOP) dnn_train_list_files(&log->report);
}
