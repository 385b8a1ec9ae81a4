/* infer_impl.h - declarations shared by the files of this component.
 *
 * infer.c      a run: which of the two ways, weights;
 * samples.c    samples of the network's size, in batches of a stage;
 * slices.c     the same for slices of volumes, which are assembled again;
 * volume.c     samples of other sizes, in tiles;
 * plan.c       which tiles and units there are;
 * explain.c    what a run would do;
 * row.c        a row of tiles: the network, flips, blending;
 * input.c      the inputs of volume.c: reading ahead, transforms;
 * tiles.c      whether there are tiles, the network at their extents;
 * result.c     where outputs go: files, evaluation;
 * resume.c     the evaluation of an interrupted run;
 * report.c     the results of an evaluation;
 * worst.c      pictures of its worst samples;  plane.c: of samples in tiles;
 * html.c       its results as one HTML file.
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
#include "picture/figure.h"
#include "source/source.h"
#include "stage/eval.h"
#include "telemetry/record.h"

enum { INFER_OUTPUTS = 64 };

/* ---- result.c ---- */

/* Where the outputs of samples go. */
struct infer_result {
    const struct dnn_config *config;
    struct dnn_session *session;
    const struct dnn_model *model;     /* with its weights                           */
    struct dnn_output *files;          /* owned; NULL: nothing is written            */
    struct dnn_evaluation *evaluation; /* owned; NULL: no targets                    */
    struct infer_resume *resume;       /* owned; NULL: nothing is saved              */
    enum dnn_evaluate_task task;
    int64_t classes;               /* of the evaluation, or channels of values        */
    const char *const *class_name; /* [classes], or NULL                             */
    int noutputs;
    const char *name[INFER_OUTPUTS]; /* of the outputs */
    enum dnn_probability activation[INFER_OUTPUTS];
    bool bounded[INFER_OUTPUTS]; /* after the activation: from -1 to 1               */
    bool logits;                 /* the first output: after the activation no
                                  * probabilities                                    */
    bool changes;                /* an output has an activation to be applied        */
    bool resumes;                /* a run that is stopped can be resumed             */
    char *dir, *from;            /* owned: of the outputs; of the inputs, or NULL    */
    /* Checksums of all that decides the outputs, and their evaluation.               */
    char settings[33], evaluated[33];
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
    bool resume;      /* continue an interrupted run; the rest decides whether it is the
                       * same                                                        */
    const struct dnn_source *source; /* files; or NULL                               */
    const char *dataset;             /* its path; or NULL                            */
    bool classifier;     /* outputs have no spatial axes                            */
    const char *overlay; /* why there are no overlays; NULL: there are              */
};

/* Local.  Find names and activations of the outputs of a model, which has its
 * weights and must outlive r. */
int dnn_infer_result_make(struct infer_result *r, const struct dnn_config *config,
                          struct dnn_session *session, const struct dnn_model *model,
                          struct dnn_err *err);
/* Collective.  Open the files, unless none are wanted. */
int dnn_infer_result_open(struct infer_result *r, const struct dnn_infer_opts *opts,
                          const struct infer_samples *samples, struct dnn_err *err);
/* Local.  Prepare an evaluation of targets.  column: of the target. */
int dnn_infer_result_evaluate(struct infer_result *r, const struct dnn_infer_opts *opts,
                              const struct dnn_column *column, int64_t channels,
                              int ndim, struct dnn_err *err);
/* Collective, when all samples are computed.  Complete the files, before anything is
 * reported: a failure of the evaluation does not keep outputs back. */
int dnn_infer_result_commit(struct infer_result *r, struct dnn_err *err);
/* Collective.  rc: of the run; after a failure the next one can continue.  Returns it;
 * DNN_ELOST instead of DNN_ESTOP if nothing is kept. */
int dnn_infer_result_close(struct infer_result *r, int rc, struct dnn_err *err);

/* Local.  Apply the activation of output k to n positions, in place. */
void dnn_infer_activate(const struct infer_result *r, int k, float *value, int64_t n,
                        int64_t channels);

/* ---- resume.c: the evaluation of an interrupted run, by units of work of tiles. ----
 */

/* Collective, when evaluation and files are open, if they can be continued.  Load what
 * was evaluated.  units: of all samples. */
int dnn_infer_resume_open(struct infer_result *r, int64_t units, struct dnn_err *err);
void dnn_infer_resume_free(struct infer_resume *s); /* NULL is fine */
/* Local.  Whether the evaluation had a unit at the start: it must not be added again.
 */
bool dnn_infer_resume_has(const struct infer_result *r, int64_t unit);
/* Local.  A unit is complete, in the files and in the evaluation. */
void dnn_infer_resume_add(struct infer_result *r, int64_t unit);
/* Local.  Save the evaluation, now or if the last time was long ago.  The evaluation
 * must not contain parts of units. */
int dnn_infer_resume_save(struct infer_result *r, bool now, struct dnn_err *err);

/* Collective, of batches in their order: save the evaluation of the first `done` ones
 * and its n sums, which are the same on all ranks. */
int dnn_infer_resume_store(struct infer_result *r, int64_t done, const double *sums,
                           int64_t n, struct dnn_err *err);
/* Collective.  Load what was saved if it is of at most `most` batches; else *done
 * becomes 0.  sums: [n]. */
