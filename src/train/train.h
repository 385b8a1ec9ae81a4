/* train.h - a training run: from a configuration to a trained network.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_TRAIN_H
#define DNN_TRAIN_TRAIN_H

#include "config/run_config.h"

struct dnn_session;

struct dnn_train_opts {
    bool progress;       /* print progress on stderr                                 */
    bool json;           /* print records on stdout, a JSON object per line          */
    int kernels;         /* enum dnn_kernel_selection                                 */
    const char *backend; /* overrides the configuration; NULL: as configured         */
    const char *command; /* command line, for run.json                               */
};

/* Collective.  Train, evaluate or infer as configured; resumes from the newest
 * checkpoint of the run, if there is one.  DNN_ESTOP: stopped by a signal or the time
 * limit, and a checkpoint was saved.  The caller installs the signal handlers
 * (base/stop.h). */
int dnn_train_run(const struct dnn_config *config, struct dnn_session *session,
                  const struct dnn_train_opts *opts, struct dnn_err *err);

#endif
