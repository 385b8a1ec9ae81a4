/* net.h - where a network comes from: a Keras file, a job, or the zoo.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CONFIG_NET_H
#define DNN_CONFIG_NET_H

#include "graph/graph.h"
#include "graph/zoo.h"

/* A network, and its Keras JSON where we wrote it ourselves. */
struct dnn_net {
    struct dnn_graph *graph; /* owned              */
    char *text;              /* owned; NULL: it came from a file */
};

/* What the data should be, instead of what the network says. */
struct dnn_net_size {
    const char *extents; /* of space: "64" for all axes, "48x80x64"; NULL: its own */
    int64_t channels;    /* 0: its own                                             */
};

/* Local.  A network of the zoo; size may be NULL, and comes before opts->input.  The
 * caller owns *out: dnn_net_free(). */
int dnn_net_zoo(const struct dnn_zoo_opts *opts, const struct dnn_net_size *size,
                struct dnn_net *out, struct dnn_err *err);
/* Local.  The same for a Keras file. */
int dnn_net_file(const char *path, const struct dnn_net_size *size, struct dnn_net *out,
                 struct dnn_err *err);
/* Local.  What a job has under "layers": a path (below dir, "" or one that ends with
 * a slash, unless it is absolute), {"zoo": NAME, ...}, a model or a list of layers.
 * input: extents of the data without the batch; none: as the network says, which must
 * then say them all. */
int dnn_net_job(const struct dnn_jobj *at, const char *dir,
                const struct dnn_list *input, struct dnn_net *out, struct dnn_err *err);
void dnn_net_free(struct dnn_net *net); /* of one filled with zeros, too */

#endif
