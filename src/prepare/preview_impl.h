/* preview_impl.h - the contact sheet's parts: what is drawn on its canvas.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PREPARE_PREVIEW_IMPL_H
#define DNN_PREPARE_PREVIEW_IMPL_H

#include "base/canvas.h"
#include "data/dataset.h"

#include <stdint.h>

/* ---- preview_plane.c ---- */

/* What can be seen of one sample of an image column, with a mask or without. */
struct dnn_plane {
    int64_t height, width;
    int channels; /* 1 or 3                                                         */
    double black, white; /* values that are drawn so                              */
    bool solid;    /* only classes are seen                                          */
    double *value; /* owned [height][width][channels]                                */
    int32_t *mask; /* owned [height][width]: class; 0: none, -1: nothing is there    */
};

/* The number at a place of stored data as a value of its channel. */
double dnn_plane_number(const struct dnn_stored *col, const void *data, int64_t at);
/* From the stored bytes of one sample; mask may be NULL, else it has the same spatial
 * extents.  three: volumes show their three middle planes, else that of axis 0. */
int dnn_plane_make(const struct dnn_stored *image, const void *data,
                   const struct dnn_stored *mask, const void *classes, bool three,
                   struct dnn_plane *out, struct dnn_err *err);
void dnn_plane_free(struct dnn_plane *plane);
/* Draw it as large as fits a square of side points, in its middle. */
void dnn_plane_draw(const struct dnn_plane *plane, struct dnn_canvas *canvas, int x,
                    int y, int side);
/* n numbers as bars from 0 in a square of side points. */
void dnn_plane_bars(const double *value, int64_t n, struct dnn_canvas *canvas, int x,
                    int y, int side);

#endif
