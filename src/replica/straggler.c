/* straggler.c - time spent waiting for slower ranks.
 *
 * In a collective operation the last rank waits only for the transfer, so the minimum
 * wait over ranks is the time of communication; the rest of a wait is for slower ranks.
 * Waits of a step are exchanged together with the loss of the next one.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

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
        double min = r->before.each[i];

        for (int k = 0; k < ranks; k++)
            min = fmin(min, from[k * n + i]);
        straggler += r->before.each[i] - min;
    }
    return straggler;
}
