/* open.c - open a stage: its data, then a replica for it.
 *
 * All ranks agree on the result of each phase before the next one begins.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "stage/stage_impl.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"

/* Check for features that require f32; the replica checks others. */
static int check_f64(const struct dnn_config *config, struct dnn_err *err)
{
    bool hessian = config->optimizer.rule == DNN_OPTIM_HESSIAN;

    if ((enum dnn_dtype)config->precision != DNN_F64 || (config->ema <= 0 && !hessian))
        return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s requires f32 weights; remove it or \"precision\"",
                    hessian ? "optimizer \"hessian\"" : "\"ema\"");
}

int dnn_stage_model_opts(const struct dnn_stage_cfg *cfg, struct dnn_model_opts *out,
                         char **cache, struct dnn_err *err)
{
    const struct dnn_config *config = cfg->config;
    const char *name = cfg->backend != NULL ? cfg->backend : config->backend;
    int threads = cfg->session->place.threads;

    *cache = dnn_model_cache(threads);
    *out = (struct dnn_model_opts){
        .dtype = (enum dnn_dtype)config->precision,
        .loss = config->loss,
        .optim = config->optimizer,
        .limit = (size_t)config->memory_limit,
        .recompute = (enum dnn_recompute)config->recompute,
        .no_fusion = !config->fuse,
        .dry_run = cfg->dry_run,
        .device = {.threads = threads,
                   /* Autotuned kernels may differ between ranks. */
                   .kernels = config->deterministic
                                  ? DNN_KERNELS_HEURISTIC
                                  : (enum dnn_kernel_selection)cfg->kernels,
                   .cache = *cache,
                   .conv = config->kernels->conv}
    };
    DNN_TRY(check_f64(config, err));
    return dnn_model_backend(name, &out->backend, err);
}

/* The sizes of the batches of a feed; last: the last one may be smaller. */
static void set_sizes(struct dnn_replica_batches *b, const struct dnn_feed *feed)
{
    int64_t count = dnn_feed_count(feed);

    if (count < b->size)
        b->size = count;
    else if (dnn_feed_batches(feed) * b->size > count)
        b->last = count % b->size; /* unless steps_per_epoch excludes it */
}

bool dnn_stage_has_targets(const struct dnn_feed *feed)
{
    const struct dnn_column *col;
    int n = dnn_feed_columns(feed, &col);

    for (int i = 0; i < n; i++)
        if (col[i].role == DNN_ROLE_TARGET) return true;
    return false;
}

/* Which batches the replica has to run. */
static void set_batches(const struct dnn_stage *s, struct dnn_replica_cfg *cfg)
{
    const struct dnn_stage_data *const all[DNN_STAGE_PARTS] = {
        &s->eval, &s->separate_test, &s->train};

    for (int i = 0; i < DNN_STAGE_PARTS; i++) {
        enum dnn_model_role role = all[i]->role;
        struct dnn_replica_batches *b = &cfg->batches[role];

        if (all[i]->feed == NULL) continue;
        if (role == DNN_MODEL_INFER && all[i] != s->test) continue;
        *b = dnn_stage_batches(s, role);
        set_sizes(b, all[i]->feed);
    }
}

/* Without data: the batches that the configuration asks for. */
static void set_batches_unread(const struct dnn_stage *s, struct dnn_replica_cfg *cfg)
{
    struct dnn_config_origin validation, test;
    struct dnn_replica_batches *b = cfg->batches;

    dnn_config_origin(s->config, DNN_PART_VALIDATION, &validation);
    dnn_config_origin(s->config, DNN_PART_TEST, &test);
    bool judged = (validation.from != DNN_FROM_NOTHING && !validation.optional) ||
                  (test.from != DNN_FROM_NOTHING && !test.optional);
    if (s->mode == DNN_CONFIG_NOTHING || s->mode == DNN_CONFIG_TRAIN)
        b[DNN_MODEL_TRAIN] = dnn_stage_batches(s, DNN_MODEL_TRAIN);
    if (s->mode == DNN_CONFIG_EVAL || (s->mode == DNN_CONFIG_TRAIN && judged))
        b[DNN_MODEL_EVALUATE] = dnn_stage_batches(s, DNN_MODEL_EVALUATE);
    if (s->mode == DNN_CONFIG_INFER)
        b[DNN_MODEL_INFER] = dnn_stage_batches(s, DNN_MODEL_INFER);
}

