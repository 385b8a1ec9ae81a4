/* samples.c - samples of the network's size, in batches of a stage.
 *
 * Each rank writes the outputs of its samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/infer_impl.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/progress.h"
#include "data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct batches {
    struct infer_result *r;
    struct dnn_stage *stage;
    struct dnn_stage_data *data;
    struct infer_slices *slices;    /* owned; NULL: samples are no slices          */
    struct dnn_stage_eval *metrics; /* owned; NULL: no targets                     */
    struct dnn_progress *progress;  /* on rank 0                                   */
    int64_t before; /* samples that an interrupted run has computed                   */
    int64_t done;   /* batches                                                        */
    struct dnn_shape shape[INFER_OUTPUTS]; /* of each output, for one sample        */
    int64_t count[INFER_OUTPUTS];          /* of their elements                     */
    float *scratch; /* owned: an output with its activation; an input                */
    int input;      /* the first input that is an image, for overlays; -1: none      */
    struct infer_worst *worst; /* while the worst samples are drawn                 */
    double last, longest; /* time of the last batch, seconds of the slowest          */
};

/* ---- the samples ---- */

static bool same_extents(const struct dnn_shape *a, const struct dnn_shape *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->dim, b->dim, (size_t)(a->ndim - 1) * sizeof *a->dim) == 0;
}

int dnn_infer_position(const struct dnn_config *config, const struct dnn_source *source,
                       int64_t sample, int c, const struct dnn_shape *shape,
                       struct dnn_position *out, struct dnn_err *err)
{
    const struct dnn_list *formats = &config->infer->formats;
    struct dnn_shape is;
    bool wanted = false;

    *out = (struct dnn_position){0};
    for (int64_t i = 0; i < formats->count; i++)
        wanted |= formats->enums[i] == DNN_OUTPUT_NIFTI;
    if (!wanted || shape->ndim < 2) return 0;
    int rc = dnn_source_try_shape(source, sample, c, &is, err);
    if (rc != 0 || !same_extents(&is, shape)) return rc < 0 ? rc : 0;
    return dnn_source_position(source, sample, c, out, err);
}

/* The spacing of column c of a dataset, unless transforms or the network change its
 * extents. */
static void stored_spacing(const struct batches *b, int c, double *out)
{
    const struct dnn_stored *is = &dnn_feed_split(b->data->feed)->col[c];

    if (b->shape[0].ndim > 1 && same_extents(&is->column.shape, &b->shape[0]))
        memcpy(out, is->spacing, sizeof is->spacing);
}

static int describe(void *arg, int64_t sample, struct dnn_output_sample *out,
                    struct dnn_err *err)
{
    struct batches *b = arg;
    const struct dnn_source *source = b->data->source;
    const int input = b->data->input[0];
    bool same = true;

    memset(out, 0, sizeof *out);
    dnn_feed_label(b->data->feed, sample, out->name);
    memcpy(out->shape, b->shape, (size_t)b->r->noutputs * sizeof *b->shape);
    out->units = 1;
    for (int k = 1; k < b->r->noutputs; k++)
        same = same && same_extents(&b->shape[k], &b->shape[0]);
    if (dnn_feed_split(b->data->feed) != NULL && same)
        stored_spacing(b, input, out->position.spacing);
    if (source == NULL || dnn_source_sliced(source) != NULL) return 0;
    out->input = dnn_source_file(source, sample);
    if (!same) return 0; /* one position is not that of all outputs */
    return dnn_infer_position(b->r->config, source, sample, input, &b->shape[0],
                              &out->position, err);
}

