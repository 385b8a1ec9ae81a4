/* inbound.c - the inputs of layers ("inbound_nodes"), as Keras 1, 2 and 3 write them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/graph_impl.h"

#include <string.h>

/* References read so far; copied to the arena at the end. */
struct gather {
    struct graph_ref *ref;
    size_t n, cap;
    struct graph_call *op; /* of an operation, which may have a number; else NULL */
    /* The layer is the same in training: Keras 3 writes "training": true for some. */
    bool same;
};

static int add(struct gather *g, const struct dnn_jobj *at, struct dnn_err *err)
{
    struct dnn_jobj name = dnn_json_first(at), call = dnn_json_next(&name),
                    tensor = dnn_json_next(&call);
    struct graph_ref ref = {.layer = DNN_NONE};

    if (g->n == DNN_LAYER_INPUTS_MAX)
        return dnn_json_fail(at, err, "has more than %d inputs", DNN_LAYER_INPUTS_MAX);
    DNN_TRY(dnn_json_string(&name, &ref.name, err));
    if (call.val != NULL) DNN_TRY(dnn_json_int(&call, &ref.call, err));
    if (tensor.val != NULL) DNN_TRY(dnn_json_int(&tensor, &ref.tensor, err));
    g->ref = dnn_grow(g->ref, &g->cap, g->n + 1, sizeof *g->ref);
    g->ref[g->n++] = ref;
    return 0;
}

static bool is_ref(const struct dnn_jobj *at)
{
    struct dnn_jobj first = dnn_json_first(at);

    return dnn_json_type(at) == DNN_J_LIST && dnn_json_type(&first) == DNN_J_TEXT;
}

/* The keyword arguments of a call. */
static int kwargs(const struct gather *g, const struct dnn_jobj *at, int *training,
                  struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];

    if (dnn_json_type(at) > DNN_J_NULL && dnn_json_type(at) != DNN_J_OBJECT)
        return dnn_json_fail(at, err, "must be an object, not %s",
                             dnn_json_quote(quote, at));
    for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
         it = dnn_json_next(&it)) {
        bool yes;

        if (dnn_json_type(&it) == DNN_J_NULL) continue;
        if (strcmp(it.name, "training") == 0) {
            DNN_TRY(dnn_json_bool(&it, &yes, err));
            if (yes && g->same) continue;
            if (yes)
                return dnn_json_fail(&it, err,
                                     "must be false or null: a layer that trains also "
                                     "in inference is not supported");
            *training = 0;
        } else
            return dnn_json_fail(&it, err,
                                 "a layer may be called with \"training\", not with "
                                 "%s; make it a layer of its own",
                                 dnn_json_quote(quote, &it));
    }
    return 0;
}

static int read_refs(struct gather *g, const struct dnn_jobj *at, int *training,
                     struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];

    if (is_ref(at)) {
        DNN_TRY(add(g, at, err));
        for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
             it = dnn_json_next(&it))
            if (it.index == 3 && dnn_json_type(&it) == DNN_J_OBJECT)
                DNN_TRY(kwargs(g, &it, training, err));
        return 0;
    }
    if (dnn_json_type(at) == DNN_J_OBJECT) {
        struct dnn_jobj config = dnn_json_sub(at, "config");
        struct dnn_jobj history = dnn_json_sub(&config, "keras_history");

        if (is_ref(&history)) return add(g, &history, err);
        /* Inputs by name, {"image": [...], "mask": [...]}. */
        if (dnn_json_sub(at, "class_name").val != NULL)
            return dnn_json_fail(at, err, "must be a tensor of another layer");
    } else if (dnn_json_type(at) == DNN_J_NULL) {
        return 0;
    } else if (g->op != NULL && dnn_json_type(at) == DNN_J_NUMBER) {
        if (g->op->has_number || g->n > 1)
            return dnn_json_fail(at, err,
                                 "must be a tensor: only one operand may be "
                                 "a number");
        g->op->has_number = true;
        g->op->number_first = g->n == 0;
        return dnn_json_real(at, &g->op->number, err);
    } else if (dnn_json_type(at) != DNN_J_LIST)
        return dnn_json_fail(at, err, "must be a tensor of another layer, not %s",
                             dnn_json_quote(quote, at));
    for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
         it = dnn_json_next(&it))
        DNN_TRY(read_refs(g, &it, training, err));
    return 0;
}

static struct graph_ref *keep(struct graph_read *r, struct gather *g)
{
    struct graph_ref *ref = dnn_arena_alloc(r->arena, (g->n + 1) * sizeof *ref);

    if (g->n > 0) memcpy(ref, g->ref, g->n * sizeof *ref);
    for (size_t i = 0; i < g->n; i++)
        ref[i].name = dnn_arena_strdup(r->arena, ref[i].name);
    return ref;
}

int dnn_graph_read_refs(struct graph_read *r, const struct dnn_jobj *at, int *n,
                        struct graph_ref **out, struct dnn_err *err)
{
    struct gather g = {0};
    int training;
    int rc = read_refs(&g, at, &training, err);

    if (rc == 0) {
        *n = (int)g.n;
        *out = keep(r, &g);
    }
    dnn_free(g.ref);
    return rc;
}

/* One call: a list of references, or Keras 3's {"args", "kwargs"}. */
static int read_call(struct graph_read *r, const struct dnn_jobj *at,
                     const struct graph_layer *layer, struct graph_call *call,
                     struct dnn_err *err)
{
    struct gather g = {.op = layer->is_op ? call : NULL,
                       .same = strcmp(layer->class_name, "CenterCrop") == 0};
    int rc;

    call->training = -1;
    if (dnn_json_type(at) == DNN_J_OBJECT) {
        struct dnn_jobj args = dnn_json_sub(at, "args");
        struct dnn_jobj named = dnn_json_sub(at, "kwargs");

        if (args.val == NULL)
            return dnn_json_fail(at, err, "the key \"args\" is missing");
        rc = read_refs(&g, &args, &call->training, err);
        if (rc == 0) rc = kwargs(&g, &named, &call->training, err);
    } else
        rc = read_refs(&g, at, &call->training, err);
    if (rc == 0 && g.n == 0) rc = dnn_json_fail(at, err, "has no input tensor");
    if (rc == 0) {
        call->nrefs = (int)g.n;
        call->ref = keep(r, &g);
    }
    dnn_free(g.ref);
    return rc;
}

int dnn_graph_read_calls(struct graph_read *r, const struct dnn_jobj *at,
                         struct graph_layer *layer, struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];
    size_t n = dnn_json_count(at);

    if (dnn_json_type(at) != DNN_J_LIST)
        return dnn_json_fail(at, err, "must be a list, not %s",
                             dnn_json_quote(quote, at));
    /* Some writers omit one level for a single call: [["x", 0, 0]]. */
    bool flat = is_ref(at);
    if (n > DNN_GRAPH_NODES)
        return dnn_json_fail(at, err, "has more than %d uses", DNN_GRAPH_NODES);
    layer->ncalls = flat ? 1 : (int)n;
    layer->call = dnn_arena_alloc(r->arena, (n + 1) * sizeof *layer->call);
    if (flat) return read_call(r, at, layer, &layer->call[0], err);
    for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
         it = dnn_json_next(&it))
        DNN_TRY(read_call(r, &it, layer, &layer->call[it.index], err));
    return 0;
}
