/* step.c - multiply the rate at the end of some epochs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

#include <inttypes.h>

double dnn_schedule_reduced(double rate, double factor, int64_t times, double min)
{
    double out = rate * pow(factor, (double)times);

    min *= 1 - 1e-12; /* tolerance: equal up to rounding is not below */
    if (!(out < min)) return out;
    /* The last one that is not below; the logarithm may be off by one. */
    int64_t fits = rate > min ? (int64_t)(log(min / rate) / log(factor)) + 1 : 0;
    for (out = rate * pow(factor, (double)fits); fits > 0 && out < min; fits--)
        out = rate * pow(factor, (double)(fits - 1));
    return out;
}

/* ---- Step, Exponential, reduce_lr_every_nepochs ---- */

struct step {
    double gamma, min;
    int64_t every;
};

#define AT(f) offsetof(struct step, f)
static const struct dnn_field step_fields[] = {
    REAL("gamma", AT(gamma), "0.1", 0, INFINITY, "factor of each reduction"),
    INT("step_size", AT(every), NULL, 1, "number of epochs between reductions"), END};
static const struct dnn_field exponential_fields[] = {
    REAL("gamma", AT(gamma), NULL, 0, INFINITY, "factor after each epoch"), END};
static const struct dnn_field every_fields[] = {
    REAL("factor", AT(gamma), "0.1", 0, 1, "factor of each reduction"),
    INT("nepochs", AT(every), "5", 1, "number of epochs between reductions"),
    REAL("min_lr", AT(min), "0", 0, INFINITY, "minimum learning rate"), END};

static double step_rate(const void *cfg, const struct schedule_progress *at,
                        double rate)
{
    const struct step *c = cfg;
    int64_t times = c->every == 0 ? at->epoch : at->epoch / c->every;

    if (c->min > 0) return dnn_schedule_reduced(rate, c->gamma, times, c->min);
    return rate * pow(c->gamma, (double)times);
}

static void step_print(const void *cfg, FILE *where)
{
    const struct step *c = cfg;

    fprintf(where, "x %g", c->gamma);
    if (c->every < 2)
        fprintf(where, " every epoch");
    else
        fprintf(where, " every %" PRId64 " epochs", c->every);
    if (c->min > 0) fprintf(where, ", not below %g", c->min);
}

const struct schedule_kind dnn_schedule_step = {
    .name = "Step",
    .help = "multiply the rate every step_size epochs",
    .fields = step_fields,
    .size = sizeof(struct step),
    .rate = step_rate,
    .print = step_print};
const struct schedule_kind dnn_schedule_exponential = {
    .name = "Exponential",
    .help = "multiply the rate after each epoch",
    .fields = exponential_fields,
    .size = sizeof(struct step),
    .rate = step_rate,
    .print = step_print};
const struct schedule_kind dnn_schedule_every_nepochs = {
    .name = "reduce_lr_every_nepochs",
    .help = "the same, as in PyDTNN",
    .fields = every_fields,
    .size = sizeof(struct step),
    .rate = step_rate,
    .print = step_print};

/* ---- MultiStep ---- */

struct multistep {
    double gamma;
    struct dnn_list milestones;
};

static const struct dnn_sub some = {.min = 1};
static const struct dnn_field multistep_fields[] = {
    REAL("gamma", offsetof(struct multistep, gamma), "0.1", 0, INFINITY,
         "factor of each reduction"),
    {"milestones", DNN_F_INTS, offsetof(struct multistep, milestones), NULL, 1,
       INFINITY, NULL, "epochs after which the rate is multiplied", &some},
    END
};

static double multistep_rate(const void *cfg, const struct schedule_progress *at,
                             double rate)
{
    const struct multistep *c = cfg;
    int64_t times = 0;

    for (int64_t i = 0; i < c->milestones.count; i++)
        times += at->epoch >= c->milestones.ints[i];
    return rate * pow(c->gamma, (double)times);
}

static void multistep_print(const void *cfg, FILE *where)
{
    const struct multistep *c = cfg;

    fprintf(where, "x %g after epoch ", c->gamma);
    for (int64_t i = 0; i < c->milestones.count; i++)
        fprintf(where, "%s%" PRId64, i == 0 ? "" : ", ", c->milestones.ints[i]);
}

const struct schedule_kind dnn_schedule_multistep = {
    .name = "MultiStep",
    .help = "multiply the rate after given epochs",
    .fields = multistep_fields,
    .size = sizeof(struct multistep),
    .rate = multistep_rate,
    .print = multistep_print};
