/* masks.c - a class per point: overlap, volumes and surface distances per class.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row counts for each class the points where target and output have it, those of the
 * target, and those of the output. */
enum { HITS, TARGETS, OUTPUTS, PER_CLASS };

/* The code of points that are not counted, in target and output. */
static uint16_t none_of(const struct dnn_evaluation *e)
{
    return dnn_evaluate_width(e) == 1 ? UINT8_MAX : UINT16_MAX;
}

static bool has_confusion(const struct dnn_evaluation *e)
{
    return e->cfg.classes <= EVALUATE_CONFUSION;
}

static void sizes(struct dnn_evaluation *e)
{
    const int64_t classes = e->cfg.classes;

    e->ncount = PER_CLASS * classes;
    e->nvalue = e->cfg.surfaces ? 2 * classes : 0;
    e->ncell = has_confusion(e) ? classes * classes : 0;
}

/* ---- adding ---- */

/* Write target and output codes of n points; fails on a wrong target. */
static int make_codes(const struct dnn_evaluation *e,
                      const struct dnn_evaluate_part *part, int64_t n, uint16_t *target,
                      uint16_t *output, struct dnn_err *err)
{
    const uint16_t none = none_of(e);
    int64_t bad = 0;

#pragma omp parallel for reduction(+ : bad) if (n > 16384)
    for (int64_t i = 0; i < n; i++) {
        const int32_t t = part->labels[i];

        target[i] = output[i] = none;
        if (t >= 0 && t == e->cfg.ignore) continue;
        bad += t < 0 || t >= e->cfg.classes;
        target[i] = (uint16_t)t;
        output[i] = (uint16_t)dnn_evaluate_class(e, part->output + i * e->cfg.channels);
    }
    for (int64_t i = 0; i < n && bad > 0; i++)
        DNN_TRY(dnn_evaluate_target(e, part, i, err));
    return 0;
}

static void count(struct dnn_evaluation *e, const uint16_t *target,
                  const uint16_t *output, int64_t n, int64_t *row)
{
    const uint16_t none = none_of(e);
    const bool confusion = has_confusion(e);

    for (int64_t i = 0; i < n; i++) {
        const int64_t t = target[i], o = output[i];

        if (t == none) continue;
        row[t * PER_CLASS + TARGETS]++;
        row[o * PER_CLASS + OUTPUTS]++;
        row[t * PER_CLASS + HITS] += t == o;
        if (confusion) e->cell[t * e->cfg.classes + o]++;
    }
}

static int keep_box(const struct dnn_evaluation *e,
                    const struct dnn_evaluate_part *part, const uint16_t *code,
                    int64_t n, struct evaluate_row *row, struct dnn_err *err)
{
    unsigned char *map;

    DNN_TRY(dnn_evaluate_box(e, row, part->start, part->extent, &map, err));
    if (dnn_evaluate_width(e) == 2)
        memcpy(map, code, (size_t)n * 4);
    else
        for (int64_t i = 0; i < 2 * n; i++)
            map[i] = (unsigned char)code[i];
    if (row->points < dnn_evaluate_points(row->full)) return 0;
    return dnn_evaluate_measure(e, row, err);
}

static int add(struct dnn_evaluation *e, const struct dnn_evaluate_part *part,
               int64_t n, struct evaluate_row *row, struct dnn_err *err)
{
    uint16_t *code = malloc((size_t)n * 2 * sizeof *code);

    if (code == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "sample \"%s\": the classes of %" PRId64
                        " points do not fit into memory",
                        part->name, n);
    int rc = make_codes(e, part, n, code, code + n, err);
    if (rc == 0) {
        count(e, code, code + n, n, row->count);
        if (e->cfg.surfaces) rc = keep_box(e, part, code, n, row, err);
    }
    free(code);
    return rc;
}

/* ---- samples ---- */

static struct evaluate_ratios ratios(const int64_t *count, int64_t c)
{
    const int64_t *n = count + c * PER_CLASS;

    return dnn_evaluate_ratios(n[HITS], n[TARGETS], n[OUTPUTS]);
}

/* Means of the averaged classes of a sample. */
static struct evaluate_ratios sample_ratios(const struct dnn_evaluation *e,
                                            const struct evaluate_row *row)
{
    struct evaluate_mean f1 = {0}, iou = {0};

    for (int64_t c = 0; c < e->cfg.classes; c++) {
        struct evaluate_ratios r = ratios(row->count, c);

        if (!dnn_evaluate_averaged(e, c)) continue;
        dnn_evaluate_mean_add(&f1, r.f1);
        dnn_evaluate_mean_add(&iou, r.iou);
    }
    return (struct evaluate_ratios){.f1 = dnn_evaluate_mean(&f1),
                                    .iou = dnn_evaluate_mean(&iou)};
}

static double badness(const struct dnn_evaluation *e, const struct evaluate_row *row)
{
    return sample_ratios(e, row).f1;
}

static void columns(const struct dnn_evaluation *e, struct dnn_buf *out)
{
    static const char *const name[] = {
        "dice",          "iou",           "precision",   "recall",
        "target_points", "output_points", "hausdorff95", "surface_distance"};

    dnn_buf_add(out, ",dice,iou");
    for (int64_t c = 0; c < e->cfg.classes; c++)
        for (int k = 0; k < (e->cfg.surfaces ? 8 : 6); k++)
            dnn_buf_add(out, ",%s_%" PRId64, name[k], c);
}

static void cells(const struct dnn_evaluation *e, const struct evaluate_row *row,
                  struct dnn_buf *out)
{
    const struct evaluate_ratios all = sample_ratios(e, row);

