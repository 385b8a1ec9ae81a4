/* canvas.c - rectangles and letters on a picture.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "picture/canvas.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

uint32_t dnn_canvas_class(int64_t class)
{
    /* Distinct in hue and lightness; the first colours differ most. */
    static const uint32_t colours[] = {
        0x000000, 0xE6323C, 0x3CB44B, 0x4C7DFF, 0xFFD219, 0xF58230, 0xA03CDC, 0x46F0F0,
        0xF032E6, 0xBFEF45, 0x9A6324, 0xFABED4, 0x469990, 0x808000, 0xAAFFC3, 0x800000,
    };
    int n = sizeof(colours) / sizeof(colours[0]);

    if (class <= 0) return colours[0];
    return colours[1 + (class - 1) % (n - 1)];
}

int dnn_canvas_make(struct dnn_canvas *canvas, int width, int height, uint32_t colour,
                    struct dnn_err *err)
{
    canvas->width = width;
    canvas->height = height;
    canvas->rgb = malloc((size_t)width * (size_t)height * 3);
    if (canvas->rgb == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "not enough memory for an image of %d x %d pixels", width,
                        height);
    dnn_canvas_fill(canvas, 0, 0, width, height, colour);
    return 0;
}

void dnn_canvas_free(struct dnn_canvas *canvas)
{
    free(canvas->rgb);
    canvas->rgb = NULL;
}

void dnn_canvas_point(struct dnn_canvas *canvas, int x, int y, uint32_t colour)
{
    if (x < 0 || y < 0 || x >= canvas->width || y >= canvas->height) return;
    unsigned char *at =
        canvas->rgb + ((size_t)y * (size_t)canvas->width + (size_t)x) * 3;
    at[0] = (unsigned char)(colour >> 16);
    at[1] = (unsigned char)(colour >> 8);
    at[2] = (unsigned char)colour;
}

uint32_t dnn_canvas_at(const struct dnn_canvas *canvas, int x, int y)
{
    const unsigned char *at =
        canvas->rgb + ((size_t)y * (size_t)canvas->width + (size_t)x) * 3;

    return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

void dnn_canvas_fill(struct dnn_canvas *canvas, int x, int y, int width, int height,
                     uint32_t colour)
{
    for (int j = y; j < y + height; j++)
        for (int i = x; i < x + width; i++)
            dnn_canvas_point(canvas, i, j, colour);
}

static void letter(struct dnn_canvas *canvas, int x, int y, int scale, unsigned char c,
                   uint32_t colour)
{
    const unsigned char *row = dnn_canvas_font[(c < 32 || c > 126 ? '?' : c) - 32];

    if (c != '\0' && strchr("gpqy", c) != NULL) y += 2 * scale; /* below the line */
    for (int j = 0; j < DNN_FONT_HEIGHT; j++)
        for (int i = 0; i < 5; i++)
            if (row[j] >> (4 - i) & 1)
                dnn_canvas_fill(canvas, x + i * scale, y + j * scale, scale, scale,
                                colour);
}

int dnn_canvas_text(struct dnn_canvas *canvas, int x, int y, int width, int scale,
                    const char *text, uint32_t colour)
{
    int step = DNN_FONT_WIDTH * scale, most = width / step, n = (int)strlen(text);
    int from = n > most ? n - most : 0;

    if (most < 3) return 0;
    for (int i = from; i < n; i++) {
        bool omitted = from > 0 && i < from + 2;

        letter(canvas, x + (i - from) * step, y, scale,
               omitted ? '.' : (unsigned char)text[i], colour);
    }
    return (n - from) * step;
}
