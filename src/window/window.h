/* window.h - sliding windows: tiles that cover a sample, and their blended outputs.
 *
 * A sample that is larger than the network's input is computed tile by tile; where
 * tiles overlap, their outputs are averaged with weights.  Places and weights of the
 * tiles are those of MONAI's sliding_window_inference().
 *
 * Sums are integers: outputs are multiplied by weights whose sum over all tiles is 1 at
 * each point, and rounded.  So no bit of the result depends on the order of the tiles,
 * on how they are distributed over ranks, or on an interruption.
 *
 * All functions are Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_WINDOW_WINDOW_H
#define DNN_WINDOW_WINDOW_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNN_WINDOW_DIMS = 3 };

enum dnn_window_blend {
    DNN_WINDOW_CONSTANT, /* all points of a tile have the same weight                */
    DNN_WINDOW_GAUSSIAN  /* points near the edges of a tile have less                */
};

struct dnn_window_cfg {
    int ndim;                      /* spatial axes, 1 to DNN_WINDOW_DIMS             */
    int64_t full[DNN_WINDOW_DIMS]; /* extents of the sample                          */
    int64_t tile[DNN_WINDOW_DIMS]; /* extents of a tile; longer than the sample: the
                                    * sample is in its middle, with padding around   */
    double overlap[DNN_WINDOW_DIMS]; /* of neighbouring tiles, fraction of a tile, 0
                                      * to less than 1                               */
    enum dnn_window_blend blend;
    double sigma; /* of the Gaussian, as a fraction of the tile's extents            */
};

struct dnn_window; /* the tiles of a sample, numbered with the last axis fastest */

/* The caller owns *out: dnn_window_free(). */
int dnn_window_make(const struct dnn_window_cfg *cfg, struct dnn_window **out,
                    struct dnn_err *err);
void dnn_window_free(struct dnn_window *window); /* NULL is fine */
const struct dnn_window_cfg *dnn_window_cfg(const struct dnn_window *window);
int64_t dnn_window_tiles(const struct dnn_window *window);
/* The first point of a tile in the sample; negative with padding. */
void dnn_window_start(const struct dnn_window *window, int64_t tile,
                      int64_t start[DNN_WINDOW_DIMS]);

/* The number of tiles that start at the same plane of axis 0; their numbers are
 * consecutive. */
int64_t dnn_window_row(const struct dnn_window *window);

/* Units: boxes of points in which a sample is computed, written and resumed, from the
 * start of a tile to the start of another.  They depend only on the configuration.
 * Along axis 0 there is one for each tile; along the others they have one or several
 * tiles, so that a sample has at most about 1000 units, unless it is longer.  Units
 * with consecutive numbers are neighbours. */
int64_t dnn_window_units(const struct dnn_window *window);
void dnn_window_unit(const struct dnn_window *window, int64_t unit,
                     int64_t start[DNN_WINDOW_DIMS], int64_t extent[DNN_WINDOW_DIMS]);
/* The unit that contains a point. */
int64_t dnn_window_unit_at(const struct dnn_window *window, const int64_t *point);
/* The number of tiles that overlap a unit. */
int64_t dnn_window_unit_tiles(const struct dnn_window *window, int64_t unit);
/* Whether a tile overlaps a unit that is wanted: [units], not 0. */
bool dnn_window_wants(const struct dnn_window *window, const unsigned char *wanted,
                      int64_t tile);

/* Sums of the outputs of tiles, channels last.  They have memory only between the first
 * and the last tile of a point: with tiles in the order of their numbers, memory does
 * not grow with axis 0. */
struct dnn_blend;
struct dnn_blend_cfg {
    const struct dnn_window *window; /* must outlive the blend                       */
    int64_t channels;
    bool bounded; /* values are in [-1, 1] (up to a rounding error of 1e-5): sums
                   * have half the size and a resolution of 2^-30.  Else absolute
                   * values must be below 2^30, with a resolution of 2^-32       */
    const unsigned char *wanted; /* [units], not 0: to be computed; must outlive the
                                  * blend.  NULL: all                                */
    /* Called when all tiles of a box of points are added: its mean, channels last,
     * dense; start: in the sample.  Boxes do not overlap and each is in one unit.
     * Called by dnn_blend_add(); value is valid until it returns. */
    int (*done)(void *arg, const int64_t start[DNN_WINDOW_DIMS],
                const int64_t extent[DNN_WINDOW_DIMS], const float *value,
                struct dnn_err *err);
    void *arg;
};
/* The caller owns *out: dnn_blend_close(). */
int dnn_blend_open(const struct dnn_blend_cfg *cfg, struct dnn_blend **out,
                   struct dnn_err *err);
/* Add the output of a tile: its extents and channels, dense.  Points in padding or in
 * units that are not wanted are ignored.  Each tile that overlaps a wanted unit must be
 * added once.  A value that is NaN, infinite or out of range is DNN_EDATA with its
 * position.  After an error the blend can only be closed. */
int dnn_blend_add(struct dnn_blend *blend, int64_t tile, const float *value,
                  struct dnn_err *err);
/* Bytes of the sums: now, and the most there were. */
size_t dnn_blend_bytes(const struct dnn_blend *blend, size_t *peak);
/* The most bytes that the sums of all units of a sample need if tiles are added in
 * order.  SIZE_MAX: more than can be counted. */
size_t dnn_blend_estimate(const struct dnn_window *window, int64_t channels,
                          bool bounded);
void dnn_blend_close(struct dnn_blend *blend); /* NULL is fine */

#endif
