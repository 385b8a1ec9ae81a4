/* pipeline.c - applies the steps to one sample.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <inttypes.h>
#include <string.h>

void dnn_pipeline_start(struct dnn_pipeline *pipeline,
                        const struct dnn_prepare *prepare,
                        const struct dnn_origins *origins, int end)
{
    memset(pipeline, 0, sizeof *pipeline);
    pipeline->prepare = prepare;
    pipeline->origins = origins;
    pipeline->end = end;
    pipeline->loaded = -1;
}

void dnn_pipeline_stop(struct dnn_pipeline *pipeline)
{
    dnn_sample_free(&pipeline->whole);
    dnn_sample_free(&pipeline->box);
    dnn_array_free(&pipeline->other);
    pipeline->loaded = -1;
}

static bool sliced(const struct dnn_pipeline *pipeline)
{
    return pipeline->prepare->slice >= 0 && pipeline->prepare->slice < pipeline->end;
}

/* Prefixes a message with sample, column and step, unless it begins with the step. */
static int add_context(const struct dnn_pipeline *pipeline, int64_t number,
                       const struct dnn_prepare_step *step, int k, struct dnn_err *err)
{
    const char *name = step->type->name, *column = step->before->state[k].column.name;
    char label[DNN_SAMPLE_NAME];
    bool has_step = err != NULL && strncmp(err->text, name, strlen(name)) == 0;

    dnn_origins_label(pipeline->origins, number, label);
    return dnn_prefix(err, "%s: %s: %s%s", label, column, has_step ? "" : name,
                      has_step ? "" : ": ");
}

/* Applies steps [from, to) to a sample. */
static int apply_steps(struct dnn_pipeline *pipeline, int from, int to, int64_t number,
                       struct dnn_sample *sample, struct dnn_err *err)
{
    for (int i = from; i < to; i++) {
        const struct dnn_prepare_step *step = &pipeline->prepare->step[i];

        if (step->type->apply == NULL) continue;
        for (int k = 0; k < step->before->n; k++) {
            if ((step->columns >> k & 1) == 0) continue;
            if (step->type->apply(step, k, &sample->col[k], &pipeline->other, err) == 0)
                continue;
            return add_context(pipeline, number, step, k, err);
        }
    }
    return 0;
}

/* Computes the boxes of the loaded volume. */
static int make_boxes(struct dnn_pipeline *pipeline, struct dnn_err *err)
{
    const struct dnn_prepare_step *step =
        &pipeline->prepare->step[pipeline->prepare->slice];
    const struct dnn_slice_cfg *c = step->cfg;
    const struct dnn_slicer *how = c->sets.objects;
    const struct dnn_array *first = NULL;

    for (int k = 0; k < step->before->n; k++) {
        const struct dnn_array *a = &pipeline->whole.col[k];
        char x[DNN_SHAPE_TEXT], y[DNN_SHAPE_TEXT];

        if ((step->columns >> k & 1) == 0) continue;
        if (first == NULL) first = a;
        if (a->shape.ndim != first->shape.ndim ||
            memcmp(a->shape.dim, first->shape.dim,
                   (size_t)(a->shape.ndim - 1) * sizeof *a->shape.dim) != 0)
            return dnn_fail(
                err, DNN_EDATA,
                "columns of different shapes, %s and %s, cannot be sliced together",
                dnn_shape_text(x, sizeof x, &first->shape),
                dnn_shape_text(y, sizeof y, &a->shape));
    }
    pipeline->nsets = (int)c->sets.count;
    pipeline->nboxes = 0;
    for (int i = 0; i < pipeline->nsets; i++) {
        DNN_TRY(dnn_slices_make(&how[i], first->shape.ndim - 1, first->shape.dim,
                                &pipeline->set[i], err));
        if (__builtin_add_overflow(pipeline->nboxes, pipeline->set[i].total,
                                   &pipeline->nboxes))
            return dnn_fail(err, DNN_EDATA, "the number of slices overflows");
    }
    return 0;
}

int dnn_pipeline_load(struct dnn_pipeline *pipeline, int64_t sample,
                      struct dnn_err *err)
{
    int to = sliced(pipeline) ? pipeline->prepare->slice : pipeline->end;

