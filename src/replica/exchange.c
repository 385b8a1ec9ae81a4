/* exchange.c - batch statistics, summed over all ranks during a step.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

/* A running all-reduce. */
struct running_sum {
    struct dnn_comm_req *req;
    int64_t n;
    double data[];
};

static int sum(void *arg, double *data, int64_t n, struct dnn_err *err)
{
    struct dnn_replica *r = arg;
    double began = dnn_clock_now();
    int rc = dnn_comm_allreduce(r->cfg.comm, "statistics", data, n, DNN_COMM_F64,
                                DNN_COMM_SUM, err);

    dnn_replica_add_wait(r, began);
    return rc;
}

static int start(void *arg, const double *data, int64_t n, void **out,
                 struct dnn_err *err)
{
    struct dnn_replica *r = arg;
    double began = dnn_clock_now();
    struct running_sum *b = dnn_alloc(sizeof *b + (size_t)n * sizeof *data);

    b->n = n;
    memcpy(b->data, data, (size_t)n * sizeof *data);
    int rc = dnn_comm_start(r->cfg.comm, "statistics", b->data, n, DNN_COMM_F64,
                            DNN_COMM_SUM, &b->req, err);
    r->now.all += dnn_clock_now() - began;
    if (rc < 0)
        dnn_free(b);
    else
        *out = b;
    return rc;
}

static int finish(void *arg, void *pending, double *to, struct dnn_err *err)
{
    struct dnn_replica *r = arg;
    struct running_sum *b = pending;
    double began = dnn_clock_now();
    int rc = dnn_comm_wait(b->req, err);

    if (rc == 0) memcpy(to, b->data, (size_t)b->n * sizeof *to);
    dnn_replica_add_wait(r, began);
    dnn_free(b);
    return rc;
}

struct dnn_exchange dnn_replica_exchange(struct dnn_replica *r)
{
    return (struct dnn_exchange){
        .sum = sum, .arg = r, .start = start, .finish = finish};
}

/* A rank without samples updates its copy of the moving statistics, too. */
int dnn_replica_update_moving(const struct dnn_model *m, int o, const double *sums,
                              const struct dnn_now *now, struct dnn_err *err)
{
    int value = m->prog->op[o].out[0];

    DNN_TRY(dnn_exec_put(m->exec, value, sums, err));
    for (int k = o + 1; k < m->update; k++)
        if (m->prog->op[k].kind == DNN_OP_BN_UPDATE && m->prog->op[k].in[0] == value)
            return dnn_exec_run(m->exec, k, k + 1, now, err);
    return 0;
}

int dnn_replica_join_exchange(struct dnn_replica *r, const struct dnn_model *m, int o,
                              void **pending, const struct dnn_now *now,
                              struct dnn_err *err)
{
    bool waits = m->prog->op[o].kind == DNN_OP_EXCHANGE;
    int e = waits ? o : dnn_exec_exchange_after(m->exec, o), rc = 0;

    if (e == DNN_NONE) return 0;
    size_t bytes = m->plan->spot[m->prog->op[e].out[0]].bytes;
    int64_t n = (int64_t)(bytes / sizeof(double));
    double *sums = dnn_alloc(bytes);
    if (!waits) {
        rc = start(r, sums, n, pending, err);
    } else {
        rc = *pending == NULL ? sum(r, sums, n, err) : finish(r, *pending, sums, err);
        *pending = NULL;
        if (rc == 0) rc = dnn_replica_update_moving(m, o, sums, now, err);
    }
    dnn_free(sums);
    return rc;
}
