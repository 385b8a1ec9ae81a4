/* train.h - a training run: from a job to a trained network.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_TRAIN_H
#define DNN_RUN_TRAIN_H

#include "config/job.h"
#include "run/session.h"

struct dnn_train_opts {
    bool progress;       /* tell how it goes on stderr                               */
    bool json;           /* records on stdout, an object a line                      */
    int kernels;         /* enum dnn_kernel_selection: how kernels are chosen         */
    const char *backend; /* instead of the job's; or NULL                            */
    const char *command; /* for the record                                           */
};

/* Collective.  Train as the job says, going on from its newest checkpoint if there is
 * one.  DNN_ESTOP: asked to stop, a checkpoint is written; the caller has the signals
 * watched (base/stop.h). */
int dnn_train_run(const struct dnn_job *job, struct dnn_session *session,
                  const struct dnn_train_opts *opts, struct dnn_err *err);

#endif
