/* png.c - images as PNG files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "picture/png.h"

#include "base/file.h"
#include "picture/canvas.h"

#if DNN_HAVE_PNG
#include <png.h>
#include <setjmp.h>

static void on_error(png_structp png, png_const_charp text)
{
    snprintf(png_get_error_ptr(png), 128, "%s", text);
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void add_bytes(png_structp png, png_bytep bytes, size_t n)
{
    dnn_buf_bytes(png_get_io_ptr(png), bytes, n);
}

static void no_flush(png_structp png)
{
    (void)png;
}

static void set_palette(png_structp png, png_infop info)
{
    png_color colours[256];

    for (int i = 0; i < 256; i++) {
        uint32_t c = dnn_canvas_class(i);

        colours[i] = (png_color){(png_byte)(c >> 16), (png_byte)(c >> 8), (png_byte)c};
    }
    png_set_PLTE(png, info, colours, 256);
}

static int encode(png_structp png, png_infop info, enum dnn_png_kind kind, int width,
                  int height, const unsigned char *bytes, struct dnn_buf *out)
{
    static const int types[] = {[DNN_PNG_RGB] = PNG_COLOR_TYPE_RGB,
                                [DNN_PNG_GREY] = PNG_COLOR_TYPE_GRAY,
                                [DNN_PNG_CLASSES] = PNG_COLOR_TYPE_PALETTE};
    size_t pitch = (size_t)width * (kind == DNN_PNG_RGB ? 3 : 1);

    if (setjmp(png_jmpbuf(png)) != 0) return -1;
    png_set_write_fn(png, out, add_bytes, no_flush);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, types[kind],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (kind == DNN_PNG_CLASSES) set_palette(png, info);
    png_write_info(png, info);
    for (int y = 0; y < height; y++)
        png_write_row(png, bytes + (size_t)y * pitch);
    png_write_end(png, info);
    return 0;
}

int dnn_png_encode(const char *what, enum dnn_png_kind kind, int width, int height,
                   const unsigned char *bytes, struct dnn_buf *out, struct dnn_err *err)
{
    char message[128] = "no memory";
    png_infop info = NULL;
    png_structp png;
    int rc = 0;

    if (width < 1 || height < 1)
        return dnn_fail(err, DNN_EUSAGE, "%s: invalid image size %d x %d", what, width,
                        height);
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, message, on_error, on_warning);
    if (png != NULL) info = png_create_info_struct(png);
    if (info == NULL || encode(png, info, kind, width, height, bytes, out) < 0)
        rc = dnn_fail(err, DNN_EIO, "%s: libpng: %s", what, message);
    png_destroy_write_struct(&png, &info);
    return rc;
}
#else
int dnn_png_encode(const char *what, enum dnn_png_kind kind, int width, int height,
                   const unsigned char *bytes, struct dnn_buf *out, struct dnn_err *err)
{
    (void)kind, (void)width, (void)height, (void)bytes, (void)out;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: PNG images need libpng, which this was built without", what);
}
#endif

int dnn_png_save(const char *path, enum dnn_png_kind kind, int width, int height,
                 const unsigned char *bytes, struct dnn_err *err)
{
    struct dnn_buf png = {0};
    int rc = dnn_png_encode(path, kind, width, height, bytes, &png, err);

    if (rc == 0) rc = dnn_file_write(path, png.text, png.len, err);
    dnn_buf_free(&png);
    return rc;
}
