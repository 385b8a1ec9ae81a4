/* replica_compute.c - the parts of a batch computed: one after the other, or side by
 * side where statistics are of all of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/replica_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

static size_t bytes_of(const struct dnn_model *m, int value)
{
    return m->plan->spot[value].bytes;
}

int dnn_replica_load(const struct replica_part *part,
                     const struct dnn_replica_batch *batch, struct dnn_err *err)
{
    struct dnn_model *m = part->by->model;
    size_t skip = (size_t)(part->first - batch->first);

    for (int i = 0; i < m->ninputs; i++) {
        size_t each = bytes_of(m, m->input[i]) / (size_t)part->n;

        DNN_TRY(dnn_exec_put(m->exec, m->input[i],
                             (const char *)batch->input[i] + skip * each, err));
    }
    for (int i = 0; i < m->noutputs; i++) {
        if (m->target[i] == DNN_NONE) continue;
        size_t each = bytes_of(m, m->target[i]) / (size_t)part->n;

        DNN_TRY(dnn_exec_put(m->exec, m->target[i],
                             (const char *)batch->target[i] + skip * each, err));
    }
    return 0;
}

int dnn_replica_add_loss(const struct replica_part *part, double *loss,
                         struct dnn_err *err)
{
    const struct dnn_model *m = part->by->model;
    double one;

    for (int i = 0; i < m->nshares; i++) {
        DNN_TRY(dnn_exec_get(m->exec, m->loss[i], &one, err));
        loss[part->micro_batch] += one;
    }
    return 0;
}

bool dnn_replica_exchanges(const struct dnn_model *model)
{
    for (int o = 0; o < model->prog->nops; o++)
        if (model->prog->op[o].kind == DNN_OP_EXCHANGE) return true;
    return false;
}

/* ---- parts one after the other ---- */

static int run_part(struct dnn_replica *r, const struct replica_part *part,
                    struct dnn_now now, bool last, struct dnn_err *err)
{
    const struct dnn_model *m = part->by->model;
    const struct dnn_bucket *bucket = part->by->bucket;
    /* Whatever is under way is pushed on after each op. */
    bool push = last && dnn_comm_size(r->cfg.comm) > 1;
    const float *grad = r->grad;
    int sent = 0;

    now.sample = (uint32_t)part->first;
    for (int o = 0, to; o < m->update; o = to) {
        to = sent == r->nbuckets ? m->update : bucket[sent].op + 1;
        if (push && sent > 0) to = o + 1;
        DNN_TRY(dnn_exec_run(m->exec, o, to, &now, err));
        while (sent < r->nbuckets && bucket[sent].op < to)
            DNN_TRY(r->rule->bucket(r->self, sent++, &grad, 1, last, err));
        if (push) DNN_TRY(r->rule->poll(r->self, err));
    }
    return dnn_replica_add_loss(part, r->loss, err);
}

/* A part without samples: the statistics of the others pass through, and zeros are
 * added to their gradients, in the very order in which the others do it. */
static int pass(struct dnn_replica *r, const struct dnn_now *now, bool last,
                struct dnn_err *err)
{
    const struct replica_model *by = &r->model[0];
    const struct dnn_model *m = by->model;
    const float *grad = r->grad;
    void *begun = NULL;
    int rc = 0, sent = 0;

    memset(r->grad, 0, (size_t)r->count * sizeof *r->grad);
    for (int o = 0; o < m->update && rc == 0; o++) {
        rc = dnn_replica_pass(r, m, o, &begun, now, err);
        while (rc == 0 && sent < r->nbuckets && by->bucket[sent].op == o)
            rc = r->rule->bucket(r->self, sent++, &grad, 1, last, err);
    }
    return rc;
}

/* ---- parts side by side ---- */