static int find_shapes(struct batches *b, struct dnn_err *err)
{
    const struct dnn_model *m = dnn_replica_model(b->stage->replica);
    const struct dnn_column *col;
    int64_t most = 0;

    dnn_feed_columns(b->data->feed, &col);
    b->input = -1;
    for (int i = m->ninputs - 1; i >= 0; i--) {
        const struct dnn_column *c = &col[b->data->input[i]];

        if (c->kind != DNN_KIND_IMAGE) continue;
        b->input = b->data->input[i];
        DNN_TRY(dnn_shape_count(&c->shape, &most, err));
    }
    for (int k = 0; k < m->noutputs; k++) {
        const struct dnn_shape *with = dnn_prog_shape(m->prog, m->output[k]);

        b->shape[k].ndim = with->ndim - 1;
        memcpy(b->shape[k].dim, with->dim + 1,
               (size_t)(with->ndim - 1) * sizeof *with->dim);
        DNN_TRY(dnn_shape_count(&b->shape[k], &b->count[k], err));
        if (b->count[k] > most) most = b->count[k];
    }
    b->scratch = dnn_alloc((size_t)(most + 16) * sizeof *b->scratch);
    return 0;
}

/* ---- one sample ---- */

/* Output k with its activation. */
static const float *activated(struct batches *b, int k, const float *value)
{
    int64_t channels = b->shape[k].dim[b->shape[k].ndim - 1];

    if (b->r->activation[k] == DNN_PROBABILITY_NONE) return value;
    memcpy(b->scratch, value, (size_t)b->count[k] * sizeof *value);
    dnn_infer_activate(b->r, k, b->scratch, b->count[k] / channels, channels);
    return b->scratch;
}

static int write_input(struct batches *b, int64_t sample, int64_t at,
                       struct dnn_err *err)
{
    const struct dnn_column *col;

    if (b->input < 0) return 0;
    dnn_feed_columns(b->data->feed, &col);
    DNN_TRY(dnn_feed_values(b->data->feed, b->data->batch, b->input, at, 1, b->scratch,
                            err));
    return dnn_output_input(b->r->files, sample, &col[b->input].shape, -1, b->scratch,
                            err);
}

/* Of the target, for distances between surfaces; transforms may change that of files.
 */
static int find_spacing(const struct batches *b, int64_t sample, double *out,
                        struct dnn_err *err)
{
    const int target = b->data->target[0];
    struct dnn_position position = {0};

    if (b->r->task != DNN_EVALUATE_MASKS || !b->r->config->infer->surfaces) return 0;
    if (dnn_feed_split(b->data->feed) != NULL)
        stored_spacing(b, target, position.spacing);
    else if (b->data->source != NULL && b->data->augment == NULL)
        DNN_TRY(dnn_source_position(b->data->source, sample, target, &position, err));
    memcpy(out, position.spacing, sizeof position.spacing);
    return 0;
}

static int evaluate(struct batches *b, int64_t sample,
                    const struct dnn_metric_batch *view, int64_t i, const float *value,
                    struct dnn_err *err)
{
    struct dnn_output_sample about;
    struct dnn_evaluate_part part = {.sample = sample, .output = value};
    const struct dnn_shape *shape = &b->shape[0];

    DNN_TRY(describe(b, sample, &about, err));
    part.name = about.name;
    DNN_TRY(find_spacing(b, sample, part.spacing, err));
    for (int d = 0; d + 1 < shape->ndim && d < DNN_MAX_SPACE; d++)
        part.full[d] = part.extent[d] = shape->dim[d];
    if (view->labels != NULL)
        part.labels = view->labels + i * view->positions;
    else
        part.values = view->values + i * view->positions * view->channels;
    return dnn_evaluate_add(b->r->evaluation, &part, err);
}

/* Fail unless output k of a sample is finite. */
static int check_finite(struct batches *b, int64_t sample, int k, const float *value,
                        struct dnn_err *err)
{
    struct dnn_output_sample about;
    const struct dnn_shape *s = &b->shape[k];
    char place[DNN_MAX_DIMS * 24] = "";
    int64_t i = 0, n = b->count[k], at[DNN_MAX_DIMS] = {0};
    size_t len = 0;

