/* evaluate.c - opening an evaluation, and adding parts of samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_CLASSES = 65535 }; /* class maps have 16 bits per point */

int64_t dnn_evaluate_points(const int64_t extent[3])
{
    return extent[0] * extent[1] * extent[2];
}

/* ---- opening ---- */

static int check_cfg(const struct dnn_evaluate_cfg *cfg, struct dnn_err *err)
{
    const bool values = cfg->task == DNN_EVALUATE_VALUES;
    const int64_t least = values ? 1 : 2;

    if (cfg->classes < least || cfg->classes > MOST_CLASSES)
        return dnn_fail(err, DNN_ECONFIG,
                        "an evaluation supports %" PRId64 " to %d %s, not %" PRId64,
                        least, MOST_CLASSES, values ? "channels" : "classes",
                        cfg->classes);
    if (cfg->channels != cfg->classes &&
        (values || cfg->channels != 1 || cfg->classes != 2))
        return dnn_fail(err, DNN_ECONFIG,
                        "the evaluation of %" PRId64 " classes needs as many channels, "
                        "or one for two classes, not %" PRId64,
                        cfg->classes, cfg->channels);
    if (cfg->ndim < 0 || cfg->ndim > 3)
        return dnn_fail(err, DNN_ECONFIG,
                        "an evaluation supports up to 3 spatial axes, not %d",
                        cfg->ndim);
    if (cfg->task == DNN_EVALUATE_LABELS && cfg->bins < 1)
        return dnn_fail(err, DNN_ECONFIG,
                        "the calibration needs at least one bin, not %d", cfg->bins);
    return 0;
}

int dnn_evaluate_open(const struct dnn_evaluate_cfg *cfg, struct dnn_evaluation **out,
                      struct dnn_err *err)
{
    static const struct evaluate_kind *const kinds[] = {
        [DNN_EVALUATE_LABELS] = &dnn_evaluate_labels,
        [DNN_EVALUATE_MASKS] = &dnn_evaluate_masks,
        [DNN_EVALUATE_VALUES] = &dnn_evaluate_values};

    *out = NULL;
    DNN_TRY(check_cfg(cfg, err));
    struct dnn_evaluation *e = dnn_alloc(sizeof *e);
    e->cfg = *cfg;
    if (cfg->task == DNN_EVALUATE_LABELS) e->cfg.ndim = 0;
    e->cfg.surfaces = cfg->surfaces && cfg->task == DNN_EVALUATE_MASKS && cfg->ndim > 0;
    e->kind = kinds[cfg->task];
    e->arena = dnn_arena_make();
    e->kind->sizes(e);
    e->cell = dnn_alloc((size_t)e->ncell * sizeof *e->cell);
    e->number = dnn_alloc((size_t)cfg->classes * 3 * sizeof *e->number);
    e->sum = dnn_alloc((size_t)e->nsum * sizeof *e->sum);
    *out = e;
    return 0;
}

void dnn_evaluate_row_shrink(struct evaluate_row *row)
{
    for (size_t i = 0; i < row->nboxes; i++)
        dnn_free(row->box[i].map);
    dnn_free(row->box);
    dnn_free(row->sum);
    row->box = NULL;
    row->sum = NULL;
    row->nboxes = row->boxcap = 0;
}

void dnn_evaluate_close(struct dnn_evaluation *e)
{
    if (e == NULL) return;
    for (size_t i = 0; i < e->nrows; i++)
        dnn_evaluate_row_shrink(&e->row[i]);
    dnn_evaluate_results_free(&e->results);
    dnn_arena_free(e->arena);
    dnn_free(e->cell);
    dnn_free(e->number);
    dnn_free(e->sum);
    dnn_free(e->row);
    dnn_free(e->open);
    dnn_free(e);
}

/* ---- rows ---- */

