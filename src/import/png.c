/* png.c - PNG images: 1 to 16 bits, grey, colour, palette, with and without alpha.
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

/* A byte of deflate becomes 1032 at most, and one of them 8 points of 4 channels. */
enum { RATIO = 1032 * 32 };

struct job {
    png_structp png;
    png_infop info;
    const unsigned char *at; /* what is left to read                                 */
    size_t left, all;
    png_bytep *row;
    bool palette; /* indices are read, and colours made of them by us                */
    unsigned char colour[256][4];
    int ncolours;
    char said[160]; /* libpng's words                                                */
};

static void on_error(png_structp png, png_const_charp text)
{
    struct job *j = png_get_error_ptr(png);

    snprintf(j->said, sizeof(j->said), "%s", text);
    longjmp(png_jmpbuf(png), 1);
}

/* What libpng can live with: odd chunks that say nothing about the pixels. */
static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void feed(png_structp png, png_bytep to, size_t n)
{
    struct job *j = png_get_io_ptr(png);

    if (n > j->left) {
        char text[96];

        snprintf(text, sizeof(text), "truncated after %zu bytes", j->all);
        png_error(png, text);
    }
    memcpy(to, j->at, n);
    j->at += n;
    j->left -= n;
}

static int failed(const struct job *j, const struct dnn_image_in *in,
                  struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA, "%s: damaged PNG: %s", in->what, j->said);
}

/* Colours of a palette, and how transparent they are; the channels. */
static int palette(struct job *j)
{
    png_colorp plte = NULL;
    png_bytep alpha = NULL;
    int n = 0;

    if (png_get_PLTE(j->png, j->info, &plte, &j->ncolours) == 0)
        png_error(j->png, "the palette is missing");
    png_get_tRNS(j->png, j->info, &alpha, &n, NULL);
    for (int i = 0; i < j->ncolours; i++) {
        j->colour[i][0] = plte[i].red;
        j->colour[i][1] = plte[i].green;
        j->colour[i][2] = plte[i].blue;
        j->colour[i][3] = i < n ? alpha[i] : 255;
    }
    return n > 0 ? 4 : 3;
}

/* What libpng shall do to the rows; the channels that come out. */
static int transform(struct job *j, const struct dnn_image_in *in)
{
    int type = png_get_color_type(j->png, j->info);
    int depth = png_get_bit_depth(j->png, j->info);

    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_set_packing(j->png);
        if (in->mask) return 1;
        j->palette = true;
        return palette(j);
    }
    if (depth < 8) {
        if (in->mask)
            png_set_packing(j->png);
        else
            png_set_expand_gray_1_2_4_to_8(j->png);
    }
    int channels = png_get_channels(j->png, j->info);
    if (!in->mask && png_get_valid(j->png, j->info, PNG_INFO_tRNS) != 0) {
        png_set_tRNS_to_alpha(j->png);
        channels++;
    }
    if (depth == 16) {
        static const uint16_t one = 1;

        if (*(const unsigned char *)&one == 1) png_set_swap(j->png);
    }
    return channels;
}

static int header(struct job *j, const struct dnn_image_in *in, struct dnn_picture *out,
                  struct dnn_err *err)
{
    if (setjmp(png_jmpbuf(j->png)) != 0) return failed(j, in, err);
    png_set_read_fn(j->png, j, feed);
    png_set_crc_action(j->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_user_limits(j->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(j->png, j->info);
    int type = png_get_color_type(j->png, j->info);
    int channels = transform(j, in);
    png_set_interlace_handling(j->png);
    out->type = png_get_bit_depth(j->png, j->info) == 16 ? DNN_U16 : DNN_U8;
    out->shape = (struct dnn_shape){
        3,
        {png_get_image_height(j->png, j->info), png_get_image_width(j->png, j->info),
          channels}
    };
    out->classes = type == PNG_COLOR_TYPE_PALETTE || type == PNG_COLOR_TYPE_GRAY;
    DNN_TRY(dnn_import_fits(in->how, in->what, out->type, &out->shape, err));
    return dnn_image_holds(in->what, out, j->all, RATIO, err);
}

static int rows(struct job *j, const struct dnn_image_in *in, struct dnn_array *out,
                struct dnn_err *err)
{
    size_t height = (size_t)out->shape.dim[0];
    size_t pitch = dnn_array_bytes(out) / height;
    unsigned char *to = out->data;

    if (j->palette) { /* indices go where the last channel's bytes would end */
        pitch = (size_t)out->shape.dim[1];
        to += dnn_array_bytes(out) - pitch * height;
    }
    j->row = malloc(height * sizeof(*j->row));
    if (j->row == NULL)
        return dnn_fail(err, DNN_ENOMEM, "%s: not enough memory for %zu rows", in->what,
                        height);
    for (size_t y = 0; y < height; y++)
        j->row[y] = to + y * pitch;
    if (setjmp(png_jmpbuf(j->png)) != 0) return failed(j, in, err);
    png_read_update_info(j->png, j->info);
    if (png_get_rowbytes(j->png, j->info) != pitch)
        png_error(j->png, "row size differs from the header");
    png_read_image(j->png, j->row);
    png_read_end(j->png, NULL);
    return 0;
}

static int with(const struct dnn_image_in *in, struct dnn_picture *about,
                struct dnn_array *out, struct dnn_err *err)
{
    struct job *j = dnn_alloc(sizeof(*j));

    j->at = in->bytes;
    j->left = j->all = in->n;
    j->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, j, on_error, on_warning);
    if (j->png != NULL) j->info = png_create_info_struct(j->png);
    int rc = j->info == NULL
                 ? dnn_fail(err, DNN_ENOMEM, "%s: libpng could not be initialised: %s",
                            in->what, j->said)
                 : header(j, in, about, err);
    if (rc == 0 && out != NULL) {
        rc = dnn_array_make(out, about->type, &about->shape, err);
        if (rc == 0) rc = rows(j, in, out, err);
        if (rc == 0 && j->palette)
            rc = dnn_image_colours(in->what, out, (const unsigned char(*)[4])j->colour,
                                   j->ncolours, err);
    }
    png_destroy_read_struct(&j->png, &j->info, NULL);
    free(j->row);
    dnn_free(j);
    return rc;
}

static int look(const struct dnn_image_in *in, struct dnn_picture *out,
                struct dnn_err *err)
{
    return with(in, out, NULL, err);
}

static const struct dnn_image_kind kind = {"png", true, false, look, with};
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