/* The op at which all meet for the n-th time; m->update: they do not. */
static int meeting_op(const struct dnn_model *m, int n)
{
    for (int o = 0; o < m->update; o++)
        if (m->prog->op[o].kind == DNN_OP_EXCHANGE && n-- == 0) return o;
    return m->update;
}

/* Statistics of all micro-batches: each is written by one rank and zero elsewhere, so
 * adding over ranks is exact, and then they are added in the order of the
 * micro-batches. */
static int exchange(struct dnn_replica *r, const struct replica_cut *cut, int meeting,
                    int o, const struct dnn_now *now, struct dnn_err *err)
{
    const struct dnn_model *lead = cut->lead;
    size_t n = bytes_of(lead, lead->prog->op[o].out[0]) / sizeof(double);
    double *all = dnn_alloc((size_t)cut->micro_batches * n * sizeof *all);
    double began = dnn_clock_now();
    int rc = 0;

    for (int p = 0; p < cut->nparts && rc == 0; p++) {
        const struct dnn_model *m = cut->part[p].by->model;

        rc = dnn_exec_get(m->exec, m->prog->op[meeting_op(m, meeting)].in[0],
                          all + (size_t)cut->part[p].micro_batch * n, err);
    }
    if (rc == 0)
        rc = dnn_comm_allreduce(r->cfg.comm, "statistics", all,
                                (int64_t)((size_t)cut->micro_batches * n), DNN_COMM_F64,
                                DNN_COMM_SUM, err);
    for (int l = 1; l < cut->micro_batches; l++)
        for (size_t i = 0; i < n; i++)
            all[i] += all[(size_t)l * n + i];
    for (int p = 0; p < cut->nparts && rc == 0; p++) {
        const struct dnn_model *m = cut->part[p].by->model;

        rc =
            dnn_exec_put(m->exec, m->prog->op[meeting_op(m, meeting)].out[0], all, err);
    }
    if (cut->nparts == 0 && rc == 0)
        rc = dnn_replica_update_moving(lead, o, all, now, err);
    dnn_replica_add_wait(r, began);
    dnn_free(all);
    return rc;
}

/* The moving statistics are one for all parts: only the first moves them. */
static int run_ops(const struct replica_cut *cut, int p, int from, int to,
                   const struct dnn_now *now, struct dnn_err *err)
{
    const struct replica_part *part = &cut->part[p];
    const struct dnn_model *m = part->by->model;

    for (int o = from; o < to; o++) {
        int deferred = dnn_replica_deferred_find(cut, part, o);

        if (deferred != DNN_NONE)
            dnn_exec_defer(m->exec, o, part->stored[deferred]);
        else if (p == 0 || m->prog->op[o].kind != DNN_OP_BN_UPDATE)
            DNN_TRY(dnn_exec_run(m->exec, o, o + 1, now, err));
    }
    return 0;
}

/* Parts on their way through the program. */
struct going {
    const struct replica_cut *cut;
    const struct dnn_replica_batch *batch;
    struct dnn_now now;
    int meeting; /* all go up to where they meet for the n-th time */
    int *at;     /* by part: the op it is at                       */
    double *loss;
};

static int go(const struct going *g, int p, struct dnn_err *err)
{
    const struct replica_part *part = &g->cut->part[p];
    const struct dnn_model *m = part->by->model;
    struct dnn_now now = g->now;
    int to = meeting_op(m, g->meeting);

    if (g->meeting == 0) DNN_TRY(dnn_replica_load(part, g->batch, err));
    now.sample = (uint32_t)part->first;
    DNN_TRY(run_ops(g->cut, p, g->at[p], to, &now, err));
    g->at[p] = to + 1;
    return to == m->update ? dnn_replica_add_loss(part, g->loss, err) : 0;
}

/* Part first, and every step-th after it that is below last. */
static int go_some(const struct going *g, int first, int last, int step,
                   struct dnn_err *err)
{
    for (int p = first; p < last; p += step)
        DNN_TRY(go(g, p, err));
    return 0;
}

