/* model.c - the trained network as files: model.dnn, and for Keras model.json,
 * model.weights.h5 and model.keras.
 *
 * Another run can use them as "layers" and checkpoints.load.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "data/dataset.h"
#include "package/package.h"
#include "stage/stage.h"

#include <string.h>

/* ---- inputs and targets ---- */

/* Describe the dataset's column of an input. */
static void describe_column(const struct dnn_stored *is, struct dnn_package_input *in)
{
    static const double one = 1, zero = 0;

    in->column = is->column.name;
    in->stored = dnn_dtype_name(is->column.type);
    in->scale.count = in->offset.count = is->nscale == 0 ? 1 : is->nscale;
    in->scale.reals = is->nscale == 0 ? &one : is->scale;
    in->offset.reals = is->nscale == 0 ? &zero : is->offset;
}

static void describe_inputs(const struct train_run *t, struct dnn_arena *arena,
                            struct dnn_list *out)
{
    const struct dnn_graph *g = dnn_replica_model(t->stage->replica)->graph;
    const struct dnn_stage_data *data = &t->stage->train;
    const struct dnn_split *split = dnn_feed_split(data->feed);
    struct dnn_package_input *in =
        dnn_arena_alloc(arena, ((size_t)g->ninputs + 1) * sizeof *in);
    const struct dnn_column *col;

    dnn_feed_columns(data->feed, &col);
    for (int i = 0; i < g->ninputs; i++) {
        const struct dnn_graph_node *node = &g->node[g->input[i]];
        int at = data->input[i];

        in[i].name = node->name;
        in[i].kind = dnn_choice_name(dnn_kind_choices, (int)col[at].kind);
        in[i].shape =
            (struct dnn_list){.count = node->out.ndim - 1, .ints = node->out.dim + 1};
        if (split != NULL) describe_column(&split->col[at], &in[i]);
    }
    *out = (struct dnn_list){.count = g->ninputs, .objects = in};
}

static void describe_targets(const struct train_run *t, struct dnn_arena *arena,
                             struct dnn_list *out)
{
    const struct dnn_graph *g = dnn_replica_model(t->stage->replica)->graph;
    const struct dnn_stage_data *data = &t->stage->train;
    struct dnn_package_target *target =
        dnn_arena_alloc(arena, ((size_t)g->noutputs + 1) * sizeof *target);
    const struct dnn_column *col;

    dnn_feed_columns(data->feed, &col);
    for (int k = 0; k < g->noutputs; k++) {
        const struct dnn_column *is = &col[data->target[k]];

        target[k].name = g->node[g->output[k]].name;
        target[k].column = is->name;
        target[k].kind = dnn_choice_name(dnn_kind_choices, (int)is->kind);
        target[k].classes = is->classes;
        if (is->class_name != NULL)
            target[k].class_names =
                (struct dnn_list){.count = is->classes, .texts = is->class_name};
    }
    *out = (struct dnn_list){.count = g->noutputs, .objects = target};
}

/* ---- JSON ---- */

/* Add those keys that an object has; n: members added before. */
static int put_keys(struct dnn_buf *out, int n, const struct dnn_jobj *at,
                    const char *const *key)
{
    for (; *key != NULL; key++) {
        struct dnn_jobj value = dnn_json_sub(at, *key);
        char *text = dnn_json_compact(&value);

        if (text != NULL)
            dnn_buf_add(out, "%s\"%s\": %s", n++ == 0 ? "" : ", ", *key, text);
        dnn_free(text);
    }
    return n;
}

/* The keys of the configuration that inference needs, too. */
static void put_inference(const struct dnn_config *config, struct dnn_buf *out)
{
    static const char *const top[] = {"metrics", "inference", NULL};
    struct dnn_config_at at;

    dnn_config_find(config, &at);
    dnn_buf_add(out, "{\"loss\": %s", config->loss_text);
    put_keys(out, 1, at.top, top);
    dnn_buf_add(out, ", \"data\": {");
    put_keys(out, 0, &at.data, dnn_package_data_keys);
    dnn_buf_add(out, "}}");
}

