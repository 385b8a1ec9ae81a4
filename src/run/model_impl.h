/* model_impl.h - what the files of a model share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_MODEL_IMPL_H
#define DNN_RUN_MODEL_IMPL_H

#include "run/model.h"

/* Make a backend one that takes addresses but no memory: it answers every question
 * about steps, and cannot run any. */
void dnn_model_make_dry(struct dnn_backend *backend);

/* Bytes this process may still take: what the machine has, and its control group.
 * SIZE_MAX if nobody says. */
size_t dnn_model_available(void);

#endif
