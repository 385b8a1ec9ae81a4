/* eval.c - evaluation: the loss in inference, over all ranks.
 *
 * A batch is split into micro-batches as in training; losses are normalized by the
 * whole batch.  They are summed per micro-batch, and over micro-batches in order at the
 * end, so that deterministic sums do not depend on the number of ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/mem.h"
#include "data/order.h"

#include <string.h>

/* ---- models ---- */

static int add_model(struct dnn_replica *r, int64_t n, int64_t total, bool separate,
                     const struct replica_model **out, struct dnn_err *err)
{
    struct replica_eval *e = &r->eval;
    struct dnn_model_opts opts = r->cfg.model;
    struct replica_model *m = &e->model[e->nmodels];

    opts.batch = n;
    opts.total = total;
    opts.training = false;
    opts.with_loss = opts.whole_batch = true;
    opts.owner = r->model[0].model;
    opts.separate = separate;
    DNN_TRY(dnn_model_make(r->cfg.graph, &opts, &m->model, err));
    e->nmodels++;
    *out = m;
    return dnn_model_start(m->model, err);
}

/* Find or make a model.  In lockstep each micro-batch has its own, as in training. */
static int find_model(struct dnn_replica *r, int64_t n, int64_t total, int used,
                      const struct replica_model **out, struct dnn_err *err)
{
    const struct replica_eval *e = &r->eval;

    for (int i = 0; i < e->nmodels; i++) {
        const struct dnn_model_opts *o = &e->model[i].model->opts;

        if (o->batch != n || o->total != total) continue;
        if (e->lockstep && used-- > 0) continue;
        *out = &e->model[i];
        return 0;
    }
    return add_model(r, n, total, e->lockstep, out, err);
}

static int cut_batch(struct dnn_replica *r, int64_t total, struct dnn_err *err)
{
    struct replica_eval *e = &r->eval;
    struct replica_cut *c = &e->cut[e->ncuts++];
    const struct replica_model *lead;
    int64_t first, n;
    int from, to;

    dnn_replica_own_range(r, r->eval.micro_batches, &from, &to);
    *c = (struct replica_cut){
        .total = total, .micro_batches = e->micro_batches, .teams = 1};
    c->mb = dnn_alloc((size_t)(to - from + 1) * sizeof *c->mb);
    dnn_order_part(total, total, 0, from == to ? 0 : from, e->micro_batches, &first,
                   &n);
    DNN_TRY(add_model(r, n == 0 ? 1 : n, total, false, &lead, err));
    c->lead = lead->model;
    e->exchanges = dnn_replica_exchanges(c->lead);
    e->lockstep = r->cfg.how.deterministic && e->exchanges;
    for (int micro_batch = from; micro_batch < to; micro_batch++) {
        struct replica_micro_batch mb = {.index = micro_batch};
        int used = 0;

        dnn_order_part(total, total, 0, micro_batch, e->micro_batches, &mb.first,
                       &mb.n);
        if (mb.n == 0) continue;
        for (int i = 0; i < c->nmb; i++)
            used += c->mb[i].n == mb.n;
        DNN_TRY(find_model(r, mb.n, total, used, &mb.model, err));
        c->mb[c->nmb++] = mb;
    }
    return 0;
}

int dnn_replica_eval_make(struct dnn_replica *r, struct dnn_err *err)
{
    struct replica_eval *e = &r->eval;

    e->micro_batches = r->cfg.how.deterministic && r->cfg.eval_micro_batches > 0
                           ? (int)r->cfg.eval_micro_batches
                           : dnn_replica_micro_batches(r->cfg.comm, r->cfg.eval_batch,
                                                       r->cfg.how.deterministic, 0, 1);
    e->model = dnn_alloc((size_t)(2 * e->micro_batches + 2) * sizeof *e->model);
    e->loss = dnn_alloc((size_t)e->micro_batches * sizeof *e->loss);
    DNN_TRY(cut_batch(r, r->cfg.eval_batch, err));
    return r->cfg.eval_last > 0 ? cut_batch(r, r->cfg.eval_last, err) : 0;
}

void dnn_replica_eval_free(struct dnn_replica *r)
{
    struct replica_eval *e = &r->eval;

    for (int i = e->nmodels - 1; i >= 0; i--)
        dnn_model_free(e->model[i].model);
    for (int i = 0; i < e->ncuts; i++)
        dnn_free(e->cut[i].mb);
    dnn_free(e->model);
    dnn_free(e->loss);
    *e = (struct replica_eval){0};
}

