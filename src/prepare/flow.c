/* flow.c - one sample through the steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <inttypes.h>
#include <string.h>

void dnn_flow_start(struct dnn_flow *flow, const struct dnn_prepare *prepare,
                    const struct dnn_origins *origins, int end)
{
    memset(flow, 0, sizeof *flow);
    flow->prepare = prepare;
    flow->origins = origins;
    flow->end = end;
    flow->loaded = -1;
}

void dnn_flow_stop(struct dnn_flow *flow)
{
    dnn_sample_free(&flow->whole);
    dnn_sample_free(&flow->box);
    dnn_array_free(&flow->other);
    flow->loaded = -1;
}

static bool sliced(const struct dnn_flow *flow)
{
    return flow->prepare->slice >= 0 && flow->prepare->slice < flow->end;
}

/* Put in front of a message whose sample and column it is about, and which step, unless
 * it begins with that. */
static int blame(const struct dnn_flow *flow, int64_t number,
                 const struct dnn_edit *step, int k, struct dnn_err *err)
{
    const char *name = step->type->name, *column = step->before->lane[k].column.name;
    char label[DNN_SAMPLE_NAME];
    bool said = err != NULL && strncmp(err->text, name, strlen(name)) == 0;

    dnn_origins_label(flow->origins, number, label);
    return dnn_prefix(err, "%s: %s: %s%s", label, column, said ? "" : name,
                      said ? "" : ": ");
}

/* Steps [from, to) on a sample. */
static int take_steps(struct dnn_flow *flow, int from, int to, int64_t number,
                      struct dnn_sample *sample, struct dnn_err *err)
{
    for (int i = from; i < to; i++) {
        const struct dnn_edit *step = &flow->prepare->step[i];

        if (step->type->apply == NULL) continue;
        for (int k = 0; k < step->before->n; k++) {
            if ((step->on >> k & 1) == 0) continue;
            if (step->type->apply(step, k, &sample->col[k], &flow->other, err) == 0)
                continue;
            return blame(flow, number, step, k, err);
        }
    }
    return 0;
}

/* Lay the boxes over the volume that is here. */
static int lay(struct dnn_flow *flow, struct dnn_err *err)
{
    const struct dnn_edit *step = &flow->prepare->step[flow->prepare->slice];
    const struct dnn_slice_cfg *c = step->cfg;
    const struct dnn_slicer *how = c->sets.objects;
    const struct dnn_array *first = NULL;

    for (int k = 0; k < step->before->n; k++) {
        const struct dnn_array *a = &flow->whole.col[k];
        char x[DNN_SHAPE_TEXT], y[DNN_SHAPE_TEXT];

        if ((step->on >> k & 1) == 0) continue;
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
    flow->nsets = (int)c->sets.count;
    flow->nboxes = 0;
    for (int i = 0; i < flow->nsets; i++) {
        DNN_TRY(dnn_slices_make(&how[i], first->shape.ndim - 1, first->shape.dim,
                                &flow->set[i], err));
        if (__builtin_add_overflow(flow->nboxes, flow->set[i].total, &flow->nboxes))
            return dnn_fail(err, DNN_EDATA, "the number of slices overflows");
    }
    return 0;
}

int dnn_flow_load(struct dnn_flow *flow, int64_t sample, struct dnn_err *err)
{
    int to = sliced(flow) ? flow->prepare->slice : flow->end;

    if (flow->loaded == sample && sliced(flow)) return 0;
    flow->loaded = -1;
    flow->nboxes = 1;
    flow->whole.ncols = flow->origins->lanes.n;
    DNN_TRY(dnn_origins_read(flow->origins, flow->prepare->allow_nan, sample,
                             &flow->whole, err));
    DNN_TRY(take_steps(flow, 0, to, sample, &flow->whole, err));
    if (sliced(flow) && lay(flow, err) < 0) {
        char label[DNN_SAMPLE_NAME];

        dnn_origins_label(flow->origins, sample, label);
        return dnn_prefix(err, "%s: ", label);
    }
    flow->loaded = sample;
    return 0;
}

/* Which set box b is in, and which of its boxes it is. */
static const struct dnn_slices *set_of(const struct dnn_flow *flow, int64_t *b)
{
    int i = 0;

    while (i + 1 < flow->nsets && *b >= flow->set[i].total)
        *b -= flow->set[i++].total;
    return &flow->set[i];
}

int dnn_flow_box(struct dnn_flow *flow, int64_t b, struct dnn_sample **out,
                 struct dnn_err *err)
{
    *out = &flow->whole;
    if (!sliced(flow)) return 0;

    const struct dnn_edit *step = &flow->prepare->step[flow->prepare->slice];
    const struct dnn_slices *set = set_of(flow, &b);
    flow->box.ncols = flow->whole.ncols;
    for (int k = 0; k < flow->whole.ncols; k++)
        if ((step->on >> k & 1) != 0)
            DNN_TRY(
                dnn_slices_cut(set, &flow->whole.col[k], b, &flow->box.col[k], err));
        else
            DNN_TRY(dnn_array_copy(&flow->whole.col[k], &flow->box.col[k], err));
    *out = &flow->box;
    return take_steps(flow, flow->prepare->slice + 1, flow->end, flow->loaded,
                      &flow->box, err);
}

void dnn_flow_name(const struct dnn_flow *flow, int64_t b, char out[DNN_SAMPLE_NAME])
{
    dnn_origins_label(flow->origins, flow->loaded, out);
    if (!sliced(flow)) return;

    const struct dnn_edit *step = &flow->prepare->step[flow->prepare->slice];
    const struct dnn_slice_cfg *c = step->cfg;
    const struct dnn_slicer *how = c->sets.objects;
    const struct dnn_slices *set = set_of(flow, &b);
    int64_t place[DNN_MAX_SPACE];
    char tail[160];
    int at = snprintf(tail, sizeof tail, "[");

    if (flow->nsets > 1)
        at += snprintf(tail + at, sizeof tail - (size_t)at, "%.60s:",
                       how[set - flow->set].name == NULL ? "slices"
                                                         : how[set - flow->set].name);
    for (int d = set->nspace; d-- > 0;) {
        place[d] = b % set->count[d];
        b /= set->count[d];
    }
    for (int d = 0; d < set->nspace; d++)
        at += snprintf(tail + at, sizeof tail - (size_t)at, "%s%" PRId64,
                       d > 0 ? "," : "", place[d]);
    snprintf(tail + at, sizeof tail - (size_t)at, "]");
    /* The end tells boxes apart; a name too long loses some of its middle. */
    size_t len = strlen(out), room = DNN_SAMPLE_NAME - 1 - strlen(tail);
    memcpy(out + (len < room ? len : room), tail, strlen(tail) + 1);
}

int dnn_flow_stats(struct dnn_flow *flow, const struct dnn_lane *lane,
                   const struct dnn_array *array, struct dnn_stats *stats,
                   struct dnn_err *err)
{
    struct dnn_column column = dnn_lane_column(lane);

    if (lane->nscale > 0) {
        DNN_TRY(dnn_array_copy(array, &flow->other, err));
        DNN_TRY(dnn_lane_values(lane, &flow->other, err));
        array = &flow->other;
    }
    column.shape = array->shape;
    return dnn_stats_add(stats, &column, array, err);
}
