/* replica_step.c - one update, made together with all other ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/replica_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

static const struct replica_cut *find_cut(const struct dnn_replica *r, int64_t total)
{
    for (int i = 0; i < r->ncuts; i++)
        if (r->cut[i].total == total) return &r->cut[i];
    return NULL;
}

static size_t bytes_of(const struct dnn_model *m, int value)
{
    return m->plan->spot[value].bytes;
}

/* This part's rows of the batch into the model. */
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

/* Its share of the loss, before another part runs on the same model. */
static int note_loss(struct dnn_replica *r, const struct replica_part *part,
                     struct dnn_err *err)
{
    const struct dnn_model *m = part->by->model;
    double one;

    for (int i = 0; i < m->nshares; i++) {
        DNN_TRY(dnn_exec_get(m->exec, m->loss[i], &one, err));
        r->loss[part->leaf] += one;
    }
    return 0;
}

/* ---- parts one after the other ---- */

static int run_part(struct dnn_replica *r, const struct replica_part *part,
                    struct dnn_now now, bool last, struct dnn_err *err)
{
    const struct dnn_model *m = part->by->model;
    int sent = 0;

    now.sample = (uint32_t)part->first;
    for (int o = 0; o < m->update; o++) {
        DNN_TRY(dnn_exec_run(m->exec, o, o + 1, &now, err));
        while (sent < r->nportions && part->by->bucket[sent].op == o)
            DNN_TRY(r->rule->portion(r->self, sent++, r->grad, last, err));
        if (last) DNN_TRY(r->rule->poll(r->self, err));
    }
    return note_loss(r, part, err);
}

/* Statistics of a batch are known: a rank that has no samples of it moves its own copy
 * of the moving ones all the same. */
static int move_states(const struct dnn_model *m, int o, const double *sums,
                       const struct dnn_now *now, struct dnn_err *err)
{
    int value = m->prog->op[o].out[0];

    DNN_TRY(dnn_exec_put(m->exec, value, sums, err));
    for (int k = o + 1; k < m->update; k++)
        if (m->prog->op[k].kind == DNN_OP_BN_UPDATE && m->prog->op[k].in[0] == value)
            return dnn_exec_run(m->exec, k, k + 1, now, err);
    return 0;
}

/* A part without samples: the statistics of the others pass through, and zeros are
 * added to their gradients, in the very order in which the others do it. */
static int pass(struct dnn_replica *r, const struct dnn_now *now, bool last,
                struct dnn_err *err)
{
    const struct replica_model *by = &r->model[0];
    const struct dnn_model *m = by->model;
    int rc = 0, sent = 0;

