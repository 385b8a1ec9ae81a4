/* bp_impl.h - BP files as sources: prepared datasets and other files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_BP_IMPL_H
#define DNN_IMPORT_BP_IMPL_H

#include "bp/bp.h"
#include "import/import_impl.h"

/* A prepared dataset (docs/dataset.md): one split, or all splits one after the other.
 * Takes ownership of bp, also on failure. */
int dnn_import_dataset(struct dnn_bp *bp, const char *path,
                       const struct dnn_import *how, bool target,
                       struct dnn_source **out, struct dnn_err *err);

#endif
