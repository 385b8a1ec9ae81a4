/* model_impl.h - declarations shared by the files of a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_ENGINE_MODEL_IMPL_H
#define DNN_ENGINE_MODEL_IMPL_H

#include "engine/model.h"

/* Dry run: the backend reserves addresses but no memory, and cannot run kernels. */
void dnn_model_make_dry(struct dnn_backend *backend);

/* fit.c: plan memory within the limit, with recomputation as configured; AUTO: first
 * without recomputation, then with as much as the limit requires.  Fails before
 * anything is allocated. */
int dnn_model_fit(struct dnn_model *m, struct dnn_err *err);
/* Find the checkpoint for the name of an rmldnn checkpoint, which does not exist;
 * *out (dnn_free()) is NULL for another name. */
int dnn_load_rmldnn(const char *path, char **out, struct dnn_err *err);

#endif
