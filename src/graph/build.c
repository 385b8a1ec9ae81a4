/* build.c - makes a model's nodes with their shapes; nested models are flattened.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/graph_impl.h"

#include <inttypes.h>
#include <string.h>

struct build {
    struct dnn_graph *graph;
    struct dnn_graph_node *node;
    size_t cap;
    int nnodes, nedges;
    int steps; /* calls of layers and models: empty models count, too */
};

/* One call of a model: its inputs and outputs. */
struct use {
    struct graph_model *model;
    int nin;
    const int *in; /* nodes; NULL: the top model, whose inputs are new nodes */
    int training;
    const struct dnn_graph_opts *opts; /* of the top model; or NULL */
    int *out;                          /* nodes, model->noutputs of them */
};

static int too_large(const struct graph_layer *l, struct dnn_err *err)
{
    return dnn_graph_fail(l, err, "there are more than %d uses of layers or %d edges",
                          DNN_GRAPH_NODES, DNN_GRAPH_EDGES);
}

/* All calls of a shared layer must have the same weight shapes. */
static int check_shared(struct build *b, const struct graph_layer *l, int nin,
                        const struct dnn_shape *in, struct dnn_err *err)
{
    const struct dnn_graph_node *first = &b->node[l->first];
    struct dnn_layer_weight w0[DNN_LAYER_WEIGHTS], w1[DNN_LAYER_WEIGHTS];
    struct dnn_shape *in0 = dnn_alloc(((size_t)first->nin + 1) * sizeof *in0);
    char x[DNN_SHAPE_TEXT], y[DNN_SHAPE_TEXT];

    for (int i = 0; i < first->nin; i++)
        in0[i] = b->node[first->in[i]].out;
    int n0 = dnn_layer_weights(l->layer, first->nin, in0, w0);
    int n1 = dnn_layer_weights(l->layer, nin, in, w1);
    dnn_free(in0);
    for (int i = 0; i < n0 && i < n1; i++)
        if (!dnn_shape_equal(&w0[i].shape, &w1[i].shape))
            return dnn_graph_fail(
                l, err,
                "is used again with an input for which its %s would be %s, not %s",
                w0[i].name, dnn_shape_text(x, sizeof x, &w1[i].shape),
                dnn_shape_text(y, sizeof y, &w0[i].shape));
    return 0;
}

static int count_weights(struct build *b, const struct graph_layer *l, int nin,
                         const struct dnn_shape *in, struct dnn_err *err)
{
    struct dnn_layer_weight w[DNN_LAYER_WEIGHTS];
    int n = dnn_layer_weights(l->layer, nin, in, w);

    for (int i = 0; i < n; i++) {
        int64_t count = 0;

        if (dnn_shape_count(&w[i].shape, &count, err) < 0)
            return dnn_graph_error_at(l, err);
        b->graph->params += count; /* each below 2^48, and at most DNN_LAYER_WEIGHTS */
        if (w[i].trainable) b->graph->trainable += count;
    }
    if (b->graph->params > DNN_LAYER_COUNT_MAX)
        return dnn_graph_fail(l, err,
                              "the network has more than %" PRId64 " parameters",
                              DNN_LAYER_COUNT_MAX);
    return 0;
}

/* Add a node for one call of a layer; *out is its number. */
static int add_node(struct build *b, struct graph_layer *l, int training, int nin,
                    const int *in, const struct dnn_shape *given, int *out,
                    struct dnn_err *err)
{
    struct dnn_shape *shapes = dnn_alloc(((size_t)nin + 1) * sizeof *shapes);
    struct dnn_shape shape = {0};
    int rc = 0, at = b->nnodes;

    for (int i = 0; i < nin; i++)
        shapes[i] = b->node[in[i]].out;
    if (given != NULL)
        shape = *given;
    else if (dnn_layer_infer(l->layer, nin, shapes, &shape, err) < 0)
        rc = dnn_graph_error_at(l, err);
    if (rc == 0 && l->first != DNN_NONE) rc = check_shared(b, l, nin, shapes, err);
    if (rc == 0 && l->first == DNN_NONE) rc = count_weights(b, l, nin, shapes, err);
    dnn_free(shapes);
    DNN_TRY(rc);
    if (at >= DNN_GRAPH_NODES || b->nedges + nin > DNN_GRAPH_EDGES)
        return too_large(l, err);
    int *edges = dnn_arena_alloc(b->graph->arena, ((size_t)nin + 1) * sizeof *edges);
    if (nin > 0) memcpy(edges, in, (size_t)nin * sizeof *edges);
    b->nedges += nin;
    b->node = dnn_grow(b->node, &b->cap, (size_t)at + 1, sizeof *b->node);
    if (l->first == DNN_NONE) l->first = at;
    b->node[at] = (struct dnn_graph_node){.name = l->full,
                                          .layer = l->layer,
                                          .first = l->first,
                                          .nin = nin,
                                          .in = edges,
                                          .out = shape,
                                          .training = training};
    b->nnodes++;
    *out = at;
    return 0;
}