    while (i < n && isfinite(value[i]))
        i++;
    if (i == n) return 0;
    DNN_TRY(describe(b, sample, &about, err));
    for (int64_t d = s->ndim, rest = i; d-- > 0; rest /= s->dim[d])
        at[d] = rest % s->dim[d];
    for (int d = 0; d < s->ndim; d++)
        len += (size_t)snprintf(place + len, sizeof place - len, "%s%" PRId64,
                                d == 0 ? "" : ", ", at[d]);
    return dnn_fail(err, DNN_EDATA,
                    "sample \"%s\": output '%s' of the network is %s at (%s); it must "
                    "be finite",
                    about.name, b->r->name[k], isnan(value[i]) ? "NaN" : "infinite",
                    place);
}

static int write_sample(struct batches *b, const struct dnn_stage_seen *seen, int64_t i,
                        struct dnn_err *err)
{
    static const int64_t start[DNN_MAX_SPACE];
    int64_t sample = seen->batch->sample[seen->skip + i];
    struct infer_result *r = b->r;

    if (dnn_output_wants_input(r->files))
        DNN_TRY(write_input(b, sample, seen->skip + i, err));
    for (int k = 0; k < r->noutputs; k++)
        DNN_TRY(dnn_output_put(r->files, sample, k, start, b->shape[k].dim,
                               activated(b, k, seen->output[k] + i * b->count[k]),
                               err));
    return dnn_output_unit(r->files, sample, 0, err);
}

static int see(void *arg, const struct dnn_stage_seen *seen, struct dnn_err *err)
{
    struct batches *b = arg;

    for (int64_t i = 0; i < seen->n; i++) {
        int64_t sample = seen->batch->sample[seen->skip + i];
        const float *first = seen->output[0] + i * b->count[0];

        for (int k = 0; k < b->r->noutputs; k++)
            DNN_TRY(check_finite(b, sample, k, seen->output[k] + i * b->count[k], err));
        if (b->r->evaluation != NULL)
            DNN_TRY(evaluate(b, sample, &seen->view, i, activated(b, 0, first), err));
        if (b->slices != NULL)
            DNN_TRY(
                dnn_infer_slices_add(b->slices, sample, activated(b, 0, first), err));
        else if (b->r->files != NULL && !dnn_output_done(b->r->files, sample, 0))
            DNN_TRY(write_sample(b, seen, i, err));
    }
    return 0;
}

static bool stops(void *arg)
{
    struct batches *b = arg;

    return dnn_infer_stops(b->stage->session, b->longest);
}

/* ---- the worst samples ---- */

static int draw(struct batches *b, int number, const struct dnn_stage_seen *seen,
                int64_t i, struct dnn_err *err)
{
    struct dnn_figure_sample sample;
    float *input = NULL;

    int rc = dnn_stage_figure(b->stage, b->data, seen, i, &sample, &input, err);
    if (rc == 0) {
        sample.output = activated(b, 0, sample.output);
        dnn_infer_worst_save(b->worst, number, &sample);
    }
    dnn_free(input);
    return rc;
}

static int see_worst(void *arg, const struct dnn_stage_seen *seen, struct dnn_err *err)
{
    struct batches *b = arg;

    for (int64_t i = 0; i < seen->n; i++) {
        int number =
            dnn_infer_worst_find(b->worst, seen->batch->sample[seen->skip + i]);

        if (number >= 0) DNN_TRY(draw(b, number, seen, i, err));
    }
    return 0;
}

/* Collective.  Run the batches again that have them. */
static int draw_worst(void *arg, struct infer_worst *worst, struct dnn_err *err)
{
    struct batches *b = arg;
    const struct dnn_stage_watch watch = {see_worst, NULL, stops, b};
    int64_t size = b->data->batch_size;
    double loss;

    b->worst = worst;
    for (int i = 0; i < worst->n; i++) {
        int64_t batch = worst->list[i].sample / size;
        bool done = false;

        for (int k = 0; k < i && !done; k++)
            done = worst->list[k].sample / size == batch;
        if (done) continue;
        const struct dnn_stage_range range = {batch, batch + 1, NULL};
        DNN_TRY(
            dnn_stage_run(b->stage, b->data, b->metrics, &watch, &range, &loss, err));
    }
    return 0;
}

