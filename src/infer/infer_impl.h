/* infer_impl.h - declarations shared by the files of this component.
 *
 * infer.c      a run: which of the three ways, weights, results;
 * samples.c    samples of the network's size, in batches of a stage;
 * slices.c     the same for slices of volumes, which are assembled again;
 * volume.c     samples of other sizes, in tiles;
 * input.c      samples for volume.c: reading, transforms, boxes;
 * tiles.c      a network at the extents of a tile;
 * result.c     where outputs go: files, evaluation.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_INFER_INFER_IMPL_H
#define DNN_INFER_INFER_IMPL_H

#include "evaluate/evaluate.h"
#include "infer/infer.h"
#include "loss/loss.h"
#include "output/output.h"
#include "stage/eval.h"

enum { INFER_OUTPUTS = 64 };

/* ---- result.c ---- */

/* Where the outputs of samples go. */
struct infer_result {
    const struct dnn_config *config;
    struct dnn_session *session;
    struct dnn_output *files;          /* owned; NULL: nothing is written            */
    struct dnn_evaluation *evaluation; /* owned; NULL: no targets                    */
    enum dnn_evaluate_task task;
    int noutputs;
    const char *name[INFER_OUTPUTS]; /* of the outputs */
    enum dnn_probability activation[INFER_OUTPUTS];
    bool bounded[INFER_OUTPUTS]; /* after the activation: from -1 to 1               */
    bool changes;                /* an output has an activation to be applied        */
    char *dir, *from;            /* owned: of the outputs; of the inputs, or NULL    */
    char settings[33];
};

/* The samples of a result. */
struct infer_samples {
    int64_t count;
    int64_t number; /* in the name of the default file                               */
    /* As in struct dnn_output_options. */
    int (*describe)(void *arg, int64_t sample, struct dnn_output_sample *out,
                    struct dnn_err *err);
    void *arg;
    const char *from; /* path of the inputs, or NULL */
    bool resume;      /* continue an interrupted run                                 */
    bool classifier;  /* outputs have no spatial axes                                */
};

/* Local.  Find names and activations of the outputs of a network. */
int dnn_infer_result_make(struct infer_result *r, const struct dnn_config *config,
                          struct dnn_session *session, const struct dnn_graph *graph,
                          struct dnn_err *err);
/* Collective.  Open the files, unless none are wanted. */
int dnn_infer_result_open(struct infer_result *r, const struct dnn_infer_opts *opts,
                          const struct infer_samples *samples, struct dnn_err *err);
/* Local.  Prepare an evaluation of targets.  column: of the target. */
int dnn_infer_result_evaluate(struct infer_result *r, const struct dnn_infer_opts *opts,
                              const struct dnn_column *column, int64_t channels,
                              int ndim, struct dnn_err *err);
/* Collective.  Complete the files if rc is 0; else keep them for the next run. */
int dnn_infer_result_close(struct infer_result *r, int rc, struct dnn_err *err);

/* Local.  Apply the activation of output k to n positions, in place. */
void dnn_infer_activate(const struct infer_result *r, int k, float *value, int64_t n,
                        int64_t channels);

/* ---- report.c ---- */

/* Collective.  Combine the evaluation of all ranks; rank 0 prints it and writes its
 * files.  metrics, loss: of the same samples, or NULL and NaN. */
int dnn_infer_report(struct infer_result *r, const struct dnn_infer_opts *opts,
                     const struct dnn_metrics *metrics, double loss, double seconds,
                     struct dnn_err *err);

/* ---- samples.c.  Collective. ---- */

int dnn_infer_batches(struct dnn_stage *stage, struct infer_result *r,
                      const struct dnn_infer_opts *opts, int64_t number,
                      struct dnn_stage_eval *eval, double *loss, struct dnn_err *err);

/* ---- slices.c ---- */

struct infer_slices;
/* Local.  For samples that are slices.  The caller owns *out: dnn_infer_slices_free(). */
int dnn_infer_slices_make(struct infer_result *r, struct dnn_stage *stage,
                          struct infer_slices **out, struct dnn_err *err);
void dnn_infer_slices_free(struct infer_slices *s); /* NULL is fine */
/* Local.  The assembled volumes as samples of the result. */
int64_t dnn_infer_slices_count(const struct infer_slices *s);
int dnn_infer_slices_describe(void *slices, int64_t sample,
                              struct dnn_output_sample *out, struct dnn_err *err);
/* Local.  Add the output for a slice. */
int dnn_infer_slices_add(struct infer_slices *s, int64_t sample, const float *value,
                         struct dnn_err *err);
/* Collective.  Write the volumes all of whose slices are among the first `done`. */
int dnn_infer_slices_finish(struct infer_slices *s, int64_t done, struct dnn_err *err);

/* ---- volume.c.  Collective. ---- */

/* Whether the test samples of a configuration have other extents than the network's
 * input, so that they must be cut into tiles. */
int dnn_infer_needs_tiles(const struct dnn_config *config, struct dnn_session *session,
                          bool *out, struct dnn_err *err);
int dnn_infer_volumes(const struct dnn_config *config, struct dnn_session *session,
                      const struct dnn_infer_opts *opts, struct dnn_err *err);

/* ---- infer.c.  Collective. ---- */

/* Load the weights of the configuration into a model; all must be there. */
int dnn_infer_load(const struct dnn_config *config, struct dnn_session *session,
                   struct dnn_model *model, struct dnn_err *err);

#endif
