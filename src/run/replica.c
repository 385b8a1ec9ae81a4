/* replica.c - this rank's copy of the network: which models it needs, all sharing one
 * set of weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/replica_impl.h"

#include "base/mem.h"
#include "data/order.h"

#include <string.h>

enum { LEAVES = 8 };

/* Bytes that parts computed at once may take more than parts one after the other. */
enum { BESIDE = 256 << 20 };

/* ---- cutting ---- */

/* Leaves of this rank: [*first, *last). */
static void own_micro_batches(const struct dnn_replica *r, int *first, int *last)
{
    int64_t rank = dnn_comm_rank(r->cfg.comm), size = dnn_comm_size(r->cfg.comm);

    *first = (int)(rank * r->micro_batches / size);
    *last = (int)((rank + 1) * r->micro_batches / size);
}

/* Samples of one micro-batch. */
static void micro_batch_part(const struct dnn_replica *r, int64_t total,
                             int micro_batch, int64_t *first, int64_t *n)
{
    dnn_order_part(total, total, 0, micro_batch, r->micro_batches, first, n);
}

int dnn_replica_micro_batches(struct dnn_comm *comm, int64_t batch, bool deterministic,
                              int64_t micro_batches, int64_t accumulate)
{
    if (!deterministic)
        return (int)(dnn_comm_size(comm) * (accumulate < 1 ? 1 : accumulate));
    if (micro_batches > 0) return (int)micro_batches;
    return (int)(batch < LEAVES ? batch : LEAVES);
}

void dnn_replica_part(const struct dnn_replica *replica, int64_t total, int64_t *first,
                      int64_t *n)
{
    dnn_order_micro_batches(total, total, 0, replica->micro_batches,
                            dnn_comm_rank(replica->cfg.comm),
                            dnn_comm_size(replica->cfg.comm), first, n);
}

/* ---- models ---- */

/* partner: see dnn_model_opts. */
static int add_model(struct dnn_replica *r, int64_t n, int64_t total, bool separate,
                     const struct replica_model *partner,
                     const struct replica_model **out, struct dnn_err *err)
{
    struct dnn_model_opts opts = r->cfg.model;
    struct replica_model *m = &r->model[r->nmodels];

    opts.batch = n;
    opts.total = total;
    opts.training = true;
    opts.owner = r->nmodels == 0 ? NULL : r->model[0].model;
    opts.separate = separate;
    opts.partner = partner == NULL ? NULL : partner->model;
    opts.concurrent = r->teams > 1;
    if (dnn_comm_size(r->cfg.comm) > 1 && !r->cfg.how.deterministic)
        opts.device.exchange = dnn_replica_exchange(r);
    DNN_TRY(dnn_model_make(r->cfg.graph, &opts, &m->model, err));
    r->nmodels++;
    DNN_TRY(dnn_model_start(m->model, err));
    *out = m;
    return 0;
}

/* The model for part p.  Parts that go side by side need one each; else those of the
 * same size use the same. */
static int find_model(struct dnn_replica *r, const struct replica_cut *c, int p,
                      struct dnn_err *err)
{
    struct replica_part *part = &c->part[p];
    int used = 0;

    /* Gradients are added up when all are known, so that no thread waits for another;
     * of what is computed on the way the parts of a team use the same memory. */
    if (c->teams > 1) {
        bool second = p >= c->teams && !r->lockstep;

        return add_model(r, part->n, c->total, true,
                         second ? c->part[p % c->teams].by : NULL, &part->by, err);
    }
    for (int i = 0; i < p; i++)
        used += c->part[i].n == part->n;
    for (int i = 0; i < r->nmodels; i++) {
        const struct dnn_model_opts *o = &r->model[i].model->opts;

        if (o->batch != part->n || o->total != c->total) continue;
        if (r->lockstep && used-- > 0) continue;
        part->by = &r->model[i];
        return 0;
    }
    return add_model(r, part->n, c->total, r->lockstep, NULL, &part->by, err);
}