/* ---- the run ---- */

static int64_t samples_of(const struct batches *b, int64_t batches)
{
    int64_t n = batches * b->data->batch_size, all = dnn_feed_count(b->data->feed);

    return n < all ? n : all;
}

/* Collective, after a stop, and before results are reported. */
static int save_evaluation(struct batches *b, struct dnn_err *err)
{
    double *sums = NULL;
    int64_t n;

    if (b->r->evaluation == NULL || !b->r->resumes) return 0;
    int rc = dnn_stage_eval_sums(b->metrics, &sums, &n, err);
    if (rc == 0) rc = dnn_infer_resume_store(b->r, b->done, sums, n, err);
    dnn_free(sums);
    return rc;
}

static int after_batch(void *arg, int64_t done, struct dnn_err *err)
{
    struct batches *b = arg;
    double now = dnn_clock_now();

    if (now - b->last > b->longest) b->longest = now - b->last;
    b->last = now;
    b->done = done;
    if (b->progress != NULL)
        dnn_progress_at(b->progress, samples_of(b, done) - b->before);
    if (done == dnn_feed_batches(b->data->feed)) DNN_TRY(save_evaluation(b, err));
    if (b->slices == NULL) return 0;
    return dnn_infer_slices_finish(b->slices, samples_of(b, done), err);
}

static int open_result(struct batches *b, const struct dnn_infer_opts *opts,
                       int64_t number, bool report, struct dnn_err *err)
{
    const struct dnn_column *col;
    struct dnn_config_origin origin;
    const struct dnn_source_slices *slices = dnn_source_sliced(b->data->source);
    const bool evaluated = b->data->role == DNN_MODEL_EVALUATE;
    int rc = dnn_infer_result_make(b->r, b->stage->config, b->stage->session,
                                   dnn_replica_model(b->stage->replica), err);

    if (rc == 0) rc = find_shapes(b, err);
    if (rc == 0 && slices != NULL)
        rc = dnn_infer_slices_make(b->r, slices, &b->shape[0], &b->slices, err);
    if (rc == 0 && evaluated) rc = dnn_stage_eval_make(b->stage, &b->metrics, err);
    if (rc == 0 && evaluated && report) {
        dnn_feed_columns(b->data->feed, &col);
        rc = dnn_infer_result_evaluate(b->r, opts, &col[b->data->target[0]],
                                       b->shape[0].dim[b->shape[0].ndim - 1],
                                       b->shape[0].ndim - 1, err);
    }
    DNN_TRY(dnn_comm_agree(b->stage->session->comm, rc, err));
    dnn_config_origin(b->stage->config, DNN_PART_TEST, &origin);
    const struct infer_samples samples = {
        .count = b->slices != NULL ? dnn_infer_slices_count(b->slices)
                                   : dnn_feed_count(b->data->feed),
        .number = number,
        .describe = b->slices != NULL ? dnn_infer_slices_describe : describe,
        .arg = b->slices != NULL ? (void *)b->slices : b,
        .from = origin.from == DNN_FROM_FILES ? origin.files.input.path : NULL,
        .resume = report && (b->slices == NULL || !evaluated),
        .source = b->data->source,
        .dataset = origin.from == DNN_FROM_DATASET ? origin.dataset : NULL,
        .classifier = b->shape[0].ndim == 1,
        .overlay = b->slices != NULL ? "cannot be combined with data.slicers"
                   : b->input < 0    ? "needs an input that is an image"
                                     : NULL};
    return dnn_infer_result_open(b->r, opts, &samples, err);
}

