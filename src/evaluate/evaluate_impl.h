/* evaluate_impl.h - declarations shared by the files of this component.
 *
 * evaluate.c   adding parts, the rows of samples;
 * labels.c, masks.c, values.c: one task each;
 * sum.c        exact sums;
 * surface.c    surface distances of two class maps;  distance.c: distance transform;
 * boxes.c      class maps of samples that arrive in boxes;
 * combine.c    rows and boxes of all ranks;
 * state.c      rows and boxes as bytes;
 * results.c    totals, tables and worst samples, and their averages;
 * print.c, write.c: results as text, JSON and CSV.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_EVALUATE_IMPL_H
#define DNN_EVALUATE_IMPL_H

#include "base/mem.h"
#include "evaluate/evaluate.h"

/* ---- sum.c ---- */

/* A sum of doubles in fixed point, from 2^-320 to 2^322: it does not depend on the
 * order of the terms, as long as they are below 2^300. */
enum { EVALUATE_LIMBS = 21 };
struct evaluate_sum {
    int64_t limb[EVALUATE_LIMBS]; /* limb i: multiples of 2^(32 i - 320)              */
    int64_t added;                /* terms since the last carry                       */
};
void dnn_evaluate_sum_add(struct evaluate_sum *sum, double value);
void dnn_evaluate_sum_merge(struct evaluate_sum *sum, struct evaluate_sum *other);
/* The sum, rounded once. */
double dnn_evaluate_sum_value(const struct evaluate_sum *sum);

/* ---- rows ---- */

/* Class maps of a box. */
struct evaluate_box {
    int64_t start[3], extent[3];
    unsigned char *map; /* owned: target codes, then output codes                     */
};

/* A sample, or what this rank has of it. */
struct evaluate_row {
    int64_t sample;
    const char *name;         /* in the arena                                       */
    int64_t full[3], points;  /* extents; points added                              */
    int64_t *count;           /* in the arena: [ncount]                             */
    double *value;            /* in the arena: [nvalue]; NaN: not known             */
    struct evaluate_sum *sum; /* owned: [nsum], while the sample is incomplete      */
    double spacing[3];
    struct evaluate_box *box; /* owned */
    size_t nboxes, boxcap;
};

/* A task. */
struct evaluate_kind {
    const char *name;
    const char *worst; /* the value that samples are sorted by */
    bool descending;   /* large values are bad */
    /* Set the numbers of counts, values, sums and cells. */
    void (*sizes)(struct dnn_evaluation *e);
    /* Add a part of n points to a row. */
    int (*add)(struct dnn_evaluation *e, const struct dnn_evaluate_part *part,
               int64_t n, struct evaluate_row *row, struct dnn_err *err);
    /* The row has all its points: compute values from sums.  NULL: nothing to do. */
    void (*complete)(const struct dnn_evaluation *e, struct evaluate_row *row);
    /* Set e->results from all rows and cells. */
    void (*results)(struct dnn_evaluation *e);
    /* The value that samples are sorted by. */
    double (*badness)(const struct dnn_evaluation *e, const struct evaluate_row *row);
    /* Columns of samples.csv: names, and the values of a row. */
    void (*columns)(const struct dnn_evaluation *e, struct dnn_buf *out);
    void (*cells)(const struct dnn_evaluation *e, const struct evaluate_row *row,
                  struct dnn_buf *out);
};
extern const struct evaluate_kind dnn_evaluate_labels, dnn_evaluate_masks,
    dnn_evaluate_values;

enum {
    EVALUATE_TOTALS = 16,
    EVALUATE_COLUMNS = 10,
    EVALUATE_CONFUSION = 1024 /* classes of a confusion matrix at most */
};

struct evaluate_results {
    int ntotals, ncolumns, nbins, nworst;
    struct dnn_evaluate_value total[EVALUATE_TOTALS];
    const char *column[EVALUATE_COLUMNS];
    double *table;     /* owned: [classes][ncolumns]                                  */
    double *confusion; /* owned: [classes][classes], or NULL                          */
    struct dnn_evaluate_bin *bin;     /* owned                                        */
    struct dnn_evaluate_worst *worst; /* owned                                        */
};

struct dnn_evaluation {
    struct dnn_evaluate_cfg cfg;
    const struct evaluate_kind *kind;
    struct dnn_arena *arena; /* names, counts and values of rows */
    int64_t ncount, nvalue, nsum, ncell;
    int64_t *cell;            /* owned: counts that are not of a sample */
    double *number;           /* owned: [3 * channels], for one sample  */
    struct evaluate_sum *sum; /* owned: [nsum], of a part that is a whole sample      */
    struct evaluate_row *row; /* owned */
    size_t nrows, cap;
    size_t *open; /* owned: rows that are incomplete */
    size_t nopen, opencap;
    bool combined;
    struct evaluate_results results;
};

/* ---- evaluate.c ---- */

/* A new row at the end; open: it is incomplete. */
struct evaluate_row *dnn_evaluate_row(struct dnn_evaluation *e, int64_t sample,
                                      const char *name, bool open);
/* All points of an incomplete row have been added: compute its values. */
void dnn_evaluate_row_complete(struct dnn_evaluation *e, struct evaluate_row *row);
/* Release what a row owns of an incomplete sample. */
void dnn_evaluate_row_shrink(struct evaluate_row *row);
/* Fail unless n points of a part, of `channels` values each, are finite. */
int dnn_evaluate_finite(const struct dnn_evaluation *e,
                        const struct dnn_evaluate_part *part, const char *what,
                        const float *value, int64_t n, struct dnn_err *err);
