/* tfrecord_impl.h - interface between the files of the TFRecord importer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_TFRECORD_IMPL_H
#define DNN_IMPORT_TFRECORD_IMPL_H

#include "import/array_impl.h"

/* ---- tfrecord_example.c ---- */

typedef struct Dnn__Tf__Example dnn_example;

/* Parse the message of a record, which what names; free it with dnn_example_free(). */
int dnn_example_parse(const char *what, const void *bytes, size_t n, dnn_example **out,
                      struct dnn_err *err);
void dnn_example_free(dnn_example *example); /* NULL is fine */

/* A feature to be read from examples. */
struct dnn_feature {
    const char *what; /* the record, for messages                                   */
    const struct dnn_import *how;
    const struct dnn_import_side *side;
    bool target;
    const char *name; /* of the feature                                             */
};

/* Set the name of the input or target feature: the configured one, or the first usual
 * name that exists.  NULL if there is no target and none is required. */
int dnn_example_choose(const dnn_example *example, struct dnn_feature *feature,
                       struct dnn_err *err);

/* Read the feature and its axes.  *varying: other examples may differ in shape. */
int dnn_example_read(const dnn_example *example, const struct dnn_feature *feature,
                     struct dnn_axes *axes, bool *varying, struct dnn_array *out,
                     struct dnn_err *err);

#endif