int dnn_infer_resume_fetch(struct infer_result *r, int64_t most, int64_t *done,
                           double *sums, int64_t n, struct dnn_err *err);

/* ---- report.c ---- */

struct infer_worst;

/* What a run has found, beside its files. */
struct infer_found {
    int64_t samples;
    double seconds;
    const struct dnn_metrics *metrics; /* or NULL */
    double loss;                       /* NaN: unknown */
    /* Collective.  Compute the worst samples again, and draw them. */
    int (*draw)(void *arg, struct infer_worst *worst, struct dnn_err *err);
    void *arg;
};
/* Collective.  Combine the evaluation of all ranks; rank 0 prints the results and
 * writes their files. */
int dnn_infer_report(struct infer_result *r, const struct dnn_infer_opts *opts,
                     const struct infer_found *found, struct dnn_err *err);

/* ---- worst.c ---- */

/* Pictures of the worst samples: DIR/pictures/worst-01.png... */
enum { INFER_WORST = 100 }; /* at most */
struct infer_worst {
    const struct infer_result *r;
    const struct dnn_evaluate_worst *list; /* the same on all ranks                  */
    int n;
    int64_t *drawn;     /* owned: [n]; after drawing of all ranks                    */
    struct dnn_err why; /* the first failure of this rank                            */
};
/* Collective.  Draw the worst samples, if any are listed; failures are warnings.  The
 * caller owns what is in *out: dnn_infer_worst_free(). */
void dnn_infer_worst_draw(const struct infer_result *r, const struct infer_found *found,
                          struct infer_worst *out);
void dnn_infer_worst_free(struct infer_worst *worst);
/* Local.  The place of a sample in the list; -1: none. */
int dnn_infer_worst_find(const struct infer_worst *worst, int64_t sample);
/* Local.  Draw number i of the list, if it is an image. */
void dnn_infer_worst_save(struct infer_worst *worst, int i,
                          const struct dnn_figure_sample *sample);
/* Local.  The path of its picture; dnn_free(). */
char *dnn_infer_worst_path(const struct infer_result *r, int i);

/* ---- html.c ---- */

/* Local, rank 0.  Write test.html.  values: loss and metrics, as "val_loss"...;
 * failures are warnings. */
void dnn_infer_html(const struct infer_result *r, const struct dnn_infer_opts *opts,
                    const struct infer_found *found, const struct dnn_record *values,
                    const struct infer_worst *worst);

/* ---- infer.c ---- */

/* Collective.  Load the weights of the configuration into a model. */
int dnn_infer_load(const struct dnn_config *config, struct dnn_session *session,
                   struct dnn_model *model, struct dnn_err *err);
/* Local.  Whether this rank wants to stop: a signal, or the time limit of the job;
 * longest: seconds until it asks again. */
bool dnn_infer_stops(const struct dnn_session *session, double longest);

/* ---- samples.c ---- */

/* Collective.  Run all samples of stage->test, and report if wanted. */
int dnn_infer_samples(struct dnn_stage *stage, const struct dnn_infer_opts *opts,
                      int64_t number, bool report, struct dnn_err *err);

/* Local.  The position of an output of this shape, if it has the extents of column c of
 * a sample of source; only for NIfTI files. */
int dnn_infer_position(const struct dnn_config *config, const struct dnn_source *source,
                       int64_t sample, int c, const struct dnn_shape *shape,
                       struct dnn_position *out, struct dnn_err *err);

/* ---- slices.c ---- */

/* Slices put together again to volumes.  The sample of a result is a volume of one
 * slicer.  Sums are integers, so that they do not depend on the number of ranks. */
struct infer_slices;
/* Local.  how: of the samples; shape: the network's output for one of them.  The caller
 * owns *out: dnn_infer_slices_free(). */
int dnn_infer_slices_make(struct infer_result *r, const struct dnn_source_slices *how,
                          const struct dnn_shape *shape, struct infer_slices **out,
                          struct dnn_err *err);
void dnn_infer_slices_free(struct infer_slices *s); /* NULL is fine */
int64_t dnn_infer_slices_count(const struct infer_slices *s);
/* Local.  As in struct dnn_output_options. */
int dnn_infer_slices_describe(void *slices, int64_t volume,
                              struct dnn_output_sample *out, struct dnn_err *err);
/* Local.  The first slice of the first volume that an interrupted run has not
 * completed.
 */
int64_t dnn_infer_slices_first(const struct infer_slices *s);
/* Local.  Add the output for a slice, given by its number among all samples. */
int dnn_infer_slices_add(struct infer_slices *s, int64_t sample, const float *value,
                         struct dnn_err *err);
/* Collective.  Write what is complete when the first `done` samples have been added. */
int dnn_infer_slices_finish(struct infer_slices *s, int64_t done, struct dnn_err *err);

/* ---- tiles.c, volume.c.  Collective. ---- */

/* Whether test samples have other extents than the network's input, so that they must
 * be cut into tiles. */
int dnn_infer_needs_tiles(const struct dnn_config *config, struct dnn_session *session,
                          bool *out, struct dnn_err *err);
int dnn_infer_volumes(const struct dnn_config *config, struct dnn_session *session,
                      const struct dnn_infer_opts *opts, struct dnn_err *err);

#endif