    dnn_evaluate_csv_number(out, all.f1);
    dnn_evaluate_csv_number(out, all.iou);
    for (int64_t c = 0; c < e->cfg.classes; c++) {
        const struct evaluate_ratios r = ratios(row->count, c);
        const int64_t *n = row->count + c * PER_CLASS;
        const double value[6] = {
            r.f1, r.iou, r.precision, r.recall, (double)n[TARGETS], (double)n[OUTPUTS]};

        for (int k = 0; k < 6; k++)
            dnn_evaluate_csv_number(out, value[k]);
        for (int k = 0; k < 2 && e->cfg.surfaces; k++)
            dnn_evaluate_csv_number(out, row->value[2 * c + k]);
    }
}

/* ---- results ---- */

enum {
    DICE,
    IOU,
    PRECISION,
    RECALL,
    SAMPLE_DICE,
    TARGET_POINTS,
    OUTPUT_POINTS,
    HAUSDORFF,
    DISTANCE,
    MISSING,
    NCOLUMNS
};
static const char *const column[NCOLUMNS] = {
    "dice",          "iou",           "precision",   "recall",           "sample_dice",
    "target_points", "output_points", "hausdorff95", "surface_distance", "unmatched"};

/* Means over samples for one class; "unmatched" are samples in which only target or
 * output has it, so that there is no distance. */
static void add_class(struct dnn_evaluation *e, int64_t c, const int64_t *total)
{
    struct evaluate_mean dice = {0}, hausdorff = {0}, distance = {0};
    const struct evaluate_ratios all = ratios(total, c);
    double *cell = dnn_evaluate_cell(e, c, 0);
    int64_t unmatched = 0;

    for (size_t i = 0; i < e->nrows; i++) {
        const struct evaluate_row *row = &e->row[i];
        const int64_t *n = row->count + c * PER_CLASS;

        dnn_evaluate_mean_add(&dice, ratios(row->count, c).f1);
        if (!e->cfg.surfaces) continue;
        dnn_evaluate_mean_add(&hausdorff, row->value[2 * c]);
        dnn_evaluate_mean_add(&distance, row->value[2 * c + 1]);
        unmatched += (n[TARGETS] > 0) != (n[OUTPUTS] > 0);
    }
    cell[DICE] = all.f1;
    cell[IOU] = all.iou;
    cell[PRECISION] = all.precision;
    cell[RECALL] = all.recall;
    cell[SAMPLE_DICE] = dnn_evaluate_mean(&dice);
    cell[TARGET_POINTS] = (double)total[c * PER_CLASS + TARGETS];
    cell[OUTPUT_POINTS] = (double)total[c * PER_CLASS + OUTPUTS];
    if (!e->cfg.surfaces) return;
    cell[HAUSDORFF] = dnn_evaluate_mean(&hausdorff);
    cell[DISTANCE] = dnn_evaluate_mean(&distance);
    cell[MISSING] = (double)unmatched;
}

static void add_totals(struct dnn_evaluation *e, const int64_t *total)
{
    struct evaluate_mean dice = {0}, iou = {0};
    int64_t hits = 0, points = 0;
    double unmatched = 0;

    for (int64_t c = 0; c < e->cfg.classes; c++) {
        hits += total[c * PER_CLASS + HITS];
        points += total[c * PER_CLASS + TARGETS];
        if (e->cfg.surfaces && dnn_evaluate_averaged(e, c))
            unmatched += *dnn_evaluate_cell(e, c, MISSING);
    }
    for (size_t i = 0; i < e->nrows; i++) {
        const struct evaluate_ratios r = sample_ratios(e, &e->row[i]);

        dnn_evaluate_mean_add(&dice, r.f1);
        dnn_evaluate_mean_add(&iou, r.iou);
    }
    dnn_evaluate_total(e, "samples", (double)e->nrows);
    dnn_evaluate_total(e, "accuracy",
                       points == 0 ? NAN : (double)hits / (double)points);
    for (int k = DICE; k <= RECALL; k++)
        dnn_evaluate_total(e, column[k], dnn_evaluate_average(e, k, -1));
    dnn_evaluate_total(e, "sample_dice", dnn_evaluate_mean(&dice));
    dnn_evaluate_total(e, "sample_iou", dnn_evaluate_mean(&iou));
    if (!e->cfg.surfaces) return;
    dnn_evaluate_total(e, "hausdorff95", dnn_evaluate_average(e, HAUSDORFF, -1));
    dnn_evaluate_total(e, "surface_distance", dnn_evaluate_average(e, DISTANCE, -1));
    dnn_evaluate_total(e, "unmatched", unmatched);
}

static void results(struct dnn_evaluation *e)
{
    const int64_t classes = e->cfg.classes;
    int64_t *total = dnn_alloc((size_t)e->ncount * sizeof *total);

    for (size_t i = 0; i < e->nrows; i++)
        for (int64_t k = 0; k < e->ncount; k++)
            total[k] += e->row[i].count[k];
    dnn_evaluate_table(e, column, e->cfg.surfaces ? NCOLUMNS : HAUSDORFF);
    for (int64_t c = 0; c < classes; c++)
        add_class(e, c, total);
    add_totals(e, total);
    dnn_free(total);
    if (!has_confusion(e)) return;
    e->results.confusion =
        dnn_alloc((size_t)(classes * classes) * sizeof *e->results.confusion);
    for (int64_t k = 0; k < classes * classes; k++)
        e->results.confusion[k] = (double)e->cell[k];
}

const struct evaluate_kind dnn_evaluate_masks = {.name = "masks",
                                                 .worst = "dice",
                                                 .sizes = sizes,
                                                 .add = add,
                                                 .results = results,
                                                 .badness = badness,
                                                 .columns = columns,
                                                 .cells = cells};
