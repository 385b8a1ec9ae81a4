/* hdf5_impl.h - HDF5 as this component uses it: one caller at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_HDF5_IMPL_H
#define DNN_IMPORT_HDF5_IMPL_H

#include "import/array_impl.h"

#include <hdf5.h>

/* The library is built without threads: whatever calls it holds this.  Locking also
 * keeps it from printing, which is a setting of each thread. */
void dnn_hdf5_lock(void);
void dnn_hdf5_unlock(void);

/* Fail with the library's own reason behind "what: ". */
int dnn_hdf5_fail(const char *what, struct dnn_err *err);

/* Add all datasets below the root to the store, by the names of their paths.  What
 * cannot be used has its reason with it. */
int dnn_hdf5_list(struct dnn_store *store, hid_t file, struct dnn_err *err);

/* Bytes of a chunk; 0: it has none. */
size_t dnn_hdf5_chunk(hid_t data);

/* The type in memory of numbers; for H5Tclose(). */
hid_t dnn_hdf5_type(enum dnn_dtype type);

#endif
