/* load.h - load weights from a checkpoint, a model file or a Keras file into a network.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_ENGINE_LOAD_H
#define DNN_ENGINE_LOAD_H

#include "comm/comm.h"
#include "engine/model.h"

/* Collective.  Load weights and moving statistics by name, and log which match.  path:
 * a checkpoint (ckpt-000001234.bp, best.bp), the directory of a run or of its
 * checkpoints (the newest; with /best or /1234 appended that one), the name
 * of an rmldnn checkpoint (DIR/model_checkpoint_20.pt: our checkpoint of this epoch in
 * DIR), a model file (model.dnn), or a Keras file (.weights.h5, .h5, .keras).  If a
 * checkpoint contains the EMA of the weights, the EMA is loaded.  Missing weights and
 * different shapes are an error if complete is set (inference), or if no weight
 * matches.  Rank 0 reads and broadcasts. */
int dnn_load_weights(struct dnn_model *model, struct dnn_comm *comm, const char *path,
                     bool complete, struct dnn_err *err);

/* Local.  Name of a value in a checkpoint: "layer/kernel"; dnn_free(). */
char *dnn_load_name(const struct dnn_value *value);
/* Suffix of the name of the EMA of a weight. */
#define DNN_LOAD_EMA ".ema"

#endif
