/* h5_impl.h - functions that use HDF5.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_WEIGHTS_H5_IMPL_H
#define DNN_WEIGHTS_H5_IMPL_H

#include "weights/weights_impl.h"

#include <hdf5.h>

/* Turn off HDF5's own error messages. */
void dnn_h5_quiet(void);

/* Fail with "path: what: " and HDF5's reason. */
int dnn_h5_fail(const char *path, struct dnn_err *err, const char *fmt, ...)
    DNN_PRINTF(3, 4);

/* Open the object at the path name below a group if it is there (not through a soft or
 * external link) and of this type; below 0 if not. */
hid_t dnn_h5_open(hid_t group, const char *name, H5O_type_t type);

/* The strings of an attribute, in w->arena; *n is -1 if there is no such attribute.  A
 * long list may be split into name0, name1... */
int dnn_h5_texts(struct dnn_weights *w, hid_t at, const char *name, int *n,
                 const char ***out, struct dnn_err *err);

/* Count the bytes of a name or path that is kept; DNN_EDATA: too many. */
int dnn_h5_count_name(struct dnn_weights *w, const char *name, struct dnn_err *err);

/* A copy of text with control characters replaced by '?', in arena. */
const char *dnn_h5_clean(struct dnn_arena *arena, const char *text);

/* Add a layer; add an array, the dataset data at path, to the last layer added. */
struct weights_group *dnn_h5_group(struct dnn_weights *w);
int dnn_h5_array(struct dnn_weights *w, hid_t data, const char *path, const char *name,
                 struct dnn_err *err);

/* List the arrays of a file: the format of Keras 1 and 2, in the group top, whose path
 * is where ("" or "model_weights/"), and that of Keras 3. */
int dnn_h5_list_named(struct dnn_weights *w, hid_t top, const char *where,
                      struct dnn_err *err);
int dnn_h5_list_numbered(struct dnn_weights *w, struct dnn_err *err);

/* Fail on a file with a damaged global heap, on which HDF5 may loop forever; len: bytes
 * of w->memory. */
int dnn_h5_check_heaps(const struct dnn_weights *w, size_t len, struct dnn_err *err);

#endif