/* An input of the network. */
static int top_input(struct build *b, const struct use *u, struct graph_layer *l,
                     int which, int *out, struct dnn_err *err)
{
    const struct dnn_graph_opts *opts = u->opts;
    const struct dnn_shape *given = NULL;
    char x[DNN_SHAPE_TEXT], y[DNN_SHAPE_TEXT];

    if (opts != NULL && opts->ninputs > 0) {
        given = &opts->input[which];
        if (l->layer->has_input && l->layer->input.ndim != given->ndim)
            return dnn_graph_fail(l, err, "is %s in the file, and cannot be %s",
                                  dnn_shape_text(x, sizeof x, &l->layer->input),
                                  dnn_shape_text(y, sizeof y, given));
    }
    if (given == NULL && !l->layer->has_input)
        return dnn_graph_fail(l, err,
                              "the input shape is not given: add an InputLayer with "
                              "\"batch_input_shape\": [null, 64, 64, 1] in front, or "
                              "that key into the first layer");
    DNN_TRY(add_node(b, l, -1, 0, NULL, given, out, err));
    b->node[*out].out.dim[0] = DNN_UNKNOWN;
    return 0;
}

/* An input of a nested model is the node that the outer model passes. */
static int inner_input(struct build *b, const struct use *u,
                       const struct graph_layer *l, int which, int *out,
                       struct dnn_err *err)
{
    char x[DNN_SHAPE_TEXT], y[DNN_SHAPE_TEXT];

    *out = u->in[which];
    const struct dnn_shape *have = &b->node[*out].out, *expected = &l->layer->input;
    bool fits = !l->layer->has_input || have->ndim == expected->ndim;
    for (int i = 1; fits && l->layer->has_input && i < have->ndim; i++)
        fits = have->dim[i] < 0 || expected->dim[i] < 0 ||
               have->dim[i] == expected->dim[i];
    if (!fits)
        return dnn_graph_fail(l, err, "the model takes %s, but is given %s",
                              dnn_shape_text(x, sizeof x, expected),
                              dnn_shape_text(y, sizeof y, have));
    return 0;
}

static int flatten(struct build *b, struct use *u, struct dnn_err *err);

/* Set the shapes of a call's outputs; a model that is called several times keeps those
 * of its first call. */
static void set_shapes(struct build *b, struct graph_call *call, int n, const int *node)
{
    if (call->out != NULL) return;
    call->out = dnn_arena_alloc(b->graph->arena, ((size_t)n + 1) * sizeof *call->out);
    for (int i = 0; i < n; i++)
        call->out[i] = b->node[node[i]].out;
}

/* One call of a layer; the nodes of its outputs go to result. */
static int add_call(struct build *b, struct use *u, int at, const int *offset,
                    int *result, struct dnn_err *err)
{
    struct graph_model *m = u->model;
    struct graph_layer *l = &m->layer[m->owner[at]];
    struct graph_call *call = &l->call[at - l->start];
    int training = call->training >= 0 ? call->training : u->training;
    int rc;

    if (++b->steps > DNN_GRAPH_NODES) return too_large(l, err);
    if (l->is_input) {
        int which = 0;

        while (which < m->ninputs && m->input[which].layer != m->owner[at])
            which++;
        if (which == m->ninputs)
            return dnn_graph_fail(l, err, "is not named in \"input_layers\"");
        rc = u->in == NULL ? top_input(b, u, l, which, &result[offset[at]], err)
                           : inner_input(b, u, l, which, &result[offset[at]], err);
        if (rc == 0) set_shapes(b, call, 1, &result[offset[at]]);
        return rc;
    }
    int *in = dnn_alloc(((size_t)call->nrefs + 1) * sizeof *in);
    for (int k = 0; k < call->nrefs; k++) {
        const struct graph_ref *ref = &call->ref[k];

        in[k] = result[offset[m->layer[ref->layer].start + ref->call] + ref->tensor];
    }
    if (l->model == NULL)
        rc = add_node(b, l, training, call->nrefs, in, NULL, &result[offset[at]], err);
    else if (l->model->ninputs != call->nrefs)
        rc = dnn_graph_fail(l, err, "takes %d input%s, not %d", l->model->ninputs,
                            l->model->ninputs == 1 ? "" : "s", call->nrefs);
    else
        rc = flatten(b,
                     &(struct use){.model = l->model,
                                   .nin = call->nrefs,
                                   .in = in,
                                   .training = training,
                                   .out = &result[offset[at]]},
                     err);
    dnn_free(in);
    if (rc == 0)
        set_shapes(b, call, l->model == NULL ? 1 : l->model->noutputs,
                   &result[offset[at]]);
    return rc;
}

