/* weights_impl.h - an open file of weights, and what its readers share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_WEIGHTS_WEIGHTS_IMPL_H
#define DNN_WEIGHTS_WEIGHTS_IMPL_H

#include "weights/weights.h"

#include <stdint.h>

/* A layer of the file: arrays first to first + n - 1. */
struct weights_group {
    const char *shown; /* for people                                              */
    const char *full;  /* full name of the layer, if the file has it, or NULL     */
    const char *place; /* Keras 3: "functional/conv2d_1"; else NULL               */
    /* The older manner: the outermost layer, and what the arrays' names say of those
     * in it, "conv" or "tail/conv"; NULL: nothing. */
    const char *top, *inner;
    int first, n;
};

struct dnn_weights {
    struct dnn_arena *arena;
    const char *path;
    int64_t file; /* HDF5's number, below 0: none                */
    void *memory; /* owned: what came out of an archive; or NULL */
    size_t narrays, array_cap, ngroups, group_cap;
    struct dnn_weights_array *array; /* owned */
    struct weights_group *group;     /* owned */
};

/* Keras 3's place of each layer of order, "functional/conv2d_1", in arena. */
const char **dnn_weights_places(const struct dnn_weights_order *order,
                                struct dnn_arena *arena);

#endif
