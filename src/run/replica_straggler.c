/* replica_straggler.c - what ranks wait for: each other, or the numbers on their way.
 *
 * Where ranks meet, the last to come waits for the numbers alone, so the least that any
 * of them waits is what communication takes; what others wait more, they wait because
 * they were early.  Waits of a step travel with the loss of its successor.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/replica_impl.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

void dnn_replica_add_wait(struct dnn_replica *r, double since)
{
    double seconds = dnn_clock_now() - since;

    r->now.all += seconds;
    if (r->now.n < REPLICA_WAITS) r->now.each[r->now.n++] = seconds;
}

int dnn_replica_waits_count(const struct dnn_replica *r)
{
    int ranks = dnn_comm_size(r->cfg.comm), n = r->before.n;

    return ranks == 1 || n == REPLICA_WAITS || n * ranks > REPLICA_WAITS_SENT
               ? 0
               : n * ranks;
}

void dnn_replica_waits_put(const struct dnn_replica *r, double *to)
{
    int n = r->before.n;

    if (dnn_replica_waits_count(r) == 0) return;
    memcpy(to + n * dnn_comm_rank(r->cfg.comm), r->before.each, (size_t)n * sizeof *to);
}

double dnn_replica_straggler_wait(const struct dnn_replica *r, const double *from)
{
    int ranks = dnn_comm_size(r->cfg.comm), n = r->before.n;
    double straggler = 0;

    if (dnn_replica_waits_count(r) == 0) return NAN;
    for (int i = 0; i < n; i++) {
        double least = r->before.each[i];

        for (int k = 0; k < ranks; k++)
            least = fmin(least, from[k * n + i]);
        straggler += r->before.each[i] - least;
    }
    return straggler;
}
