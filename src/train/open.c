/* open.c - set-up of a run: network, metrics, files.
 *
 * All ranks agree on the result of each phase before the next one begins.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- the network ---- */

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

static int make_replica(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_config *config = t->config;
    const char *name = t->opts->backend != NULL ? t->opts->backend : config->backend;
    int threads = t->session->place.threads;
    bool training = t->mode == DNN_CONFIG_TRAIN;
    int64_t batch = training ? config->batch_size : config->data->test_batch_size;
    const struct dnn_feed *feed = training ? t->train.feed : t->eval.feed;
    int64_t count = dnn_feed_count(feed);

    t->cache = dnn_model_cache(threads);
    struct dnn_replica_cfg cfg = {
        .graph = config->net.graph,
        .comm = t->comm,
        .rule = config->parallel->rule,
        .how = {.deterministic = config->deterministic,
                .compress = config->parallel->compress},
        .infer = !training,
        .batch = batch,
        /* The last batch may be smaller, unless steps_per_epoch excludes it. */
        .last = dnn_feed_batches(feed) * batch > count ? count % batch : 0,
        .micro_batches = dnn_trainer_micro_batches(t, batch, config->accumulate),
        .accumulate = config->accumulate,
        .bucket = (size_t)config->parallel->bucket,
        .model = {
                .with_loss = t->mode == DNN_CONFIG_EVAL,
                .dtype = (enum dnn_dtype)config->precision,
                .loss = config->loss,
                .target_is = t->target_is,
                .optim = config->optimizer,
                .limit = (size_t)config->memory_limit,
                .recompute = (enum dnn_recompute)config->recompute,
                .no_fusion = !config->fuse,
                .device = {.threads = threads,
                       /* Autotuned kernels may differ between ranks. */
                       .kernels = config->deterministic
                                      ? DNN_KERNELS_HEURISTIC
                                      : (enum dnn_kernel_selection)t->opts->kernels,
                       .cache = t->cache,
                       .conv = config->kernels->conv}}
    };

    if (t->eval.feed != NULL && t->mode != DNN_CONFIG_INFER) {
        int64_t all = dnn_feed_count(t->eval.feed), max = config->data->test_batch_size;

        cfg.eval_batch = all < max ? all : max;
        cfg.eval_last = all < max ? 0 : all % max;
        cfg.eval_micro_batches = dnn_trainer_micro_batches(t, max, 1);
    }
    if (count < batch) {
        cfg.batch = count;
        cfg.last = 0;
    }
    int rc = check_f64(config, err);
    if (rc == 0) rc = dnn_model_backend(name, &cfg.model.backend, err);
    rc = dnn_comm_agree(t->comm, rc, err);
    return rc == 0 ? dnn_replica_make(&cfg, &t->replica, err) : rc;
}

/* Make the metrics and output buffers of the evaluation. */
static int make_metrics(struct dnn_trainer *t, struct dnn_err *err)
{
    static const char *const dice[] = {"dice", NULL};
    const struct dnn_model *m = dnn_replica_model(t->replica);
    int64_t first, n;

    if (t->eval.feed == NULL) return 0;
    t->output = dnn_alloc(((size_t)m->noutputs + 1) * sizeof *t->output);
    for (int i = 0; i < m->noutputs; i++) {
        const struct dnn_shape *s = dnn_prog_shape(m->prog, m->output[i]);
        int64_t count;

        DNN_TRY(dnn_shape_count(s, &count, err));
        int64_t each = count / m->opts.batch, max = t->config->data->test_batch_size;
        int64_t samples = dnn_feed_count(t->eval.feed);
        if (t->test != NULL && dnn_feed_count(t->test->feed) > samples)
            samples = dnn_feed_count(t->test->feed);
        if (samples < max) max = samples;
        if (i == 0) {
            t->channels = s->dim[s->ndim - 1];
            t->points = each / t->channels;
        }
        t->output[i] = malloc((size_t)(max * each) * sizeof(float) + 64);
        if (t->output[i] == NULL)
            return dnn_fail(err, DNN_ENOMEM,
                            "outputs of %lld samples do not fit into memory; reduce "
                            "data.test_batch_size",
                            (long long)max);
    }
    if (!t->eval.targets) return 0;
    /* rmldnn reports Dice as the accuracy of masks, whatever the loss. */
    bool masks =
        t->config->wrapped && t->points > 1 && t->target_is[0] == DNN_TARGET_LABELS;
    const char *const *defaults = masks ? dice : dnn_loss_metrics(t->config->loss);
    /* Deterministic: one set per micro-batch. */
    int sets = 0;
    while (t->config->deterministic &&
           dnn_replica_eval_part(t->replica, 1, sets, &first, &n) >= 0)
        sets++;
    if (sets == 0) sets = 1;
    t->set = dnn_alloc(((size_t)sets + 1) * sizeof *t->set);
    for (; t->nsets < sets; t->nsets++)
        DNN_TRY(dnn_config_metrics(t->config, defaults, t->channels, &t->set[t->nsets],
                                   err));
    t->metrics = t->set[0];
    return 0;
}

/* ---- files ---- */

