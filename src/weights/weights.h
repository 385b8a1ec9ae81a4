/* weights.h - weights as Keras files hold them: read, matched to a program by name,
 * and written.
 *
 * Read are .h5 of Keras 1 and 2 (and of Keras 3 in their manner), .weights.h5 and
 * .keras of Keras 3; which one a file is, its content says.  Nothing here knows
 * where a program's numbers lie: callers put and get them.  All is Local.
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

enum {
    DNN_WEIGHTS_ARRAYS = 1 << 18, /* in a file */
    DNN_WEIGHTS_DEPTH = 64        /* groups in groups */
};

/* One array of a file. */
struct dnn_weights_array {
    struct dnn_tensor is; /* name: "kernel", NULL if the file numbers them        */
    const char *layer;    /* as the file calls it, "outer/inner"; else its place  */
    int group;            /* which of the file's layers it is of                  */
    int index;            /* its number there                                     */
    const char *path;     /* in the file                                          */
};

struct dnn_weights;

/* Open a file and look at what it holds; numbers are read one array at a time, when
 * asked for.  What is malformed is DNN_EDATA; if HDF5 (or for .keras, libzip) was not
 * there when this was built, DNN_ECONFIG.  The caller owns *out:
 * dnn_weights_close(). */
int dnn_weights_open(const char *path, struct dnn_weights **out, struct dnn_err *err);
void dnn_weights_close(struct dnn_weights *file); /* NULL is fine */

/* The arrays, in the file's order; NULL past the end. */
const struct dnn_weights_array *dnn_weights_at(const struct dnn_weights *file, int i);

/* Read array i as elements of dtype (f32, f64, f16, bf16) to memory that holds them
 * all. */
int dnn_weights_get(struct dnn_weights *file, int i, enum dnn_dtype dtype, void *to,
                    struct dnn_err *err);

/* The layers of a network as its JSON lists them, models included and each before
 * the layers in it: full names, and Keras 3's names of their classes ("Conv2D",
 * "Functional").  Keras 3 calls the groups of its files by these, in this order. */
struct dnn_weights_order {
    int n;
    const char *const *name, *const *class_name;
    const int *model; /* which of them it is in, before it; DNN_NONE: in none */
};

/* What goes where. */
struct dnn_weights_match {
    struct dnn_arena *arena; /* owned: all of it */
    const char *path;        /* of the file                                        */
    bool by_place;           /* by Keras 3's class names and order, for no layer has
                                a name that is in the file                         */
    int nvalues;
    const int *array; /* of each value of the program: its array, or DNN_NONE      */
    int wanted;       /* weights and states of the program                         */
    int filled;       /* those that get one                                        */
    /* One line for each, without a newline. */
    int nmissing, nskipped, nrefused;
    const char *const *missing; /* weights and states that are not in the file     */
    const char *const *skipped; /* what of the file is not in the program          */
    const char *const *refused; /* weights that are in the file but do not fit, with
                                   file, layer and both shapes                     */
};

/* Match a file's arrays to a program's weights and states: by the names of layers,
 * and of arrays where the file has them, else by their order in the layer.  A file of
 * Keras 3 in which no layer's name is found is matched by place if order is given
 * (it may be NULL).  That things are missing, skipped or refused is no failure: the
 * caller reads the lists.  The caller owns *out: dnn_weights_match_free(). */
int dnn_weights_match(const struct dnn_weights *file, const struct dnn_prog *prog,
                      const struct dnn_weights_order *order,
                      struct dnn_weights_match **out, struct dnn_err *err);
void dnn_weights_match_free(struct dnn_weights_match *match); /* NULL is fine */

/* "model.h5: 12 of 14 weights, by name", and a line per thing that was left out. */
void dnn_weights_print(const struct dnn_weights_match *match, FILE *where);

/* Where the numbers of a program's value are: copy them, in its own type, to the
 * given memory. */
typedef int dnn_weights_source(void *arg, int value, void *to, struct dnn_err *err);

/* What a file says besides weights; both texts are JSON, NULL: nothing. */
struct dnn_weights_about {
    const char *network; /* .keras: as Keras 3 writes it                           */
    const char *scaling; /* how the inputs were scaled: "dnn_toolkit" in .keras's
                            metadata.json, and an attribute of this name in .h5    */
};

/* Write all weights and states.  Keras 3: a path that ends in ".weights.h5" is for its
 * load_weights(), one that ends in ".keras" for its load_model() and needs
 * about->network.  Others are files of Keras 2, which the load_weights() of every
 * Keras reads, also by name.  about may be NULL.  path is the old file or the whole
 * new one (base/file.h).  The same numbers give the same bytes. */
int dnn_weights_save(const char *path, const struct dnn_prog *prog,
                     const struct dnn_weights_order *order,
                     const struct dnn_weights_about *about, dnn_weights_source *source,
                     void *arg, struct dnn_err *err);

#endif
