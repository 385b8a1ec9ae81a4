/* nifti_impl.h - what a NIfTI header says once it has been checked.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_NIFTI_IMPL_H
#define DNN_IMPORT_NIFTI_IMPL_H

#include "import/import_impl.h"

struct dnn_nifti {
    int64_t dim[8];      /* [0]: axes, 1 to 7; the others at least 1                 */
    enum dnn_dtype type; /* of a stored number                                       */
    int64_t colours;     /* numbers stored together: 1, or 3 or 4 of a colour        */
    int64_t offset;      /* of the first number                                      */
    double slope, inter; /* slope 0: values are as stored                            */
    double spacing[3];   /* of i, j, k in mm (or whatever, if it does not say); 0: not
                          * known                                                    */
    double affine[12];
    bool turned; /* the numbers are in the other byte order                          */
};

/* Read and check the header; what is its path. */
int dnn_nifti_header(struct dnn_bytes *file, const char *what, struct dnn_nifti *out,
                     struct dnn_err *err);

#endif
