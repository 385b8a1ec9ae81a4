/* polynomial.c - polynomial decay.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

#include <inttypes.h>

struct polynomial {
    int64_t epochs;
    double power, minimum;
    int by;
};

#define AT(f) offsetof(struct polynomial, f)
static const struct dnn_field fields[] = {
    INT("epochs", AT(epochs), "0", 0, "epochs until the minimum; 0: all epochs"),
    REAL("power", AT(power), "1", 0, INFINITY,
         "power of the remaining fraction of epochs"),
    MINIMUM(AT(minimum)), BY(AT(by)), END};

static double rate(const void *cfg, const struct schedule_progress *at, double rate)
{
    const struct polynomial *c = cfg;
    double done = dnn_schedule_done(at, c->by);
    double length = dnn_schedule_length(at, c->epochs);
    double left = done < length ? 1 - done / length : 0;

    return c->minimum + (rate - c->minimum) * pow(left, c->power);
}

static void print(const void *cfg, FILE *where)
{
    const struct polynomial *c = cfg;

    fprintf(where, "to %g with power %g", c->minimum, c->power);
    if (c->epochs > 0) fprintf(where, " in %" PRId64 " epochs", c->epochs);
}

const struct schedule_kind dnn_schedule_polynomial = {.name = "polynomial",
                                                      .help = "polynomial decay",
                                                      .fields = fields,
                                                      .size = sizeof(struct polynomial),
                                                      .rate = rate,
                                                      .print = print};
