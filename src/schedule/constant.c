/* constant.c - a constant learning rate.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

struct constant {
    double factor;
};

static const struct dnn_field fields[] = {
    REAL("factor", offsetof(struct constant, factor), "1", 0, INFINITY,
         "factor of the learning rate"),
    END};

static double rate(const void *cfg, const struct schedule_progress *at, double rate)
{
    const struct constant *c = cfg;

    (void)at;
    return rate * c->factor;
}

static void print(const void *cfg, FILE *where)
{
    const struct constant *c = cfg;

    if (c->factor == 1)
        fprintf(where, "the learning rate does not change");
    else
        fprintf(where, "x %g", c->factor);
}

const struct schedule_kind dnn_schedule_constant = {.name = "constant",
                                                    .help = "a constant learning rate",
                                                    .fields = fields,
                                                    .size = sizeof(struct constant),
                                                    .rate = rate,
                                                    .print = print};
