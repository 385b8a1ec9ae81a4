/* graph.h - the network as nodes and edges, read from Keras JSON.
 *
 * Nested models are flattened: every node is one call of one layer and has one
 * output.  A shared layer (called several times) has several nodes and one set of
 * weights.  A graph does not change after it is read.  All functions are Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_GRAPH_GRAPH_H
#define DNN_GRAPH_GRAPH_H

#include "base/err.h"
#include "base/json.h"
#include "base/shape.h"
#include "layer/layer.h"
#include "op/prog.h"

#include <stdio.h>

enum {
    DNN_GRAPH_LAYERS = 20000, /* in a file                                */
    DNN_GRAPH_NODES = 50000,  /* calls of layers, nested models flattened */
    DNN_GRAPH_EDGES = 400000
};

struct dnn_graph_node {
    const char *name; /* of the layer, unique; "outer/inner" in a nested model */
    const struct dnn_layer *layer;
    int first; /* the first node of this layer, which owns the weights */
    int nin;
    const int *in;        /* nodes                                     */
    struct dnn_shape out; /* dim[0] is the batch                       */
    int training;         /* 0: always as in inference; -1: as the run */
    int line;             /* in the file; 0: not known                 */
};

struct graph_model;

struct dnn_graph {
    struct dnn_arena *arena; /* owned; holds the complete graph */
    const char *name, *file;
    int nnodes;
    const struct dnn_graph_node *node; /* each after its inputs */
    int ninputs, noutputs;
    const int *input, *output;       /* nodes                   */
    int64_t params, trainable;       /* elements of the weights */
    const struct graph_model *model; /* as read from JSON       */
    /* The layers in the order of Keras 3's weight files: with nested models, each
     * before the layers in it; without operations. */
    int nlayers;
    const char *const *layer_name;  /* full                                     */
    const char *const *layer_class; /* class name in Keras 3, "Functional"...   */
    const int *layer_model;         /* index of the model it is in, or DNN_NONE */
};

/* Settings that override the file's. */
struct dnn_graph_opts {
    int ninputs; /* 0: shapes of the file; else one shape per input, batch first */
    const struct dnn_shape *input;
};

/* Read a JSON file; or a value of another one, such as "layers" in a configuration
 * file: a list of layers or a model.  opts may be NULL.  The caller owns *out:
 * dnn_graph_free(). */
int dnn_graph_read(const char *path, const struct dnn_graph_opts *opts,
                   struct dnn_graph **out, struct dnn_err *err);
int dnn_graph_read_json(const struct dnn_jobj *at, const struct dnn_graph_opts *opts,
                        struct dnn_graph **out, struct dnn_err *err);
void dnn_graph_free(struct dnn_graph *graph); /* NULL is fine */

/* Append the network as Keras 3 JSON to out.  Layers that Keras does not have become
 * equivalent layers of Keras; DNN_ECONFIG: there is none. */
int dnn_graph_write(const struct dnn_graph *graph, struct dnn_buf *out,
                    struct dnn_err *err);

/* Append the graph in Graphviz's dot format to out: one node per call of a layer. */
struct dnn_buf;
void dnn_graph_dot(const struct dnn_graph *graph, struct dnn_buf *out);

/* Print a table like Keras's summary(): layer (type), output shape, params, inputs. */
void dnn_graph_print(const struct dnn_graph *graph, FILE *where);

/* Append the ops of the network for this batch size to prog, for training or inference
 * as prog->training.  Inputs become values with the names of their layers, in the
 * graph's order; output, an array of noutputs elements, gets the output values.  Fails
 * if an extent is unknown. */
int dnn_graph_lower(const struct dnn_graph *graph, int64_t batch, struct dnn_prog *prog,
                    int *output, struct dnn_err *err);

#endif