static int cut(struct dnn_replica *r, int64_t total, struct dnn_err *err)
{
    struct replica_cut *c = &r->cut[r->ncuts++];
    int from, to;

    own_micro_batches(r, &from, &to);
    c->total = total;
    c->micro_batches = r->micro_batches;
    c->lead = r->model[0].model;
    c->teams = r->teams;
    c->part = dnn_alloc((size_t)(to - from + 1) * sizeof *c->part);
    for (int micro_batch = from; micro_batch < to; micro_batch++) {
        struct replica_part *part = &c->part[c->nparts];

        part->micro_batch = micro_batch;
        micro_batch_part(r, total, micro_batch, &part->first, &part->n);
        /* Nobody waits for an empty one. */
        if (part->n == 0 && (r->lockstep || r->teams > 1)) continue;
        if (part->n > 0) DNN_TRY(find_model(r, c, c->nparts, err));
        c->nparts++;
    }
    for (int p = 0; p < c->nparts && c->teams > 1; p++)
        if (!dnn_exec_single_threaded(c->part[p].by->model->exec)) c->teams = 1;
    return c->teams > 1 ? dnn_replica_deferred_make(c, err) : 0;
}

/* Threads that share ops wait for each other: where there are parts enough, each
 * computes parts of its own.  Kernels give the bits of as many threads as they were
 * made for, whoever runs them, so this may differ from rank to rank. */
static int teams(const struct dnn_replica *r, const struct dnn_model *owner)
{
    int threads = r->cfg.model.device.threads, from, to;

    own_micro_batches(r, &from, &to);
    if (!r->cfg.how.deterministic || threads < 2 || to - from < threads) return 1;
    /* Then each has memory of its own anyway. */
    if (r->lockstep) return threads;
    size_t grads = owner->plan->bytes[DNN_BLOCK_GRADS];
    size_t more = (size_t)(to - from) * grads +
                  (size_t)threads * (dnn_model_bytes(owner).all - grads);
    return more > BESIDE ? 1 : threads;
}

/* The owner is made first; it is of the largest part, so that the others' temps fit
 * into its.  A rank whose part of every batch is empty still has weights. */
static int lead(struct dnn_replica *r, struct dnn_err *err)
{
    const struct replica_model *owner;
    int64_t first, n;
    int from, to;

    own_micro_batches(r, &from, &to);
    micro_batch_part(r, r->cfg.batch, from == to ? 0 : from, &first, &n);
    if (n == 0) n = 1;
    r->teams = 1;
    DNN_TRY(add_model(r, n, r->cfg.batch, false, NULL, &owner, err));
    r->lockstep = r->cfg.how.deterministic && dnn_replica_exchanges(owner->model);
    r->teams = teams(r, owner->model);
    return 0;
}

int dnn_replica_start_rule(struct dnn_replica *r, struct dnn_err *err)
{
    const struct replica_model *m = &r->model[0];
    struct dnn_bucket_range *bucket =
        dnn_alloc(((size_t)r->nbuckets + 1) * sizeof *bucket);

    for (int i = 0; i < r->nbuckets; i++)
        bucket[i] =
            (struct dnn_bucket_range){(int64_t)(m->bucket[i].first / sizeof(float)),
                                      (int64_t)(m->bucket[i].last / sizeof(float))};
    r->grad = dnn_exec_block(m->model->exec, DNN_BLOCK_GRADS);
    r->f64 = r->cfg.model.dtype == DNN_F64;
    r->count = (int64_t)(m->model->plan->bytes[DNN_BLOCK_GRADS] / sizeof(float));
    const struct dnn_params params = {
        .weight = dnn_exec_block(m->model->exec, DNN_BLOCK_WEIGHTS),
        .grad = r->grad,
        .count = r->count,
        .f64 = r->f64,
        .nbuckets = r->nbuckets,
        .bucket = bucket};
    int rc = r->rule->start(&r->cfg.how, r->cfg.comm, &params, &r->self, err);
    dnn_free(bucket);
    return rc;
}

static int check(const struct dnn_replica *r, struct dnn_err *err)
{
    const struct dnn_replica_cfg *cfg = &r->cfg;

    if (cfg->how.deterministic && r->micro_batches < dnn_comm_size(cfg->comm))
        return dnn_fail(err, DNN_ECONFIG,
                        "%d ranks, but a batch is cut into %d parts that do not depend "
                        "on them; set \"micro_batches\" to %d or more",
                        dnn_comm_size(cfg->comm), r->micro_batches,
                        dnn_comm_size(cfg->comm));
    if (cfg->how.deterministic && cfg->how.compress != DNN_COMPRESS_NONE)
        return dnn_fail(err, DNN_ECONFIG,
                        "gradients that are compressed depend on the number of ranks; "
                        "drop \"compress\" or \"deterministic\"");
    if (cfg->model.dtype == DNN_F64 &&
        (cfg->how.deterministic || cfg->how.compress != DNN_COMPRESS_NONE))
        return dnn_fail(err, DNN_ECONFIG,
                        "\"%s\" is for gradients in f32: drop it, or \"precision\"",
                        cfg->how.deterministic ? "deterministic" : "compress");
    return 0;
}

