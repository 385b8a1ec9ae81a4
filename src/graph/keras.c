/* keras.c - reading Keras JSON: Sequential, Functional and Model, of Keras 1, 2
 * and 3, and plain lists of layers.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/graph_impl.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int dnn_graph_error_at(const struct graph_layer *l, struct dnn_err *err)
{
    return dnn_prefix(err, "%s:%zu: layer '%.80s' (%.60s): ", dnn_json_name(l->at.file),
                      dnn_json_line(&l->at), l->full, l->class_name);
}

int dnn_graph_fail(const struct graph_layer *l, struct dnn_err *err, const char *fmt,
                   ...)
{
    struct dnn_err own;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(own.text, sizeof own.text, fmt, ap);
    va_end(ap);
    dnn_fail(err, DNN_ECONFIG, "%s", own.text);
    return dnn_graph_error_at(l, err);
}

/* Keys next to "config" in the object of a layer or a model, of any Keras version. */
static const char *const object_keys[] = {
    "class_name",       "config",       "name",    "inbound_nodes", "module",
    "registered_name",  "build_config", "backend", "keras_version", "compile_config",
    "shared_object_id", "trainable",    NULL};

static bool is_model(const char *class_name)
{
    return strcmp(class_name, "Sequential") == 0 ||
           strcmp(class_name, "Functional") == 0 || strcmp(class_name, "Model") == 0;
}

/* Fail on a key that is not in keys. */
static int known_keys(const struct dnn_jobj *at, const char *const *keys,
                      struct dnn_err *err)
{
    char hint[96];

    for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
         it = dnn_json_next(&it)) {
        int i = 0;

        while (keys[i] != NULL && strcmp(keys[i], it.name) != 0)
            i++;
        if (keys[i] == NULL)
            return dnn_json_fail(&it, err, "unknown key%s",
                                 dnn_text_hint(hint, sizeof hint, it.name, keys));
    }
    return 0;
}

/* The name is in the object, in its config, or in both (then they must be equal). */
static int read_name(struct graph_read *r, const struct dnn_jobj *at,
                     const struct dnn_jobj *config, int index, const char *class_name,
                     const char **out, struct dnn_err *err)
{
    struct dnn_jobj outer = dnn_json_sub(at, "name");
    struct dnn_jobj inner = dnn_json_sub(config, "name");
    const char *a = NULL, *b = NULL;

    if (dnn_json_type(&outer) > DNN_J_NULL) DNN_TRY(dnn_json_string(&outer, &a, err));
    if (dnn_json_type(&inner) > DNN_J_NULL) DNN_TRY(dnn_json_string(&inner, &b, err));
    if (a != NULL && b != NULL && strcmp(a, b) != 0)
        return dnn_json_fail(&inner, err,
                             "must be \"%.80s\", as the name next to \"config\"", a);
    if (a == NULL) a = b;
    if (a != NULL && (a[0] == '\0' || strlen(a) > 200))
        return dnn_json_fail(at, err, "a name must have 1 to 200 letters");
    if (a != NULL)
        *out = dnn_arena_strdup(r->arena, a);
    else {
        char *made = dnn_format("%.60s_%d", class_name, index + 1);

        *out = dnn_arena_strdup(r->arena, made);
        dnn_free(made);
    }
    return 0;
}

static const char *join(struct graph_read *r, const char *prefix, const char *name)
{
    if (prefix[0] == '\0') return name;
    char *made = dnn_format("%s/%s", prefix, name);
    const char *kept = dnn_arena_strdup(r->arena, made);
    dnn_free(made);
    return kept;
}

/* A layer of a frozen model is frozen. */
static const struct dnn_layer *freeze(struct graph_read *r, const struct dnn_layer *l)
{
    struct dnn_layer *copy = dnn_arena_alloc(r->arena, sizeof *copy);

    *copy = *l;
    copy->trainable = false;
    return copy;
}

/* In Keras 3, "build_config" has the input shape of the first layer of a chain. */
static void input_from_build(struct graph_read *r, const struct dnn_jobj *at,
                             struct graph_layer *l)
{
    struct dnn_jobj build = dnn_json_sub(at, "build_config");
    struct dnn_jobj shape = dnn_json_sub(&build, "input_shape");
    struct dnn_shape input;

    if (l->layer == NULL || l->layer->has_input ||
        dnn_json_type(&shape) != DNN_J_LIST ||
        dnn_layer_read_shape(&shape, &input, NULL) < 0)
        return;
    struct dnn_layer *copy = dnn_arena_alloc(r->arena, sizeof *copy);
    *copy = *l->layer;
    copy->input = input;
    copy->has_input = true;
    l->layer = copy;
}

