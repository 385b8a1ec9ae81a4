/* log.c - records of steps and epochs for the telemetry, and the end of a run.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/log_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double smoothing = 3; /* seconds over which step timings are averaged */
static const double report_every = 30; /* seconds between two updates of the report */

/* The log header of evaluation and inference, where t->log is NULL. */
static void test_header(const struct dnn_trainer *t)
{
    char params[32];

    dnn_session_report(t->session);
    dnn_log(DNN_INFO, "train", "%s, no training: parameters: %s",
            t->config->net.graph->name,
            dnn_trainer_count(params, t->config->net.graph->params));
    dnn_log(DNN_INFO, "train", "test samples: %" PRId64 ", batch size %" PRId64,
            dnn_feed_count(t->stage->eval.feed), t->config->data->test_batch_size);
    dnn_log(DNN_INFO, "train", "run directory: %s", dnn_config_dir(t->config));
}

int dnn_trainer_log_open(struct dnn_trainer *t, struct dnn_err *err)
{
    if (t->stage->mode != DNN_CONFIG_TRAIN) {
        if (t->root) test_header(t);
        return 0;
    }
    t->log = dnn_alloc(sizeof *t->log);
    t->log->from = t->at.step;
    DNN_TRY(dnn_trainer_pictures_open(t, err));
    if (!t->root) return 0;
    if (t->at.step == 0) dnn_trainer_report_clear(t);
    DNN_TRY(dnn_trainer_record_open(t, err));
    dnn_trainer_header(t);
    return 0;
}

void dnn_trainer_log_close(struct dnn_trainer *t)
{
    struct train_log *log = t->log;

    if (log == NULL) return;
    dnn_trainer_pictures_close(t);
    dnn_buf_free(&log->about);
    dnn_buf_free(&log->resumed);
    dnn_free(log->started);
    dnn_free(log->metrics);
    dnn_free(log->dataset);
    dnn_free(log);
    t->log = NULL;
}

/* ---- records ---- */

static void put(struct dnn_record *r, const char *name, double value, bool main)
{
    if (r->n == DNN_RECORD_VALUES) return;
    r->value[r->n].name = name;
    r->value[r->n].value = value;
    r->value[r->n++].main = main;
}

