/* replica.c - the models of a replica, which share one set of weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/mem.h"
#include "data/order.h"

#include <string.h>

enum { MICRO_BATCHES = 8 }; /* default, deterministic */

/* Additional memory allowed for computing micro-batches concurrently. */
enum { CONCURRENT_BYTES = 256 << 20 };

/* ---- micro-batches of a rank ---- */

void dnn_replica_own_range(const struct dnn_replica *r, int micro_batches, int *first,
                           int *last)
{
    int64_t rank = dnn_comm_rank(r->cfg.comm), size = dnn_comm_size(r->cfg.comm);

    *first = (int)(rank * micro_batches / size);
    *last = (int)((rank + 1) * micro_batches / size);
}

int dnn_replica_micro_batches(struct dnn_comm *comm, int64_t batch, bool deterministic,
                              int64_t micro_batches, int64_t accumulate)
{
    if (!deterministic)
        return (int)(dnn_comm_size(comm) * (accumulate < 1 ? 1 : accumulate));
    if (micro_batches > 0) return (int)micro_batches;
    return (int)(batch < MICRO_BATCHES ? batch : MICRO_BATCHES);
}

/* ---- models ---- */

/* Make and start a model for n samples.  separate, partner: see dnn_model_opts. */
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

/* Find or make the model of micro-batch p.  In lockstep each micro-batch has its own;
 * otherwise micro-batches of the same size share one. */
static int find_model(struct dnn_replica *r, const struct replica_cut *c, int p,
                      struct dnn_err *err)
{
    struct replica_micro_batch *mb = &c->mb[p];
    int used = 0;

    /* Each micro-batch has its own gradients, which are summed at the end, so that
     * threads do not wait for each other.  The micro-batches of a team share activation
     * memory. */
    if (c->teams > 1) {
        bool second = p >= c->teams && !r->lockstep;

        return add_model(r, mb->n, c->total, true,
                         second ? c->mb[p % c->teams].model : NULL, &mb->model, err);
    }
    for (int i = 0; i < p; i++)
        used += c->mb[i].n == mb->n;
    for (int i = 0; i < r->nmodels; i++) {
        const struct dnn_model_opts *o = &r->model[i].model->opts;

        if (o->batch != mb->n || o->total != c->total) continue;
        if (r->lockstep && used-- > 0) continue;
        mb->model = &r->model[i];
        return 0;
    }
    return add_model(r, mb->n, c->total, r->lockstep, NULL, &mb->model, err);
}

static int cut_batch(struct dnn_replica *r, int64_t total, struct dnn_err *err)
{
    struct replica_cut *c = &r->cut[r->ncuts++];
    int from, to;

    dnn_replica_own_range(r, r->micro_batches, &from, &to);
    c->total = total;
    c->micro_batches = r->micro_batches;
    c->lead = r->model[0].model;
    c->teams = r->teams;
    c->mb = dnn_alloc((size_t)(to - from + 1) * sizeof *c->mb);
    for (int micro_batch = from; micro_batch < to; micro_batch++) {
        struct replica_micro_batch *mb = &c->mb[c->nmb];

        mb->index = micro_batch;
        dnn_order_part(total, total, 0, micro_batch, r->micro_batches, &mb->first,
                       &mb->n);
        /* Empty micro-batches are skipped. */
        if (mb->n == 0 && (r->lockstep || r->teams > 1)) continue;
        if (mb->n > 0) DNN_TRY(find_model(r, c, c->nmb, err));
        c->nmb++;
    }
    for (int p = 0; p < c->nmb && c->teams > 1; p++)
        if (!dnn_exec_single_threaded(c->mb[p].model->model->exec)) c->teams = 1;
    return c->teams > 1 ? dnn_replica_deferred_make(c, err) : 0;
}

/* The number of teams.  Threads that share ops wait for each other, so with enough
 * micro-batches each thread is a team and computes its own micro-batches.  Kernels give
 * bitwise the same results with any number of threads, so ranks may differ in this. */
static int count_teams(const struct dnn_replica *r, const struct dnn_model *owner)
{
    int threads = r->cfg.model.device.threads, from, to;

    dnn_replica_own_range(r, r->micro_batches, &from, &to);
    if (!r->cfg.how.deterministic || threads < 2 || to - from < threads) return 1;
    /* In lockstep each micro-batch has its own memory anyway. */
    if (r->lockstep) return threads;
    size_t grads = owner->plan->bytes[DNN_BLOCK_GRADS];
    size_t more = (size_t)(to - from) * grads +
                  (size_t)threads * (dnn_model_bytes(owner).all - grads);
    return more > CONCURRENT_BYTES ? 1 : threads;
}

/* The model that owns the weights is made first, for the largest micro-batch, so that
 * the activations of the others fit into its memory.  A rank without samples has
 * weights, too. */
static int make_owner(struct dnn_replica *r, struct dnn_err *err)
{
    const struct replica_model *owner;
    int64_t first, n;
    int from, to;

    dnn_replica_own_range(r, r->micro_batches, &from, &to);
    dnn_order_part(r->cfg.batch, r->cfg.batch, 0, from == to ? 0 : from,
                   r->micro_batches, &first, &n);
    if (n == 0) n = 1;
    r->teams = 1;
    DNN_TRY(add_model(r, n, r->cfg.batch, false, NULL, &owner, err));
    r->lockstep = r->cfg.how.deterministic && dnn_replica_exchanges(owner->model);
    r->teams = count_teams(r, owner->model);
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
        return dnn_fail(
            err, DNN_ECONFIG,
            "deterministic training on %d ranks needs at least as many "
            "micro-batches, but there are %d; set \"micro_batches\" to %d or "
            "more",
            dnn_comm_size(cfg->comm), r->micro_batches, dnn_comm_size(cfg->comm));
    if (cfg->how.deterministic && cfg->how.compress != DNN_COMPRESS_NONE)
        return dnn_fail(err, DNN_ECONFIG,
                        "compressed gradients depend on the number of ranks; remove "
                        "\"compress\" or \"deterministic\"");
    if (cfg->model.dtype == DNN_F64 &&
        (cfg->how.deterministic || cfg->how.compress != DNN_COMPRESS_NONE))
        return dnn_fail(err, DNN_ECONFIG,
                        "\"%s\" requires f32 gradients; remove it or \"precision\"",
                        cfg->how.deterministic ? "deterministic" : "compress");
    return 0;
}

/* Inference only: the model of the largest micro-batch owns the weights. */
static int make_infer(struct dnn_replica *r, struct dnn_err *err)
{
    struct dnn_model_opts opts = r->cfg.model;
    int size = dnn_comm_size(r->cfg.comm);

    opts.batch = (r->cfg.batch + size - 1) / size;
    opts.total = 1; /* the loss is a sum over samples, not a mean */
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
    DNN_TRY(make_owner(r, err));
    DNN_TRY(cut_batch(r, cfg->batch, err));
    if (cfg->last > 0) DNN_TRY(cut_batch(r, cfg->last, err));
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
        dnn_free(r->cut[i].mb);
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
