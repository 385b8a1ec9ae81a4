/* net.h - a network from a Keras file, a model file, a configuration, or the zoo.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CONFIG_NET_H
#define DNN_CONFIG_NET_H

#include "graph/graph.h"
#include "graph/zoo.h"

/* A network, and its JSON if it is from the zoo or a model file. */
struct dnn_net {
    struct dnn_graph *graph; /* owned              */
    char *text;              /* owned; NULL: it came from a JSON file */
};

/* Input sizes to use instead of those of the network. */
struct dnn_net_size {
    const char *extents; /* spatial: "64" for all axes, "48x80x64"; NULL: its own */
    int64_t channels;    /* 0: its own                                             */
};

/* Local.  A network of the zoo; size may be NULL, and overrides opts->input.  The
 * caller owns *out: dnn_net_free(). */
int dnn_net_zoo(const struct dnn_zoo_opts *opts, const struct dnn_net_size *size,
                struct dnn_net *out, struct dnn_err *err);
/* Local.  The same for a Keras file or a model file. */
int dnn_net_file(const char *path, const struct dnn_net_size *size, struct dnn_net *out,
                 struct dnn_err *err);
/* Local.  Reads the value of "layers": a path (relative to dir, which is "" or ends
 * with a slash), {"zoo": NAME, ...}, a model or a list of layers.  input: shape without
 * the batch; empty: the network's own, which must then be complete. */
int dnn_net_layers(const struct dnn_jobj *at, const char *dir,
                   const struct dnn_list *input, struct dnn_net *out,
                   struct dnn_err *err);
void dnn_net_free(struct dnn_net *net); /* also of one filled with zeros */

#endif
