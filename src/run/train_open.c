/* train_open.c - data, network and files of a run made ready.
 *
 * Each phase is agreed on by all ranks before the next begins.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/train_impl.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "data/dataset.h"

#include <stdlib.h>
#include <string.h>

/* ---- data ---- */

/* Whether a dataset has a split, where nothing is wrong if it has not. */
static int has_split(struct dnn_trainer *t, const struct dnn_job_origin *o, bool *out,
                     struct dnn_err *err)
{
    struct dnn_dataset *set;

    DNN_TRY(dnn_dataset_open(t->comm, o->dataset, 1, &set, err));
    *out = dnn_dataset_find(set, o->split) >= 0;
    dnn_dataset_close(set);
    return 0;
}

static int open_data(struct dnn_trainer *t, enum dnn_job_part part,
                     struct train_data *data, struct dnn_err *err)
{
    const struct dnn_job_data *d = t->job->data;
    struct dnn_job_origin o;
    bool train = part == DNN_PART_TRAIN, there = true;

    dnn_job_origin(t->job, part, &o);
    if (o.from == DNN_FROM_NOTHING) return 0;
    if (o.from == DNN_FROM_DATASET && o.maybe) DNN_TRY(has_split(t, &o, &there, err));
    if (!there) return 0;
    if (o.aside > 0)
        return dnn_fail(
            err, DNN_ECONFIG,
            "data.validation: a part of files or of a generator cannot be set "
            "aside yet; prepare a dataset with dnn-prepare --split");
    if (o.mask_scale != 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "data: pictures whose values are classes need to be prepared "
                        "first: dnn-prepare with --target-kind mask and --remap");
    int rc = dnn_job_augment(t->job, !train, &data->augment, err);
    if (rc == 0 && o.from != DNN_FROM_DATASET)
        rc = dnn_job_open(t->job, &o, &data->source, err);
    DNN_TRY(dnn_comm_agree(t->comm, rc, err));
    const struct dnn_feed_cfg cfg = {
        .path = data->source == NULL ? o.dataset : NULL,
        .split = o.split,
        .source = data->source,
        .image_scale = o.image_scale,
        .fold = o.fold,
        .batch_size = train ? t->job->batch_size : d->test_batch_size,
        .shuffle = train && d->shuffle,
        .seed = (uint64_t)t->job->seed,
        .window = d->window,
        .augment = data->augment,
        .preload = d->preload,
        .verify = d->verify,
        .stored = true,
        .leaves = train
                      ? dnn_replica_leaves(t->comm, t->job->batch_size,
                                           t->job->parallel->deterministic,
                                           t->job->parallel->leaves, t->job->accumulate)
                      : 0,
        .threads = (int)d->threads,
        .ahead = (int)d->ahead,
        .memory = d->memory,
        .topo = t->seat->topo,
        .place = &t->seat->place,
        .bind = t->seat->bind};
    return dnn_feed_open(t->comm, &cfg, &data->feed, err);
}

static int open_all_data(struct dnn_trainer *t, struct dnn_err *err)
{
    if (dnn_job_mode(t->job) != DNN_JOB_TRAIN)
        return dnn_fail(err, DNN_ECONFIG,
                        "the job has no training data: give data.dataset, "
                        "data.input_path or data.generate");
    DNN_TRY(open_data(t, DNN_PART_TRAIN, &t->train, err));
    if (t->train.feed == NULL)
        return dnn_fail(err, DNN_ECONFIG, "the job has no training samples");
    DNN_TRY(open_data(t, DNN_PART_VALIDATION, &t->eval, err));
    if (t->eval.feed == NULL) DNN_TRY(open_data(t, DNN_PART_TEST, &t->eval, err));
    return 0;
}

/* ---- the network ---- */

/* What the data has for each output: class numbers or values. */
static void look_at_targets(struct dnn_trainer *t)
{
    const struct dnn_column *col;
    int ncols = dnn_feed_columns(t->train.feed, &col), n = 0;
    int nout = t->job->net.graph->noutputs;

    t->target_is = dnn_alloc(((size_t)nout + 1) * sizeof *t->target_is);
    for (int k = 0; k < ncols && n < nout; k++) {
        bool classes = col[k].kind == DNN_KIND_LABEL || col[k].kind == DNN_KIND_MASK;

        if (col[k].role == DNN_ROLE_TARGET)
            t->target_is[n++] = classes ? DNN_TARGET_LABELS : DNN_TARGET_VALUES;
    }
}

static int make_replica(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_job *job = t->job;
    const char *name = t->opts->backend != NULL ? t->opts->backend : job->backend;
    int threads = t->seat->place.threads;
    t->cache = dnn_model_cache(threads);
    struct dnn_replica_cfg cfg = {
        .graph = job->net.graph,
        .comm = t->comm,
        .rule = job->parallel->rule,
        .how = {.deterministic = job->parallel->deterministic,
                .compress = job->parallel->compress},
        .batch = job->batch_size,
        .last = dnn_feed_count(t->train.feed) % job->batch_size,
        .leaves = job->parallel->leaves,
        .accumulate = job->accumulate,
        .portion = (size_t)job->parallel->portion,
        .model = {.dtype = (enum dnn_dtype)job->precision,
                .loss = job->loss,
                .target_is = t->target_is,
                .optim = job->optimizer,
                .limit = (size_t)job->memory_limit,
                .recompute = (enum dnn_recompute)job->recompute,
                .device = {.threads = threads,
                             /* Measured choices differ from rank to rank. */
                             .choose = job->parallel->deterministic
                                           ? DNN_CHOOSE_RULED
                                           : (enum dnn_choose)t->opts->choose,
                             .cache = t->cache}}
    };

    if (dnn_feed_count(t->train.feed) < job->batch_size) {
        cfg.batch = dnn_feed_count(t->train.feed);
        cfg.last = 0;
    }
    int rc = dnn_model_backend(name, &cfg.model.backend, err);
    rc = dnn_comm_agree(t->comm, rc, err);
    return rc == 0 ? dnn_replica_make(&cfg, &t->replica, err) : rc;
}

