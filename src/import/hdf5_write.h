/* hdf5_write.h - write named floating-point arrays to an HDF5 file.
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

/* Create a temporary file in the directory of path for datasets of this type (F16, F32
 * or F64).  DNN_ECONFIG if this build has no HDF5.  The caller owns *out. */
int dnn_hdf5_create(const char *path, enum dnn_dtype type, struct dnn_hdf5_out **out,
                    struct dnn_err *err);
/* Write a dataset.  Slashes in the name make groups; if the name exists, "~2" is
 * appended to it. */
int dnn_hdf5_put(struct dnn_hdf5_out *out, const char *name,
                 const struct dnn_shape *shape, const float *data, struct dnn_err *err);
/* Make a dataset of this type without writing it, in native byte order: its values are
 * one block of the file, and the caller writes them at *offset, also after the commit.
 * The name must not exist. */
int dnn_hdf5_reserve(struct dnn_hdf5_out *out, const char *name, enum dnn_dtype type,
                     const struct dnn_shape *shape, int64_t *offset,
                     struct dnn_err *err);
/* Rename the file to path.  Frees out, also on failure. */
int dnn_hdf5_commit(struct dnn_hdf5_out *out, struct dnn_err *err);
/* Delete the temporary file; path is not changed.  Frees out, which may be NULL. */
void dnn_hdf5_abandon(struct dnn_hdf5_out *out);

#endif
