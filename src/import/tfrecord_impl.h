/* tfrecord_impl.h - what the files of the TFRecord importer share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_TFRECORD_IMPL_H
#define DNN_IMPORT_TFRECORD_IMPL_H

#include "import/array_impl.h"

/* ---- tfrecord_example.c ---- */

typedef struct Dnn__Tf__Example dnn_example;

/* The message in a record; what names it.  For dnn_example_free(). */
int dnn_example_parse(const char *what, const void *bytes, size_t n, dnn_example **out,
                      struct dnn_err *err);
void dnn_example_free(dnn_example *example); /* NULL is fine */

/* What is to be read of examples. */
struct dnn_feature {
    const char *what; /* the record, for messages                                   */
    const struct dnn_import *how;
    const struct dnn_import_side *side;
    bool target;
    const char *name; /* of the feature                                             */
};

/* The name of the input or the target feature: the side's, or the first of the usual
 * ones that is there.  A target that nobody asked for may be missing: NULL. */
int dnn_example_choose(const dnn_example *example, struct dnn_feature *feature,
                       struct dnn_err *err);

/* The feature as an array and what it is.  spread: examples may differ in space. */
int dnn_example_read(const dnn_example *example, const struct dnn_feature *feature,
                     struct dnn_axes *axes, bool *spread, struct dnn_array *out,
                     struct dnn_err *err);

#endif