static void fill(const struct dnn_trainer *t, struct dnn_record *r)
{
    r->epochs = t->config->num_epochs;
    r->batches = dnn_feed_batches(t->stage->train.feed != NULL ? t->stage->train.feed : t->stage->eval.feed);
    r->step = t->at.step;
    r->seconds = t->sum.seconds + dnn_clock_now() - t->began;
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
static void estimate(struct dnn_trainer *t)
{
    struct train_log *log = t->log;
    const double now = dnn_clock_now();
    const int64_t n = t->at.step - log->from, batches = dnn_feed_batches(t->stage->train.feed);
    char epoch[32], run[32];

    if (log->estimated) return;
    if (n == 1) log->first = now;
    if (n < 3 || (n < 10 && now - log->first < 1 && t->at.batch < batches)) return;
    log->estimated = true;
    double step = (now - log->first) / (double)(n - 1);
    double each = step * (double)batches;
    if (t->stage->eval.feed != NULL)
        each += step / 3 * (double)dnn_feed_count(t->stage->eval.feed) /
                (double)t->config->batch_size;
    double remaining = each * ((double)(t->config->num_epochs - t->at.epoch) -
                               (double)t->at.batch / (double)batches);
    dnn_telemetry_hide(t->telemetry);
    dnn_log(DNN_INFO, "train", "estimated time: %s per epoch, %s in total",
            dnn_text_seconds(epoch, sizeof epoch, each),
            dnn_text_seconds(run, sizeof run, remaining > 0 ? remaining : 0));
}

int dnn_trainer_log_step(struct dnn_trainer *t, const struct dnn_replica_step *step,
                         const struct train_timing *timing, struct dnn_err *err)
{
    struct dnn_record r = {.event = DNN_EVENT_STEP};

    if (t->telemetry == NULL) return 0;
    add_timing(&t->log->epoch, 1, timing);
    add_timing(&t->log->recent, exp(-timing->all / smoothing), timing);
    fill(t, &r);
    fill_timing(&t->log->recent, &r);
    r.epoch = t->at.epoch + 1;
    r.batch = t->at.batch;
    r.grad_norm = step->grad_norm;
    r.rate = step->rate;
    put(&r, "loss", step->loss, true);
    DNN_TRY(dnn_telemetry_write(t->telemetry, &r, err));
    estimate(t);
    return 0;
}

int dnn_trainer_log_eval(struct dnn_trainer *t, int64_t batch, struct dnn_err *err)
{
    struct dnn_record r = {.event = DNN_EVENT_EVAL_STEP};

    if (t->telemetry == NULL) return 0;
    fill(t, &r);
    r.epoch = t->at.epoch + 1;
    r.batch = batch;
    r.batches = dnn_feed_batches(t->stage->eval.feed);
    return dnn_telemetry_write(t->telemetry, &r, err);
}

/* ---- epochs ---- */

/* Write histograms of all weights, and the pictures, for TensorBoard. */
static int log_weights(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_model *m = dnn_replica_model(t->stage->replica);

    for (int v = 0; v < m->prog->nvalues; v++) {
        const struct dnn_value *x = &m->prog->value[v];
        const struct dnn_spot *s = &m->plan->spot[v];
        const char *block = dnn_exec_block(m->exec, s->block);
        int64_t n;

        if (x->role != DNN_WEIGHT || x->is.dtype != DNN_F32) continue;
        DNN_TRY(dnn_shape_count(&x->is.shape, &n, err));
        char *name = dnn_format("%s/%s", x->layer == NULL ? "" : x->layer, x->is.name);
        int rc = dnn_telemetry_histogram(
            t->telemetry, name, t->at.step,
            (const float *)(const void *)(block + s->offset), n, err);
        dnn_free(name);
        DNN_TRY(rc);
    }
    for (int i = 0; i < t->log->npictures; i++) {
        const struct dnn_canvas *c = &t->log->picture[i].canvas;
        char name[32];

        snprintf(name, sizeof name, "prediction/%d", i + 1);
        DNN_TRY(dnn_telemetry_image(t->telemetry, name, t->at.step, c->width, c->height,
                                    c->rgb, err));
    }
    return 0;
}

static void remember(struct train_log *log, const struct dnn_record *r)
{
    log->nvalues = 0;
    for (int i = 0; i < r->n && i <= TRAIN_VALUES; i++) {
        struct train_value *v = &log->value[log->nvalues++];

        snprintf(v->name, sizeof v->name, "%s", r->value[i].name);
        v->value = r->value[i].value;
    }
}

int dnn_trainer_log_epoch(struct dnn_trainer *t, const struct train_value *value, int n,
                          double rate, struct dnn_err *err)
{
    struct train_log *log = t->log;
    struct dnn_record r = {.event = DNN_EVENT_EPOCH};

    if (t->telemetry == NULL) return 0;
    fill(t, &r);
    fill_timing(&log->epoch, &r);
    r.grad_norm = t->sum.norm / t->sum.steps; /* including steps before a restart */
    log->epoch = (struct train_timing){0};
    r.epoch = t->at.epoch;
    r.batch = r.batches;
    r.rate = rate;
    put(&r, "loss", t->sum.loss / t->sum.samples, true);
    for (int i = 0; i < n; i++)
        put(&r, value[i].name, value[i].value, value[i].main);
    remember(log, &r);
    if (t->config->telemetry->tensorboard) DNN_TRY(log_weights(t, err));
    DNN_TRY(dnn_telemetry_write(t->telemetry, &r, err));
    /* Write the report so rarely that it takes at most 1 % of the time. */
    double pause = 100 * log->cost > report_every ? 100 * log->cost : report_every;
    if (dnn_clock_now() - log->shown >= pause && t->at.epoch < t->config->num_epochs)
        dnn_trainer_report_write(t, "running");
    return 0;
}

int dnn_trainer_log_test(struct dnn_trainer *t, const struct train_value *value, int n,
                         struct dnn_err *err)
{
    struct dnn_record r = {.event = DNN_EVENT_EPOCH};

    if (t->telemetry == NULL) return 0;
    fill(t, &r);
    r.epoch = r.epochs = 1;
    r.batch = r.batches;
    r.samples_per_second = r.data = r.compute = r.comm = r.straggler = NAN;
    for (int i = 0; i < n; i++)
        put(&r, value[i].name, value[i].value, value[i].main);
    DNN_TRY(dnn_telemetry_write(t->telemetry, &r, err));
    return dnn_telemetry_flush(t->telemetry, err);
}

/* ---- end of the run ---- */

int dnn_trainer_log_end(struct dnn_trainer *t, struct dnn_err *err)
{
    struct dnn_record r = {.event = DNN_EVENT_END};

    if (t->telemetry == NULL) return 0;
    fill(t, &r);
    r.epoch = t->at.epoch;
    DNN_TRY(dnn_telemetry_write(t->telemetry, &r, err));
    return dnn_telemetry_flush(t->telemetry, err);
}

void dnn_trainer_log_finish(struct dnn_trainer *t, int rc, const struct dnn_err *why)
{
    const char *status = rc == 0 ? "finished" : rc == DNN_ESTOP ? "stopped" : "failed";
    struct dnn_err failure = {0};

    if (t->log == NULL || t->telemetry == NULL || t->began <= 0) return;
    dnn_telemetry_hide(t->telemetry);
    dnn_trainer_report_write(t, status);
    if (dnn_trainer_record(t, status, rc == 0 ? NULL : why->text, &failure) < 0)
        dnn_log(DNN_WARN, "train", "%s", failure.text);
    if (rc == 0 || rc == DNN_ESTOP) dnn_trainer_list_files(t);
}
