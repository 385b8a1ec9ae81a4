/* transform.h - changes of one array: its extents, its geometry, its values.
 *
 * Arrays are as in sample/sample.h: spatial axes first (1 to 3 of them), channels
 * last.  Functions of extents take one number per spatial axis, in the array's order
 * (D, H, W).  How to interpolate follows from what the numbers mean: masks by their
 * nearest point, images linearly.  out must be another array; its memory is used
 * again; after a failure its content is undefined.  Spacing follows the geometry. Types
 * are kept (linear results of integers are rounded to nearest).
 *
 * Everything is Local and a pure function of its arguments, with the same bits on
 * every machine with IEEE 754 arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_TRANSFORM_H
#define DNN_TRANSFORM_TRANSFORM_H

#include "sample/sample.h"

enum dnn_interp { DNN_INTERP_NEAREST, DNN_INTERP_LINEAR };

/* ---- extents ---- */

/* Points are cell centres, as in OpenCV's and PyTorch's bilinear with
 * align_corners=False; nearest takes the cell the centre falls into. */
int dnn_resize(const struct dnn_array *in, const int64_t *extent, enum dnn_interp how,
               struct dnn_array *out, struct dnn_err *err);
/* To a spacing (mm per point): extents are rounded to the nearest whole, at least 1.
 * Refused if the array's own spacing is not known. */
int dnn_resample(const struct dnn_array *in, const double *spacing, enum dnn_interp how,
                 struct dnn_array *out, struct dnn_err *err);
/* The box of these extents at start; parts outside the array are refused. */
int dnn_crop(const struct dnn_array *in, const int64_t *start, const int64_t *extent,
             struct dnn_array *out, struct dnn_err *err);

enum dnn_pad_mode { DNN_PAD_CONSTANT, DNN_PAD_EDGE, DNN_PAD_REFLECT };
extern const struct dnn_choice dnn_pad_choices[]; /* constant, edge, reflect */

/* edge repeats the last point, reflect mirrors at it without repeating it; value is for
 * constant alone, and must be one of the array's type. */
int dnn_pad(const struct dnn_array *in, const int64_t *before, const int64_t *after,
            enum dnn_pad_mode mode, double value, struct dnn_array *out,
            struct dnn_err *err);

/* ---- geometry ---- */

/* Mirror along the axes whose bit is set (1: the first spatial axis). */
int dnn_flip(const struct dnn_array *in, unsigned axes, struct dnn_array *out,
             struct dnn_err *err);
/* Exchange spatial axes: axis k of out is axis order[k] of in. */
int dnn_transpose(const struct dnn_array *in, const int *order, struct dnn_array *out,
                  struct dnn_err *err);

/* Point p of out (in points, relative to the centre) takes in's value at
 * matrix * p + shift, plus displacement(p) if there is one (points of in, one row of
 * nspace floats per point of out).  Extents are kept.  The array is surrounded by fill:
 * linear interpolation between its border and that fades, nearest does not. */
struct dnn_warp {
    double matrix[DNN_MAX_SPACE][DNN_MAX_SPACE], shift[DNN_MAX_SPACE];
    const float *displacement; /* or NULL */
    double fill;
    enum dnn_interp how;
};
int dnn_warp(const struct dnn_array *in, const struct dnn_warp *warp,
             struct dnn_array *out, struct dnn_err *err);

/* ---- values, in place ---- */

/* (x - mean[c]) / std[c], c along the last axis; nchannels 1 serves all channels.  A
 * std of 0 is refused: whoever has a constant channel must say what it shall become.
 * The array becomes f32. */
int dnn_standardise(struct dnn_array *array, int nchannels, const double *mean,
                    const double *std, struct dnn_err *err);
/* Into [low, high]; the type is kept, and a NaN stays one.  Refused if no number of the
 * type lies there. */
int dnn_clip(struct dnn_array *array, double low, double high, struct dnn_err *err);
/* Class numbers: table[old] = new, -1: not a class, which is refused.  Names the first
 * number that is outside the table.  The type is kept and must hold the new numbers;
 * after a failure part of the array is changed. */
int dnn_remap(struct dnn_array *array, const int64_t *table, int64_t n,
              struct dnn_err *err);
/* Class numbers -> f32 vectors of so many classes along the last axis (a scalar label
 * becomes a vector). */
int dnn_one_hot(const struct dnn_array *in, int64_t classes, struct dnn_array *out,
                struct dnn_err *err);

#endif
