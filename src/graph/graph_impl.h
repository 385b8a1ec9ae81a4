/* graph_impl.h - a model as read from JSON, before it is flattened into nodes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_GRAPH_GRAPH_IMPL_H
#define DNN_GRAPH_GRAPH_IMPL_H

#include "graph/graph.h"

/* ["name", node, tensor] */
struct graph_ref {
    const char *name;
    int64_t call, tensor;
    int layer; /* index, set by dnn_graph_resolve() */
};

/* One call of a layer. */
struct graph_call {
    int nrefs;
    struct graph_ref *ref;
    int training;
    bool has_number; /* operation: one operand is a number, the first or second */
    bool number_first;
    double number;
    struct dnn_shape *out; /* shapes of the outputs, known when the graph is built */
};

struct graph_model;

struct graph_layer {
    const char *name, *full, *class_name;
    struct dnn_jobj at;            /* its object; up is NULL               */
    const struct dnn_layer *layer; /* NULL: it is a model                  */
    struct graph_model *model;
    bool is_input, is_op;
    int ncalls;
    struct graph_call *call;
    int start;         /* index of its first call among all of the model's     */
    int first;         /* node that owns the weights, DNN_NONE: not called yet */
    int64_t low, high; /* range of its calls in references; high -1: none      */
};

struct graph_model {
    const char *name;
    struct dnn_jobj at;
    bool chain; /* the input of each layer is the layer before */
    int nlayers;
    struct graph_layer *layer;
    int ninputs, noutputs;
    struct graph_ref *input, *output;
    int ncalls;  /* of all layers                         */
    int *order;  /* calls, each after those it depends on */
    int *owner;  /* of each call: its layer               */
    int *listed; /* layers in the order of Keras 3        */
    bool has_shape;
    struct dnn_shape shape; /* build_input_shape */
};

struct graph_read {
    struct dnn_arena *arena;
    int keras;
    int nlayers; /* so far, in all models */
};

/* Read a model or a list of layers; the layers' full names begin with prefix. */
int dnn_graph_read_model(struct graph_read *r, const struct dnn_jobj *at,
                         const char *prefix, bool frozen, struct graph_model **out,
                         struct dnn_err *err);

/* Read the calls of a layer: "inbound_nodes" of any Keras version. */
int dnn_graph_read_calls(struct graph_read *r, const struct dnn_jobj *at,
                         struct graph_layer *layer, struct dnn_err *err);
/* Read the references in a list of any depth. */
int dnn_graph_read_refs(struct graph_read *r, const struct dnn_jobj *at, int *n,
                        struct graph_ref **out, struct dnn_err *err);

/* Resolve references and sort the calls; adds the implicit input of a chain. */
int dnn_graph_resolve(struct graph_read *r, struct graph_model *m, struct dnn_err *err);

/* Set m->listed of a resolved model. */
void dnn_graph_order(struct graph_read *r, struct graph_model *m);

/* Flatten a model into the nodes of graph, with their shapes. */
int dnn_graph_build(struct graph_model *m, const struct dnn_graph_opts *opts,
                    struct dnn_graph *graph, struct dnn_err *err);

/* Put "file:line: layer 'x' (Class): " in front of the message. */
int dnn_graph_error_at(const struct graph_layer *l, struct dnn_err *err);
/* Fail with that prefix and this text. */
int dnn_graph_fail(const struct graph_layer *l, struct dnn_err *err, const char *fmt,
                   ...) DNN_PRINTF(3, 4);

#endif
