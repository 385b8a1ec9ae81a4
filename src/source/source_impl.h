/* source_impl.h - shared by the files that open the samples of a configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SOURCE_IMPL_H
#define DNN_SOURCE_IMPL_H

#include "source/source.h"

/* slice.c: samples cut by the slicers.  Takes ownership of from, also on
 * failure. */
int dnn_source_slice(struct dnn_source *from, const struct dnn_config_data *data,
                     struct dnn_source **out, struct dnn_err *err);
const struct dnn_source_slices *dnn_source_slices(const struct dnn_source *source);

#endif
