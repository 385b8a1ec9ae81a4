/* transform.h - operations on one array: extents, geometry, values.
 *
 * Arrays are as in sample/sample.h: spatial axes first (1 to 3 of them), channels
 * last.  Extents are one number per spatial axis, in the order of the array (D, H, W).
 * Interpolation depends on the kind: nearest for masks, linear for images.  out must be
 * another array; its memory is reused, and its content is undefined after a failure.
 * Spacing is adapted to the geometry.  Types do not change (linear results of integers
 * are rounded to nearest).
 *
 * All functions are Local, and their results depend only on their arguments, with the
 * same bits on every machine with IEEE 754 arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_TRANSFORM_H
#define DNN_TRANSFORM_TRANSFORM_H

#include "sample/sample.h"

enum dnn_interp { DNN_INTERP_NEAREST, DNN_INTERP_LINEAR };

/* ---- extents ---- */

/* Resize.  Points are cell centres, as in OpenCV, and in PyTorch with
 * align_corners=False; nearest takes the cell that contains the centre. */
int dnn_resize(const struct dnn_array *in, const int64_t *extent, enum dnn_interp how,
               struct dnn_array *out, struct dnn_err *err);
/* Resize to a spacing (mm per point).  Extents are rounded to the nearest integer, at
 * least
 * 1.  It is an error if the spacing of the array is not known. */
double dnn_resample_extent(int64_t n, double spacing, double wanted);
int dnn_resample(const struct dnn_array *in, const double *spacing, enum dnn_interp how,
                 struct dnn_array *out, struct dnn_err *err);
/* Copy the box of these extents at start; it must lie within the array. */
int dnn_crop(const struct dnn_array *in, const int64_t *start, const int64_t *extent,
             struct dnn_array *out, struct dnn_err *err);

enum dnn_pad_mode { DNN_PAD_CONSTANT, DNN_PAD_EDGE, DNN_PAD_REFLECT };
extern const struct dnn_choice dnn_pad_choices[]; /* constant, edge, reflect */

/* edge repeats the last point, reflect mirrors at it without repeating it; value is
 * only used by constant, and must be representable in the type of the array. */
int dnn_pad(const struct dnn_array *in, const int64_t *before, const int64_t *after,
            enum dnn_pad_mode mode, double value, struct dnn_array *out,
            struct dnn_err *err);

/* ---- geometry ---- */

/* Mirror along the axes whose bit is set (1: the first spatial axis). */
int dnn_flip(const struct dnn_array *in, unsigned axes, struct dnn_array *out,
             struct dnn_err *err);

/* The value of point p of out (in points, relative to the centre) is that of in at
 * matrix * p + shift, plus displacement(p) if given (in points of in; nspace floats per
 * point of out).  Extents do not change.  Outside the array the value is fill; linear
 * interpolates between the border and fill, nearest does not. */
struct dnn_warp {
    double matrix[DNN_MAX_SPACE][DNN_MAX_SPACE], shift[DNN_MAX_SPACE];
    const float *displacement; /* or NULL */
    double fill;
    enum dnn_interp how;
};
int dnn_warp(const struct dnn_array *in, const struct dnn_warp *warp,
             struct dnn_array *out, struct dnn_err *err);

/* ---- values, in place ---- */

/* (x - mean[c]) / std[c], c along the last axis; nchannels 1: the same for all
 * channels.  A std of 0 is an error: the caller must handle constant channels.  The
 * array becomes f32. */
int dnn_standardise(struct dnn_array *array, int nchannels, const double *mean,
                    const double *std, struct dnn_err *err);
/* Clip to [low, high]; the type does not change, and NaN stays NaN.  It is an error if
 * the range contains no value of the type. */
int dnn_clip(struct dnn_array *array, double low, double high, struct dnn_err *err);
/* Map class numbers: table[old] = new; -1: not a class, an error.  The message names
 * the first number outside the table.  The type does not change and must be able to
 * represent the new numbers; after a failure, the array may be partly changed. */
int dnn_remap(struct dnn_array *array, const int64_t *table, int64_t n,
              struct dnn_err *err);
/* Convert class numbers to one-hot f32 vectors along the last axis (a scalar label
 * becomes a vector). */
int dnn_one_hot(const struct dnn_array *in, int64_t classes, struct dnn_array *out,
                struct dnn_err *err);

#endif
