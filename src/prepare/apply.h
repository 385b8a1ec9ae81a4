/* apply.h - the preparation of a dataset, applied to other samples: raw files go
 * through the same steps as the samples that a network was trained with.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PREPARE_APPLY_H
#define DNN_PREPARE_APPLY_H

#include "sample/source.h"

/* Local.  A source of the samples of `from` after the steps in a dataset's record
 * (struct dnn_dataset_info: provenance), with the statistics of that dataset.  Images
 * have the values that a reader of the dataset gets: integers are multiplied by their
 * scale, as f32.
 *
 * Steps that choose or cut samples (split, balance, slice) are left out, and so are
 * those of columns that `from` lacks; but it must have all inputs, read in the same
 * way. DNN_ECONFIG if the steps cannot be applied: one after slice needs more than a
 * point, or the record has no statistics.
 *
 * A box is read without the rest of the sample if `from` can do this and each step acts
 * on each point alone.
 *
 * Takes ownership of from, also on failure; the caller owns *out: dnn_source_close().
 */
int dnn_prepare_apply(const char *record, size_t len, struct dnn_source *from,
                      struct dnn_source **out, struct dnn_err *err);

#endif