/* Write " at (1, 2, 3)", of point i of a part, in the coordinates of the sample. */
enum { EVALUATE_PLACE = 80 };
const char *dnn_evaluate_place(char out[EVALUATE_PLACE], const struct dnn_evaluation *e,
                               const struct dnn_evaluate_part *part, int64_t i);
/* Whether the target of a part's point is counted: 1, 0 if it is ignored; fails if it
 * is not a class. */
int dnn_evaluate_target(const struct dnn_evaluation *e,
                        const struct dnn_evaluate_part *part, int64_t i,
                        struct dnn_err *err);
/* Fail unless the outputs of a part are probabilities. */
int dnn_evaluate_probabilities(const struct dnn_evaluation *e,
                               const struct dnn_evaluate_part *part, int64_t n,
                               struct dnn_err *err);
/* The class with the largest score, of equals the first; with one channel class 1 if
 * its score is above the threshold. */
static inline int64_t dnn_evaluate_class(const struct dnn_evaluation *e,
                                         const float *score)
{
    int64_t top = 0;

    if (e->cfg.channels == 1) return score[0] > (e->cfg.logits ? 0 : 0.5f);
    for (int64_t c = 1; c < e->cfg.channels; c++)
        if (score[c] > score[top]) top = c;
    return top;
}
/* The product of extents. */
int64_t dnn_evaluate_points(const int64_t extent[3]);

/* ---- boxes.c ---- */

/* Bytes per point of a class map. */
int dnn_evaluate_width(const struct dnn_evaluation *e);
/* Add a box to a row; *map is to be filled. */
int dnn_evaluate_box(const struct dnn_evaluation *e, struct evaluate_row *row,
                     const int64_t start[3], const int64_t extent[3],
                     unsigned char **map, struct dnn_err *err);
/* The sample is complete on this rank: measure surface distances and free the boxes. */
int dnn_evaluate_measure(const struct dnn_evaluation *e, struct evaluate_row *row,
                         struct dnn_err *err);
/* Collective.  Bring the boxes of incomplete samples together, and measure them. */
int dnn_evaluate_exchange(struct dnn_evaluation *e, struct dnn_comm *comm,
                          struct dnn_err *err);

/* ---- combine.c ---- */

/* Add what another row has of the same sample, except boxes. */
int dnn_evaluate_merge(const struct dnn_evaluation *e, struct evaluate_row *row,
                       struct evaluate_row *other, struct dnn_err *err);

/* ---- state.c ---- */

/* Add a row with its boxes to bytes; and append a row from bytes: returns where the
 * next one begins, NULL: no memory. */
void dnn_evaluate_pack(const struct dnn_evaluation *e, const struct evaluate_row *row,
                       struct dnn_buf *out);
const char *dnn_evaluate_unpack(struct dnn_evaluation *e, const char *at);

/* ---- surface.c, distance.c ---- */

struct evaluate_volume {
    int ndim;
    int64_t extent[3]; /* 1 beyond ndim */
    double spacing[3];
    int width; /* bytes per code: 1, 2 */
    const unsigned char *target, *output;
};
/* The 95th percentile of the Hausdorff distance and the mean surface distance of the
 * averaged classes, at value[2 * class]; NaN if target or output does not have it. */
int dnn_evaluate_surfaces(const struct dnn_evaluation *e,
                          const struct evaluate_volume *v, double *value,
                          struct dnn_err *err);
/* Squared Euclidean distance to the nearest point that is 0, in place; the others must
 * be infinite. */
void dnn_evaluate_distance(float *value, const int64_t extent[3],
                           const double spacing[3]);

/* ---- results.c ---- */

/* Whether a class is part of averages. */
bool dnn_evaluate_averaged(const struct dnn_evaluation *e, int64_t c);
void dnn_evaluate_total(struct dnn_evaluation *e, const char *name, double value);
/* Allocate the table of classes: columns of NaN. */
void dnn_evaluate_table(struct dnn_evaluation *e, const char *const *column, int n);
double *dnn_evaluate_cell(struct dnn_evaluation *e, int64_t c, int column);
/* The mean of the averaged classes that have a value, weighted if weight >= 0 is a
 * column; NaN: none. */
double dnn_evaluate_average(const struct dnn_evaluation *e, int column, int weight);
/* Precision, recall, F1 (Dice) and IoU of counts; NaN if the class does not occur. */
struct evaluate_ratios {
    double precision, recall, f1, iou;
};
struct evaluate_ratios dnn_evaluate_ratios(int64_t hits, int64_t targets,
                                           int64_t outputs);
void dnn_evaluate_sort_worst(struct dnn_evaluation *e);
void dnn_evaluate_results_free(struct evaluate_results *r);

/* A mean of numbers that may be NaN. */
struct evaluate_mean {
    double sum;
    int64_t n;
};
void dnn_evaluate_mean_add(struct evaluate_mean *mean, double value);
double dnn_evaluate_mean(const struct evaluate_mean *mean);

/* ---- write.c ---- */

/* Add a field of a CSV file, after a comma; NaN: empty. */
void dnn_evaluate_csv_number(struct dnn_buf *out, double value);

#endif
