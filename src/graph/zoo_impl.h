/* zoo_impl.h - writes a network layer by layer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_GRAPH_ZOO_IMPL_H
#define DNN_GRAPH_ZOO_IMPL_H

#include "base/mem.h"
#include "base/text.h"
#include "graph/zoo.h"

enum { ZOO_LEVELS = 4 };

/* A network being written.  Layers are numbered; functions return the number. */
struct zoo {
    const struct dnn_zoo_opts *opts;
    struct dnn_buf text;
    struct dnn_arena *arena; /* of names */
    const char **name;       /* owned, of each layer */
    size_t nlayers, cap;
    int nd; /* spatial axes of the input */
    int64_t classes, input[4];
    /* Backbone: the last layer of each level (1/2, 1/4... of the input's extents) and
     * its channels; channels of the result. */
    int skip[ZOO_LEVELS];
    int64_t skip_channels[ZOO_LEVELS], channels;
    size_t skip_text[ZOO_LEVELS], skip_layers[ZOO_LEVELS]; /* sizes up to it */
};

/* A network of the zoo: the builder of its family and the parameters. */
struct zoo_kind {
    const char *name;
    const char *allowed; /* options in addition to input and classes: "base depth" */
    int ninput;
    int64_t input[4];
    int64_t classes;
    int number, variant; /* their meaning depends on the builder */
    /* The complete network or, if there is a head, the backbone. */
    int (*build)(struct zoo *z, const struct zoo_kind *kind);
    int (*head)(struct zoo *z, const struct zoo_kind *kind, int x);
};

/* A variant for small images (CIFAR): the first layers keep the resolution. */
static inline bool dnn_zoo_small(const struct zoo_kind *kind)
{
    return kind->input[0] == 32;
}

extern const struct zoo_kind dnn_zoo_plain[], dnn_zoo_inceptions[], dnn_zoo_resnets[],
    dnn_zoo_densenets[], dnn_zoo_mobilenets[], dnn_zoo_unets[], dnn_zoo_segmenters[];

/* Record the last layer of a level; level 0 has half the input's extents. */
void dnn_zoo_skip(struct zoo *z, int level, int x, int64_t channels);
/* Remove all layers written after those of a level. */
void dnn_zoo_cut(struct zoo *z, int level);
/* The backbone of the options. */
const struct zoo_kind *dnn_zoo_backbone(const struct zoo *z);

/* Append a layer; fmt gives its config without the name, or "". */
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
int dnn_zoo_flatten(struct zoo *z, int in);
int dnn_zoo_join(struct zoo *z, const char *name, int n, const int *in);
/* Global average pooling, then the classes. */
int dnn_zoo_classify(struct zoo *z, const char *pool, int in);
/* The head of PyDTNN's networks for CIFAR: global average pooling, a dense layer
 * with norm and ReLU, the classes. */
int dnn_zoo_classify_small(struct zoo *z, int in, int64_t units);

#endif
