/* shape.h - the extents of an array along its axes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_SHAPE_H
#define DNN_BASE_SHAPE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DNN_MAX_DIMS = 8,
    DNN_UNKNOWN = -1,    /* an extent not known yet, such as the batch size */
    DNN_SHAPE_TEXT = 176 /* bytes for the text of any shape                 */
};

struct dnn_shape {
    int ndim; /* 0: a scalar */
    int64_t dim[DNN_MAX_DIMS];
};

/* A shape from ndim extents; those beyond it are zero.  Fails on more than
 * DNN_MAX_DIMS axes and on extents below DNN_UNKNOWN. */
int dnn_shape_make(int ndim, const int64_t *dim, struct dnn_shape *out,
                   struct dnn_err *err);

/* Equal axis by axis; an unknown extent equals only an unknown one. */
bool dnn_shape_equal(const struct dnn_shape *a, const struct dnn_shape *b);

/* Whether every extent is known. */
bool dnn_shape_known(const struct dnn_shape *shape);

/* The number of elements (1 for a scalar, 0 if an extent is 0).  Fails on an unknown
 * extent and if the product overflows. */
int dnn_shape_count(const struct dnn_shape *shape, int64_t *out, struct dnn_err *err);

/* "32x64x64x1", "?x64" for an unknown extent, "scalar"; out is returned. */
const char *dnn_shape_text(char *out, size_t size, const struct dnn_shape *shape);

/* Parse such a text, without anything before or after it. */
int dnn_shape_parse(const char *text, struct dnn_shape *out, struct dnn_err *err);

#endif