void dnn_replica_eval_start(struct dnn_replica *replica)
{
    struct replica_eval *e = &replica->eval;

    memset(e->loss, 0, (size_t)e->micro_batches * sizeof *e->loss);
}

/* ---- a batch ---- */

static int copy_outputs(const struct replica_micro_batch *mb,
                        const struct dnn_replica_batch *batch, float *const *output,
                        struct dnn_err *err)
{
    const struct dnn_model *m = mb->model->model;

    for (int i = 0; i < m->noutputs; i++) {
        size_t each = m->plan->spot[m->output[i]].bytes /
                      dnn_dtype_size(m->prog->value[m->output[i]].is.dtype);
        size_t skip = (size_t)(mb->first - batch->first) * (each / (size_t)mb->n);

        if (output[i] == NULL) continue;
        DNN_TRY(dnn_replica_output(m, i, output[i] + skip, err));
    }
    return 0;
}

/* A rank without samples joins the exchanges. */
static int join_exchanges(struct dnn_replica *r, const struct replica_cut *cut,
                          const struct dnn_now *now, struct dnn_err *err)
{
    void *pending = NULL;

    for (int o = 0; o < cut->lead->prog->nops; o++)
        DNN_TRY(dnn_replica_join_exchange(r, cut->lead, o, &pending, now, err));
    return 0;
}

/* The loss of each micro-batch; their sum is the mean of the batch. */
static int run(struct dnn_replica *r, const struct replica_cut *cut,
               const struct dnn_replica_batch *batch, float *const *output,
               double *loss, struct dnn_err *err)
{
    const struct dnn_now now = {0};

    for (int p = 0; p < cut->nmb; p++) {
        const struct replica_micro_batch *mb = &cut->mb[p];
        const struct dnn_model *m = mb->model->model;

        if (r->eval.lockstep) break;
        DNN_TRY(dnn_replica_load(mb, batch, err));
        DNN_TRY(dnn_exec_run(m->exec, 0, m->prog->nops, &now, err));
        DNN_TRY(dnn_replica_add_loss(mb, loss, err));
        DNN_TRY(copy_outputs(mb, batch, output, err));
    }
    if (!r->eval.lockstep)
        return cut->nmb == 0 && r->eval.exchanges ? join_exchanges(r, cut, &now, err)
                                                  : 0;
    DNN_TRY(dnn_replica_lockstep(r, cut, batch, &now, loss, err));
    for (int p = 0; p < cut->nmb; p++)
        DNN_TRY(copy_outputs(&cut->mb[p], batch, output, err));
    return 0;
}

int dnn_replica_eval(struct dnn_replica *replica, const struct dnn_replica_batch *batch,
                     float *const *output, struct dnn_err *err)
{
    struct replica_eval *e = &replica->eval;

    for (int i = 0; i < e->ncuts; i++) {
        if (e->cut[i].total != batch->total) continue;
        double *share = dnn_alloc((size_t)e->micro_batches * sizeof *share);
        int rc = run(replica, &e->cut[i], batch, output, share, err);

        for (int l = 0; l < e->micro_batches; l++)
            e->loss[l] += share[l] * (double)batch->total;
        dnn_free(share);
        return rc;
    }
    return dnn_fail(err, DNN_EDATA,
                    "internal error: batch of %lld samples in the evaluation, expected "
                    "%lld or %lld",
                    (long long)batch->total, (long long)replica->cfg.eval_batch,
                    (long long)replica->cfg.eval_last);
}

int dnn_replica_eval_end(struct dnn_replica *replica, double *loss, struct dnn_err *err)
{
    struct replica_eval *e = &replica->eval;

    /* Each is zero on all ranks but one, so the all-reduce is exact. */
    int rc = dnn_comm_allreduce(replica->cfg.comm, "loss", e->loss, e->micro_batches,
                                DNN_COMM_F64, DNN_COMM_SUM, err);

    *loss = 0;
    for (int l = 0; l < e->micro_batches; l++)
        *loss += e->loss[l];
    return rc;
}

int dnn_replica_eval_micro_batches(const struct dnn_replica *replica)
{
    return replica->eval.micro_batches;
}

int dnn_replica_eval_part(const struct dnn_replica *replica, int64_t total, int i,
                          int64_t *first, int64_t *n)
{
    int from, to;

    dnn_replica_own_range(replica, replica->eval.micro_batches, &from, &to);
    if (from + i >= to) return -1;
    dnn_order_part(total, total, 0, from + i, replica->eval.micro_batches, first, n);
    return from + i;
}
