/* replica.c - make and free a replica.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/mem.h"

int dnn_replica_start_rule(struct dnn_replica *r, struct dnn_err *err)
{
    const struct replica_model *m = &r->train->model[0];
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

    if (cfg->how.deterministic && r->train->micro_batches < dnn_comm_size(cfg->comm))
        return dnn_fail(
            err, DNN_ECONFIG,
            "deterministic training on %d ranks needs at least as many "
            "micro-batches, but there are %d; set \"micro_batches\" to %d or "
            "more",
            dnn_comm_size(cfg->comm), r->train->micro_batches,
            dnn_comm_size(cfg->comm));
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

static void free_sets(struct dnn_replica *r)
{
    for (int role = 0; role <= DNN_MODEL_TRAIN; role++)
        dnn_replica_set_free(&r->set[role]);
    r->owner = NULL;
}

/* Training first: its models have the most memory, which the others share. */
static int make_sets(struct dnn_replica *r, struct dnn_err *err)
{
    for (int role = DNN_MODEL_TRAIN; role >= 0; role--)
        if (r->cfg.batches[role].size > 0)
            DNN_TRY(dnn_replica_set_make(r, (enum dnn_model_role)role, err));
    return 0;
}

static int make(struct dnn_replica *r, struct dnn_err *err)
{
    const struct dnn_replica_cfg *cfg = &r->cfg;
    const struct dnn_replica_batches *batches = cfg->batches;

    if (batches[DNN_MODEL_TRAIN].size > 0) {
        r->rule = dnn_rule_find(cfg->rule == NULL ? "bsp" : cfg->rule, err);
        if (r->rule == NULL) return DNN_ECONFIG;
        r->train->micro_batches = dnn_replica_micro_batches(
            cfg->comm, cfg->how.deterministic, &batches[DNN_MODEL_TRAIN]);
        DNN_TRY(check(r, err));
    }
    int rc = make_sets(r, err);
    if (rc == DNN_ENOMEM && cfg->model.recompute == DNN_RECOMPUTE_AUTO) {
        /* The first models recompute only what they must alone. */
        free_sets(r);
        *err = (struct dnn_err){0};
        r->cfg.model.recompute = DNN_RECOMPUTE_ALL;
        rc = make_sets(r, err);
    }
    DNN_TRY(rc);
    if (batches[DNN_MODEL_TRAIN].size == 0 || cfg->model.dry_run) return 0;
    return dnn_replica_tune_start(r, err);
}

int dnn_replica_make(const struct dnn_replica_cfg *cfg, struct dnn_replica **out,
                     struct dnn_err *err)
{
    struct dnn_replica *r = dnn_alloc(sizeof *r);

    r->cfg = *cfg;
    r->train = &r->set[DNN_MODEL_TRAIN];
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
    free_sets(r);
    dnn_free(r);
}

struct dnn_model *dnn_replica_model(struct dnn_replica *replica)
{
    return replica->owner;
}

size_t dnn_replica_bytes(const struct dnn_replica *replica)
{
    size_t sum = 0;

    for (int role = 0; role <= DNN_MODEL_TRAIN; role++)
        sum += dnn_replica_set_bytes(&replica->set[role]);
    return sum;
}
