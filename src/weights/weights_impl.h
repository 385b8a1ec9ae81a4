/* weights_impl.h - an open weights file.
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
    const char *shown;      /* name for messages                                   */
    const char *full;       /* full name of the layer, if the file has it, or NULL */
    const char *class_path; /* Keras 3: "functional/conv2d_1"; else NULL */
    /* Keras 1 and 2: the outermost layer, and the name of the layer in it as in the
     * paths of the arrays, "conv" or "tail/conv"; NULL: none. */
    const char *top, *inner;
    int first, n;
};

struct dnn_weights {
    struct dnn_arena *arena;
    const char *path;
    int64_t file;      /* HDF5's identifier, below 0: none             */
    void *memory;      /* owned: the file in a .keras archive; or NULL */
    size_t name_bytes; /* of all names read so far, for a limit */
    size_t narrays, array_cap, ngroups, group_cap;
    struct dnn_weights_array *array; /* owned */
    struct weights_group *group;     /* owned */
};

/* The class path of each layer, "functional/conv2d_1", in arena: the names of its
 * groups in files of Keras 3. */
const char **dnn_weights_class_paths(const struct dnn_weights_order *order,
                                     struct dnn_arena *arena);

#endif
