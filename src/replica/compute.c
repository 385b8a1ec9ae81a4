/* compute.c - forward and backward pass of the micro-batches of a batch: one
 * after the other, or in lockstep if batch statistics are over the whole batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

static size_t bytes_of(const struct dnn_model *m, int value)
{
    return m->plan->spot[value].bytes;
}

/* An input or target of a micro-batch, to be read. */
struct filling {
    const struct dnn_replica_batch *batch;
    bool target;
    int i;
    int64_t skip, n;
};

static int fill(void *arg, void *to, struct dnn_err *err)
{
    const struct filling *f = arg;

    return f->batch->read(f->batch->arg, f->target, f->i, f->skip, f->n, to, err);
}

int dnn_replica_load(const struct replica_micro_batch *mb,
                     const struct dnn_replica_batch *batch, struct dnn_err *err)
{
    struct dnn_model *m = mb->model->model;
    struct filling f = {.batch = batch, .skip = mb->first - batch->first, .n = mb->n};

    for (f.i = 0; f.i < m->ninputs; f.i++)
        DNN_TRY(dnn_exec_fill(m->exec, m->input[f.i], fill, &f, err));
    f.target = true;
    for (f.i = 0; f.i < m->noutputs && m->opts.role != DNN_MODEL_INFER; f.i++)
        if (m->target[f.i] != DNN_NONE)
            DNN_TRY(dnn_exec_fill(m->exec, m->target[f.i], fill, &f, err));
    return 0;
}

void dnn_replica_try_load(struct dnn_replica *r, const struct replica_micro_batch *mb,
                          const struct dnn_replica_batch *batch)
{
    struct dnn_err why = {0};
    int rc = dnn_replica_load(mb, batch, &why);

    if (rc == 0) return;
#pragma omp critical
    if (r->failed == 0) {
        r->failed = rc;
        r->why = why;
    }
}

int dnn_replica_add_loss(const struct replica_micro_batch *mb, double *loss,
                         struct dnn_err *err)
{
    const struct dnn_model *m = mb->model->model;
    double one;

    for (int i = 0; i < m->nsample_losses; i++) {
        DNN_TRY(dnn_exec_get(m->exec, m->loss[i], &one, err));
        loss[mb->index] += one;
    }
    return 0;
}

bool dnn_replica_exchanges(const struct dnn_model *model)
{
    for (int o = 0; o < model->prog->nops; o++)
        if (model->prog->op[o].kind == DNN_OP_EXCHANGE) return true;
    return false;
}

/* ---- micro-batches one after the other ---- */

static int run_micro_batch(struct dnn_replica *r, const struct replica_micro_batch *mb,
                           struct dnn_now now, bool last, struct dnn_err *err)
{
    const struct dnn_model *m = mb->model->model;
    const struct dnn_bucket *bucket = mb->model->bucket;
    /* Poll after each op, so that communication makes progress. */
    bool overlap = last && dnn_comm_size(r->cfg.comm) > 1;
    const float *grad = r->grad;
    int sent = 0;

    now.sample = (uint32_t)mb->first;
    for (int o = 0, to; o < m->update; o = to) {
        to = sent == r->nbuckets ? m->update : bucket[sent].op + 1;
        if (overlap && sent > 0) to = o + 1;
        DNN_TRY(dnn_exec_run(m->exec, o, to, &now, err));
        while (sent < r->nbuckets && bucket[sent].op < to)
            DNN_TRY(r->rule->bucket(r->self, sent++, &grad, 1, last, err));
        if (overlap) DNN_TRY(r->rule->poll(r->self, err));
    }
    return dnn_replica_add_loss(mb, r->train->loss, err);
}

/* A micro-batch without samples: join the exchanges and add zeros to the gradients, in
 * the same order as the other ranks. */
static int run_empty(struct dnn_replica *r, const struct dnn_now *now, bool last,
                     struct dnn_err *err)
{
    const struct replica_model *first = &r->train->model[0];
    const struct dnn_model *m = first->model;
    const float *grad = r->grad;
    void *pending = NULL;
    int rc = 0, sent = 0;

    memset(r->grad, 0, (size_t)r->count * sizeof *r->grad);
    for (int o = 0; o < m->update && rc == 0; o++) {
        rc = dnn_replica_join_exchange(r, m, o, &pending, now, err);
        while (rc == 0 && sent < r->nbuckets && first->bucket[sent].op == o)
            rc = r->rule->bucket(r->self, sent++, &grad, 1, last, err);
    }
    return rc;
}

