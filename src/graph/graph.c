/* graph.c - reads a graph from a file or a JSON value, lists its layers, lowers it to
 * ops.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/graph_impl.h"

#include "base/text.h"
#include "graph/zoo.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The Keras version: "keras_version"; else 3 if there is a "module", which only Keras 3
 * writes. */
static int keras_version(const struct dnn_jobj *at)
{
    struct dnn_jobj version = dnn_json_sub(at, "keras_version");
    struct dnn_jobj module = dnn_json_sub(at, "module");
    const char *word;

    if (dnn_json_string(&version, &word, NULL) == 0 && word[0] >= '1' && word[0] <= '3')
        return word[0] - '0';
    if (version.val == NULL && dnn_json_type(&module) == DNN_J_TEXT) return 3;
    return 2;
}

/* {"zoo": "unet3d", ...}: generate the network's JSON and read that. */
static int read_zoo(const struct dnn_jobj *at, const struct dnn_graph_opts *opts,
                    struct dnn_graph **out, struct dnn_err *err)
{
    struct dnn_zoo_opts zoo;
    struct dnn_json *file = NULL;
    struct dnn_err why;
    char *text = NULL;

    DNN_TRY(dnn_field_fill(at, dnn_zoo_fields, NULL, &zoo, err));
    if (dnn_zoo_text(&zoo, &text, &why) < 0)
        return dnn_json_fail(at, err, "%s", why.text);
    int rc = dnn_json_text(zoo.zoo, text, strlen(text), &file, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_graph_read_json(&top, opts, out, err);
    }
    dnn_json_free(file);
    dnn_free(text);
    return rc;
}

/* ---- list of layers ---- */

struct listing {
    const char **name, **class_name;
    int *model;
    int n;
};

static void list_model(const struct graph_model *m, int parent, struct listing *to)
{
    for (int i = 0; i < m->nlayers; i++) {
        const struct graph_layer *l = &m->layer[m->listed[i]];
        if (l->model == NULL && l->layer->op != NULL) continue;
        int at = to->n++;

        to->name[at] = l->full;
        to->model[at] = parent;
        if (l->model == NULL) {
            struct dnn_layer_out out;

            dnn_layer_write(l->layer, l->name, &out, NULL);
            to->class_name[at] = out.class_name;
            dnn_buf_free(&out.config);
            continue;
        }
        to->class_name[at] =
            strcmp(l->class_name, "Sequential") == 0 ? "Sequential" : "Functional";
        list_model(l->model, at, to);
    }
}

static void list_layers(const struct graph_read *r, const struct graph_model *m,
                        struct dnn_graph *graph)
{
    size_t n = 2 * (size_t)r->nlayers + 2; /* implicit inputs are not counted */
    struct listing to = {.name = dnn_arena_alloc(r->arena, n * sizeof *to.name),
                         .class_name =
                             dnn_arena_alloc(r->arena, n * sizeof *to.class_name),
                         .model = dnn_arena_alloc(r->arena, n * sizeof *to.model)};

    list_model(m, DNN_NONE, &to);
    graph->nlayers = to.n;
    graph->layer_name = to.name;
    graph->layer_class = to.class_name;
    graph->layer_model = to.model;
}

int dnn_graph_read_json(const struct dnn_jobj *at, const struct dnn_graph_opts *opts,
                        struct dnn_graph **out, struct dnn_err *err)
{
    if (dnn_json_sub(at, "zoo").val != NULL) return read_zoo(at, opts, out, err);
    struct dnn_arena *arena = dnn_arena_make();
    struct dnn_graph *graph = dnn_arena_alloc(arena, sizeof *graph);
    struct graph_read r = {.arena = arena, .keras = keras_version(at)};
    struct graph_model *model = NULL;

    graph->arena = arena;
    graph->file = dnn_arena_strdup(arena, dnn_json_name(at->file));
    int rc = dnn_graph_read_model(&r, at, "", false, &model, err);
    if (rc == 0) {
        graph->name = model->name;
        graph->model = model;
        list_layers(&r, model, graph);
        rc = dnn_graph_build(model, opts, graph, err);
    }
    if (rc < 0) {
        dnn_arena_free(arena);
        return rc;
    }
    *out = graph;
    return 0;
}

int dnn_graph_read(const char *path, const struct dnn_graph_opts *opts,
                   struct dnn_graph **out, struct dnn_err *err)
{
    struct dnn_json *file;

    DNN_TRY(dnn_json_read(path, &file, err));
    struct dnn_jobj top = dnn_json_top(file);
    int rc = dnn_graph_read_json(&top, opts, out, err);
    dnn_json_free(file);
    return rc;
}

void dnn_graph_free(struct dnn_graph *graph)
{
    if (graph != NULL) dnn_arena_free(graph->arena);
}

/* ---- lowering ---- */

