/* graph_impl.h - a model as its JSON has it, before it is opened up into nodes.
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
    int layer; /* found later */
};

/* One use of a layer. */
struct graph_call {
    int nrefs;
    struct graph_ref *ref;
    int training;
    bool has_number; /* of an operation: an operand is a number, the first or second */
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
    int start;         /* of its calls among all of the model's                    */
    int first;         /* node that owns the weights, DNN_NONE: not used yet       */
    int64_t low, high; /* calls that others refer to; high -1: nobody does */
};

struct graph_model {
    const char *name;
    struct dnn_jobj at;
    bool chain; /* each layer takes the one before                         */
    int nlayers;
    struct graph_layer *layer;
    int ninputs, noutputs;
    struct graph_ref *input, *output;
    int ncalls;  /* of all layers */
    int *order;  /* calls, each after those it needs                        */
    int *owner;  /* of each call: its layer                                 */
    int *listed; /* layers in the order of Keras 3                         */
    bool has_shape;
    struct dnn_shape shape; /* build_input_shape */
};

struct graph_read {
    struct dnn_arena *arena;
    int keras;
    int nlayers; /* so far, in all models */
};

/* Read a model or a list of layers; prefix is put before the layers' names. */
int dnn_graph_read_model(struct graph_read *r, const struct dnn_jobj *at,
                         const char *prefix, bool frozen, struct graph_model **out,
                         struct dnn_err *err);

/* The uses of a layer: "inbound_nodes" of any Keras. */
int dnn_graph_read_calls(struct graph_read *r, const struct dnn_jobj *at,
                         struct graph_layer *layer, struct dnn_err *err);
/* References in a list, however deep. */
int dnn_graph_read_refs(struct graph_read *r, const struct dnn_jobj *at, int *n,
                        struct graph_ref **out, struct dnn_err *err);

/* Find what references mean, and an order of doing. */
int dnn_graph_resolve(struct graph_read *r, struct graph_model *m, struct dnn_err *err);

/* Set m->listed of a model that is resolved. */
void dnn_graph_order(struct graph_read *r, struct graph_model *m);

/* Open a model up into graph's nodes, shapes and all. */
int dnn_graph_build(struct graph_model *m, const struct dnn_graph_opts *opts,
                    struct dnn_graph *graph, struct dnn_err *err);

/* Put "file:line: layer 'x' (Class): " in front of the message. */
int dnn_graph_error_at(const struct graph_layer *l, struct dnn_err *err);
/* The same with a text of its own. */
int dnn_graph_fail(const struct graph_layer *l, struct dnn_err *err, const char *fmt,
                   ...) DNN_PRINTF(3, 4);

#endif
