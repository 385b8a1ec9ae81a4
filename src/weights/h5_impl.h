/* h5_impl.h - HDF5 as this component uses it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_WEIGHTS_H5_IMPL_H
#define DNN_WEIGHTS_H5_IMPL_H

#include "weights/weights_impl.h"

#include <hdf5.h>

/* Keep the library from printing. */
void dnn_h5_quiet(void);

/* Fail with the library's own reason behind "path: what: ". */
int dnn_h5_fail(const char *path, struct dnn_err *err, const char *fmt, ...)
    DNN_PRINTF(3, 4);

/* Open the object called name in a group if it is really there (no link to another
 * file or path) and of this type; below 0 if not. */
hid_t dnn_h5_open(hid_t group, const char *name, H5O_type_t type);

/* An attribute that is a text or a list of texts, in arena; *n is -1 if there is no
 * such attribute.  A long list may be in pieces: name0, name1... */
int dnn_h5_texts(const struct dnn_weights *w, hid_t at, const char *name, int *n,
                 const char ***out, struct dnn_err *err);

/* A text without control characters, in arena. */
const char *dnn_h5_clean(struct dnn_arena *arena, const char *text);

/* Add a layer, and an array of the last layer added: the dataset data at path. */
struct weights_group *dnn_h5_group(struct dnn_weights *w);
int dnn_h5_array(struct dnn_weights *w, hid_t data, const char *path, const char *name,
                 struct dnn_err *err);

/* List what a file holds.  The older manner starts at top, which may be a group. */
int dnn_h5_list_named(struct dnn_weights *w, hid_t top, struct dnn_err *err);
int dnn_h5_list_numbered(struct dnn_weights *w, struct dnn_err *err);

/* Refuse a file whose texts would send the library round in circles; len: of what is
 * in memory. */
int dnn_h5_check_heaps(const struct dnn_weights *w, size_t len, struct dnn_err *err);

/* The weights in a .keras archive: *out is for free(). */
int dnn_h5_unpack(const char *archive, void **out, size_t *len, struct dnn_err *err);
/* A .keras archive of this file of weights. */
int dnn_h5_pack(const char *path, const struct dnn_weights_about *about,
                const void *weights, size_t len, struct dnn_err *err);

#endif
