/* data.c - training, validation and test data.
 *
 * All ranks agree on the result of each phase before the next one begins.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "stage/stage_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "source/source.h"

#include <inttypes.h>
#include <string.h>

struct dnn_replica_batches dnn_stage_batches(const struct dnn_stage *s,
                                             enum dnn_model_role role)
{
    const struct dnn_config *config = s->config;
    bool training = role == DNN_MODEL_TRAIN;
    struct dnn_replica_batches b = {
        .size = training ? config->batch_size : config->data->test_batch_size,
        .micro_batches = config->deterministic ? config->parallel->micro_batches
                         : training            ? config->accumulate
                                               : 1};

    if (config->deterministic)
        b.micro_batches = dnn_replica_micro_batches(s->session->comm, true, &b);
    return b;
}

/* Whether a dataset has an optional split. */
static int has_split(struct dnn_stage *s, const struct dnn_config_origin *o, bool *out,
                     struct dnn_err *err)
{
    struct dnn_dataset *set;

    DNN_TRY(dnn_dataset_open(s->dry_run ? NULL : s->session->comm, o->dataset, 1, &set,
                             err));
    *out = dnn_dataset_find(set, o->split) >= 0;
    dnn_dataset_close(set);
    return 0;
}

/* Whether samples must be cached one by one.  Samples whose shapes differ, and only
 * become equal by transforms, cannot be preloaded as one array. */
static bool must_cache(const struct dnn_stage *s, struct dnn_stage_data *data)
{
    const struct dnn_config_data *d = s->config->data;
    int64_t limit =
        (int64_t)(dnn_memory_total() / 2) / dnn_comm_local_size(s->session->comm);
    bool known = true;

    if (!d->preload || data->source == NULL || data->augment == NULL) return false;
    for (int c = 0; c < data->source->ncols; c++)
        known = known && dnn_shape_known(&data->source->col[c].shape);
    if (known) return false;
    data->source = dnn_source_cache(data->source, d->memory > 0 ? d->memory : limit);
    return true;
}

static int open_feed(struct dnn_stage *s, const struct dnn_config_origin *o,
                     struct dnn_stage_data *data, struct dnn_err *err)
{
    const struct dnn_config *config = s->config;
    const struct dnn_config_data *d = config->data;
    bool train = o->part == DNN_PART_TRAIN, cached = must_cache(s, data);
    const struct dnn_replica_batches batches =
        dnn_stage_batches(s, train ? DNN_MODEL_TRAIN : DNN_MODEL_EVALUATE);
    const struct dnn_feed_cfg cfg = {
        .path = data->source == NULL ? o->dataset : NULL,
        .split = o->split,
        .source = data->source,
        .image_scale = o->image_scale,
        .fold = o->fold,
        .batch_size = batches.size,
        .steps = train ? config->steps_per_epoch : 0,
        .shuffle = train && d->shuffle,
        .seed = (uint64_t)config->seed,
        .window = d->window,
        .augment = data->augment,
        /* Sliced volumes are in memory already. */
        .preload = d->preload && !cached && dnn_source_sliced(data->source) == NULL,
        .verify = d->verify,
        .stored = true,
        .dry_run = s->dry_run,
        .micro_batches = dnn_replica_micro_batches(s->session->comm,
                                                   config->deterministic, &batches),
        .threads = (int)d->threads,
        .ahead = (int)d->ahead,
        .memory = d->memory,
        .topo = s->session->topo,
        .place = &s->session->place,
        .bind = s->session->bind};

    data->batch_size = batches.size;
    return dnn_feed_open(s->session->comm, &cfg, &data->feed, err);
}

/* Open the samples of a part; data->feed is NULL if none are configured. */
static int open_part(struct dnn_stage *s, enum dnn_config_part part,
                     struct dnn_stage_data *data, struct dnn_err *err)
{
    struct dnn_config_origin o;
    bool exists = true;

    dnn_config_origin(s->config, part, &o);
    if (o.from == DNN_FROM_NOTHING) return 0;
    if (o.from == DNN_FROM_DATASET && o.optional)
        DNN_TRY(has_split(s, &o, &exists, err));
    if (!exists) return 0;
    int rc = dnn_config_augment(s->config, part != DNN_PART_TRAIN, &data->augment, err);
    if (rc == 0 && o.from != DNN_FROM_DATASET)
        rc = dnn_source_open(s->config, &o, &data->source, err);
    DNN_TRY(dnn_comm_agree(s->session->comm, rc, err));
    return open_feed(s, &o, data, err);
}

/* ---- targets ---- */

/* The data must not have more classes than the network has outputs. */
static int check_classes(const struct dnn_column *col, const struct dnn_config *config,
                         int i, struct dnn_err *err)
{
    const struct dnn_graph *graph = config->net.graph;
    const struct dnn_graph_node *node = &graph->node[graph->output[i]];
    int64_t channels = node->out.dim[node->out.ndim - 1];

    if (channels < 1 || dnn_config_ignores(config) ||
        col->classes <= (channels == 1 ? 2 : channels))
        return 0;
    return dnn_fail(err, DNN_EDATA,
                    "target '%s' of the data has %" PRId64
                    " classes, but output '%s' of the "
                    "network has only %" PRId64,
                    col->name, col->classes, node->name, channels == 1 ? 2 : channels);
}