struct evaluate_row *dnn_evaluate_row(struct dnn_evaluation *e, int64_t sample,
                                      const char *name, bool open)
{
    e->row = dnn_grow(e->row, &e->cap, e->nrows + 1, sizeof *e->row);
    struct evaluate_row *row = &e->row[e->nrows++];
    *row = (struct evaluate_row){
        .sample = sample,
        .name = dnn_arena_strdup(e->arena, name),
        .full = {1, 1, 1},
        .spacing = {1, 1, 1},
        .count = dnn_arena_alloc(e->arena, (size_t)e->ncount * sizeof *row->count),
        .value = dnn_arena_alloc(e->arena, (size_t)e->nvalue * sizeof *row->value)
    };
    for (int64_t k = 0; k < e->nvalue; k++)
        row->value[k] = NAN;
    if (open) {
        row->sum = dnn_alloc((size_t)e->nsum * sizeof *row->sum);
        e->open = dnn_grow(e->open, &e->opencap, e->nopen + 1, sizeof *e->open);
        e->open[e->nopen++] = e->nrows - 1;
    }
    return row;
}

/* The row of a part; a new one if there is none, or if the part is a whole sample. */
static struct evaluate_row *row_of(struct dnn_evaluation *e,
                                   const struct dnn_evaluate_part *part, bool whole)
{
    for (size_t i = 0; i < e->nopen && !whole; i++) {
        struct evaluate_row *row = &e->row[e->open[i]];

        if (row->sample == part->sample) return row;
    }
    struct evaluate_row *row = dnn_evaluate_row(e, part->sample, part->name, !whole);
    memcpy(row->full, part->full, sizeof row->full);
    memcpy(row->spacing, part->spacing, sizeof row->spacing);
    return row;
}

void dnn_evaluate_row_complete(struct dnn_evaluation *e, struct evaluate_row *row)
{
    const size_t index = (size_t)(row - e->row);

    if (e->kind->complete != NULL) e->kind->complete(e, row);
    for (size_t i = 0; i < e->nopen; i++)
        if (e->open[i] == index) {
            e->open[i] = e->open[--e->nopen];
            break;
        }
    dnn_evaluate_row_shrink(row);
}

/* ---- checks ---- */

const char *dnn_evaluate_place(char out[EVALUATE_PLACE], const struct dnn_evaluation *e,
                               const struct dnn_evaluate_part *part, int64_t i)
{
    const int64_t *n = part->extent;
    const int64_t at[3] = {part->start[0] + i / (n[1] * n[2]),
                           part->start[1] + i / n[2] % n[1], part->start[2] + i % n[2]};
    size_t len = 0;

    out[0] = '\0';
    for (int d = 0; d < e->cfg.ndim; d++)
        len += (size_t)snprintf(out + len, EVALUATE_PLACE - len, "%s%" PRId64,
                                d == 0 ? " at (" : ", ", at[d]);
    if (e->cfg.ndim > 0) snprintf(out + len, EVALUATE_PLACE - len, ")");
    return out;
}

int dnn_evaluate_finite(const struct dnn_evaluation *e,
                        const struct dnn_evaluate_part *part, const char *what,
                        const float *value, int64_t n, struct dnn_err *err)
{
    const int64_t channels = e->cfg.channels;
    char place[EVALUATE_PLACE];
    int64_t bad = 0, i = 0;

#pragma omp parallel for simd reduction(+ : bad) if (n * channels > 65536)
    for (int64_t k = 0; k < n * channels; k++)
        bad += !(fabsf(value[k]) <= FLT_MAX);
    if (bad == 0) return 0;
    while (isfinite(value[i]))
        i++;
    return dnn_fail(err, DNN_EDATA,
                    "sample \"%s\": the %s is %s%s, channel %" PRId64
                    "; it must be finite",
                    part->name, what, isnan(value[i]) ? "NaN" : "infinite",
                    dnn_evaluate_place(place, e, part, i / channels), i % channels);
}

int dnn_evaluate_target(const struct dnn_evaluation *e,
                        const struct dnn_evaluate_part *part, int64_t i,
                        struct dnn_err *err)
{
    const int32_t t = part->labels[i];
    char place[EVALUATE_PLACE];

    if (t == e->cfg.ignore && e->cfg.ignore >= 0) return 0;
    if (t >= 0 && t < e->cfg.classes) return 1;
    return dnn_fail(err, DNN_EDATA,
                    "sample \"%s\": the target is class %d%s, but there are classes 0 "
                    "to %" PRId64,
                    part->name, t, dnn_evaluate_place(place, e, part, i),
                    e->cfg.classes - 1);
}

int dnn_evaluate_probabilities(const struct dnn_evaluation *e,
                               const struct dnn_evaluate_part *part, int64_t n,
                               struct dnn_err *err)
{
    const float tolerance = 1e-3f; /* rounding errors */
    char place[EVALUATE_PLACE];

