/* load.h - weights from a file into a network: a checkpoint of ours, or Keras'.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_LOAD_H
#define DNN_RUN_LOAD_H

#include "comm/comm.h"
#include "run/model.h"

/* Collective.  Take weights and moving statistics by name, as many as fit, and say in
 * the log which did and which did not.  path: a checkpoint (ckpt-000001234.bp,
 * best.bp), the directory of a run or of its checkpoints (the newest; with /best or
 * /1234 behind it that one), or a file of Keras (.weights.h5, .h5, .keras).  Of a
 * checkpoint with a running mean of the weights, that is taken.  That some are missing
 * or have another shape is no failure; that none fits is.  Rank 0 reads, all get it. */
int dnn_load_weights(struct dnn_model *model, struct dnn_comm *comm, const char *path,
                     struct dnn_err *err);

/* Local.  The path itself, or, if it is one as rmldnn would have it
 * (DIR/model_checkpoint_20.pt) and nothing is there, that of our checkpoint of this
 * epoch in DIR.  The caller owns *out: dnn_free(). */
int dnn_load_find(const char *path, char **out, struct dnn_err *err);

/* Local.  What a checkpoint calls a value of a program: "layer/kernel"; dnn_free(). */
char *dnn_load_name(const struct dnn_value *value);
/* The running mean of a weight has its name and this behind it. */
#define DNN_LOAD_MEAN ".ema"

#endif
