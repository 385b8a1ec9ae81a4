/* window_impl.h - declarations shared by the files of this component.
 *
 * places.c         tiles and cells along each axis;
 * units.c          units of work;
 * weights.c        weights of the points of a tile;
 * blend.c          sums in memory, cell by cell;
 * blend_add.c      the sums of a tile: the hot loops;
 * blend_estimate.c the memory of the sums.
 *
 * Inside, a sample always has three axes: missing ones come first, with extent 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_WINDOW_WINDOW_IMPL_H
#define DNN_WINDOW_WINDOW_IMPL_H

#include "window/window.h"

/* Points of a row whose weights are computed together. */
enum { WINDOW_ROW = 256 };

/* Tiles and cells along one axis.  Cells are the boxes of points in which sums are
 * allocated: between the starts and ends of tiles, so that no sum exists longer than
 * needed. */
struct window_axis {
    int64_t full, tile, step;
    int64_t count;  /* of tiles                                                      */
    int64_t unit;   /* tiles that start in a unit of work; in the last one fewer     */
    int64_t ncells; /* of points edge[c] to edge[c + 1] - 1                          */
    int64_t *edge;  /* owned [ncells + 1]                                            */
    float *curve;   /* owned [tile]: Gaussian; NULL: constant                        */
};

struct dnn_window {
    struct dnn_window_cfg cfg;
    int lead; /* missing axes */
    struct window_axis axis[DNN_WINDOW_DIMS];
};

/* The smallest cell and unit, except along the first axis: rows should not be short. */
enum { WINDOW_MIN_CELL = 16 };

/* Set the extents of units on all axes. */
void window_units_make(struct dnn_window *window);
/* Whether a unit starts at a point of an axis. */
bool window_unit_starts(const struct window_axis *axis, int64_t point);
/* The unit that contains a point; all axes. */
int64_t window_unit_at(const struct dnn_window *window, const int64_t *point);

/* The first point of tile i along an axis. */
int64_t window_start(const struct window_axis *axis, int64_t i);
/* The tiles [*first, *last) that overlap points [from, to) of an axis. */
void window_touch(const struct window_axis *axis, int64_t from, int64_t to,
                  int64_t *first, int64_t *last);

/* The cell that contains a point of an axis. */
int64_t window_cell(const struct window_axis *axis, int64_t point);

/* A row: n points along the last axis from `at`. */
struct window_row {
    int64_t at[DNN_WINDOW_DIMS];
    int64_t n;
};

void window_weights_make(struct dnn_window *window);
/* 1 / the sum of the weights of all tiles at each point of a row.  Only for Gaussian
 * weights. */
void window_inverse(const struct dnn_window *window, const struct window_row *row,
                    float *out);
/* scale * the weights of a row of at most WINDOW_ROW points in the tile that starts at
 * `start`; the sum over all tiles is scale.  inverse: from window_inverse(). */
void window_weights(const struct dnn_window *window, const int64_t *start,
                    const struct window_row *row, const float *inverse, float scale,
                    float *out);

/* Sums of a box of points; one block of memory, owned. */
struct blend_cell {
    void *sum;      /* int32_t or int64_t [points][channels] */
    float *inverse; /* [points], in the same block, or NULL  */
    int64_t left;   /* tiles to be added                     */
};

/* The cells at one place along the first axis. */
struct blend_layer {
    struct blend_cell *cell; /* owned; NULL: no tile was added, or all are complete */
    int64_t left;            /* wanted cells that are not complete                  */
};

struct dnn_blend {
    struct dnn_blend_cfg cfg;
    unsigned char *added;      /* owned: a bit per tile                      */
    struct blend_layer *layer; /* owned: of each place along the first axis */
    size_t bytes, peak;
};

/* A box of points, and cells [cell, cell_end) that contain it. */
struct blend_box {
    int64_t start[DNN_WINDOW_DIMS]; /* of the tile, which may be outside the box     */
    int64_t from[DNN_WINDOW_DIMS], to[DNN_WINDOW_DIMS];
    int64_t cell[DNN_WINDOW_DIMS], cell_end[DNN_WINDOW_DIMS];
};

/* Bytes for a point: its sums and its weight. */
size_t blend_point_bytes(const struct dnn_window *window, int64_t channels,
                         bool bounded);
/* NULL: no wanted cell near it has sums. */
struct blend_cell *blend_cell_of(const struct dnn_blend *blend, const int64_t *cell);
void blend_cell_box(const struct dnn_window *window, const int64_t *cell,
                    int64_t *start, int64_t *extent);
/* Add the values of a tile in a box to the sums of its cells, which exist.  false: a
 * value is NaN, infinite or out of range. */
bool blend_add_box(const struct dnn_blend *blend, const struct blend_box *box,
                   const float *value);
/* The error for the first such value. */
int blend_bad_value(const struct dnn_blend *blend, const struct blend_box *box,
                    const float *value, struct dnn_err *err);
/* Replace the sums of n values by the values, at the start of the same memory. */
void blend_divide(bool bounded, void *sum, int64_t n);

#endif