/* ---- micro-batches in lockstep ---- */

/* The op of the n-th exchange; m->update: there is none. */
static int exchange_op(const struct dnn_model *m, int n)
{
    for (int o = 0; o < m->update; o++)
        if (m->prog->op[o].kind == DNN_OP_EXCHANGE && n-- == 0) return o;
    return m->update;
}

/* Sum the statistics of all micro-batches.  The all-reduce is exact, because each
 * micro-batch is zero on all ranks but one; then they are added in order. */
static int exchange(struct dnn_replica *r, const struct replica_cut *cut, int number,
                    int o, const struct dnn_now *now, struct dnn_err *err)
{
    const struct dnn_model *lead = cut->lead;
    size_t n = bytes_of(lead, lead->prog->op[o].out[0]) / sizeof(double);
    double *all = dnn_alloc((size_t)cut->micro_batches * n * sizeof *all);
    double began = dnn_clock_now();
    int rc = 0;

    for (int p = 0; p < cut->nmb && rc == 0; p++) {
        const struct dnn_model *m = cut->mb[p].model->model;

        rc = dnn_exec_get(m->exec, m->prog->op[exchange_op(m, number)].in[0],
                          all + (size_t)cut->mb[p].index * n, err);
    }
    if (rc == 0)
        rc = dnn_comm_allreduce(r->cfg.comm, "statistics", all,
                                (int64_t)((size_t)cut->micro_batches * n), DNN_COMM_F64,
                                DNN_COMM_SUM, err);
    for (int l = 1; l < cut->micro_batches; l++)
        for (size_t i = 0; i < n; i++)
            all[i] += all[(size_t)l * n + i];
    for (int p = 0; p < cut->nmb && rc == 0; p++) {
        const struct dnn_model *m = cut->mb[p].model->model;

        rc =
            dnn_exec_put(m->exec, m->prog->op[exchange_op(m, number)].out[0], all, err);
    }
    if (cut->nmb == 0 && rc == 0)
        rc = dnn_replica_update_moving(lead, o, all, now, err);
    dnn_replica_add_wait(r, began);
    dnn_free(all);
    return rc;
}

/* Run ops of micro-batch p.  The moving statistics are shared: only the first
 * micro-batch updates them. */
static int run_ops(const struct replica_cut *cut, int p, int from, int to,
                   const struct dnn_now *now, struct dnn_err *err)
{
    const struct replica_micro_batch *mb = &cut->mb[p];
    const struct dnn_model *m = mb->model->model;

    for (int o = from; o < to; o++) {
        int deferred = dnn_replica_deferred_find(cut, mb, o);

        if (deferred != DNN_NONE)
            dnn_exec_defer(m->exec, o, mb->stored[deferred]);
        else if (p == 0 || m->prog->op[o].kind != DNN_OP_BN_UPDATE)
            DNN_TRY(dnn_exec_run(m->exec, o, o + 1, now, err));
    }
    return 0;
}

/* State of the micro-batches in lockstep. */
struct lockstep {
    struct dnn_replica *r;
    const struct replica_cut *cut;
    const struct dnn_replica_batch *batch;
    struct dnn_now now;
    int exchange; /* all run to this exchange */
    int *at;      /* next op of each micro-batch */
    double *loss;
};

static int advance(const struct lockstep *g, int p, struct dnn_err *err)
{
    const struct replica_micro_batch *mb = &g->cut->mb[p];
    const struct dnn_model *m = mb->model->model;
    struct dnn_now now = g->now;
    int to = exchange_op(m, g->exchange);

    if (g->exchange == 0) dnn_replica_try_load(g->r, mb, g->batch);
    now.sample = (uint32_t)mb->first;
    DNN_TRY(run_ops(g->cut, p, g->at[p], to, &now, err));
    g->at[p] = to + 1;
    return to == m->update ? dnn_replica_add_loss(mb, g->loss, err) : 0;
}

/* Advance micro-batches first, first + step, ... below last. */
static int advance_range(const struct lockstep *g, int first, int last, int step,
                         struct dnn_err *err)
{
    for (int p = first; p < last; p += step)
        DNN_TRY(advance(g, p, err));
    return 0;
}

/* Advance the micro-batches below last, the same number for each team.  Of several
 * errors the one of the first team is reported. */