/* Inference, with the batches of the evaluation if there is one. */
static void keep_inference(const struct dnn_config *config,
                           struct dnn_replica_batches *b)
{
    if (!config->deterministic) b[DNN_MODEL_TRAIN].micro_batches = 1;
    for (int role = DNN_MODEL_EVALUATE; role <= DNN_MODEL_TRAIN; role++) {
        if (b[DNN_MODEL_INFER].size == 0) b[DNN_MODEL_INFER] = b[role];
        b[role] = (struct dnn_replica_batches){0};
    }
}

static int make_replica(struct dnn_stage *s, const struct dnn_stage_cfg *with,
                        struct dnn_err *err)
{
    struct dnn_replica_cfg cfg = {
        .graph = s->config->net.graph,
        .comm = s->session->comm,
        .rule = s->config->parallel->rule,
        .how = {.deterministic = s->config->deterministic,
                .compress = s->config->parallel->compress},
        .bucket = (size_t)s->config->parallel->bucket,
        .owner = with->owner
    };
    int rc = dnn_stage_model_opts(with, &cfg.model, &s->cache, err);

    DNN_TRY(dnn_comm_agree(s->session->comm, rc, err));
    cfg.model.target_is = s->target_is;
    if (s->mode == DNN_CONFIG_NOTHING || s->unreadable.code != 0)
        set_batches_unread(s, &cfg);
    else
        set_batches(s, &cfg);
    if (with->inference) keep_inference(s->config, cfg.batches);
    return dnn_replica_make(&cfg, &s->replica, err);
}

static int bind(struct dnn_stage *s, struct dnn_err *err)
{
    struct dnn_stage_data *all[DNN_STAGE_PARTS] = {&s->train, &s->eval,
                                                   &s->separate_test};

    for (int i = 0; i < DNN_STAGE_PARTS; i++)
        if (all[i]->feed != NULL) DNN_TRY(dnn_stage_columns(s, all[i], err));
    return 0;
}

int dnn_stage_open(const struct dnn_stage_cfg *cfg, struct dnn_stage **out,
                   struct dnn_err *err)
{
    struct dnn_stage *s = dnn_alloc(sizeof *s);

    s->config = cfg->config;
    s->session = cfg->session;
    s->dry_run = cfg->dry_run;
    int rc = dnn_stage_open_data(s, cfg->test, err);
    if (rc == 0) rc = make_replica(s, cfg, err);
    /* A model for inference alone has no targets. */
    if (rc == 0 && !cfg->inference)
        rc = dnn_comm_agree(s->session->comm, bind(s, err), err);
    if (rc < 0)
        dnn_stage_close(s);
    else
        *out = s;
    return rc;
}

int dnn_stage_debug(const struct dnn_stage *stage, struct dnn_err *err)
{
    const char *dir = dnn_config_dir(stage->config);
    struct dnn_buf text = {0};

    if (!stage->config->debug) return 0;
    DNN_TRY(dnn_file_make_dirs(dir, err));
    char *path = dnn_format("%s/network.dot", dir);
    dnn_graph_dot(stage->config->net.graph, &text);
    int rc = dnn_file_write(path, text.text, text.len, err);
    dnn_buf_free(&text);
    dnn_free(path);
    return rc;
}

size_t dnn_stage_bytes(const struct dnn_stage *stage, size_t *batches)
{
    const struct dnn_feed *const feed[DNN_STAGE_PARTS] = {
        stage->train.feed, stage->eval.feed, stage->separate_test.feed};
    size_t sum = 0;

    for (int i = 0; i < DNN_STAGE_PARTS; i++)
        if (feed[i] != NULL) sum += dnn_feed_bytes(feed[i]);
    if (batches != NULL) *batches = sum;
    return dnn_replica_bytes(stage->replica) + sum;
}

void dnn_stage_close(struct dnn_stage *stage)
{
    if (stage == NULL) return;
    dnn_replica_free(stage->replica);
    dnn_stage_data_free(&stage->train);
    dnn_stage_data_free(&stage->eval);
    dnn_stage_data_free(&stage->separate_test);
    dnn_free(stage->target_is);
    dnn_free(stage->cache);
    dnn_free(stage);
}
