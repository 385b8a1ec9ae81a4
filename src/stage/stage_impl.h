/* stage_impl.h - declarations shared by the files of the stage.
 *
 * open.c     the replica;
 * data.c     training, validation and test data;
 * columns.c  which column is which input or target;
 * eval.c     evaluation and inference: loss, metrics, outputs;
 * explain.c  print what each rank would run.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_STAGE_STAGE_IMPL_H
#define DNN_STAGE_STAGE_IMPL_H

#include "stage/stage.h"

enum { DNN_STAGE_PARTS = 3 }; /* train, eval, separate_test */

/* Collective.  Open all data, or only test data, and find the kind of each target. */
int dnn_stage_open_data(struct dnn_stage *s, bool test, struct dnn_err *err);
void dnn_stage_data_free(struct dnn_stage_data *data);

/* Local.  Whether any column is a target. */
bool dnn_stage_has_targets(const struct dnn_feed *feed);
/* Local.  Find the columns of the network's inputs and targets. */
int dnn_stage_columns(const struct dnn_stage *s, struct dnn_stage_data *data,
                      struct dnn_err *err);

/* Local.  The batches of a role, for this data. */
struct dnn_replica_batches dnn_stage_batches(const struct dnn_config *config,
                                             enum dnn_model_role role);

#endif
