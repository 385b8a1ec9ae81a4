/* replica_eval.c - the loss in inference, over all ranks.
 *
 * A batch is cut as in training: into a part for each rank, or into micro_batches that
 * depend on nothing but its size.  What a loss divides by is that of the whole batch.
 * Losses are added up micro_batch by micro_batch, and in the order of the micro_batches
 * at the end, so that with micro_batches the sum does not depend on the number of
 * ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/replica_impl.h"

#include "base/mem.h"
#include "data/order.h"

#include <string.h>

static void own_micro_batches(const struct dnn_replica *r, int *first, int *last)
{
    int64_t rank = dnn_comm_rank(r->cfg.comm), size = dnn_comm_size(r->cfg.comm);

    *first = (int)(rank * r->judge.micro_batches / size);
    *last = (int)((rank + 1) * r->judge.micro_batches / size);
}

/* ---- models ---- */

static int add_model(struct dnn_replica *r, int64_t n, int64_t total, bool apart,
                     const struct replica_model **out, struct dnn_err *err)
{
    struct replica_eval *j = &r->judge;
    struct dnn_model_opts opts = r->cfg.model;
    struct replica_model *m = &j->model[j->nmodels];

    opts.batch = n;
    opts.total = total;
    opts.training = false;
    opts.judge = opts.together = true;
    opts.leader = r->model[0].model;
    opts.apart = apart;
    DNN_TRY(dnn_model_make(r->cfg.graph, &opts, &m->model, err));
    j->nmodels++;
    *out = m;
    return dnn_model_start(m->model, err);
}

/* Parts that go side by side need a model each, as in training. */
static int find_model(struct dnn_replica *r, int64_t n, int64_t total, int used,
                      const struct replica_model **out, struct dnn_err *err)
{
    const struct replica_eval *j = &r->judge;

    for (int i = 0; i < j->nmodels; i++) {
        const struct dnn_model_opts *o = &j->model[i].model->opts;

        if (o->batch != n || o->total != total) continue;
        if (j->lockstep && used-- > 0) continue;
        *out = &j->model[i];
        return 0;
    }
    return add_model(r, n, total, j->lockstep, out, err);
}

static int cut(struct dnn_replica *r, int64_t total, struct dnn_err *err)
{
    struct replica_eval *j = &r->judge;
    struct replica_cut *c = &j->cut[j->ncuts++];
    const struct replica_model *lead;
    int64_t first, n;
    int from, to;

    own_micro_batches(r, &from, &to);
    *c = (struct replica_cut){
        .total = total, .micro_batches = j->micro_batches, .teams = 1};
    c->part = dnn_alloc((size_t)(to - from + 1) * sizeof *c->part);
    dnn_order_part(total, total, 0, from == to ? 0 : from, j->micro_batches, &first,
                   &n);
    DNN_TRY(add_model(r, n == 0 ? 1 : n, total, false, &lead, err));
    c->lead = lead->model;
    j->meets = dnn_replica_meets(c->lead);
    j->lockstep = r->cfg.how.deterministic && j->meets;
    for (int micro_batch = from; micro_batch < to; micro_batch++) {
        struct replica_part part = {.micro_batch = micro_batch};
        int used = 0;

        dnn_order_part(total, total, 0, micro_batch, j->micro_batches, &part.first,
                       &part.n);
        if (part.n == 0) continue;
        for (int i = 0; i < c->nparts; i++)
            used += c->part[i].n == part.n;
        DNN_TRY(find_model(r, part.n, total, used, &part.by, err));
        c->part[c->nparts++] = part;
    }
    return 0;
}

int dnn_replica_eval_make(struct dnn_replica *r, struct dnn_err *err)
{
    struct replica_eval *j = &r->judge;

    j->micro_batches = r->cfg.how.deterministic && r->cfg.eval_micro_batches > 0
                           ? (int)r->cfg.eval_micro_batches
                           : dnn_replica_micro_batches(r->cfg.comm, r->cfg.judged,
                                                       r->cfg.how.deterministic, 0, 1);
    j->model = dnn_alloc((size_t)(2 * j->micro_batches + 2) * sizeof *j->model);
    j->loss = dnn_alloc((size_t)j->micro_batches * sizeof *j->loss);
    DNN_TRY(cut(r, r->cfg.judged, err));
    return r->cfg.eval_last > 0 ? cut(r, r->cfg.eval_last, err) : 0;
}

