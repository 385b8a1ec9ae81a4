/* zoo_impl.h - writing a network layer by layer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_GRAPH_ZOO_IMPL_H
#define DNN_GRAPH_ZOO_IMPL_H

#include "base/mem.h"
#include "base/text.h"
#include "graph/zoo.h"

/* A network being written.  Layers are numbered; functions give the number. */
struct zoo {
    const struct dnn_zoo_opts *opts;
    struct dnn_buf text;
    struct dnn_arena *arena; /* of names */
    const char **name;       /* owned, of each layer */
    size_t nlayers, cap;
    int nd; /* spatial axes of what comes in */
    int64_t classes;
};

struct zoo_kind {
    const char *name;
    const char *allowed; /* options besides input and classes: "base depth" */
    int ninput;
    int64_t input[4];
    int64_t classes;
    int number; /* the builder's own */
    int (*build)(struct zoo *z, const struct zoo_kind *kind);
};

extern const struct zoo_kind dnn_zoo_plain[], dnn_zoo_resnets[], dnn_zoo_mobiles[],
    dnn_zoo_unets[];

/* A layer of this class; fmt gives its config without the name, or "". */
int dnn_zoo_put(struct zoo *z, const char *class_name, const char *name, int nin,
                const int *in, const char *fmt, ...) DNN_PRINTF(6, 7);
int dnn_zoo_put1(struct zoo *z, const char *class_name, const char *name, int in,
                 const char *fmt, ...) DNN_PRINTF(5, 6);

/* printf into memory that lives as long as z. */
const char *dnn_zoo_name_of(struct zoo *z, const char *fmt, ...) DNN_PRINTF(2, 3);

/* Convolution of a square (cubic...) window; act "linear" for none. */
int dnn_zoo_conv(struct zoo *z, const char *name, int in, int64_t filters, int k,
                 int stride, const char *padding, bool bias, const char *act);
int dnn_zoo_bn(struct zoo *z, const char *name, int in, double epsilon);
int dnn_zoo_act(struct zoo *z, const char *name, int in, const char *act);
int dnn_zoo_pool(struct zoo *z, const char *name, int in, const char *fn, int k,
                 int stride, const char *padding);
int dnn_zoo_dense(struct zoo *z, const char *name, int in, int64_t units,
                  const char *act);
int dnn_zoo_dropout(struct zoo *z, const char *name, int in, double rate);
int dnn_zoo_pad(struct zoo *z, const char *name, int in, int before, int after);
int dnn_zoo_gap(struct zoo *z, const char *name, int in);

#endif