/* Without training: the model of the largest part, whose weights the others use. */
static int make_infer(struct dnn_replica *r, struct dnn_err *err)
{
    struct dnn_model_opts opts = r->cfg.model;
    int size = dnn_comm_size(r->cfg.comm);

    opts.batch = (r->cfg.batch + size - 1) / size;
    opts.total = 1; /* a sum over samples, not a mean */
    opts.training = false;
    if (size > 1 && !r->cfg.how.deterministic)
        opts.device.exchange = dnn_replica_exchange(r);
    r->model = dnn_alloc(sizeof *r->model);
    DNN_TRY(dnn_model_make(r->cfg.graph, &opts, &r->model[0].model, err));
    r->nmodels = 1;
    DNN_TRY(dnn_model_start(r->model[0].model, err));
    return r->cfg.eval_batch > 0 ? dnn_replica_eval_make(r, err) : 0;
}

static int make(struct dnn_replica *r, struct dnn_err *err)
{
    const struct dnn_replica_cfg *cfg = &r->cfg;

    if (cfg->infer) return make_infer(r, err);
    r->rule = dnn_rule_find(cfg->rule == NULL ? "bsp" : cfg->rule, err);
    if (r->rule == NULL) return DNN_ECONFIG;
    r->micro_batches =
        dnn_replica_micro_batches(cfg->comm, cfg->batch, cfg->how.deterministic,
                                  cfg->micro_batches, cfg->accumulate);
    DNN_TRY(check(r, err));
    r->model = dnn_alloc((size_t)(2 * r->micro_batches + 2) * sizeof *r->model);
    r->loss = dnn_alloc((size_t)r->micro_batches * sizeof *r->loss);
    DNN_TRY(lead(r, err));
    DNN_TRY(cut(r, cfg->batch, err));
    if (cfg->last > 0) DNN_TRY(cut(r, cfg->last, err));
    if (cfg->eval_batch > 0) DNN_TRY(dnn_replica_eval_make(r, err));
    return dnn_replica_tune_start(r, err);
}

int dnn_replica_make(const struct dnn_replica_cfg *cfg, struct dnn_replica **out,
                     struct dnn_err *err)
{
    struct dnn_replica *r = dnn_alloc(sizeof *r);

    r->cfg = *cfg;
    int rc = dnn_comm_agree(cfg->comm, make(r, err), err);
    if (rc < 0) {
        dnn_replica_free(r);
        return rc;
    }
    *out = r;
    return 0;
}

void dnn_replica_free(struct dnn_replica *replica)
{
    struct dnn_replica *r = replica;

    if (r == NULL) return;
    if (r->self != NULL) r->rule->stop(r->self);
    for (int i = r->ninfers - 1; i >= 0; i--)
        dnn_model_free(r->infer[i]);
    dnn_replica_eval_free(r);
    for (int i = r->nmodels - 1; i >= 0; i--) {
        dnn_model_free(r->model[i].model);
        dnn_free(r->model[i].bucket);
    }
    for (int i = 0; i < r->ncuts; i++) {
        dnn_replica_deferred_free(&r->cut[i]);
        dnn_free(r->cut[i].part);
    }
    dnn_free(r->model);
    dnn_free(r->infer);
    dnn_free(r->loss);
    dnn_free(r);
}

struct dnn_model *dnn_replica_model(struct dnn_replica *replica)
{
    return replica->model[0].model;
}

size_t dnn_replica_bytes(const struct dnn_replica *replica)
{
    size_t sum = 0;

    for (int i = 0; i < replica->nmodels; i++)
        sum += dnn_model_bytes(replica->model[i].model).all;
    for (int i = 0; i < replica->ncuts; i++)
        sum += dnn_replica_deferred_bytes(&replica->cut[i]);
    for (int i = 0; i < replica->ninfers; i++)
        sum += dnn_model_bytes(replica->infer[i]).all;
    for (int i = 0; i < replica->eval.nmodels; i++)
        sum += dnn_model_bytes(replica->eval.model[i].model).all;
    return sum;
}
