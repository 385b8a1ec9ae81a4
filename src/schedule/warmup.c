/* warmup.c - linear warm-up.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

#include <inttypes.h>

struct warmup {
    int64_t epochs, batches;
    double start;
};

#define AT(f) offsetof(struct warmup, f)

/* ---- by epoch ---- */

static const struct dnn_field warmup_fields[] = {
    INT("num_epochs", AT(epochs), NULL, 1, "epochs until the full rate is reached"),
    REAL("start_factor", AT(start), NULL, 0, 1, "fraction of the rate to start with"),
    END};

static double warmup_rate(const void *cfg, const struct schedule_progress *at,
                          double rate)
{
    const struct warmup *c = cfg;

    if (at->epoch >= c->epochs) return rate;
    return rate * (c->start + (1 - c->start) * (double)at->epoch / (double)c->epochs);
}

static int warmup_check(const struct dnn_jobj *obj, const void *cfg,
                        struct dnn_err *err)
{
    const struct warmup *c = cfg;
    struct dnn_jobj at = dnn_json_sub(obj, "start_factor");

    if (c->start > 0) return 0;
    return dnn_json_fail(&at, err, "must be above 0, or nothing is learned at first");
}

static void warmup_print(const void *cfg, FILE *where)
{
    const struct warmup *c = cfg;

    fprintf(where, "from x %g to the full rate in %" PRId64 " epoch%s", c->start,
            c->epochs, c->epochs == 1 ? "" : "s");
}

const struct schedule_kind dnn_schedule_warmup = {.name = "Warmup",
                                                  .help =
                                                      "linear warm-up, epoch by epoch",
                                                  .fields = warmup_fields,
                                                  .size = sizeof(struct warmup),
                                                  .check = warmup_check,
                                                  .rate = warmup_rate,
                                                  .print = warmup_print};

/* ---- by step, from the rate of one rank or from 0 ---- */

static const struct dnn_field warm_up_fields[] = {
    INT("epochs", AT(epochs), "5", 1, "epochs until the full rate is reached"),
    INT("batches", AT(batches), "0", 0,
        "instead of epochs: from 0 to the full rate in this many batches; 0: by "
        "epochs"),
    END};

static double warm_up_rate(const void *cfg, const struct schedule_progress *at,
                           double rate)
{
    const struct warmup *c = cfg;
    if (c->batches > 0) {
        double step = (double)(at->step < c->batches ? at->step + 1 : c->batches);

        return rate * step / (double)c->batches;
    }
    double start = 1 / (double)(at->ranks > 1 ? at->ranks : 1);
    double done = dnn_schedule_done(at, SCHEDULE_BY_STEP) / (double)c->epochs;

    return done >= 1 ? rate : rate * (start + (1 - start) * done);
}

static void warm_up_print(const void *cfg, FILE *where)
{
    const struct warmup *c = cfg;

    if (c->batches > 0) {
        fprintf(where, "from 0 to the full rate in %" PRId64 " batch%s", c->batches,
                c->batches == 1 ? "" : "es");
        return;
    }
    fprintf(where,
            "from the rate / number of ranks to the full rate in %" PRId64 " epoch%s",
            c->epochs, c->epochs == 1 ? "" : "s");
}

const struct schedule_kind dnn_schedule_warm_up = {
    .name = "warm_up",
    .help = "linear warm-up, update by update: from rate / number of ranks, as in "
            "PyDTNN, or with batches from 0",
    .fields = warm_up_fields,
    .size = sizeof(struct warmup),
    .rate = warm_up_rate,
    .print = warm_up_print};

/* ---- by epoch, to the rate times the number of ranks ---- */

static const struct dnn_field scale_up_fields[] = {
    INT("epochs", AT(epochs), "5", 1, "epochs until the largest rate is reached"), END};

static double scale_up_rate(const void *cfg, const struct schedule_progress *at,
                            double rate)
{
    const struct warmup *c = cfg;
    double done = (double)(at->epoch < c->epochs ? at->epoch : c->epochs);

    return rate *
           pow((double)(at->ranks > 1 ? at->ranks : 1), done / (double)c->epochs);
}

static void scale_up_print(const void *cfg, FILE *where)
{
    const struct warmup *c = cfg;

    fprintf(where, "x ranks^(1/%" PRId64 ") after each of %" PRId64 " epoch%s",
            c->epochs, c->epochs, c->epochs == 1 ? "" : "s");
}

const struct schedule_kind dnn_schedule_scale_up = {
    .name = "scale_up",
    .help = "from the rate to the rate times the number of ranks, by the same factor "
            "after each epoch, as in Theano-MPI",
    .fields = scale_up_fields,
    .size = sizeof(struct warmup),
    .rate = scale_up_rate,
    .print = scale_up_print};
