/* train_say.c - what people and files are told about a run.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/train_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void dnn_trainer_header(const struct dnn_trainer *t)
{
    const struct dnn_model *m = dnn_replica_model(t->replica);
    const struct dnn_seat *seat = t->seat;
    char bytes[32];

    dnn_seat_report(seat);
    dnn_log(DNN_INFO, "train", "%d rank%s on %d node%s, %d thread%s each, %s",
            seat->size, seat->size == 1 ? "" : "s", dnn_comm_nodes(t->comm),
            dnn_comm_nodes(t->comm) == 1 ? "" : "s", seat->place.threads,
            seat->place.threads == 1 ? "" : "s", m->backend.name);
    dnn_log(DNN_INFO, "train",
            "%s: %" PRId64 " weights, %" PRId64 " of them trained; %s "
            "of memory a rank",
            t->job->net.graph->name, t->job->net.graph->params,
            t->job->net.graph->trainable,
            dnn_text_bytes(bytes, sizeof bytes,
                           (double)(dnn_replica_bytes(t->replica) +
                                    dnn_feed_bytes(t->train.feed))));
    dnn_log(DNN_INFO, "train",
            "%" PRId64 " samples in %" PRId64 " batches of %" PRId64 ", %" PRId64
            " epochs%s; %" PRId64 " samples to evaluate with",
            dnn_feed_count(t->train.feed), dnn_feed_batches(t->train.feed),
            t->job->batch_size, t->job->num_epochs,
            t->job->parallel->deterministic ? ", deterministic" : "",
            t->eval.feed == NULL ? (int64_t)0 : dnn_feed_count(t->eval.feed));
    dnn_log(DNN_INFO, "train", "files are in %s", dnn_job_dir(t->job));
}

static void put(struct dnn_record *r, const char *name, double value, bool main)
{
    if (r->n == DNN_RECORD_VALUES) return;
    r->value[r->n].name = name;
    r->value[r->n].value = value;
    r->value[r->n++].main = main;
}

static void fill(const struct dnn_trainer *t, struct dnn_record *r)
{
    r->epochs = t->job->num_epochs;
    r->batches = dnn_feed_batches(t->train.feed);
    r->step = t->at.step;
    r->seconds = t->sum.seconds + dnn_clock_now() - t->began;
    r->grad_norm = r->rate = NAN;
}

int dnn_trainer_say_step(struct dnn_trainer *t, const struct dnn_replica_step *step,
                         int64_t samples, double waited, struct dnn_err *err)
{
    struct dnn_record r = {.moment = DNN_MOMENT_STEP};
    double all = waited + step->compute + step->comm;

    if (t->telemetry == NULL) return 0;
    fill(t, &r);
    r.epoch = t->at.epoch + 1;
    r.batch = t->at.batch;
    r.samples_per_second = all > 0 ? (double)samples / all : 0;
    r.data = all > 0 ? waited / all : 0;
    r.compute = all > 0 ? step->compute / all : 0;
    r.comm = all > 0 ? step->comm / all : 0;
    r.grad_norm = step->grad_norm;
    r.rate = step->rate;
    put(&r, "loss", step->loss, true);
    return dnn_telemetry_write(t->telemetry, &r, err);
}

int dnn_trainer_say_epoch(struct dnn_trainer *t, const struct train_value *value, int n,
                          double rate, struct dnn_err *err)
{
    struct dnn_record r = {.moment = DNN_MOMENT_EPOCH};

    if (t->telemetry == NULL) return 0;
    fill(t, &r);
    r.epoch = t->at.epoch;
    r.batch = r.batches;
    r.rate = rate;
    r.samples_per_second = r.data = r.compute = r.comm = NAN;
    put(&r, "loss", t->sum.loss / t->sum.samples, true);
    for (int i = 0; i < n; i++)
        put(&r, value[i].name, value[i].value, value[i].main);
    return dnn_telemetry_write(t->telemetry, &r, err);
}

int dnn_trainer_say_end(struct dnn_trainer *t, struct dnn_err *err)
{
    struct dnn_record r = {.moment = DNN_MOMENT_END};

    if (t->telemetry == NULL) return 0;
    fill(t, &r);
    r.epoch = t->at.epoch;
    r.samples_per_second = r.data = r.compute = r.comm = NAN;
    DNN_TRY(dnn_telemetry_write(t->telemetry, &r, err));
    return dnn_telemetry_flush(t->telemetry, err);
}
