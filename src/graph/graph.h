/* graph.h - the network as nodes and edges, read from Keras JSON.
 *
 * Models in models are taken apart, so that every node is one use of one layer
 * and has one output; a layer that is used several times (a shared layer) has
 * several nodes and one set of weights.  A graph never changes once it is read.
 * All is Local.
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
    DNN_GRAPH_LAYERS = 20000, /* in a file                                  */
    DNN_GRAPH_NODES = 50000,  /* uses of layers, models in models opened up */
    DNN_GRAPH_EDGES = 400000
};

struct dnn_graph_node {
    const char *name; /* of the layer, unique among layers: "outer/inner" if it
                         is in a model in the model                          */
    const struct dnn_layer *layer;
    int first; /* the first node of this layer: that one owns the weights    */
    int nin;
    const int *in;        /* nodes                                           */
    struct dnn_shape out; /* dim[0] is the batch                             */
    int training;         /* 0: as in inference, always; -1: as the run      */
    int line;             /* in the file; 0: not known                       */
};

struct graph_model;

struct dnn_graph {
    struct dnn_arena *arena; /* owned: all of it */
    const char *name, *file;
    int nnodes;
    const struct dnn_graph_node *node; /* each after those it needs */
    int ninputs, noutputs;
    const int *input, *output;       /* nodes                    */
    int64_t params, trainable;       /* numbers in the weights   */
    const struct graph_model *model; /* as the file has it */
    /* The layers as Keras 3 lists them, models in the model too, each before the
     * layers in it: what Keras's files of weights follow.  Operations are none. */
    int nlayers;
    const char *const *layer_name;  /* full                                     */
    const char *const *layer_class; /* as Keras 3 calls it, "Functional"...     */
    const int *layer_model;         /* which of them it is in, DNN_NONE: none   */
};

/* What may be laid down from outside. */
struct dnn_graph_opts {
    int ninputs; /* 0: as the file says; else one shape per input, batch first */
    const struct dnn_shape *input;
};

/* Read a file; or a value inside another one, such as a job's "layers": a list of
 * layers or a model.  opts may be NULL.  The caller owns *out: dnn_graph_free(). */
int dnn_graph_read(const char *path, const struct dnn_graph_opts *opts,
                   struct dnn_graph **out, struct dnn_err *err);
int dnn_graph_read_json(const struct dnn_jobj *at, const struct dnn_graph_opts *opts,
                        struct dnn_graph **out, struct dnn_err *err);
void dnn_graph_free(struct dnn_graph *graph); /* NULL is fine */

/* The network as Keras 3 writes it, added to out: layers that Keras does not have
 * become equal ones of Keras; where there is none, this is DNN_ECONFIG. */
int dnn_graph_write(const struct dnn_graph *graph, struct dnn_buf *out,
                    struct dnn_err *err);

/* As Graphviz draws it, added to out: a node for each use of a layer. */
struct dnn_buf;
void dnn_graph_dot(const struct dnn_graph *graph, struct dnn_buf *out);

/* A table as Keras prints it: layer (type), output shape, parameters, inputs. */
void dnn_graph_print(const struct dnn_graph *graph, FILE *where);

/* Append the ops of the whole network for this batch to prog, whose training says
 * what they are for.  Inputs become values named as their layers, in graph's
 * order; *output gets one value per output (caller's, noutputs of them).  Fails on
 * extents nobody has given. */
int dnn_graph_lower(const struct dnn_graph *graph, int64_t batch, struct dnn_prog *prog,
                    int *output, struct dnn_err *err);

#endif