/* Read class and name; set *frozen if "trainable" is false. */
static int read_head(struct graph_read *r, const struct dnn_jobj *at, int index,
                     const char *prefix, struct graph_layer *l, bool *frozen,
                     struct dnn_err *err)
{
    struct dnn_jobj class_name = dnn_json_sub(at, "class_name");
    struct dnn_jobj config = dnn_json_sub(at, "config");
    struct dnn_jobj trainable = dnn_json_sub(at, "trainable");
    char quote[DNN_JSON_QUOTE];
    bool train = true;

    if (dnn_json_type(at) != DNN_J_OBJECT)
        return dnn_json_fail(at, err, "a layer must be an object, not %s",
                             dnn_json_quote(quote, at));
    DNN_TRY(known_keys(at, object_keys, err));
    if (class_name.val == NULL)
        return dnn_json_fail(at, err, "the key \"class_name\" is missing");
    if (config.val == NULL)
        return dnn_json_fail(at, err, "the key \"config\" is missing");
    DNN_TRY(dnn_json_string(&class_name, &l->class_name, err));
    l->class_name = dnn_arena_strdup(r->arena, l->class_name);
    DNN_TRY(read_name(r, at, &config, index, l->class_name, &l->name, err));
    l->full = join(r, prefix, l->name);
    l->first = DNN_NONE;
    l->at = *at;
    l->at.up = NULL;
    if (dnn_json_type(&trainable) > DNN_J_NULL)
        DNN_TRY(dnn_json_bool(&trainable, &train, err));
    *frozen = *frozen || !train;
    return 0;
}

static bool is_op(const struct dnn_jobj *at)
{
    struct dnn_jobj module = dnn_json_sub(at, "module");
    const char *name;

    return dnn_json_string(&module, &name, NULL) == 0 &&
           (strncmp(name, "keras.src.ops.", 14) == 0 ||
            strncmp(name, "keras.ops", 9) == 0);
}

/* An operation of Keras 3 between layers; a number operand is in its call. */
static int read_op(struct graph_read *r, const struct dnn_jobj *at,
                   struct graph_layer *l, struct dnn_err *err)
{
    struct dnn_jobj config = dnn_json_sub(at, "config");
    struct dnn_jobj inbound = dnn_json_sub(at, "inbound_nodes");
    struct dnn_jobj module = dnn_json_sub(at, "module");
    struct dnn_layer_op op = {.class_name = l->class_name};

    l->is_op = true;
    DNN_TRY(dnn_json_string(&module, &op.module, err));
    DNN_TRY(dnn_graph_read_calls(r, &inbound, l, err));
    if (l->ncalls != 1)
        return dnn_graph_fail(l, err, "an operation is called once, not %d times",
                              l->ncalls);
    op.has_number = l->call->has_number;
    op.first = l->call->number_first;
    op.number = l->call->number;
    return dnn_layer_read_op(&op, l->full, &config, r->arena, &l->layer, err);
}

static int read_layer(struct graph_read *r, const struct dnn_jobj *at, int index,
                      const char *prefix, bool frozen, struct graph_layer *l,
                      struct dnn_err *err)
{
    struct dnn_jobj config = dnn_json_sub(at, "config");
    struct dnn_jobj inbound = dnn_json_sub(at, "inbound_nodes");

    if (++r->nlayers > DNN_GRAPH_LAYERS)
        return dnn_json_fail(at, err, "there are more than %d layers",
                             DNN_GRAPH_LAYERS);
    DNN_TRY(read_head(r, at, index, prefix, l, &frozen, err));
    if (is_op(at)) return read_op(r, at, l, err);
    if (is_model(l->class_name)) {
        DNN_TRY(dnn_graph_read_model(r, at, l->full, frozen, &l->model, err));
    } else {
        DNN_TRY(dnn_layer_read(l->class_name, l->full, &config, r->keras, r->arena,
                               &l->layer, err));
        if (frozen) l->layer = freeze(r, l->layer);
        l->is_input = l->layer->type == dnn_layer_find("InputLayer");
    }
    if (index == 0) input_from_build(r, at, l);
    if (dnn_json_type(&inbound) <= DNN_J_NULL) return 0;
    return dnn_graph_read_calls(r, &inbound, l, err);
}

