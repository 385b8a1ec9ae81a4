/* one_cycle.c - one cycle up to the maximum rate and down, update by update.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

enum { COS, LINEAR };
static const struct dnn_choice shapes[] = {
    {"cos",    COS   },
    {"linear", LINEAR},
    {NULL,     0     }
};

struct cycle {
    double max_rate, pct_start, div_factor, final_div_factor;
    int shape;
};

#define AT(f) offsetof(struct cycle, f)
static const struct dnn_field fields[] = {
    REAL("max_rate", AT(max_rate), "0", 0, 1e6,
         "maximum learning rate; 0: that of the optimizer"),
    REAL("pct_start", AT(pct_start), "0.3", 0, 1,
         "fraction of all updates in which the rate increases"),
    REAL("div_factor", AT(div_factor), "25", 1, INFINITY,
         "initial rate: the maximum over this"),
    REAL("final_div_factor", AT(final_div_factor), "10000", 1, INFINITY,
         "final rate: the initial rate over this"),
    ENUM("anneal_strategy", AT(shape), "cos", shapes, "shape of the curve"),
    END};

static double between(const struct cycle *c, double from, double to, double part)
{
    if (c->shape == LINEAR) return from + (to - from) * part;
    return to + (from - to) / 2 * (1 + cos(M_PI * part));
}

static double rate(const void *cfg, const struct schedule_progress *at, double rate)
{
    const struct cycle *c = cfg;
    double most = c->max_rate > 0 ? c->max_rate : rate;
    double first = most / c->div_factor, last = first / c->final_div_factor;
    double top = c->pct_start * (double)at->total - 1, end = (double)at->total - 1;
    double step = fmin((double)at->step, end);

    if (step <= top) return between(c, first, most, top > 0 ? step / top : 1);
    return between(c, most, last, end > top ? (step - top) / (end - top) : 1);
}

static void print(const void *cfg, FILE *where)
{
    const struct cycle *c = cfg;

    fprintf(where, "from 1/%g of ", c->div_factor);
    if (c->max_rate > 0)
        fprintf(where, "%g", c->max_rate);
    else
        fprintf(where, "the rate");
    fprintf(where, " to all of it in %g of the updates, then to 1/%g", c->pct_start,
            c->div_factor * c->final_div_factor);
}

const struct schedule_kind dnn_schedule_one_cycle = {
    .name = "one_cycle",
    .help = "one cycle: up to the maximum rate, then down to almost 0",
    .fields = fields,
    .size = sizeof(struct cycle),
    .rate = rate,
    .print = print};