/* Whether the target of each output is a class label or a value. */
static int find_targets(struct dnn_stage *s, const struct dnn_feed *feed,
                        struct dnn_err *err)
{
    const struct dnn_column *col;
    int ncols = dnn_feed_columns(feed, &col), n = 0;
    int nout = s->config->net.graph->noutputs;

    s->target_is = dnn_alloc(((size_t)nout + 1) * sizeof *s->target_is);
    for (int k = 0; k < ncols && n < nout; k++) {
        bool classes = col[k].kind == DNN_KIND_LABEL || col[k].kind == DNN_KIND_MASK;

        if (col[k].role != DNN_ROLE_TARGET) continue;
        if (classes && s->mode != DNN_CONFIG_INFER)
            DNN_TRY(check_classes(&col[k], s->config, n, err));
        s->target_is[n++] = classes ? DNN_TARGET_LABELS : DNN_TARGET_VALUES;
    }
    return 0;
}

/* ---- open ---- */

/* Error for missing data; the same on all ranks. */
static int no_data(struct dnn_stage *s, const char *what, struct dnn_err *err)
{
    return dnn_comm_agree(s->session->comm, dnn_fail(err, DNN_ECONFIG, "%s", what),
                          err);
}

/* Open the data whose outputs are written at the end of training. */
static int open_test(struct dnn_stage *s, bool evaluated, struct dnn_err *err)
{
    const struct dnn_config_data *d = s->config->data;

    if (d->test_output_path == NULL && d->hdf5_outfile == NULL) return 0;
    if (evaluated) {
        s->test = &s->eval;
        return 0;
    }
    DNN_TRY(open_part(s, DNN_PART_TEST, &s->separate_test, err));
    if (s->separate_test.feed != NULL)
        s->test = &s->separate_test;
    else if (dnn_comm_rank(s->session->comm) == 0)
        dnn_log(DNN_WARN, "stage", "no outputs are written: there is no test data");
    return 0;
}

static int open_train(struct dnn_stage *s, struct dnn_err *err)
{
    bool test = false;

    DNN_TRY(open_part(s, DNN_PART_TRAIN, &s->train, err));
    if (s->train.feed == NULL)
        return no_data(
            s,
            "no training samples; set data.dataset, data.input_path or data.generate",
            err);
    DNN_TRY(open_part(s, DNN_PART_VALIDATION, &s->eval, err));
    if (s->eval.feed == NULL) {
        DNN_TRY(open_part(s, DNN_PART_TEST, &s->eval, err));
        test = s->eval.feed != NULL;
    }
    return open_test(s, test, err);
}

static int open_all(struct dnn_stage *s, struct dnn_err *err)
{
    if (s->mode == DNN_CONFIG_NOTHING)
        return no_data(
            s,
            "no data; set data.dataset, data.input_path or data.generate for "
            "training, or the same keys with the prefix test_ for testing",
            err);
    if (s->mode == DNN_CONFIG_TRAIN) {
        DNN_TRY(open_train(s, err));
    } else {
        DNN_TRY(open_part(s, DNN_PART_TEST, &s->eval, err));
        if (s->eval.feed == NULL) return no_data(s, "no test samples", err);
        if (!dnn_stage_has_targets(s->eval.feed)) s->mode = DNN_CONFIG_INFER;
        s->test = &s->eval;
    }
    s->train.role = DNN_MODEL_TRAIN;
    if (s->eval.feed != NULL && dnn_stage_has_targets(s->eval.feed) &&
        s->mode != DNN_CONFIG_INFER)
        s->eval.role = DNN_MODEL_EVALUATE;
    int rc = find_targets(s, s->train.feed != NULL ? s->train.feed : s->eval.feed, err);
    return dnn_comm_agree(s->session->comm, rc, err);
}

int dnn_stage_open_data(struct dnn_stage *s, bool test, struct dnn_err *err)
{
    s->mode = test ? dnn_config_test_mode(s->config) : dnn_config_mode(s->config);
    if (s->dry_run && s->mode == DNN_CONFIG_NOTHING) return 0;
    int rc = open_all(s, err);
    if (rc != DNN_EIO || !s->dry_run) return rc;
    dnn_stage_data_free(&s->train);
    dnn_stage_data_free(&s->eval);
    dnn_stage_data_free(&s->separate_test);
    s->test = NULL;
    s->unreadable = *err;
    *err = (struct dnn_err){0};
    return 0;
}

void dnn_stage_data_free(struct dnn_stage_data *data)
{
    dnn_feed_close(data->feed);
    dnn_source_close(data->source);
    dnn_augment_free(data->augment);
    dnn_free(data->input);
    dnn_free(data->target);
    *data = (struct dnn_stage_data){0};
}