static int by_name(const void *a, const void *b)
{
    const struct graph_layer *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

/* Names of layers must be unique. */
static int check_names(struct graph_model *m, struct dnn_err *err)
{
    const struct graph_layer **sorted =
        dnn_alloc(((size_t)m->nlayers + 1) * sizeof *sorted);
    int rc = 0;

    for (int i = 0; i < m->nlayers; i++)
        sorted[i] = &m->layer[i];
    qsort(sorted, (size_t)m->nlayers, sizeof *sorted, by_name);
    for (int i = 1; rc == 0 && i < m->nlayers; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0) {
            const struct graph_layer *later =
                sorted[i] > sorted[i - 1] ? sorted[i] : sorted[i - 1];

            rc = dnn_graph_fail(later, err, "another layer has this name already");
        }
    dnn_free(sorted);
    return rc;
}

static int read_layers(struct graph_read *r, const struct dnn_jobj *list,
                       const char *prefix, bool frozen, struct graph_model *m,
                       struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];
    size_t n = dnn_json_count(list);
    bool inbound = false;

    if (dnn_json_type(list) != DNN_J_LIST)
        return dnn_json_fail(list, err, "must be a list of layers, not %s",
                             dnn_json_quote(quote, list));
    if (n == 0) return dnn_json_fail(list, err, "must have at least one layer");
    if (n > DNN_GRAPH_LAYERS)
        return dnn_json_fail(list, err, "there are more than %d layers",
                             DNN_GRAPH_LAYERS);
    m->layer = dnn_arena_alloc(r->arena, (n + 1) * sizeof *m->layer);
    for (struct dnn_jobj it = dnn_json_first(list); it.val != NULL;
         it = dnn_json_next(&it)) {
        DNN_TRY(read_layer(r, &it, (int)it.index, prefix, frozen, &m->layer[it.index],
                           err));
        inbound = inbound || m->layer[it.index].ncalls > 0;
    }
    m->nlayers = (int)n;
    m->chain = !inbound;
    return check_names(m, err);
}

/* The config of a model, except its layers. */
static int read_config(struct graph_read *r, const struct dnn_jobj *config,
                       struct graph_model *m, struct dnn_err *err)
{
    static const char *const keys[] = {
        "name",         "trainable",     "layers",
        "input_layers", "output_layers", "build_input_shape",
        "dtype",        "autocast",      NULL};
    struct dnn_jobj in = dnn_json_sub(config, "input_layers");
    struct dnn_jobj out = dnn_json_sub(config, "output_layers");
    struct dnn_jobj build = dnn_json_sub(config, "build_input_shape");

    DNN_TRY(known_keys(config, keys, err));
    if (dnn_json_type(&in) > DNN_J_NULL)
        DNN_TRY(dnn_graph_read_refs(r, &in, &m->ninputs, &m->input, err));
    if (dnn_json_type(&out) > DNN_J_NULL)
        DNN_TRY(dnn_graph_read_refs(r, &out, &m->noutputs, &m->output, err));
    if (dnn_json_type(&build) == DNN_J_LIST) {
        DNN_TRY(dnn_layer_read_shape(&build, &m->shape, err));
        m->has_shape = true;
    }
    return 0;
}

/* A model as an object: {"class_name", "config"}. */
static int read_object(struct graph_read *r, const struct dnn_jobj *at,
                       const char *prefix, bool frozen, struct graph_model *m,
                       struct dnn_err *err)
{
    struct dnn_jobj class_name = dnn_json_sub(at, "class_name");
    struct dnn_jobj config = dnn_json_sub(at, "config");
    struct dnn_jobj layers = dnn_json_sub(&config, "layers");
    struct dnn_jobj trainable = dnn_json_sub(&config, "trainable");
    const char *word = "Sequential";
    bool train = true;

    if (class_name.val != NULL) DNN_TRY(dnn_json_string(&class_name, &word, err));
    if (!is_model(word))
        return dnn_json_fail(&class_name, err,
                             "must be Sequential, Functional or Model, not \"%.60s\"",
                             word);
    DNN_TRY(known_keys(at, object_keys, err));
    if (config.val == NULL)
        return dnn_json_fail(at, err, "the key \"config\" is missing");
    DNN_TRY(read_name(r, at, &config, 0, "model", &m->name, err));
    /* In Keras 1 and early Keras 2 the config of a Sequential is a list of layers. */
    if (dnn_json_type(&config) == DNN_J_LIST)
        return read_layers(r, &config, prefix, frozen, m, err);
    if (dnn_json_type(&trainable) > DNN_J_NULL)
        DNN_TRY(dnn_json_bool(&trainable, &train, err));
    if (layers.val == NULL)
        return dnn_json_fail(&config, err, "the key \"layers\" is missing");
    DNN_TRY(read_layers(r, &layers, prefix, frozen || !train, m, err));
    return read_config(r, &config, m, err);
}

int dnn_graph_read_model(struct graph_read *r, const struct dnn_jobj *at,
                         const char *prefix, bool frozen, struct graph_model **out,
                         struct dnn_err *err)
{
    struct graph_model *m = dnn_arena_alloc(r->arena, sizeof *m);
    char quote[DNN_JSON_QUOTE];

    m->at = *at;
    m->at.up = NULL;
    m->name = "model";
    if (dnn_json_type(at) == DNN_J_LIST) {
        DNN_TRY(read_layers(r, at, prefix, frozen, m, err));
    } else if (dnn_json_type(at) == DNN_J_OBJECT) {
        DNN_TRY(read_object(r, at, prefix, frozen, m, err));
    } else
        return dnn_json_fail(at, err, "must be a model or a list of layers, not %s",
                             dnn_json_quote(quote, at));
    *out = m;
    return dnn_graph_resolve(r, m, err);
}