char *dnn_trainer_ckpt_dir(const struct dnn_trainer *t)
{
    const char *save = t->config->ckpt->save;

    return save != NULL ? dnn_strdup(dnn_config_path(t->config, save))
                        : dnn_format("%s/checkpoints", dnn_config_dir(t->config));
}

/* "debug": write the network as a graph (DOT), as rmldnn does. */
static int write_dot(const struct dnn_trainer *t, const char *dir, struct dnn_err *err)
{
    struct dnn_buf text = {0};
    char *path = dnn_format("%s/network.dot", dir);

    dnn_graph_dot(t->config->net.graph, &text);
    int rc = dnn_file_write(path, text.text, text.len, err);
    dnn_buf_free(&text);
    dnn_free(path);
    return rc;
}

static int open_files(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_config_ckpt *how = t->config->ckpt;
    const char *dir = dnn_config_dir(t->config);
    char *ckpts = dnn_trainer_ckpt_dir(t);
    const struct dnn_ckpt_cfg cfg = {ckpts, how->keep == 0 ? INT_MAX : (int)how->keep,
                                     true};

    int rc = t->root ? dnn_file_make_dirs(dir, err) : 0;
    if (rc == 0 && t->root && t->config->debug) rc = write_dot(t, dir, err);
    rc = dnn_comm_agree(t->comm, rc, err);
    if (rc == 0 && t->mode == DNN_CONFIG_TRAIN)
        rc = dnn_ckpt_open(t->comm, &cfg, &t->ckpts, err);
    dnn_free(ckpts);
    return rc;
}

static int open_telemetry(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_config_telemetry *how = t->config->telemetry;
    bool training = t->mode == DNN_CONFIG_TRAIN;
    const struct dnn_telemetry_cfg cfg = {
        .dir = dnn_config_dir(t->config),
        .outfile = dnn_config_path(t->config, t->config->outfile),
        .tests = !training,
        .csv = training && how->csv,
        .jsonl = training && how->jsonl,
        .tensorboard = training && how->tensorboard,
        .progress = training && t->opts->progress,
        .json_to_stdout = t->opts->json,
        .resumed_step = t->at.step,
        .interval = how->interval,
        .every = how->steps};

    return t->root ? dnn_telemetry_open(&cfg, &t->telemetry, err) : 0;
}

/* ---- open ---- */

static int open_local(struct dnn_trainer *t, struct dnn_err *err)
{
    struct dnn_model *m = dnn_replica_model(t->replica);

    if (t->train.feed != NULL) DNN_TRY(dnn_trainer_columns(t, &t->train, err));
    if (t->eval.feed != NULL) DNN_TRY(dnn_trainer_columns(t, &t->eval, err));
    if (t->separate_test.feed != NULL)
        DNN_TRY(dnn_trainer_columns(t, &t->separate_test, err));
    DNN_TRY(make_metrics(t, err));
    if (t->mode == DNN_CONFIG_TRAIN) DNN_TRY(dnn_trainer_check_metrics(t, err));
    DNN_TRY(dnn_trainer_ema_make(t, err));
    if (t->root) DNN_TRY(dnn_config_network(t->config, &t->network, err));
    DNN_TRY(dnn_hessian_open(t, err));
    return dnn_exec_init(m->exec, (uint64_t)t->config->seed, err);
}

int dnn_trainer_open(struct dnn_trainer *t, struct dnn_err *err)
{
    DNN_TRY(dnn_trainer_data(t, err));
    DNN_TRY(make_replica(t, err));
    DNN_TRY(dnn_comm_agree(t->comm, open_local(t, err), err));
    DNN_TRY(open_files(t, err));
    if (t->mode == DNN_CONFIG_TRAIN) DNN_TRY(dnn_trainer_arrays(t, err));
    if (t->mode == DNN_CONFIG_TRAIN || t->config->ckpt->load != NULL)
        DNN_TRY(dnn_trainer_resume(t, err));
    else
        DNN_TRY(dnn_trainer_load_newest(t, err));
    DNN_TRY(dnn_comm_agree(t->comm, open_telemetry(t, err), err));
    return dnn_comm_agree(t->comm, dnn_trainer_log_open(t, err), err);
}

void dnn_trainer_close(struct dnn_trainer *t)
{
    struct dnn_err err = {0};

    dnn_trainer_log_close(t);
    dnn_telemetry_close(t->telemetry);
    if (t->ckpts != NULL && dnn_ckpt_close(t->ckpts, &err) < 0)
        dnn_log(DNN_ERROR, "train", "%s", err.text);
    for (int i = 0; i < t->narrays; i++)
        dnn_free((void *)(uintptr_t)t->array[i].name);
    dnn_free(t->array);
    for (int i = 0; i < t->nsets; i++)
        dnn_metrics_free(t->set[i]);
    dnn_free(t->set);
    dnn_hessian_close(t);
    int nout = t->replica == NULL ? 0 : dnn_replica_model(t->replica)->noutputs;
    for (int i = 0; t->output != NULL && i < nout; i++)
        free(t->output[i]);
    dnn_free(t->output);
    dnn_replica_free(t->replica);
    dnn_trainer_data_free(&t->train);
    dnn_trainer_data_free(&t->eval);
    dnn_trainer_data_free(&t->separate_test);
    dnn_free(t->target_is);
    dnn_free(t->cache);
    dnn_free(t->network);
    free(t->ema);
}