void dnn_replica_eval_free(struct dnn_replica *r)
{
    struct replica_eval *j = &r->judge;

    for (int i = j->nmodels - 1; i >= 0; i--)
        dnn_model_free(j->model[i].model);
    for (int i = 0; i < j->ncuts; i++)
        dnn_free(j->cut[i].part);
    dnn_free(j->model);
    dnn_free(j->loss);
    *j = (struct replica_eval){0};
}

void dnn_replica_eval_start(struct dnn_replica *replica)
{
    struct replica_eval *j = &replica->judge;

    memset(j->loss, 0, (size_t)j->micro_batches * sizeof *j->loss);
}

/* ---- a batch ---- */

static int take_outputs(const struct replica_part *part,
                        const struct dnn_replica_batch *batch, float *const *output,
                        struct dnn_err *err)
{
    const struct dnn_model *m = part->by->model;

    for (int i = 0; i < m->noutputs; i++) {
        size_t each = m->plan->spot[m->output[i]].bytes /
                      dnn_dtype_size(m->prog->value[m->output[i]].is.dtype);
        size_t skip = (size_t)(part->first - batch->first) * (each / (size_t)part->n);

        if (output[i] == NULL) continue;
        DNN_TRY(dnn_replica_output(m, i, output[i] + skip, err));
    }
    return 0;
}

/* The others exchange numbers, and we have no samples. */
static int pass(struct dnn_replica *r, const struct replica_cut *cut,
                const struct dnn_now *now, struct dnn_err *err)
{
    void *begun = NULL;

    for (int o = 0; o < cut->lead->prog->nops; o++)
        DNN_TRY(dnn_replica_pass(r, cut->lead, o, &begun, now, err));
    return 0;
}

/* What the samples of each micro_batch lose; the mean of the batch, as shares. */
static int run(struct dnn_replica *r, const struct replica_cut *cut,
               const struct dnn_replica_batch *batch, float *const *output,
               double *loss, struct dnn_err *err)
{
    const struct dnn_now now = {0};

    for (int p = 0; p < cut->nparts; p++) {
        const struct replica_part *part = &cut->part[p];
        const struct dnn_model *m = part->by->model;

        if (r->judge.lockstep) break;
        DNN_TRY(dnn_replica_load(part, batch, err));
        DNN_TRY(dnn_exec_run(m->exec, 0, m->prog->nops, &now, err));
        DNN_TRY(dnn_replica_note(part, loss, err));
        DNN_TRY(take_outputs(part, batch, output, err));
    }
    if (!r->judge.lockstep)
        return cut->nparts == 0 && r->judge.meets ? pass(r, cut, &now, err) : 0;
    DNN_TRY(dnn_replica_lockstep(r, cut, batch, &now, loss, err));
    for (int p = 0; p < cut->nparts; p++)
        DNN_TRY(take_outputs(&cut->part[p], batch, output, err));
    return 0;
}

int dnn_replica_eval(struct dnn_replica *replica, const struct dnn_replica_batch *batch,
                     float *const *output, struct dnn_err *err)
{
    struct replica_eval *j = &replica->judge;

    for (int i = 0; i < j->ncuts; i++) {
        if (j->cut[i].total != batch->total) continue;
        double *share = dnn_alloc((size_t)j->micro_batches * sizeof *share);
        int rc = run(replica, &j->cut[i], batch, output, share, err);

        for (int l = 0; l < j->micro_batches; l++)
            j->loss[l] += share[l] * (double)batch->total;
        dnn_free(share);
        return rc;
    }
    return dnn_fail(err, DNN_EDATA,
                    "a batch of %lld samples to evaluate with; %lld or %lld were "
                    "announced",
                    (long long)batch->total, (long long)replica->cfg.judged,
                    (long long)replica->cfg.eval_last);
}

int dnn_replica_eval_end(struct dnn_replica *replica, double *loss, struct dnn_err *err)
{
    struct replica_eval *j = &replica->judge;

    /* Each is known to one rank and zero elsewhere: adding rounds nothing. */
    int rc = dnn_comm_allreduce(replica->cfg.comm, "loss", j->loss, j->micro_batches,
                                DNN_COMM_F64, DNN_COMM_SUM, err);

    *loss = 0;
    for (int l = 0; l < j->micro_batches; l++)
        *loss += j->loss[l];
    return rc;
}

int dnn_replica_eval_micro_batches(const struct dnn_replica *replica)
{
    return replica->judge.micro_batches;
}

int dnn_replica_eval_part(const struct dnn_replica *replica, int64_t total, int i,
                          int64_t *first, int64_t *n)
{
    int from, to;

    own_micro_batches(replica, &from, &to);
    if (from + i >= to) return -1;
    dnn_order_part(total, total, 0, from + i, replica->judge.micro_batches, first, n);
    return from + i;
}
