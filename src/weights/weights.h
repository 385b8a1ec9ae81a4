/* weights.h - weights files of Keras: reads them, matches them to a program by name,
 * and writes them.
 *
 * Supported are .h5 of Keras 1 and 2 (also written by Keras 3), and .weights.h5 and
 * .keras of Keras 3; the format is detected from the content.  This component does not
 * access the values of a program: callers copy them.  All functions are Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_WEIGHTS_WEIGHTS_H
#define DNN_WEIGHTS_WEIGHTS_H

#include "base/err.h"
#include "base/tensor.h"
#include "op/prog.h"

#include <stdbool.h>
#include <stdio.h>

/* The weights file in a .keras archive. */
#define DNN_WEIGHTS_MEMBER "model.weights.h5"

enum {
    DNN_WEIGHTS_ARRAYS = 1 << 18, /* in a file */
    DNN_WEIGHTS_DEPTH = 64        /* nested groups */
};

/* One array of a file. */
struct dnn_weights_array {
    struct dnn_tensor is; /* name: "kernel", NULL if the file numbers arrays    */
    const char *layer;    /* its name in the file, "outer/inner"; or class path */
    int group;            /* number of its layer in the file                    */
    int index;            /* its number in the layer                            */
    const char *path;     /* in the file                                        */
};

struct dnn_weights;

/* Open a file and list its arrays; values are read by dnn_weights_get().  DNN_EDATA:
 * the file is malformed; DNN_ECONFIG: built without HDF5 (for .keras: or without
 * libzip).  The caller owns *out: dnn_weights_close(). */
int dnn_weights_open(const char *path, struct dnn_weights **out, struct dnn_err *err);
void dnn_weights_close(struct dnn_weights *file); /* NULL is fine */

/* The arrays, in the file's order; NULL past the end. */
const struct dnn_weights_array *dnn_weights_at(const struct dnn_weights *file, int i);

/* Read array i, converted to dtype (f32, f64, f16, bf16); to has space for all its
 * elements. */
int dnn_weights_get(struct dnn_weights *file, int i, enum dnn_dtype dtype, void *to,
                    struct dnn_err *err);

/* The layers of a network in the order of its JSON, with models, each before the layers
 * in it: full names, and names of their classes in Keras 3 ("Conv2D", "Functional").
 * Files of Keras 3 name groups by class, numbered in this order. */
struct dnn_weights_order {
    int n;
    const char *const *name, *const *class_name;
    const int *model; /* index of the model it is in; DNN_NONE: the network */
};

/* The arrays for the weights of a program. */
struct dnn_weights_match {
    struct dnn_arena *arena; /* owned; holds everything */
    const char *path;        /* of the file                                        */
    bool by_class;           /* by Keras 3's class names and order, because no name of
                                a layer is in the file                             */
    int nvalues;
    const int *array; /* array of each value of the program, or DNN_NONE */
    int wanted;       /* weights and states of the program               */
    int filled;       /* those that have an array                        */
    /* One line for each, without a newline. */
    int nmissing, nskipped, nrefused;
    const char *const *missing; /* weights and states that are not in the file       */
    const char *const *skipped; /* arrays of the file that are not in the program    */
    const char *const *refused; /* weights that are in the file but do not fit, with
                                   file, layer and both shapes                       */
};

/* Match a file's arrays to a program's weights and states: by the names of layers,
 * and by the names of arrays if the file has them, else by their order in the layer.  A
 * file of Keras 3 in which no layer's name is found is matched by class and order if
 * order is not NULL.  Missing, skipped and refused arrays are not errors: the caller
 * checks the lists.  The caller owns *out: dnn_weights_match_free(). */
int dnn_weights_match(const struct dnn_weights *file, const struct dnn_prog *prog,
                      const struct dnn_weights_order *order,
                      struct dnn_weights_match **out, struct dnn_err *err);
void dnn_weights_match_free(struct dnn_weights_match *match); /* NULL is fine */

/* "model.h5: 12 of 14 weights, by name", and a line for each missing, skipped or
 * refused one. */
void dnn_weights_print(const struct dnn_weights_match *match, FILE *where);

/* Copy the elements of a program's value, in its type, to the memory to. */
typedef int dnn_weights_source(void *arg, int value, void *to, struct dnn_err *err);

/* Write all weights and states.  A path that ends in ".weights.h5" is for the
 * load_weights() of Keras 3.  Others are files of Keras 2, which the load_weights() of
 * every Keras reads, also by name.  scaling: how the inputs were scaled, JSON, which
 * becomes the attribute "dnn_toolkit"; or NULL.  The file is replaced atomically
 * (base/file.h).  Equal values give equal bytes. */
int dnn_weights_save(const char *path, const struct dnn_prog *prog,
                     const struct dnn_weights_order *order, const char *scaling,
                     dnn_weights_source *source, void *arg, struct dnn_err *err);

/* The same in memory; path is only used in messages and for the format.  The caller
 * owns *out: free(). */
int dnn_weights_image(const char *path, const struct dnn_prog *prog,
                      const struct dnn_weights_order *order, const char *scaling,
                      dnn_weights_source *source, void *arg, char **out, size_t *len,
                      struct dnn_err *err);

#endif
