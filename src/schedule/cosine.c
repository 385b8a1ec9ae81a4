/* cosine.c - cosine annealing, with or without restarts.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

#include <inttypes.h>

struct cosine {
    int64_t t_max, t_0, t_mult; /* epochs, epochs, factor */
    double minimum;
    int by;
};

#define AT(f) offsetof(struct cosine, f)
static const struct dnn_field fields[] = {
    INT("T_max", AT(t_max), "0", 0, "epochs until the minimum; 0: all epochs"),
    INT("T_0", AT(t_0), "0", 0, "epochs until the first restart; 0: no restarts"),
    INT("T_mult", AT(t_mult), "1", 1,
        "each restart takes this many times as many epochs as the one before"),
    MINIMUM(AT(minimum)),
    BY(AT(by)),
    END};

static int check(const struct dnn_jobj *obj, const void *cfg, struct dnn_err *err)
{
    const struct cosine *c = cfg;
    struct dnn_jobj t_max = dnn_json_sub(obj, "T_max");
    struct dnn_jobj t_mult = dnn_json_sub(obj, "T_mult");

    if (c->t_max > 0 && c->t_0 > 0)
        return dnn_json_fail(
            &t_max, err,
            "is without restarts, T_0 with restarts; give only one of them");
    if (c->t_mult > 1 && c->t_0 == 0) return dnn_json_fail(&t_mult, err, "needs T_0");
    return 0;
}

static double rate(const void *cfg, const struct schedule_progress *at, double rate)
{
    const struct cosine *c = cfg;
    double done = dnn_schedule_done(at, c->by);
    double length = c->t_0 > 0 ? (double)c->t_0 : dnn_schedule_length(at, c->t_max);

    if (c->t_0 > 0 && c->t_mult == 1) done = fmod(done, length);
    while (c->t_0 > 0 && done >= length) {
        done -= length;
        length *= (double)c->t_mult;
    }
    if (!(done < length)) done = length;
    double part = length > 0 ? done / length : 1;
    return c->minimum + (rate - c->minimum) * (1 + cos(M_PI * part)) / 2;
}

static void print(const void *cfg, FILE *where)
{
    const struct cosine *c = cfg;

    fprintf(where, "to %g along a cosine", c->minimum);
    if (c->t_0 > 0)
        fprintf(where, " of %" PRId64 " epochs, with restarts", c->t_0);
    else if (c->t_max > 0)
        fprintf(where, " of %" PRId64 " epochs", c->t_max);
    if (c->t_mult > 1) fprintf(where, ", each %" PRId64 " times as long", c->t_mult);
}

const struct schedule_kind dnn_schedule_cosine = {
    .name = "cosine",
    .help = "cosine annealing, with or without restarts",
    .fields = fields,
    .size = sizeof(struct cosine),
    .check = check,
    .rate = rate,
    .print = print};
