/* nifti_write.h - headers of NIfTI-1 files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_NIFTI_WRITE_H
#define DNN_IMPORT_NIFTI_WRITE_H

#include "base/err.h"
#include "sample/sample.h"

enum { DNN_NIFTI_HEAD = 352 /* bytes before the values */ };

struct dnn_nifti_make {
    enum dnn_dtype type;           /* F32, F64, or integers of 1 to 4 bytes           */
    const struct dnn_shape *shape; /* 1 to 3 spatial axes, channels last              */
    const struct dnn_position *position; /* spacing in mm                             */
    const char *like; /* the NIfTI file that position is about, or that has the same
                       * extents: spacing and orientation are taken from it; or NULL  */
};

/* Local.  The header of a file, native byte order.  The values follow in the order
 * channels, then spatial axes, the last of which is i, as src/import/nifti.c reads
 * them. what: in messages.  Extents above 32767 are DNN_EDATA.  If like is not a NIfTI
 * file, or other extents have no position in it, it is not used; then the header says
 * that the orientation is unknown. */
int dnn_nifti_make(const char *what, const struct dnn_nifti_make *make,
                   unsigned char head[DNN_NIFTI_HEAD], struct dnn_err *err);

#endif
