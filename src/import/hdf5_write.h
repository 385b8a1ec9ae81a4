/* hdf5_write.h - make an HDF5 file of arrays whose values are written later.
 *
 * The file appears only when it is complete.  All functions are Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_HDF5_WRITE_H
#define DNN_IMPORT_HDF5_WRITE_H

#include "base/err.h"
#include "base/shape.h"
#include "base/tensor.h"

struct dnn_hdf5_out;

/* Create a temporary file in the directory of path.  DNN_ECONFIG if this build has no
 * HDF5.  The caller owns *out. */
int dnn_hdf5_create(const char *path, struct dnn_hdf5_out **out, struct dnn_err *err);
/* Make a dataset of this type without writing it, in native byte order: its values are
 * one block of the file, and the caller writes them at *offset, also after the commit.
 * Slashes in the name make groups; the name must not exist. */
int dnn_hdf5_reserve(struct dnn_hdf5_out *out, const char *name, enum dnn_dtype type,
                     const struct dnn_shape *shape, int64_t *offset,
                     struct dnn_err *err);
/* Rename the file to path.  Frees out, also on failure. */
int dnn_hdf5_commit(struct dnn_hdf5_out *out, struct dnn_err *err);
/* Delete the temporary file; path is not changed.  Frees out, which may be NULL. */
void dnn_hdf5_abandon(struct dnn_hdf5_out *out);

#endif