/* The record of the run without what only concerns the machine. */
static int put_training(const struct train_record *record, struct dnn_buf *out,
                        struct dnn_err *err)
{
    static const char *const key[] = {"program", "version", "command",    "config",
                                      "seed",    "started", "ended",      "seconds",
                                      "data",    "ranks",   "batch_size", "epochs",
                                      "steps",   "metrics", NULL};
    struct dnn_json *file = NULL;
    struct dnn_buf text = {0};

    dnn_train_record_text(record, "finished", NULL, &text);
    int rc = dnn_json_text("run.json", text.text, text.len, &file, err);
    dnn_buf_free(&text);
    DNN_TRY(rc);
    struct dnn_jobj top = dnn_json_top(file);
    dnn_buf_add(out, "{");
    put_keys(out, 0, &top, key);
    dnn_buf_add(out, "}");
    dnn_json_free(file);
    return 0;
}

static void put_numbers(struct dnn_buf *out, const char *key, const struct dnn_list *x)
{
    dnn_buf_add(out, ", \"%s\": [", key);
    for (int64_t k = 0; k < x->count; k++)
        dnn_buf_add(out, "%s%.17g", k == 0 ? "" : ", ", x->reals[k]);
    dnn_buf_add(out, "]");
}

/* Write the steps by which the dataset was prepared. */
static void put_steps(struct dnn_buf *out, const char *provenance)
{
    struct dnn_json *file = NULL;

    if (provenance == NULL ||
        dnn_json_text("dataset", provenance, strlen(provenance), &file, NULL) < 0)
        return;
    struct dnn_jobj top = dnn_json_top(file);
    struct dnn_jobj at = dnn_json_sub(&top, "steps");
    char *text = dnn_json_compact(&at);
    if (text != NULL) dnn_buf_add(out, ", \"preparation\": %s", text);
    dnn_free(text);
    dnn_json_free(file);
}

/* How the inputs of the network were scaled (docs/run-directory.md); nothing if the
 * samples are not from a dataset. */
static void put_scaling(const struct dnn_package_info *info, struct dnn_buf *out)
{
    const struct dnn_package_input *in = info->inputs.objects;

    if (info->inputs.count == 0 || in[0].column == NULL) return;
    dnn_buf_add(out, "{\"inputs\": {");
    for (int64_t i = 0; i < info->inputs.count; i++) {
        dnn_buf_add(out, "%s", i == 0 ? "" : ", ");
        dnn_json_quoted(out, in[i].name);
        dnn_buf_add(out, ": {\"column\": ");
        dnn_json_quoted(out, in[i].column);
        dnn_buf_add(out, ", \"stored\": \"%s\"", in[i].stored);
        put_numbers(out, "scale", &in[i].scale);
        put_numbers(out, "offset", &in[i].offset);
        dnn_buf_add(out, "}");
    }
    dnn_buf_add(out, "}");
    put_steps(out, info->preparation);
    dnn_buf_add(out, "}");
}

static int write_model(const struct train_run *t, const struct train_record *record,
                       struct dnn_err *err)
{
    struct dnn_arena *arena = dnn_arena_make();
    struct dnn_buf inference = {0}, training = {0}, scaling = {0};
    struct dnn_package_info info = {.preparation =
                                        dnn_feed_provenance(t->stage->train.feed)};

    describe_inputs(t, arena, &info.inputs);
    describe_targets(t, arena, &info.targets);
    put_scaling(&info, &scaling);
    put_inference(t->config, &inference);
    int rc = put_training(record, &training, err);
    info.inference = inference.text;
    info.training = training.text;
    if (rc == 0)
        rc = dnn_model_save(dnn_replica_model(t->stage->replica),
                            dnn_config_dir(t->config), t->network, scaling.text, &info,
                            err);
    dnn_buf_free(&inference);
    dnn_buf_free(&training);
    dnn_buf_free(&scaling);
    dnn_arena_free(arena);
    return rc;
}

int dnn_train_write_model(const struct train_run *t, const struct train_record *record,
                          bool ema, struct dnn_err *err)
{
    int rc = 0;

    if (t->root) {
        if (ema)
            dnn_log(DNN_INFO, "train",
                    "the saved weights are their exponential moving average (EMA)");
        rc = write_model(t, record, err);
    }
    return dnn_comm_agree(t->comm, rc, err);
}
