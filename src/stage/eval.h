/* eval.h - evaluation and inference of the samples of a stage: loss, metrics, outputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_STAGE_EVAL_H
#define DNN_STAGE_EVAL_H

#include "loss/loss.h"
#include "metric/metric.h"
#include "picture/figure.h"
#include "stage/stage.h"

/* The metrics of a stage's first output, and space for the targets of a micro-batch. */
struct dnn_stage_eval;

/* Local.  Make the metrics of the configuration, or those that fit the loss.  They are
 * of stage->eval, whose samples must have targets.  The caller owns *out:
 * dnn_stage_eval_free(). */
int dnn_stage_eval_make(struct dnn_stage *stage, struct dnn_stage_eval **out,
                        struct dnn_err *err);
void dnn_stage_eval_free(struct dnn_stage_eval *eval); /* NULL is fine */

/* Local.  The metrics, with the sums of all ranks after a run. */
struct dnn_metrics *dnn_stage_metrics(const struct dnn_stage_eval *eval);
/* Collective.  The sums of loss and metrics so far, the same on all ranks: *n doubles.
 * On another number of ranks there are as many.  The caller owns *out: dnn_free(). */
int dnn_stage_eval_sums(const struct dnn_stage_eval *eval, double **out, int64_t *n,
                        struct dnn_err *err);
/* Local.  Elements of the first output of a sample: channels of a position, positions.
 */
void dnn_stage_extents(const struct dnn_stage *stage, int64_t *channels,
                       int64_t *positions);

/* Local.  How the loss makes probabilities of output k of a network, and whether the
 * output is bounded (dnn_loss_bounded()). */
int dnn_stage_probability(const struct dnn_loss *loss, const struct dnn_graph *graph,
                          int k, enum dnn_probability *out, bool *bounded,
                          struct dnn_err *err);

/* Some samples of a batch, and the outputs for them. */
struct dnn_stage_seen {
    const struct dnn_batch *batch;
    int64_t skip, n;              /* of the samples of this rank in the batch         */
    const float *const *output;   /* of each output: n samples                        */
    struct dnn_metric_batch view; /* the first output and its target; without targets
                                   * labels and values are NULL                       */
};

/* Callbacks of a run; each may be NULL. */
struct dnn_stage_watch {
    /* Local.  After each micro-batch of this rank. */
    int (*seen)(void *arg, const struct dnn_stage_seen *seen, struct dnn_err *err);
    /* Collective: called on all ranks when all have seen `done` batches; its result
     * must be the same on all. */
    int (*batch)(void *arg, int64_t done, struct dnn_err *err);
    /* Local.  Called between batches; true on one rank stops all. */
    bool (*stop)(void *arg);
    void *arg;
};

/* Batches [from, to). */
struct dnn_stage_range {
    int64_t from, to;   /* to 0: until the end                                        */
    const double *sums; /* with eval: dnn_stage_eval_sums() of the batches before
                         * from, which then count, too; or NULL                       */
};

/* Collective.  Run the samples of some batches of data; range NULL: of all.  With eval,
 * which needs targets: the metrics, and *loss, the mean over these samples; eval NULL:
 * outputs alone.  DNN_ESTOP: stopped before the end. */
int dnn_stage_run(struct dnn_stage *stage, struct dnn_stage_data *data,
                  struct dnn_stage_eval *eval, const struct dnn_stage_watch *watch,
                  const struct dnn_stage_range *range, double *loss,
                  struct dnn_err *err);

/* Local.  Sample i of those seen, with its target, as a figure, except whether it has
 * classes.  The input is the first one that is an image; its memory is *input, which
 * the caller owns also after a failure: dnn_free(). */
int dnn_stage_figure(const struct dnn_stage *stage, const struct dnn_stage_data *data,
                     const struct dnn_stage_seen *seen, int64_t i,
                     struct dnn_figure_sample *out, float **input, struct dnn_err *err);

#endif
