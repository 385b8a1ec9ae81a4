/* png.c - PNG images: 1 to 16 bits, grayscale, color or palette, with or without alpha.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/image_impl.h"

#if DNN_HAVE_PNG
#include "base/mem.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

/* Deflate expands a byte to at most 1032; such a byte may be 8 pixels of 4 channels. */
enum { RATIO = 1032 * 32 };

struct decoder {
    png_structp png;
    png_infop info;
    const unsigned char *at; /* next byte to read                                    */
    size_t left, all;
    png_bytep *row;
    bool palette; /* libpng reads indices; converted to colors later                 */
    unsigned char colour[256][4];
    int ncolours;
    char message[160]; /* message of libpng */
};

static void on_error(png_structp png, png_const_charp text)
{
    struct decoder *d = png_get_error_ptr(png);

    snprintf(d->message, sizeof(d->message), "%s", text);
    longjmp(png_jmpbuf(png), 1);
}

/* Warnings are ignored: they are not about pixels. */
static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    struct decoder *d = png_get_io_ptr(png);

    if (n > d->left) {
        char text[96];

        snprintf(text, sizeof(text), "truncated after %zu bytes", d->all);
        png_error(png, text);
    }
    memcpy(to, d->at, n);
    d->at += n;
    d->left -= n;
}

static int failed(const struct decoder *d, const struct dnn_image_in *in,
                  struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA, "%s: damaged PNG: %s", in->what, d->message);
}

/* Read the palette and its alpha values; returns the number of channels. */
static int read_palette(struct decoder *d)
{
    png_colorp plte = NULL;
    png_bytep alpha = NULL;
    int n = 0;

    if (png_get_PLTE(d->png, d->info, &plte, &d->ncolours) == 0)
        png_error(d->png, "the palette is missing");
    png_get_tRNS(d->png, d->info, &alpha, &n, NULL);
    for (int i = 0; i < d->ncolours; i++) {
        d->colour[i][0] = plte[i].red;
        d->colour[i][1] = plte[i].green;
        d->colour[i][2] = plte[i].blue;
        d->colour[i][3] = i < n ? alpha[i] : 255;
    }
    return n > 0 ? 4 : 3;
}

/* Set the transformations of libpng; returns the number of channels after them. */
static int set_transforms(struct decoder *d, const struct dnn_image_in *in)
{
    int type = png_get_color_type(d->png, d->info);
    int depth = png_get_bit_depth(d->png, d->info);

    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_set_packing(d->png);
        if (in->mask) return 1;
        d->palette = true;
        return read_palette(d);
    }
    if (depth < 8) {
        if (in->mask)
            png_set_packing(d->png);
        else
            png_set_expand_gray_1_2_4_to_8(d->png);
    }
    int channels = png_get_channels(d->png, d->info);
    if (!in->mask && png_get_valid(d->png, d->info, PNG_INFO_tRNS) != 0) {
        png_set_tRNS_to_alpha(d->png);
        channels++;
    }
    if (depth == 16) {
        static const uint16_t one = 1;

        if (*(const unsigned char *)&one == 1) png_set_swap(d->png);
    }
    return channels;
}

static int read_header(struct decoder *d, const struct dnn_image_in *in,
                       struct dnn_picture *out, struct dnn_err *err)
{
    if (setjmp(png_jmpbuf(d->png)) != 0) return failed(d, in, err);
    png_set_read_fn(d->png, d, read_bytes);
    png_set_crc_action(d->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_user_limits(d->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(d->png, d->info);
    int type = png_get_color_type(d->png, d->info);
    int channels = set_transforms(d, in);
    png_set_interlace_handling(d->png);
    out->type = png_get_bit_depth(d->png, d->info) == 16 ? DNN_U16 : DNN_U8;
    out->shape = (struct dnn_shape){
        3,
        {png_get_image_height(d->png, d->info), png_get_image_width(d->png, d->info),
          channels}
    };
    out->classes = type == PNG_COLOR_TYPE_PALETTE || type == PNG_COLOR_TYPE_GRAY;
    DNN_TRY(dnn_import_fits(in->how, in->what, out->type, &out->shape, err));
    return dnn_image_check_size(in->what, out, d->all, RATIO, err);
}

static int read_rows(struct decoder *d, const struct dnn_image_in *in,
                     struct dnn_array *out, struct dnn_err *err)
{
    size_t height = (size_t)out->shape.dim[0];
    size_t pitch = dnn_array_bytes(out) / height;
    unsigned char *to = out->data;

    if (d->palette) { /* the indices are read into the last bytes of the array */
        pitch = (size_t)out->shape.dim[1];
        to += dnn_array_bytes(out) - pitch * height;
    }
    d->row = malloc(height * sizeof(*d->row));
    if (d->row == NULL)
        return dnn_fail(err, DNN_ENOMEM, "%s: not enough memory for %zu rows", in->what,
                        height);
    for (size_t y = 0; y < height; y++)
        d->row[y] = to + y * pitch;
    if (setjmp(png_jmpbuf(d->png)) != 0) return failed(d, in, err);
    png_read_update_info(d->png, d->info);
    if (png_get_rowbytes(d->png, d->info) != pitch)
        png_error(d->png, "row size differs from the header");
    png_read_image(d->png, d->row);
    png_read_end(d->png, NULL);
    return 0;
}

static int decode(const struct dnn_image_in *in, struct dnn_picture *about,
                  struct dnn_array *out, struct dnn_err *err)
{
    struct decoder *d = dnn_alloc(sizeof(*d));

    d->at = in->bytes;
    d->left = d->all = in->n;
    d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, on_error, on_warning);
    if (d->png != NULL) d->info = png_create_info_struct(d->png);
    int rc = d->info == NULL
                 ? dnn_fail(err, DNN_ENOMEM, "%s: libpng could not be initialised: %s",
                            in->what, d->message)
                 : read_header(d, in, about, err);
    if (rc == 0 && out != NULL) {
        rc = dnn_array_make(out, about->type, &about->shape, err);
        if (rc == 0) rc = read_rows(d, in, out, err);
        if (rc == 0 && d->palette)
            rc = dnn_image_colours(in->what, out, (const unsigned char(*)[4])d->colour,
                                   d->ncolours, err);
    }
    png_destroy_read_struct(&d->png, &d->info, NULL);
    free(d->row);
    dnn_free(d);
    return rc;
}

static int inspect(const struct dnn_image_in *in, struct dnn_picture *out,
                   struct dnn_err *err)
{
    return decode(in, out, NULL, err);
}

static const struct dnn_image_kind kind = {"png", true, false, inspect, decode, NULL};
const struct dnn_image_kind *const dnn_image_png = &kind;

static int open_png(const char *path, const struct dnn_import *how,
                    const struct dnn_import_side *side, struct dnn_source **out,
                    struct dnn_err *err)
{
    return dnn_image_open(&kind, path, how, side, out, err);
}
#define OPEN open_png
#else
const struct dnn_image_kind *const dnn_image_png = NULL;
#define OPEN NULL
#endif

const struct dnn_importer dnn_importer_png = {
    .name = "png",
    .suffixes = ".png",
    .help = "images of 1 to 16 bits, grayscale, color or palette; alpha is kept as a "
            "channel",
    .single = true,
    .sniff = dnn_image_is_png,
    .open = OPEN,
    .lacks = "libpng",
};