static int flatten(struct build *b, struct use *u, struct dnn_err *err)
{
    struct graph_model *m = u->model;
    int *offset = dnn_alloc(((size_t)m->ncalls + 1) * sizeof *offset), total = 0,
        rc = 0;

    for (int at = 0; at < m->ncalls; at++) {
        const struct graph_model *inner = m->layer[m->owner[at]].model;

        offset[at] = total;
        total += inner == NULL ? 1 : inner->noutputs;
        if (total > DNN_GRAPH_EDGES) {
            dnn_free(offset);
            return too_large(&m->layer[m->owner[at]], err);
        }
    }
    int *result = dnn_alloc(((size_t)total + 1) * sizeof *result);
    for (int i = 0; rc == 0 && i < m->ncalls; i++)
        rc = add_call(b, u, m->order[i], offset, result, err);
    for (int i = 0; rc == 0 && i < m->noutputs; i++) {
        const struct graph_ref *ref = &m->output[i];

        u->out[i] =
            result[offset[m->layer[ref->layer].start + ref->call] + ref->tensor];
    }
    dnn_free(offset);
    dnn_free(result);
    return rc;
}

/* Inputs in the order of "input_layers"; nodes may be in another order. */
static void list_inputs(struct build *b, struct graph_model *m)
{
    struct dnn_graph *graph = b->graph;
    int *input =
        dnn_arena_alloc(graph->arena, ((size_t)m->ninputs + 1) * sizeof *input);

    for (int i = 0; i < m->ninputs; i++)
        input[i] = m->layer[m->input[i].layer].first;
    graph->ninputs = m->ninputs;
    graph->input = input;
}

static void find_lines(const struct graph_model *m, struct dnn_graph_node *node)
{
    for (int i = 0; i < m->nlayers; i++) {
        const struct graph_layer *l = &m->layer[i];

        if (l->model != NULL)
            find_lines(l->model, node);
        else if (l->first != DNN_NONE)
            node[l->first].line = (int)dnn_json_line(&l->at);
    }
}

int dnn_graph_build(struct graph_model *m, const struct dnn_graph_opts *opts,
                    struct dnn_graph *graph, struct dnn_err *err)
{
    struct build b = {.graph = graph};

    if (opts != NULL && opts->ninputs > 0 && opts->ninputs != m->ninputs)
        return dnn_fail(err, DNN_ECONFIG, "%s: the network has %d input%s, not %d",
                        dnn_json_name(m->at.file), m->ninputs,
                        m->ninputs == 1 ? "" : "s", opts->ninputs);
    int *output =
        dnn_arena_alloc(graph->arena, ((size_t)m->noutputs + 1) * sizeof *output);
    int rc = flatten(
        &b, &(struct use){.model = m, .training = -1, .opts = opts, .out = output},
        err);
    if (rc == 0) {
        struct dnn_graph_node *node =
            dnn_arena_alloc(graph->arena, ((size_t)b.nnodes + 1) * sizeof *node);

        if (b.nnodes > 0) memcpy(node, b.node, (size_t)b.nnodes * sizeof *node);
        graph->node = node;
        graph->nnodes = b.nnodes;
        graph->noutputs = m->noutputs;
        graph->output = output;
        list_inputs(&b, m);
        /* Finding a line reads the file again: too slow for large networks. */
        if (b.nnodes <= 2000) find_lines(m, node);
    }
    dnn_free(b.node);
    return rc;
}