/* The first batch that is not complete in the files of an interrupted run. */
static int first_batch(const struct batches *b, int64_t *out, struct dnn_err *err)
{
    int64_t all = dnn_feed_count(b->data->feed), done = 0;

    if (b->slices != NULL)
        done = dnn_infer_slices_first(b->slices);
    else if (b->r->files != NULL)
        while (done < all && dnn_output_done(b->r->files, done, 0))
            done++;
    *out = done == all ? dnn_feed_batches(b->data->feed) : done / b->data->batch_size;
    return dnn_comm_allreduce(b->stage->session->comm, "completed batches", out, 1,
                              DNN_COMM_I64, DNN_COMM_MIN, err);
}

/* Collective.  The batches from which the evaluation continues, too; the caller owns
 * *sums. */
static int load_evaluation(struct batches *b, struct dnn_stage_range *range,
                           double **sums, struct dnn_err *err)
{
    int64_t n, most = range->from;

    if (b->metrics == NULL) return 0;
    range->from = 0;
    if (!b->r->resumes) return 0;
    DNN_TRY(dnn_stage_eval_sums(b->metrics, sums, &n, err));
    DNN_TRY(dnn_infer_resume_fetch(b->r, most, &range->from, *sums, n, err));
    if (range->from > 0) range->sums = *sums;
    return 0;
}

/* Collective.  Run the samples that are missing. */
static int run_batches(struct batches *b, const struct dnn_infer_opts *opts,
                       double *loss, struct dnn_err *err)
{
    const struct dnn_stage_watch watch = {see, after_batch, stops, b};
    struct dnn_stage_range range = {0};
    struct dnn_err why = {0};
    double *sums = NULL;

    int rc = first_batch(b, &range.from, err);
    if (rc == 0) rc = load_evaluation(b, &range, &sums, err);
    if (rc == 0) {
        b->done = range.from;
        b->before = samples_of(b, range.from);
        if (opts->progress && dnn_comm_rank(b->stage->session->comm) == 0)
            b->progress = dnn_progress_start("infer", "inference",
                                             dnn_feed_count(b->data->feed) - b->before,
                                             "samples", NULL);
        b->last = dnn_clock_now();
        rc = dnn_stage_run(b->stage, b->data, b->metrics, &watch, &range, loss, err);
        dnn_progress_stop(b->progress, rc == 0);
    }
    dnn_free(sums);
    if (rc != DNN_ESTOP) return rc;
    if (save_evaluation(b, &why) < 0) *err = why;
    return err->code;
}

static int run(struct batches *b, const struct dnn_infer_opts *opts, int64_t number,
               bool report, struct dnn_err *err)
{
    double loss = NAN, began = dnn_clock_now();
    int64_t samples = dnn_feed_count(b->data->feed);

    DNN_TRY(open_result(b, opts, number, report, err));
    DNN_TRY(run_batches(b, opts, &loss, err));
    int rc = dnn_infer_result_commit(b->r, err);
    if (rc < 0 || !report) return rc;
    const struct infer_found found = {
        .samples = samples,
        .seconds = dnn_clock_now() - began,
        .metrics = b->metrics == NULL ? NULL : dnn_stage_metrics(b->metrics),
        .loss = loss,
        .draw = draw_worst,
        .arg = b};
    return dnn_infer_report(b->r, opts, &found, err);
}

int dnn_infer_samples(struct dnn_stage *stage, const struct dnn_infer_opts *opts,
                      int64_t number, bool report, struct dnn_err *err)
{
    struct infer_result r = {0};
    struct batches b = {.r = &r, .stage = stage, .data = stage->test};

    int rc = run(&b, opts, number, report, err);
    if (!report) r.resumes = true; /* with the training */
    rc = dnn_infer_result_close(&r, rc, err);
    dnn_infer_slices_free(b.slices);
    dnn_stage_eval_free(b.metrics);
    dnn_free(b.scratch);
    return rc;
}
