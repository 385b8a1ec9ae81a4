/* infer.h - inference: from samples and a trained network to files, and an evaluation
 * if there are targets.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_INFER_INFER_H
#define DNN_INFER_INFER_H

#include "config/run_config.h"
#include "session/session.h"

#include <stdio.h>

struct dnn_infer_opts {
    bool progress;       /* print progress on stderr                                */
    bool json;           /* print the results on stdout, one JSON object            */
    int kernels;         /* enum dnn_kernel_selection                               */
    const char *backend; /* overrides the configuration; NULL: as configured        */
    const char *command; /* command line, for the record                            */
    const char *const *class_name; /* of the first output: [nclasses], or NULL       */
    int64_t nclasses;
};

/* Collective.  Load the weights (checkpoints.load, else the newest checkpoint of the
 * run directory), run all test samples, write their outputs, and evaluate them if there
 * are targets.  DNN_ESTOP: stopped by a signal or the time limit; the same command then
 * computes what is missing.  DNN_ELOST: stopped, and it starts from the beginning.  The
 * caller installs the signal handlers (base/stop.h). */
int dnn_infer_run(const struct dnn_config *config, struct dnn_session *session,
                  const struct dnn_infer_opts *opts, struct dnn_err *err);

/* Local.  Print what a run on so many ranks would do, without running it. */
int dnn_infer_explain(const struct dnn_config *config,
                      const struct dnn_infer_opts *opts, int ranks, FILE *where,
                      struct dnn_err *err);

/* A model file applied to inputs, without a configuration file. */
struct dnn_infer_model {
    const char *model;
    int ninputs;
    const char *const *input;       /* files, or one directory, or one dataset       */
    const char *target;             /* or NULL                                       */
    const char *output;             /* directory                                     */
    const char *formats, *contents; /* "npy,png"; NULL: the usual                    */
    int nset;
    const char *const *set; /* further changes, as "inference.batch=4"               */
};
struct dnn_package;
/* Local.  Its configuration.  *package has the names of the classes.  The caller owns
 * both: dnn_config_free(), then dnn_package_close(). */
int dnn_infer_model_config(const struct dnn_infer_model *model,
                           struct dnn_package **package, struct dnn_config *out,
                           struct dnn_err *err);

/* Collective.  Write the outputs of stage->test with the current weights; number: in
 * the name of the default file, output_NUMBER.h5. */
struct dnn_stage;
int dnn_infer_outputs(struct dnn_stage *stage, int64_t number,
                      const struct dnn_infer_opts *opts, struct dnn_err *err);

#endif
