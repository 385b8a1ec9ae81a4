/* canvas.h - draw points, rectangles and text into an RGB image.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PICTURE_CANVAS_H
#define DNN_PICTURE_CANVAS_H

#include "base/err.h"

#include <stdint.h>

/* Colours are 0xRRGGBB; points outside the image are ignored. */
struct dnn_canvas {
    int width, height;
    unsigned char *rgb; /* owned                                                     */
};

/* DNN_ENOMEM if there is not enough memory. */
int dnn_canvas_make(struct dnn_canvas *canvas, int width, int height, uint32_t colour,
                    struct dnn_err *err);
void dnn_canvas_free(struct dnn_canvas *canvas);
void dnn_canvas_point(struct dnn_canvas *canvas, int x, int y, uint32_t colour);
uint32_t dnn_canvas_at(const struct dnn_canvas *canvas, int x, int y);
void dnn_canvas_fill(struct dnn_canvas *canvas, int x, int y, int width, int height,
                     uint32_t colour);
/* Draw text at x, y; a letter has 5 x 7 points times scale.  Text wider than width is
 * cut at the front ("..end"); non-ASCII bytes become "?".  Returns the width drawn. */
int dnn_canvas_text(struct dnn_canvas *canvas, int x, int y, int width, int scale,
                    const char *text, uint32_t colour);
/* The colour of a class, the same in all images; class 0, usually the background, is
 * black. */
uint32_t dnn_canvas_class(int64_t class);

enum { DNN_FONT_WIDTH = 6, DNN_FONT_HEIGHT = 7 }; /* with the space after a letter */
extern const unsigned char dnn_canvas_font[95][7];

#endif
