/* preview_draw.c - a canvas as PNG.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "prepare/preview_impl.h"

#include "base/file.h"
#include "base/text.h"

#if DNN_HAVE_PNG
#include <png.h>
#endif

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
    char said[128] = "not enough memory";
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
                    "%s: previews need libpng, and this program was built without it",
                    path);
}
#endif
