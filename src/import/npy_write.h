/* npy_write.h - headers of NPY files, version 1.0.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_NPY_WRITE_H
#define DNN_IMPORT_NPY_WRITE_H

#include "base/shape.h"
#include "base/tensor.h"
#include "base/text.h"

/* Local.  Add the header of an array of U8, U16, I32, F16, F32 or F64; the values
 * follow at a multiple of 64 bytes. */
void dnn_npy_make(enum dnn_dtype type, const struct dnn_shape *shape,
                  struct dnn_buf *out);

#endif