static int advance_teams(const struct lockstep *g, int last, struct dnn_err *err)
{
    int teams = g->cut->teams, rc = 0, failed_team = teams;

#pragma omp parallel for num_threads(teams) schedule(static, 1)
    for (int team = 0; team < teams; team++) {
        struct dnn_err why = {0};
        int team_rc = advance_range(g, team, last, teams, &why);

        if (team_rc == 0) continue;
#pragma omp critical
        if (team < failed_team) {
            failed_team = team;
            rc = team_rc;
            *err = why;
        }
    }
    return rc;
}

/* The micro-batches that remain after the same number for each team are computed by all
 * threads together. */
static int advance_all(const struct lockstep *g, struct dnn_err *err)
{
    int teams = g->cut->teams, all = g->cut->nmb;
    int full = teams == 1 ? 0 : all / teams * teams;

    if (full > 0) DNN_TRY(advance_teams(g, full, err));
    return advance_range(g, full, all, 1, err);
}

/* Micro-batches of different sizes may have different programs, because of
 * recomputation.  So each has its own next op; all run to the same exchange. */
int dnn_replica_lockstep(struct dnn_replica *r, const struct replica_cut *cut,
                         const struct dnn_replica_batch *batch,
                         const struct dnn_now *now, double *loss, struct dnn_err *err)
{
    const struct dnn_model *lead = cut->lead;
    struct lockstep g = {.r = r,
                         .cut = cut,
                         .batch = batch,
                         .now = *now,
                         .at = dnn_alloc(((size_t)cut->nmb + 1) * sizeof *g.at),
                         .loss = loss};
    bool more = true;
    int rc = 0;

    for (; more && rc == 0; g.exchange++) {
        int o = exchange_op(lead, g.exchange);

        rc = advance_all(&g, err);
        more = o < lead->update;
        if (more && rc == 0) rc = exchange(r, cut, g.exchange, o, now, err);
    }
    dnn_free(g.at);
    return rc;
}

/* Pass the gradients of all micro-batches to the rule. */
static int send_all(struct dnn_replica *r, const struct replica_cut *cut,
                    struct dnn_err *err)
{
    const float **grad = dnn_alloc(((size_t)cut->nmb + 1) * sizeof *grad);
    int n = cut->nmb, rc = 0;

    for (int p = 0; p < n; p++)
        grad[p] = dnn_exec_block(cut->mb[p].model->model->exec, DNN_BLOCK_GRADS);
    if (n == 0) {
        memset(r->grad, 0, (size_t)r->count * sizeof *r->grad);
        grad[n++] = r->grad;
    }
    for (int i = 0; i < r->nbuckets && rc == 0; i++) {
        bool deferred = dnn_replica_deferred_send(r, cut, i, grad);

        rc = r->rule->bucket(r->self, i, grad, deferred ? 0 : n, true, err);
    }
    dnn_free(grad);
    return rc;
}

/* ---- a batch ---- */

int dnn_replica_compute(struct dnn_replica *r, const struct replica_cut *cut,
                        const struct dnn_replica_batch *batch,
                        const struct dnn_now *now, struct dnn_err *err)
{
    if (r->train->lockstep || r->train->teams > 1) {
        DNN_TRY(dnn_replica_lockstep(r, cut, batch, now, r->train->loss, err));
        return send_all(r, cut, err);
    }
    for (int p = 0; p < cut->nmb; p++) {
        const struct replica_micro_batch *mb = &cut->mb[p];
        bool last = p == cut->nmb - 1;

        if (mb->n == 0) {
            DNN_TRY(run_empty(r, now, last, err));
            continue;
        }
        dnn_replica_try_load(r, mb, batch);
        DNN_TRY(run_micro_batch(r, mb, *now, last, err));
    }
    return 0;
}

int dnn_replica_idle(struct dnn_replica *r, const struct dnn_now *now,
                     struct dnn_err *err)
{
    const struct replica_cut none = {
        .lead = r->owner, .micro_batches = r->train->micro_batches, .teams = 1};
    /* As many empty micro-batches as the other ranks have. */
    int count = r->train->micro_batches / dnn_comm_size(r->cfg.comm);

    if (r->train->lockstep || r->train->teams > 1)
        return dnn_replica_compute(r, &none, NULL, now, err);
    for (int p = 0; p < count || p == 0; p++)
        DNN_TRY(run_empty(r, now, p >= count - 1, err));
    return 0;
}
