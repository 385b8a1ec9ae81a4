/* cosine.c - cosine annealing, with or without restarts.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

#include <inttypes.h>

struct cosine {
    int64_t once, first, times; /* epochs, epochs, factor */
    double minimum;
    int by;
};

#define AT(f) offsetof(struct cosine, f)
static const struct dnn_field fields[] = {
    INT("T_max", AT(once), "0", 0, "epochs until the minimum; 0: all epochs"),
    INT("T_0", AT(first), "0", 0, "epochs until the first restart; 0: no restarts"),
    INT("T_mult", AT(times), "1", 1,
        "each restart takes this many times as many epochs as the one before"),
    MINIMUM(AT(minimum)),
    BY(AT(by)),
    END};

static int check(const struct dnn_jobj *obj, const void *cfg, struct dnn_err *err)
{
    const struct cosine *c = cfg;
    struct dnn_jobj once = dnn_json_sub(obj, "T_max");
    struct dnn_jobj times = dnn_json_sub(obj, "T_mult");

    if (c->once > 0 && c->first > 0)
        return dnn_json_fail(
            &once, err,
            "is without restarts, T_0 with restarts; give only one of them");
    if (c->times > 1 && c->first == 0) return dnn_json_fail(&times, err, "needs T_0");
    return 0;
}

static double rate(const void *cfg, const struct schedule_place *at, double rate)
{
    const struct cosine *c = cfg;
    double done = dnn_schedule_done(at, c->by);
    double length = c->first > 0 ? (double)c->first : dnn_schedule_length(at, c->once);

    if (c->first > 0 && c->times == 1) done = fmod(done, length);
    while (c->first > 0 && done >= length) {
        done -= length;
        length *= (double)c->times;
    }
    if (!(done < length)) done = length;
    double part = length > 0 ? done / length : 1;
    return c->minimum + (rate - c->minimum) * (1 + cos(M_PI * part)) / 2;
}

static void print(const void *cfg, FILE *where)
{
    const struct cosine *c = cfg;

    fprintf(where, "to %g along a cosine", c->minimum);
    if (c->first > 0)
        fprintf(where, " of %" PRId64 " epochs, with restarts", c->first);
    else if (c->once > 0)
        fprintf(where, " of %" PRId64 " epochs", c->once);
    if (c->times > 1) fprintf(where, ", each %" PRId64 " times as long", c->times);
}

const struct schedule_kind dnn_schedule_cosine = {
    .name = "cosine",
    .help = "cosine annealing, with or without restarts",
    .fields = fields,
    .size = sizeof(struct cosine),
    .check = check,
    .rate = rate,
    .print = print};