    memset(r->grad, 0, (size_t)r->count * sizeof *r->grad);
    for (int o = 0; o < m->update && rc == 0; o++) {
        if (m->prog->op[o].kind == DNN_OP_EXCHANGE) {
            size_t bytes = bytes_of(m, m->prog->op[o].out[0]);
            double *sums = dnn_alloc(bytes);

            rc = dnn_replica_exchange(r, sums, (int64_t)(bytes / sizeof *sums), err);
            if (rc == 0) rc = move_states(m, o, sums, now, err);
            dnn_free(sums);
        }
        while (rc == 0 && sent < r->nportions && by->bucket[sent].op == o)
            rc = r->rule->portion(r->self, sent++, r->grad, last, err);
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

/* Statistics of all leaves: each is written by one rank and zero elsewhere, so adding
 * over ranks is exact, and then they are added in the order of the leaves. */
static int exchange(struct dnn_replica *r, const struct replica_cut *cut, int meeting,
                    int o, const struct dnn_now *now, struct dnn_err *err)
{
    const struct dnn_model *lead = r->model[0].model;
    size_t n = bytes_of(lead, lead->prog->op[o].out[0]) / sizeof(double);
    double *all = dnn_alloc((size_t)r->leaves * n * sizeof *all);
    double began = dnn_clock_now();
    int rc = 0;

    for (int p = 0; p < cut->nparts && rc == 0; p++) {
        const struct dnn_model *m = cut->part[p].by->model;

        rc = dnn_exec_get(m->exec, m->prog->op[meeting_op(m, meeting)].in[0],
                          all + (size_t)cut->part[p].leaf * n, err);
    }
    if (rc == 0)
        rc = dnn_comm_allreduce(r->cfg.comm, "statistics", all,
                                (int64_t)((size_t)r->leaves * n), DNN_COMM_F64,
                                DNN_COMM_SUM, err);
    for (int l = 1; l < r->leaves; l++)
        for (size_t i = 0; i < n; i++)
            all[i] += all[(size_t)l * n + i];
    for (int p = 0; p < cut->nparts && rc == 0; p++) {
        const struct dnn_model *m = cut->part[p].by->model;

        rc =
            dnn_exec_put(m->exec, m->prog->op[meeting_op(m, meeting)].out[0], all, err);
    }
    if (cut->nparts == 0 && rc == 0) rc = move_states(lead, o, all, now, err);
    r->waited += dnn_clock_now() - began;
    dnn_free(all);
    return rc;
}

/* The moving statistics are one for all parts: only the first moves them. */
static int run_ops(const struct dnn_model *m, int from, int to, bool first,
                   const struct dnn_now *now, struct dnn_err *err)
{
    for (int o = from; o < to; o++)
        if (first || m->prog->op[o].kind != DNN_OP_BN_UPDATE)
            DNN_TRY(dnn_exec_run(m->exec, o, o + 1, now, err));
    return 0;
}

/* Programs of different sizes of part are the same but where things are computed again:
 * so each has its own place, and all meet at the exchanges. */
static int run_lockstep(struct dnn_replica *r, const struct replica_cut *cut,
                        struct dnn_now now, struct dnn_err *err)
{
    const struct dnn_model *lead = r->model[0].model;
    int *at = dnn_alloc(((size_t)cut->nparts + 1) * sizeof *at), rc = 0;
    bool more = true;

    for (int meeting = 0; more && rc == 0; meeting++) {
        int o = meeting_op(lead, meeting);

        for (int p = 0; p < cut->nparts && rc == 0; p++) {
            int to = meeting_op(cut->part[p].by->model, meeting);

            now.sample = (uint32_t)cut->part[p].first;
            rc = run_ops(cut->part[p].by->model, at[p], to, p == 0, &now, err);
            at[p] = to + 1;
        }
        more = o < lead->update;
        if (more && rc == 0) rc = exchange(r, cut, meeting, o, &now, err);
    }
    dnn_free(at);
    for (int p = 0; p < cut->nparts && rc == 0; p++)
        rc = note_loss(r, &cut->part[p], err);
    for (int i = 0; i < r->nportions && rc == 0; i++)
        for (int p = 0; p < cut->nparts && rc == 0; p++)
            rc = r->rule->portion(
                r->self, i,
                dnn_exec_block(cut->part[p].by->model->exec, DNN_BLOCK_GRADS),
                p == cut->nparts - 1, err);
    if (cut->nparts == 0) memset(r->grad, 0, (size_t)r->count * sizeof *r->grad);
    for (int i = 0; i < r->nportions && rc == 0 && cut->nparts == 0; i++)
        rc = r->rule->portion(r->self, i, r->grad, true, err);
    return rc;
}

/* ---- the whole ---- */

static int compute(struct dnn_replica *r, const struct replica_cut *cut,
                   const struct dnn_replica_batch *batch, const struct dnn_now *now,
                   struct dnn_err *err)
{
    if (r->lockstep) return run_lockstep(r, cut, *now, err);
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

/* Losses by leaf, and the caller's numbers behind: exact sums, as above. */
static int add_up(struct dnn_replica *r, double *loss, double *extra, int n,
                  struct dnn_err *err)
{
    int64_t count = r->leaves + n;
    double *all = dnn_alloc((size_t)count * sizeof *all), began = dnn_clock_now();

    memcpy(all, r->loss, (size_t)r->leaves * sizeof *all);
    if (n > 0) memcpy(all + r->leaves, extra, (size_t)n * sizeof *extra);
    int rc = dnn_comm_allreduce(r->cfg.comm, "loss", all, count, DNN_COMM_F64,
                                DNN_COMM_SUM, err);
    *loss = 0;
    for (int l = 0; l < r->leaves; l++)
        *loss += all[l];
    if (n > 0) memcpy(extra, all + r->leaves, (size_t)n * sizeof *extra);
    dnn_free(all);
    r->waited += dnn_clock_now() - began;
    return rc;
}

/* In blocks whose sums are added in order: the same whatever the threads. */
static double norm(const struct dnn_replica *r)
{
    enum { BLOCK = 1 << 14 };
    int64_t blocks = (r->count + BLOCK - 1) / BLOCK;
    double *sum = dnn_alloc((size_t)(blocks + 1) * sizeof *sum), all = 0;

#pragma omp parallel for schedule(static) if (blocks > 4)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t last = b + 1 == blocks ? r->count : (b + 1) * BLOCK;
        double four[4] = {0};
        int64_t i = b * BLOCK;

        for (; i + 4 <= last; i += 4)
            for (int k = 0; k < 4; k++)
                four[k] += (double)r->grad[i + k] * (double)r->grad[i + k];
        for (; i < last; i++)
            four[0] += (double)r->grad[i] * (double)r->grad[i];
        sum[b] = (four[0] + four[1]) + (four[2] + four[3]);
    }
    for (int64_t b = 0; b < blocks; b++)
        all += sum[b];
    dnn_free(sum);
    return sqrt(all);
}

static void clip(struct dnn_replica *r, const struct dnn_replica_step *step)
{
    float most = (float)step->clip_value, scale = 1;

    if (step->clip_norm > 0 && step->grad_norm > step->clip_norm)
        scale = (float)(step->clip_norm / step->grad_norm);
    if (scale == 1 && most <= 0) return;
#pragma omp parallel for schedule(static) if (r->count > 1 << 15)
    for (int64_t i = 0; i < r->count; i++) {
        float g = r->grad[i] * scale;

        if (most > 0) g = g > most ? most : g < -most ? -most : g;
        r->grad[i] = g;
    }
}

/* Make the update, and read what regularizers say of the weights before it. */
static int update(struct dnn_replica *r, const struct dnn_now *now, double *penalty,
                  struct dnn_err *err)
{
    const struct dnn_model *m = r->model[0].model;
    double one;

    DNN_TRY(dnn_exec_run(m->exec, m->update, m->prog->nops, now, err));
    *penalty = 0;
    for (int i = m->nshares; i < m->nlosses; i++) {
        DNN_TRY(dnn_exec_get(m->exec, m->loss[i], &one, err));
        *penalty += one;
    }
    return r->rule->after(r->self, err);
}

int dnn_replica_run(struct dnn_replica *replica, const struct dnn_replica_batch *batch,
                    struct dnn_replica_step *step, double *extra, int n,
                    struct dnn_err *err)
{
    struct dnn_replica *r = replica;
    const struct replica_cut *cut = find_cut(r, batch->total);
    const struct dnn_now now = {.seed = step->seed,
                                .step = (uint32_t)step->step,
                                .rate = step->rate,
                                .updates = step->step + 1};
    double began = dnn_clock_now(), penalty;

    if (cut == NULL)
        return dnn_fail(
            err, DNN_EDATA, "a batch of %lld samples; %lld or %lld were announced",
            (long long)batch->total, (long long)r->cfg.batch, (long long)r->cfg.last);
    r->waited = 0;
    r->rule->cost(r->self);
    memset(r->loss, 0, (size_t)r->leaves * sizeof *r->loss);
    if (r->lockstep)
        for (int p = 0; p < cut->nparts; p++)
            DNN_TRY(dnn_replica_load(&cut->part[p], batch, err));
    DNN_TRY(compute(r, cut, batch, &now, err));
    DNN_TRY(r->rule->before(r->self, err));
    DNN_TRY(add_up(r, &step->loss, extra, n, err));
    step->grad_norm = norm(r);
    if (!isfinite(step->loss) || !isfinite(step->grad_norm))
        return dnn_replica_blame(r, cut, batch, &now, err);
    clip(r, step);
    DNN_TRY(update(r, &now, &penalty, err));
    step->loss += penalty;
    step->comm = r->waited + r->rule->cost(r->self).exposed;
    step->compute = dnn_clock_now() - began - step->comm;
    return 0;
}
