/* preview_impl.h - the contact sheet's parts: a canvas, and what is drawn on it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PREPARE_PREVIEW_IMPL_H
#define DNN_PREPARE_PREVIEW_IMPL_H

#include "base/err.h"
#include "data/dataset.h"

#include <stdint.h>

/* ---- preview_draw.c ---- */

/* Colours are 0xRRGGBB; what lies outside is not drawn. */
struct dnn_canvas {
    int width, height;
    unsigned char *rgb; /* owned                                                     */
};

/* Memory for it may be refused: DNN_ENOMEM. */
int dnn_canvas_make(struct dnn_canvas *canvas, int width, int height, uint32_t colour,
                    struct dnn_err *err);
void dnn_canvas_free(struct dnn_canvas *canvas);
void dnn_canvas_point(struct dnn_canvas *canvas, int x, int y, uint32_t colour);
uint32_t dnn_canvas_at(const struct dnn_canvas *canvas, int x, int y);
void dnn_canvas_fill(struct dnn_canvas *canvas, int x, int y, int width, int height,
                     uint32_t colour);
/* Text of letters 5 x 7 times scale at x, y; the front is left out ("..end") if it
 * would be wider than width.  What is no ASCII becomes ?.  The width it took. */
int dnn_canvas_text(struct dnn_canvas *canvas, int x, int y, int width, int scale,
                    const char *text, uint32_t colour);
/* As a PNG; needs libpng (DNN_ECONFIG). */
int dnn_canvas_save(const struct dnn_canvas *canvas, const char *path,
                    struct dnn_err *err);

enum { DNN_FONT_WIDTH = 6, DNN_FONT_HEIGHT = 7 }; /* with the space behind a letter */
extern const unsigned char dnn_preview_font[95][7];

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

/* Colour of a class; of 0 too, though it is not drawn. */
uint32_t dnn_plane_colour(int64_t class);
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