/* Parts below last at once, the same number for each team.  Of several errors the first
 * team's is kept. */
static int go_at_once(const struct going *g, int last, struct dnn_err *err)
{
    int teams = g->cut->teams, rc = 0, who = teams;

#pragma omp parallel for num_threads(teams) schedule(static, 1)
    for (int team = 0; team < teams; team++) {
        struct dnn_err why = {0};
        int one = go_some(g, team, last, teams, &why);

        if (one == 0) continue;
#pragma omp critical
        if (team < who) {
            who = team;
            rc = one;
            *err = why;
        }
    }
    return rc;
}

/* What does not go up in teams is shared by all threads. */
static int go_on(const struct going *g, struct dnn_err *err)
{
    int teams = g->cut->teams, all = g->cut->nparts;
    int even = teams == 1 ? 0 : all / teams * teams;

    if (even > 0) DNN_TRY(go_at_once(g, even, err));
    return go_some(g, even, all, 1, err);
}

/* Programs of different sizes of part are the same but where things are computed again:
 * so each has its own place, and all meet at the exchanges. */
int dnn_replica_lockstep(struct dnn_replica *r, const struct replica_cut *cut,
                         const struct dnn_replica_batch *batch,
                         const struct dnn_now *now, double *loss, struct dnn_err *err)
{
    const struct dnn_model *lead = cut->lead;
    struct going g = {.cut = cut,
                      .batch = batch,
                      .now = *now,
                      .at = dnn_alloc(((size_t)cut->nparts + 1) * sizeof *g.at),
                      .loss = loss};
    bool more = true;
    int rc = 0;

    for (; more && rc == 0; g.meeting++) {
        int o = meeting_op(lead, g.meeting);

        rc = go_on(&g, err);
        more = o < lead->update;
        if (more && rc == 0) rc = exchange(r, cut, g.meeting, o, now, err);
    }
    dnn_free(g.at);
    return rc;
}

/* Gradients of all parts, once all are computed. */
static int send_all(struct dnn_replica *r, const struct replica_cut *cut,
                    struct dnn_err *err)
{
    const float **grad = dnn_alloc(((size_t)cut->nparts + 1) * sizeof *grad);
    int n = cut->nparts, rc = 0;

    for (int p = 0; p < n; p++)
        grad[p] = dnn_exec_block(cut->part[p].by->model->exec, DNN_BLOCK_GRADS);
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

/* ---- the whole ---- */

int dnn_replica_compute(struct dnn_replica *r, const struct replica_cut *cut,
                        const struct dnn_replica_batch *batch,
                        const struct dnn_now *now, struct dnn_err *err)
{
    if (r->lockstep || r->teams > 1) {
        DNN_TRY(dnn_replica_lockstep(r, cut, batch, now, r->loss, err));
        return send_all(r, cut, err);
    }
    for (int p = 0; p < cut->nparts; p++) {
        const struct replica_part *part = &cut->part[p];
        bool last = p == cut->nparts - 1;

        if (part->n == 0) {
            DNN_TRY(pass(r, now, last, err));
            continue;
        }
        DNN_TRY(dnn_replica_load(part, batch, err));
        DNN_TRY(run_part(r, part, *now, last, err));
    }
    return 0;
}

int dnn_replica_idle(struct dnn_replica *r, const struct dnn_now *now,
                     struct dnn_err *err)
{
    const struct replica_cut none = {
        .lead = r->model[0].model, .micro_batches = r->micro_batches, .teams = 1};
    /* As many empty parts as others have full ones: each is an exchange of its own. */
    int parts = r->micro_batches / dnn_comm_size(r->cfg.comm);

    if (r->lockstep || r->teams > 1)
        return dnn_replica_compute(r, &none, NULL, now, err);
    for (int p = 0; p < parts || p == 0; p++)
        DNN_TRY(pass(r, now, p >= parts - 1, err));
    return 0;
}
