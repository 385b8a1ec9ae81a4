/* canvas.h - a small picture that programs draw: points, rectangles, letters.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_CANVAS_H
#define DNN_BASE_CANVAS_H

#include "base/err.h"

#include <stdint.h>

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
/* The colour of a class, the same wherever classes are drawn: far apart for the first
 * ones; of 0, which most often is background, black. */
uint32_t dnn_canvas_class(int64_t class);

enum { DNN_FONT_WIDTH = 6, DNN_FONT_HEIGHT = 7 }; /* with the space behind a letter */
extern const unsigned char dnn_canvas_font[95][7];

#endif
