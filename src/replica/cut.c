/* cut.c - the models of a role, and how its batches are cut into micro-batches.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/mem.h"
#include "data/order.h"

enum { MICRO_BATCHES = 8 }; /* default, deterministic */

/* Additional memory allowed for computing micro-batches concurrently. */
enum { CONCURRENT_BYTES = 256 << 20 };

void dnn_replica_own_range(const struct dnn_comm *comm, int micro_batches, int *first,
                           int *last)
{
    dnn_order_own(micro_batches, dnn_comm_rank(comm), dnn_comm_size(comm), first, last);
}

int dnn_replica_micro_batches(struct dnn_comm *comm, bool deterministic,
                              const struct dnn_replica_batches *batches)
{
    int64_t n = batches->micro_batches, size = batches->size;

    if (!deterministic) return (int)(dnn_comm_size(comm) * (n < 1 ? 1 : n));
    if (n > 0) return (int)n;
    return (int)(size < MICRO_BATCHES ? size : MICRO_BATCHES);
}

const struct replica_cut *dnn_replica_find_cut(const struct dnn_replica *r,
                                               enum dnn_model_role role,
                                               const struct dnn_replica_batch *batch,
                                               struct dnn_err *err)
{
    const struct replica_set *set = &r->set[role];

    for (int i = 0; i < set->ncuts; i++) {
        const struct replica_cut *c = &set->cut[i];

        if (c->total != batch->total) continue;
        if (c->n == batch->n && (c->n == 0 || c->first == batch->first)) return c;
        dnn_fail(err, DNN_EDATA,
                 "internal error: %lld samples from %lld on of a batch of %lld, "
                 "expected %lld from %lld on",
                 (long long)batch->n, (long long)batch->first, (long long)c->total,
                 (long long)c->n, (long long)c->first);
        return NULL;
    }
    dnn_fail(err, DNN_EDATA,
             "internal error: batch of %lld samples, expected %lld or %lld",
             (long long)batch->total, (long long)r->cfg.batches[role].size,
             (long long)r->cfg.batches[role].last);
    return NULL;
}

/* ---- models ---- */

/* Bytes of the models so far. */
static size_t allocated(const struct dnn_replica *r)
{
    return dnn_replica_bytes(r) +
           (r->cfg.owner == NULL ? 0 : dnn_replica_bytes(r->cfg.owner));
}

/* Make and start a model for n samples.  memory, partner: see dnn_model_opts. */
static int add_model(struct dnn_replica *r, enum dnn_model_role role, int64_t n,
                     int64_t total, enum dnn_model_memory memory,
                     const struct replica_model *partner,
                     const struct replica_model **out, struct dnn_err *err)
{
    struct dnn_model_opts opts = r->cfg.model;
    struct replica_set *set = &r->set[role];
    struct replica_model *m = &set->model[set->nmodels];

    opts.role = role;
    opts.batch = n;
    opts.total = total;
    opts.owner = r->owner != NULL       ? r->owner
                 : r->cfg.owner != NULL ? r->cfg.owner->owner
                                        : NULL;
    opts.memory = memory;
    opts.allocated = allocated(r);
    opts.partner = partner == NULL ? NULL : partner->model;
    if (dnn_comm_size(r->cfg.comm) > 1 && !r->cfg.how.deterministic)
        opts.device.exchange = dnn_replica_exchange(r);
    DNN_TRY(dnn_model_make(r->cfg.graph, &opts, &m->model, err));
    set->nmodels++;
    if (r->owner == NULL) r->owner = m->model;
    *out = m;
    return dnn_model_start(m->model, err);
}

/* Find or make the model of micro-batch p.  In lockstep each micro-batch has its own;
 * otherwise micro-batches of the same size share one. */
static int find_model(struct dnn_replica *r, enum dnn_model_role role,
                      struct replica_cut *c, int p, struct dnn_err *err)
{
    const struct replica_set *set = &r->set[role];
    struct replica_micro_batch *mb = &c->mb[p];
    int used = 0;

    /* Each micro-batch has its own gradients, which are summed at the end, so that
     * threads do not wait for each other.  The micro-batches of a team share activation
     * memory. */
    if (c->teams > 1) {
        bool second = p >= c->teams && !set->lockstep;

        return add_model(r, role, mb->n, c->total, DNN_MODEL_CONCURRENT,
                         second ? c->mb[p % c->teams].model : NULL, &mb->model, err);
    }
    for (int i = 0; i < p; i++)
        used += c->mb[i].n == mb->n;
    for (int i = 0; i < set->nmodels; i++) {
        const struct dnn_model_opts *o = &set->model[i].model->opts;

        if (o->batch != mb->n || o->total != c->total) continue;
        if (set->lockstep && used-- > 0) continue;
        mb->model = &set->model[i];
        return 0;
    }
    return add_model(r, role, mb->n, c->total,
                     set->lockstep && p > 0 ? DNN_MODEL_SEPARATE : DNN_MODEL_SHARED,
                     NULL, &mb->model, err);
}

/* ---- cuts ---- */

static int cut_batch(struct dnn_replica *r, enum dnn_model_role role, int64_t total,
                     struct dnn_err *err)
{
    struct replica_set *set = &r->set[role];
    struct replica_cut *c = &set->cut[set->ncuts++];
    bool training = role == DNN_MODEL_TRAIN;
    int from, to;

