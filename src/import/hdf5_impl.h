/* hdf5_impl.h - the HDF5 library, used by one thread at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_HDF5_IMPL_H
#define DNN_IMPORT_HDF5_IMPL_H

#include "import/array_impl.h"

#include <hdf5.h>

/* The library may be built without thread support: hold this lock around every call.
 * Locking also disables the library's error output, which is a setting per thread. */
void dnn_hdf5_lock(void);
void dnn_hdf5_unlock(void);

/* Fail with the message of the library after "what: ". */
int dnn_hdf5_fail(const char *what, struct dnn_err *err);

/* Add all datasets of the file to the store, named by their paths.  Those that cannot
 * be used get an error message. */
int dnn_hdf5_list(struct dnn_store *store, hid_t file, struct dnn_err *err);

/* Bytes of a chunk; 0: not chunked. */
size_t dnn_hdf5_chunk(hid_t data);

/* The type of values in memory; the caller frees it with H5Tclose(). */
hid_t dnn_hdf5_type(enum dnn_dtype type);

#endif
