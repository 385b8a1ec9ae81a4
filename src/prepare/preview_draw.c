/* preview_draw.c - rectangles, letters, and a canvas as PNG.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "prepare/preview_impl.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#if DNN_HAVE_PNG
#include <png.h>
#endif

int dnn_canvas_make(struct dnn_canvas *canvas, int width, int height, uint32_t colour,
                    struct dnn_err *err)
{
    canvas->width = width;
    canvas->height = height;
    canvas->rgb = malloc((size_t)width * (size_t)height * 3);
    if (canvas->rgb == NULL)
        return dnn_fail(err, DNN_ENOMEM, "no memory for a sheet of %d x %d points",
                        width, height);
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
    const unsigned char *row = dnn_preview_font[(c < 32 || c > 126 ? '?' : c) - 32];

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
        bool left_out = from > 0 && i < from + 2;

        letter(canvas, x + (i - from) * step, y, scale,
               left_out ? '.' : (unsigned char)text[i], colour);
    }
    return (n - from) * step;
}

#if DNN_HAVE_PNG
static void on_error(png_structp png, png_const_charp text)
{
    snprintf(png_get_error_ptr(png), 128, "%s", text);
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void take(png_structp png, png_bytep bytes, size_t n)
{
    dnn_buf_bytes(png_get_io_ptr(png), bytes, n);
}

static void flush(png_structp png)
{
    (void)png;
}

static int encode(const struct dnn_canvas *canvas, png_structp png, png_infop info,
                  struct dnn_buf *out)
{
    if (setjmp(png_jmpbuf(png)) != 0) return -1;
    png_set_write_fn(png, out, take, flush);
    png_set_IHDR(png, info, (png_uint_32)canvas->width, (png_uint_32)canvas->height, 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int y = 0; y < canvas->height; y++)
        png_write_row(png, canvas->rgb + (size_t)y * (size_t)canvas->width * 3);
    png_write_end(png, info);
    return 0;
}

int dnn_canvas_save(const struct dnn_canvas *canvas, const char *path,
                    struct dnn_err *err)
{
    struct dnn_buf bytes = {0};
    char said[128] = "no memory";
    png_infop info = NULL;
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, said, on_error, on_warning);

    if (png != NULL) info = png_create_info_struct(png);
    int rc = info == NULL || encode(canvas, png, info, &bytes) < 0
                 ? dnn_fail(err, DNN_EIO, "%s: libpng: %s", path, said)
                 : dnn_file_write(path, bytes.text, bytes.len, err);
    png_destroy_write_struct(&png, &info);
    dnn_buf_free(&bytes);
    return rc;
}
#else
int dnn_canvas_save(const struct dnn_canvas *canvas, const char *path,
                    struct dnn_err *err)
{
    (void)canvas;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: previews are PNG images and need libpng, which this was built "
                    "without",
                    path);
}
#endif
