/* comm_start.c - non-blocking all-reduces during computation, several at once, finished
 * in another order than started.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "ranks.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    BUCKETS = 70,
    COUNT = 4099
}; /* more than the number of operations a rank records */

/* Computation that takes a different time on every rank. */
static double work(int rank)
{
    volatile double x = 1;

    for (int i = 0; i < 20000 * (rank + 1); i++)
        x = x * 0.999 + 1;
    return x;
}

static void overlap(struct dnn_comm *comm, int rank, int size, bool by_test)
{
    float *grad = dnn_alloc(sizeof *grad * BUCKETS * COUNT);
    struct dnn_comm_req *req[BUCKETS];
    struct dnn_err err = {0};
    bool good = true;
    double sum = 0;

    for (int b = 0; b < BUCKETS; b++) {
        char what[40];
        float *g = grad + b * COUNT;

        for (int i = 0; i < COUNT; i++)
            g[i] = (float)(rank + b + i % 5);
        snprintf(what, sizeof what, "bucket %d", b);
        good &= dnn_comm_start(comm, what, g, COUNT, DNN_COMM_F32, DNN_COMM_SUM,
                               &req[b], &err) == 0;
        sum += work(rank);
    }
    for (int k = 0; good && k < BUCKETS; k++) {
        int b = (k * 3 + rank) % BUCKETS; /* every rank in its own order */

        for (bool finished = false; by_test && !finished;) {
            good &= dnn_comm_test(req[b], &finished, &err) == 0;
            if (!good) break;
        }
        good &= dnn_comm_wait(req[b], &err) == 0;
    }
    for (int b = 0; b < BUCKETS; b++)
        for (int i = 0; i < COUNT; i++)
            good &= grad[b * COUNT + i] ==
                    (float)(size * (size - 1) / 2 + size * (b + i % 5));
    all_ok(comm, good && sum > 0, "%d all-reduces during computation, %s", BUCKETS,
           by_test ? "tested for" : "waited for");
    dnn_free(grad);
}

/* Work between start and wait is not counted as waiting: the deadline is 6 s. */
static void late_wait(struct dnn_comm *comm, int rank, int size)
{
    struct dnn_comm_req *req;
    struct dnn_err err = {0};
    double x = rank;

    bool good = dnn_comm_start(comm, "early", &x, 1, DNN_COMM_F64, DNN_COMM_SUM, &req,
                               &err) == 0;
    if (good) {
        usleep(6600000);
        good = dnn_comm_wait(req, &err) == 0;
    }
    all_ok(comm, good && x == size * (size - 1) / 2.0,
           "work may take longer than the deadline");

    /* One rank arrives after the first check of the others, but before the time limit.
     */
    if (rank == size - 1) usleep(3300000);
    good = dnn_comm_barrier(comm, "after a wait", &err) == 0;
    all_ok(comm, good, "a rank may arrive just before the time limit");
    dnn_comm_watch(comm, "nothing", 2);
    dnn_comm_unwatch(comm);
    usleep(2300000);
    all_ok(comm, true, "a watch that was ended prints nothing");
}

int main(void)
{
    struct dnn_comm_cfg cfg = {.deadline = 6};
    struct dnn_comm *comm;
    struct dnn_err err = {0};

    unsetenv("DNN_DEADLINE");
    if (dnn_comm_open(&cfg, &comm, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int rank = dnn_comm_rank(comm), size = dnn_comm_size(comm);
    overlap(comm, rank, size, false);
    overlap(comm, rank, size, true);
    late_wait(comm, rank, size);
    return all_done(comm);
}
