/* plateau.c - reduce the rate when a metric stops improving.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"
#include "schedule/stopping.h"

#include <inttypes.h>

struct plateau {
    const char *metric;
    double factor, threshold, least;
    int64_t patience, cooldown;
    int mode;
};

#define AT(f) offsetof(struct plateau, f)
#define METRIC                                                                         \
    {"metric", DNN_F_TEXT, AT(metric),          "val_loss", 0,                         \
     0,        NULL,       "metric to monitor", NULL}
#define MODE                                                                           \
    ENUM("mode", AT(mode), "auto", dnn_better_choices,                                 \
         "min: lower is better, max: higher is")
#define FACTOR REAL("factor", AT(factor), "0.1", 0, 1, "factor of each reduction")

/* ---- plateau ---- */

static const struct dnn_field fields[] = {
    METRIC,
    MODE,
    FACTOR,
    INT("patience", AT(patience), "10", 0,
        "epochs without improvement before a reduction"),
    REAL("threshold", AT(threshold), "0.0001", 0, INFINITY,
         "relative change that counts as an improvement"),
    INT("cooldown", AT(cooldown), "0", 0, "epochs to wait after a reduction"),
    REAL("min_rate", AT(least), "0", 0, INFINITY, "minimum learning rate"),
    END};

static bool better(const struct plateau *c, const struct dnn_schedule_note *note,
                   double now)
{
    bool more = dnn_better_more(c->metric, c->mode);

    if (isnan(now)) return false;
    if (note->looked == 0 || isnan(note->best)) return true;
    return more ? now > note->best * (1 + c->threshold)
                : now < note->best * (1 - c->threshold);
}

static void look(const struct plateau *c, struct dnn_schedule_note *note, double now)
{
    if (better(c, note, now)) {
        note->best = now;
        note->bad = 0;
    } else {
        if (note->looked == 0) note->best = now;
        note->bad++;
    }
    note->looked++;
}

static int plateau_epoch(const void *cfg, struct dnn_schedule_note *note, int n,
                         const struct dnn_named *metric, struct dnn_err *err)
{
    const struct plateau *c = cfg;
    double now;

    DNN_TRY(dnn_schedule_find("plateau", c->metric, n, metric, &now, err));
    look(c, note, now);
    if (note->cool > 0) {
        note->cool--;
        note->bad = 0;
    }
    if (note->bad <= c->patience) return 0;
    note->reduced++;
    note->cool = c->cooldown;
    note->bad = 0;
    return 0;
}

static double plateau_rate(const void *cfg, const struct schedule_place *at,
                           double rate)
{
    const struct plateau *c = cfg;

    return fmax(rate * pow(c->factor, (double)at->note->reduced), fmin(rate, c->least));
}

static void plateau_print(const void *cfg, FILE *where)
{
    const struct plateau *c = cfg;

    fprintf(where, "x %g when %s has not %s for more than %" PRId64 " epochs",
            c->factor, c->metric,
            dnn_better_more(c->metric, c->mode) ? "increased" : "decreased",
            c->patience);
    if (c->cooldown > 0) fprintf(where, ", not within %" PRId64 " epochs", c->cooldown);
    if (c->least > 0) fprintf(where, ", not below %g", c->least);
}

const struct schedule_kind dnn_schedule_plateau = {
    .name = "plateau",
    .help = "reduce the rate when a metric stops improving",
    .fields = fields,
    .size = sizeof(struct plateau),
    .rate = plateau_rate,
    .epoch = plateau_epoch,
    .print = plateau_print};

/* ---- as in PyDTNN ---- */

static const struct dnn_field on_fields[] = {
    METRIC,
    MODE,
    FACTOR,
    INT("patience", AT(patience), "5", 1, "epochs without improvement"),
    REAL("min_lr", AT(least), "0", 0, INFINITY,
         "no reduction below this learning rate"),
    END};

static int on_epoch(const void *cfg, struct dnn_schedule_note *note, int n,
                    const struct dnn_named *metric, struct dnn_err *err)
{
    const struct plateau *c = cfg;
    double now;

    DNN_TRY(dnn_schedule_find("reduce_lr_on_plateau", c->metric, n, metric, &now, err));
    look(c, note, now);
    if (note->bad < c->patience) return 0;
    note->reduced++;
    note->bad = 0;
    return 0;
}

static double on_rate(const void *cfg, const struct schedule_place *at, double rate)
{
    const struct plateau *c = cfg;

    return dnn_schedule_reduced(rate, c->factor, at->note->reduced, c->least);
}

static void on_print(const void *cfg, FILE *where)
{
    const struct plateau *c = cfg;

    fprintf(where, "x %g when %s has not %s for %" PRId64 " epochs", c->factor,
            c->metric, dnn_better_more(c->metric, c->mode) ? "increased" : "decreased",
            c->patience);
    if (c->least > 0) fprintf(where, ", not below %g", c->least);
}

const struct schedule_kind dnn_schedule_on_plateau = {.name = "reduce_lr_on_plateau",
                                                      .help = "the same, as in PyDTNN",
                                                      .fields = on_fields,
                                                      .size = sizeof(struct plateau),
                                                      .rate = on_rate,
                                                      .epoch = on_epoch,
                                                      .print = on_print};