/* What evaluation needs: metrics that suit, and room for outputs. */
static int make_judges(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_model *m = dnn_replica_model(t->replica);

    if (t->eval.feed == NULL) return 0;
    t->output = dnn_alloc(((size_t)m->noutputs + 1) * sizeof *t->output);
    for (int i = 0; i < m->noutputs; i++) {
        const struct dnn_shape *s = dnn_prog_shape(m->prog, m->output[i]);
        int64_t count;

        DNN_TRY(dnn_shape_count(s, &count, err));
        int64_t each = count / m->opts.batch, most = t->job->data->test_batch_size;
        if (dnn_feed_count(t->eval.feed) < most) most = dnn_feed_count(t->eval.feed);
        if (i == 0) {
            t->channels = s->dim[s->ndim - 1];
            t->places = each / t->channels;
        }
        t->output[i] = malloc((size_t)(most * each) * sizeof(float) + 64);
        if (t->output[i] == NULL)
            return dnn_fail(err, DNN_ENOMEM,
                            "no memory for the outputs of %lld samples",
                            (long long)most);
    }
    if (!t->eval.targets) return 0;
    return dnn_job_metrics(t->job, dnn_loss_metrics(t->job->loss), t->channels,
                           &t->metrics, err);
}

/* ---- files ---- */

static int open_files(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_job_ckpt *how = t->job->ckpt;
    const char *dir = dnn_job_dir(t->job);
    char *ckpts = how->save != NULL ? dnn_strdup(dnn_job_path(t->job, how->save))
                                    : dnn_format("%s/checkpoints", dir);
    const struct dnn_ckpt_cfg cfg = {ckpts, (int)how->keep, true};

    int rc = t->speaks ? dnn_file_make_dirs(dir, err) : 0;
    rc = dnn_comm_agree(t->comm, rc, err);
    if (rc == 0) rc = dnn_ckpt_open(t->comm, &cfg, &t->ckpts, err);
    dnn_free(ckpts);
    return rc;
}

static int open_telemetry(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_job_telemetry *how = t->job->telemetry;
    const struct dnn_telemetry_cfg cfg = {.dir = dnn_job_dir(t->job),
                                          .outfile =
                                              dnn_job_path(t->job, t->job->outfile),
                                          .csv = how->csv,
                                          .jsonl = how->jsonl,
                                          .tensorboard = how->tensorboard,
                                          .progress = t->opts->progress,
                                          .json_to_stdout = t->opts->json,
                                          .resumed_step = t->at.step,
                                          .interval = how->interval};

    return t->speaks ? dnn_telemetry_open(&cfg, &t->telemetry, err) : 0;
}

/* ---- in order ---- */

static int local(struct dnn_trainer *t, struct dnn_err *err)
{
    struct dnn_model *m = dnn_replica_model(t->replica);

    DNN_TRY(dnn_trainer_columns(t, &t->train, err));
    if (t->eval.feed != NULL) DNN_TRY(dnn_trainer_columns(t, &t->eval, err));
    DNN_TRY(make_judges(t, err));
    return dnn_exec_init(m->exec, (uint64_t)t->job->seed, err);
}

int dnn_trainer_open(struct dnn_trainer *t, struct dnn_err *err)
{
    DNN_TRY(open_all_data(t, err));
    look_at_targets(t);
    DNN_TRY(make_replica(t, err));
    DNN_TRY(dnn_comm_agree(t->comm, local(t, err), err));
    DNN_TRY(open_files(t, err));
    DNN_TRY(dnn_trainer_arrays(t, err));
    DNN_TRY(dnn_trainer_resume(t, err));
    DNN_TRY(dnn_comm_agree(t->comm, open_telemetry(t, err), err));
    if (t->speaks) dnn_trainer_header(t);
    return 0;
}

void dnn_trainer_close(struct dnn_trainer *t)
{
    struct dnn_err err = {0};

    dnn_telemetry_close(t->telemetry);
    if (t->ckpts != NULL && dnn_ckpt_close(t->ckpts, &err) < 0)
        dnn_log(DNN_ERROR, "train", "%s", err.text);
    for (int i = 0; i < t->narrays; i++)
        dnn_free((void *)(uintptr_t)t->array[i].name);
    dnn_free(t->array);
    dnn_metrics_free(t->metrics);
    int nout = t->replica == NULL ? 0 : dnn_replica_model(t->replica)->noutputs;
    for (int i = 0; t->output != NULL && i < nout; i++)
        free(t->output[i]);
    dnn_free(t->output);
    dnn_replica_free(t->replica);
    dnn_trainer_forget(&t->train);
    dnn_trainer_forget(&t->eval);
    dnn_free(t->target_is);
    dnn_free(t->cache);
}