/* The shapes of all nodes for this batch size; fails if one is unknown. */
static int infer_shapes(const struct dnn_graph *graph, int64_t batch,
                        struct dnn_shape *shape, struct dnn_err *err)
{
    for (int i = 0; i < graph->nnodes; i++) {
        const struct dnn_graph_node *node = &graph->node[i];
        char text[DNN_SHAPE_TEXT];
        int rc = 0;

        if (node->nin == 0) {
            shape[i] = node->out;
            shape[i].dim[0] = batch;
            if (!dnn_shape_known(&shape[i]))
                rc = dnn_fail(
                    err, DNN_ECONFIG,
                    "the shape of the input is %s; give the unknown dimensions",
                    dnn_shape_text(text, sizeof text, &node->out));
        } else {
            struct dnn_shape *in = dnn_alloc((size_t)node->nin * sizeof *in);

            for (int k = 0; k < node->nin; k++)
                in[k] = shape[node->in[k]];
            rc = dnn_layer_infer(node->layer, node->nin, in, &shape[i], err);
            dnn_free(in);
        }
        if (rc < 0)
            return dnn_prefix(err, "%s:%d: layer '%.80s' (%s): ", graph->file,
                              node->line, node->name, node->layer->type->name);
    }
    return 0;
}

static int make_weight(struct dnn_prog *prog, const struct dnn_layer_weight *w)
{
    int v = w->state ? dnn_prog_state(prog, w->name, &w->shape, &w->init)
                     : dnn_prog_weight(prog, w->name, &w->shape, &w->init);

    prog->value[v].regularizer = w->reg;
    prog->value[v].constraint = w->constraint;
    return v;
}

static int lower_node(const struct dnn_graph *graph, int i, struct dnn_prog *prog,
                      const int *value)
{
    const struct dnn_graph_node *node = &graph->node[i];
    const struct dnn_layer *layer = node->layer;
    struct dnn_layer_weight weight[DNN_LAYER_WEIGHTS];
    int id[DNN_LAYER_WEIGHTS], *in = dnn_alloc(((size_t)node->nin + 1) * sizeof *in);
    struct dnn_shape *shape = dnn_alloc(((size_t)node->nin + 1) * sizeof *shape);

    for (int k = 0; k < node->nin; k++) {
        in[k] = value[node->in[k]];
        shape[k] = *dnn_prog_shape(prog, in[k]);
    }
    dnn_prog_set_layer(prog, node->name, graph->node[node->first].line,
                       !layer->trainable);
    int n = dnn_layer_weights(layer, node->nin, shape, weight);
    for (int k = 0; k < n; k++)
        id[k] = make_weight(prog, &weight[k]);
    struct dnn_layer_lower to = {.prog = prog,
                                 .training = prog->training && node->training != 0,
                                 .nin = node->nin,
                                 .in = in,
                                 .weight = id};
    int y = layer->type->lower(layer, &to);
    if (prog->training && (layer->activity.l1 != 0 || layer->activity.l2 != 0)) {
        /* Keras averages over the batch. */
        double batch = (double)dnn_prog_dim(prog, y, 0);
        union dnn_attr attr = {
            .activity = {layer->activity.l1 / batch, layer->activity.l2 / batch}
        };

        y = dnn_prog_op1(prog, DNN_OP_ACTIVITY, &attr, y);
    }
    dnn_free(in);
    dnn_free(shape);
    return y;
}

int dnn_graph_lower(const struct dnn_graph *graph, int64_t batch, struct dnn_prog *prog,
                    int *output, struct dnn_err *err)
{
    struct dnn_shape *shape = dnn_alloc(((size_t)graph->nnodes + 1) * sizeof *shape);
    int *value = dnn_alloc(((size_t)graph->nnodes + 1) * sizeof *value);
    int rc = 0;

    if (batch < 1 || batch > DNN_LAYER_AXIS_MAX)
        rc = dnn_fail(err, DNN_ECONFIG,
                      "the batch must be between 1 and %d, not %" PRId64,
                      DNN_LAYER_AXIS_MAX, batch);
    if (rc == 0) rc = infer_shapes(graph, batch, shape, err);
    for (int i = 0; rc == 0 && i < graph->ninputs; i++) {
        const struct dnn_graph_node *node = &graph->node[graph->input[i]];

        dnn_prog_set_layer(prog, node->name, node->line, false);
        value[graph->input[i]] =
            dnn_prog_input(prog, node->name, prog->dtype, &shape[graph->input[i]]);
    }
    for (int i = 0; rc == 0 && i < graph->nnodes; i++)
        if (graph->node[i].nin > 0) value[i] = lower_node(graph, i, prog, value);
    for (int i = 0; rc == 0 && i < graph->noutputs; i++)
        output[i] = value[graph->output[i]];
    dnn_free(shape);
    dnn_free(value);
    return rc;
}
