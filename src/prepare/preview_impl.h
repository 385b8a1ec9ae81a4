/* preview_impl.h - drawing of one sample, for preview.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PREPARE_PREVIEW_IMPL_H
#define DNN_PREPARE_PREVIEW_IMPL_H

#include "picture/canvas.h"
#include "data/dataset.h"

#include <stdint.h>

/* ---- preview_plane.c ---- */

/* A 2D view of one sample of an image column, with or without a mask. */
struct dnn_plane {
    int64_t height, width;
    int channels; /* 1 or 3                                                         */
    double black, white; /* values drawn as black and white                       */
    bool solid;    /* draw the classes only                                          */
    double *value; /* owned [height][width][channels]                                */
    int32_t *mask; /* owned [height][width]: class; 0: none, -1: empty area          */
};

/* The value of element at of stored data. */
double dnn_plane_value(const struct dnn_stored *col, const void *data, int64_t at);
/* Makes it from the stored bytes of one sample.  mask may be NULL, else it must have
 * the same spatial extents.  three: the three middle planes of a volume, else only that
 * of axis 0. */
int dnn_plane_make(const struct dnn_stored *image, const void *data,
                   const struct dnn_stored *mask, const void *classes, bool three,
                   struct dnn_plane *out, struct dnn_err *err);
void dnn_plane_free(struct dnn_plane *plane);
/* Draws it centered in a square of side points, as large as fits. */
void dnn_plane_draw(const struct dnn_plane *plane, struct dnn_canvas *canvas, int x,
                    int y, int side);
/* Draws n values as bars in a square of side points. */
void dnn_plane_bars(const double *value, int64_t n, struct dnn_canvas *canvas, int x,
                    int y, int side);

#endif
