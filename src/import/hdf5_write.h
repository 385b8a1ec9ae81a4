/* hdf5_write.h - arrays of reals by name, as an HDF5 file that appears whole or not at
 * all.
 *
 * All is Local.
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

/* Begin a file of numbers of this type (F16, F32 or F64) beside path.  DNN_ECONFIG if
 * this build has no HDF5.  The caller owns *out. */
int dnn_hdf5_create(const char *path, enum dnn_dtype type, struct dnn_hdf5_out **out,
                    struct dnn_err *err);
/* A dataset.  Slashes in the name make groups; one that is there already gets "~2"
 * behind it. */
int dnn_hdf5_put(struct dnn_hdf5_out *out, const char *name,
                 const struct dnn_shape *shape, const float *data, struct dnn_err *err);
/* Put the file in place.  Ends out, also on failure. */
int dnn_hdf5_commit(struct dnn_hdf5_out *out, struct dnn_err *err);
/* Forget it; path stays as it was.  Ends out; NULL is fine. */
void dnn_hdf5_abandon(struct dnn_hdf5_out *out);

#endif