    if (pipeline->loaded == sample && sliced(pipeline)) return 0;
    pipeline->loaded = -1;
    pipeline->nboxes = 1;
    pipeline->whole.ncols = pipeline->origins->states.n;
    DNN_TRY(dnn_origins_read(pipeline->origins, pipeline->prepare->allow_nan, sample,
                             &pipeline->whole, err));
    DNN_TRY(apply_steps(pipeline, 0, to, sample, &pipeline->whole, err));
    if (sliced(pipeline) && make_boxes(pipeline, err) < 0) {
        char label[DNN_SAMPLE_NAME];

        dnn_origins_label(pipeline->origins, sample, label);
        return dnn_prefix(err, "%s: ", label);
    }
    pipeline->loaded = sample;
    return 0;
}

/* The set that box b is in; *b becomes its index in the set. */
static const struct dnn_slices *set_of(const struct dnn_pipeline *pipeline, int64_t *b)
{
    int i = 0;

    while (i + 1 < pipeline->nsets && *b >= pipeline->set[i].total)
        *b -= pipeline->set[i++].total;
    return &pipeline->set[i];
}

int dnn_pipeline_box(struct dnn_pipeline *pipeline, int64_t b, struct dnn_sample **out,
                     struct dnn_err *err)
{
    *out = &pipeline->whole;
    if (!sliced(pipeline)) return 0;

    const struct dnn_prepare_step *step =
        &pipeline->prepare->step[pipeline->prepare->slice];
    const struct dnn_slices *set = set_of(pipeline, &b);
    pipeline->box.ncols = pipeline->whole.ncols;
    for (int k = 0; k < pipeline->whole.ncols; k++)
        if ((step->columns >> k & 1) != 0)
            DNN_TRY(dnn_slices_cut(set, &pipeline->whole.col[k], b,
                                   &pipeline->box.col[k], err));
        else
            DNN_TRY(
                dnn_array_copy(&pipeline->whole.col[k], &pipeline->box.col[k], err));
    *out = &pipeline->box;
    return apply_steps(pipeline, pipeline->prepare->slice + 1, pipeline->end,
                       pipeline->loaded, &pipeline->box, err);
}

void dnn_pipeline_name(const struct dnn_pipeline *pipeline, int64_t b,
                       char out[DNN_SAMPLE_NAME])
{
    dnn_origins_label(pipeline->origins, pipeline->loaded, out);
    if (!sliced(pipeline)) return;

    const struct dnn_prepare_step *step =
        &pipeline->prepare->step[pipeline->prepare->slice];
    const struct dnn_slice_cfg *c = step->cfg;
    const struct dnn_slicer *how = c->sets.objects;
    const struct dnn_slices *set = set_of(pipeline, &b);
    int64_t index[DNN_MAX_SPACE];
    char suffix[160];
    int at = snprintf(suffix, sizeof suffix, "[");

    if (pipeline->nsets > 1)
        at += snprintf(suffix + at, sizeof suffix - (size_t)at, "%.60s:",
                       how[set - pipeline->set].name == NULL
                           ? "slices"
                           : how[set - pipeline->set].name);
    for (int d = set->nspace; d-- > 0;) {
        index[d] = b % set->count[d];
        b /= set->count[d];
    }
    for (int d = 0; d < set->nspace; d++)
        at += snprintf(suffix + at, sizeof suffix - (size_t)at, "%s%" PRId64,
                       d > 0 ? "," : "", index[d]);
    snprintf(suffix + at, sizeof suffix - (size_t)at, "]");
    /* The suffix identifies the box: a name that is too long is cut before it. */
    size_t len = strlen(out), max = DNN_SAMPLE_NAME - 1 - strlen(suffix);
    memcpy(out + (len < max ? len : max), suffix, strlen(suffix) + 1);
}

int dnn_pipeline_stats(struct dnn_pipeline *pipeline,
                       const struct dnn_column_state *state,
                       const struct dnn_array *array, struct dnn_stats *stats,
                       struct dnn_err *err)
{
    struct dnn_column column = dnn_column_state_column(state);

    if (state->nscale > 0) {
        DNN_TRY(dnn_array_copy(array, &pipeline->other, err));
        DNN_TRY(dnn_column_state_values(state, &pipeline->other, err));
        array = &pipeline->other;
    }
    column.shape = array->shape;
    return dnn_stats_add(stats, &column, array, err);
}