    for (int64_t i = 0; i < n * e->cfg.channels; i++) {
        const float x = part->output[i];

        if (x >= -tolerance && x <= 1 + tolerance) continue;
        return dnn_fail(err, DNN_EDATA,
                        "sample \"%s\": the output is %g%s, channel %" PRId64
                        ", which is not a probability between 0 and 1; set "
                        "inference.activation to sigmoid or softmax",
                        part->name, (double)x,
                        dnn_evaluate_place(place, e, part, i / e->cfg.channels),
                        i % e->cfg.channels);
    }
    return 0;
}

/* Check extents, and set those beyond the spatial axes to 1. */
static int check_part(const struct dnn_evaluation *e, struct dnn_evaluate_part *p,
                      struct dnn_err *err)
{
    const bool values = e->cfg.task == DNN_EVALUATE_VALUES;
    bool spaced = true;

    if (p->name == NULL) p->name = "";
    if (p->output == NULL || (values ? (const void *)p->values : p->labels) == NULL)
        return dnn_fail(err, DNN_EDATA, "sample \"%s\": has no %s", p->name,
                        p->output == NULL ? "output"
                        : values          ? "target values"
                                          : "target classes");
    for (int d = 0; d < e->cfg.ndim; d++) {
        if (!(p->spacing[d] >= 0) || isinf(p->spacing[d]))
            return dnn_fail(err, DNN_EDATA,
                            "sample \"%s\": the spacing of axis %d must be positive, "
                            "not %g",
                            p->name, d, p->spacing[d]);
        spaced = spaced && p->spacing[d] > 0;
    }
    for (int d = 0; d < 3; d++) {
        if (d >= e->cfg.ndim) {
            p->full[d] = p->extent[d] = 1;
            p->start[d] = 0;
        }
        if (d >= e->cfg.ndim || !spaced) p->spacing[d] = 1;
        if (p->start[d] < 0 || p->extent[d] < 1 || p->full[d] < p->extent[d] ||
            p->start[d] > p->full[d] - p->extent[d])
            return dnn_fail(err, DNN_EDATA,
                            "sample \"%s\": a box from %" PRId64 " with extent %" PRId64
                            " is not in the extent %" PRId64 " of axis %d",
                            p->name, p->start[d], p->extent[d], p->full[d], d);
    }
    return 0;
}

int dnn_evaluate_add(struct dnn_evaluation *e, const struct dnn_evaluate_part *given,
                     struct dnn_err *err)
{
    struct dnn_evaluate_part part = *given;

    DNN_TRY(check_part(e, &part, err));
    const int64_t n = dnn_evaluate_points(part.extent);
    const int64_t all = dnn_evaluate_points(part.full);
    DNN_TRY(dnn_evaluate_finite(e, &part, "output", part.output, n, err));
    struct evaluate_row *row = row_of(e, &part, n == all);
    if (memcmp(row->full, part.full, sizeof row->full) != 0)
        return dnn_fail(err, DNN_EDATA,
                        "sample \"%s\": its boxes disagree about its extents",
                        part.name);
    row->points += n;
    if (row->points > all)
        return dnn_fail(err, DNN_EDATA, "sample \"%s\": its boxes overlap", part.name);
    DNN_TRY(e->kind->add(e, &part, n, row, err));
    if (n == all || row->points < all) return 0;
    dnn_evaluate_row_complete(e, row);
    return 0;
}

/* ---- results ---- */

int dnn_evaluate_totals(const struct dnn_evaluation *e,
                        const struct dnn_evaluate_value **out)
{
    *out = e->results.total;
    return e->results.ntotals;
}

int dnn_evaluate_classes(const struct dnn_evaluation *e, const char *const **column,
                         const double **value)
{
    *column = e->results.column;
    *value = e->results.table;
    return e->results.ncolumns;
}

int dnn_evaluate_bins(const struct dnn_evaluation *e,
                      const struct dnn_evaluate_bin **out)
{
    *out = e->results.bin;
    return e->results.nbins;
}

const double *dnn_evaluate_confusion(const struct dnn_evaluation *e)
{
    return e->results.confusion;
}

int dnn_evaluate_worst(const struct dnn_evaluation *e,
                       const struct dnn_evaluate_worst **out)
{
    *out = e->results.worst;
    return e->results.nworst;
}