    dnn_replica_own_range(r->cfg.comm, set->micro_batches, &from, &to);
    *c = (struct replica_cut){
        .total = total, .micro_batches = set->micro_batches, .teams = set->teams};
    dnn_order_micro_batches(total, total, 0, set->micro_batches,
                            dnn_comm_rank(r->cfg.comm), dnn_comm_size(r->cfg.comm),
                            &c->first, &c->n);
    c->mb = dnn_alloc((size_t)(to - from + 1) * sizeof *c->mb);
    for (int micro_batch = from; micro_batch < to; micro_batch++) {
        struct replica_micro_batch *mb = &c->mb[c->nmb];

        mb->index = micro_batch;
        mb->part = micro_batch - from;
        dnn_order_part(total, total, 0, micro_batch, set->micro_batches, &mb->first,
                       &mb->n);
        /* In training one after the other, an empty micro-batch adds its zeros to the
         * gradients; otherwise it is skipped. */
        if (mb->n == 0 && (!training || set->lockstep || set->teams > 1)) continue;
        if (mb->n > 0) DNN_TRY(find_model(r, role, c, c->nmb, err));
        c->nmb++;
    }
    c->lead = c->nmb > 0 && !training ? c->mb[0].model->model : set->model[0].model;
    for (int p = 0; p < c->nmb && c->teams > 1; p++)
        if (!dnn_exec_single_threaded(c->mb[p].model->model->exec)) c->teams = 1;
    return c->teams > 1 ? dnn_replica_deferred_make(c, err) : 0;
}

/* The number of teams.  Threads that share ops wait for each other, so with enough
 * micro-batches each thread is a team and computes its own micro-batches.  Kernels give
 * bitwise the same results with any number of threads, so ranks may differ in this. */
static int count_teams(const struct dnn_replica *r, const struct replica_set *set,
                       const struct dnn_model *first)
{
    int threads = r->cfg.model.device.threads, from, to;

    dnn_replica_own_range(r->cfg.comm, set->micro_batches, &from, &to);
    if (!r->cfg.how.deterministic || threads < 2 || to - from < threads) return 1;
    /* In lockstep each micro-batch has its own memory anyway. */
    if (set->lockstep) return threads;
    size_t grads = first->plan->bytes[DNN_BLOCK_GRADS];
    size_t more = (size_t)(to - from) * grads +
                  (size_t)threads * (dnn_model_bytes(first).all - grads);
    size_t cuts = r->cfg.batches[DNN_MODEL_TRAIN].last > 0 ? 2 : 1;
    size_t limit = r->cfg.model.limit;
    bool fits = limit == 0 || allocated(r) + cuts * more <= limit;
    return more > CONCURRENT_BYTES || !fits ? 1 : threads;
}

/* The first model is made for the largest micro-batch, so that the activations of the
 * others fit into its memory.  A rank without samples has weights, too. */
static int make_first(struct dnn_replica *r, enum dnn_model_role role,
                      struct dnn_err *err)
{
    int64_t size = r->cfg.batches[role].size, first, n;
    struct replica_set *set = &r->set[role];
    const struct replica_model *made;
    int from, to;

    dnn_replica_own_range(r->cfg.comm, set->micro_batches, &from, &to);
    dnn_order_part(size, size, 0, from == to ? 0 : from, set->micro_batches, &first,
                   &n);
    set->teams = 1;
    DNN_TRY(
        add_model(r, role, n == 0 ? 1 : n, size, DNN_MODEL_SHARED, NULL, &made, err));
    set->lockstep = r->cfg.how.deterministic && dnn_replica_exchanges(made->model);
    if (role == DNN_MODEL_TRAIN) set->teams = count_teams(r, set, made->model);
    return 0;
}

int dnn_replica_set_make(struct dnn_replica *r, enum dnn_model_role role,
                         struct dnn_err *err)
{
    const struct dnn_replica_batches *b = &r->cfg.batches[role];
    struct replica_set *set = &r->set[role];

    set->micro_batches =
        dnn_replica_micro_batches(r->cfg.comm, r->cfg.how.deterministic, b);
    set->model = dnn_alloc((size_t)(2 * set->micro_batches + 2) * sizeof *set->model);
    set->loss = dnn_alloc((size_t)set->micro_batches * sizeof *set->loss);
    DNN_TRY(make_first(r, role, err));
    DNN_TRY(cut_batch(r, role, b->size, err));
    return b->last > 0 ? cut_batch(r, role, b->last, err) : 0;
}

void dnn_replica_set_free(struct replica_set *set)
{
    for (int i = set->nmodels - 1; i >= 0; i--) {
        dnn_model_free(set->model[i].model);
        dnn_free(set->model[i].bucket);
    }
    for (int i = 0; i < set->ncuts; i++) {
        dnn_replica_deferred_free(&set->cut[i]);
        dnn_free(set->cut[i].mb);
    }
    dnn_free(set->model);
    dnn_free(set->loss);
    *set = (struct replica_set){0};
}

size_t dnn_replica_set_bytes(const struct replica_set *set)
{
    size_t sum = 0;

    for (int i = 0; i < set->nmodels; i++)
        sum += dnn_model_bytes(set->model[i].model).all;
    for (int i = 0; i < set->ncuts; i++)
        sum += dnn_replica_deferred_bytes(&set->cut[i]);
    return sum;
}
