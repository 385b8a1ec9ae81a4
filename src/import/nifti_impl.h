/* nifti_impl.h - the contents of a NIfTI header.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_NIFTI_IMPL_H
#define DNN_IMPORT_NIFTI_IMPL_H

#include "import/import_impl.h"

struct dnn_nifti {
    int64_t dim[8];      /* [0]: axes, 1 to 7; the others at least 1                 */
    enum dnn_dtype type; /* of a stored value                                        */
    int64_t colours;     /* values per voxel: 1, or 3 or 4 for colors                */
    int64_t offset;      /* of the first value in bytes                              */
    double slope, inter; /* slope 0: values are as stored                            */
    double spacing[3]; /* of i, j, k in mm (or in the file's unit if it is unknown); 0:
                        * not known                                                */
    double affine[12];
    int space_code; /* what the affine maps to, as in sform_code; 0: unknown          */
    double mm;      /* of the file's unit of length                                   */
    bool swapped; /* values are not in native byte order                              */
};

/* Read and check the header; what is its path. */
int dnn_nifti_header(struct dnn_bytes *file, const char *what, struct dnn_nifti *out,
                     struct dnn_err *err);

#endif
