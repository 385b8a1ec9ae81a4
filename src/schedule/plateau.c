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
    double factor, threshold, min;
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
    REAL("min_rate", AT(min), "0", 0, INFINITY, "minimum learning rate"),
    END};

static bool better(const struct plateau *c, const struct dnn_schedule_state *state,
                   int i, double now)
{
    bool more = dnn_better_more(c->metric, c->mode);

    if (isnan(now)) return false;
    if (state->applied[i] == 0 || isnan(state->best[i])) return true;
    return more ? now > state->best[i] * (1 + c->threshold)
                : now < state->best[i] * (1 - c->threshold);
}

static void update(const struct plateau *c, struct dnn_schedule_state *state, int i,
                   double now)
{
    if (better(c, state, i, now)) {
        state->best[i] = now;
        state->bad[i] = 0;
    } else {
        if (state->applied[i] == 0) state->best[i] = now;
        state->bad[i]++;
    }
    state->applied[i]++;
}

static int plateau_epoch(const void *cfg, struct dnn_schedule_state *state, int i,
                         int n, const struct dnn_named *metric, struct dnn_err *err)
{
    const struct plateau *c = cfg;
    double now;

    DNN_TRY(dnn_schedule_find("plateau", c->metric, n, metric, &now, err));
    update(c, state, i, now);
    if (state->wait[i] > 0) {
        state->wait[i]--;
        state->bad[i] = 0;
    }
    if (state->bad[i] <= c->patience) return 0;
    state->reduced[i]++;
    state->wait[i] = c->cooldown;
    state->bad[i] = 0;
    return 0;
}

static double plateau_rate(const void *cfg, const struct schedule_progress *at,
                           double rate)
{
    const struct plateau *c = cfg;

    return fmax(rate * pow(c->factor, (double)at->reduced), fmin(rate, c->min));
}

static void plateau_print(const void *cfg, FILE *where)
{
    const struct plateau *c = cfg;

    fprintf(where, "x %g when %s has not %s for more than %" PRId64 " epochs",
            c->factor, c->metric,
            dnn_better_more(c->metric, c->mode) ? "increased" : "decreased",
            c->patience);
    if (c->cooldown > 0) fprintf(where, ", not within %" PRId64 " epochs", c->cooldown);
    if (c->min > 0) fprintf(where, ", not below %g", c->min);
}

const struct schedule_kind dnn_schedule_plateau = {
    .name = "plateau",
    .help = "reduce the rate when a metric stops improving",
    .fields = fields,
    .size = sizeof(struct plateau),
    .rate = plateau_rate,
    .epoch = plateau_epoch,
    .print = plateau_print};

/* ---- reduce_lr_on_plateau of PyDTNN ---- */

static const struct dnn_field on_fields[] = {
    METRIC,
    MODE,
    FACTOR,
    INT("patience", AT(patience), "5", 1, "epochs without improvement"),
    REAL("min_lr", AT(min), "0", 0, INFINITY, "no reduction below this learning rate"),
    END};

static int on_epoch(const void *cfg, struct dnn_schedule_state *state, int i, int n,
                    const struct dnn_named *metric, struct dnn_err *err)
{
    const struct plateau *c = cfg;
    double now;

    DNN_TRY(dnn_schedule_find("reduce_lr_on_plateau", c->metric, n, metric, &now, err));
    update(c, state, i, now);
    if (state->bad[i] < c->patience) return 0;
    state->reduced[i]++;
    state->bad[i] = 0;
    return 0;
}

static double on_rate(const void *cfg, const struct schedule_progress *at, double rate)
{
    const struct plateau *c = cfg;

    return dnn_schedule_reduced(rate, c->factor, at->reduced, c->min);
}

static void on_print(const void *cfg, FILE *where)
{
    const struct plateau *c = cfg;

    fprintf(where, "x %g when %s has not %s for %" PRId64 " epochs", c->factor,
            c->metric, dnn_better_more(c->metric, c->mode) ? "increased" : "decreased",
            c->patience);
    if (c->min > 0) fprintf(where, ", not below %g", c->min);
}

const struct schedule_kind dnn_schedule_on_plateau = {.name = "reduce_lr_on_plateau",
                                                      .help = "the same, as in PyDTNN",
                                                      .fields = on_fields,
                                                      .size = sizeof(struct plateau),
                                                      .rate = on_rate,
                                                      .epoch = on_epoch,
                                                      .print = on_print};
