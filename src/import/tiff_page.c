/* tiff_page.c - a page of a TIFF file: its properties, and its pixels from strips or
 * tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/image_impl.h"

#if DNN_HAVE_TIFF
#include <tiffio.h>
#endif

#if DNN_HAVE_TIFF && TIFFLIB_VERSION >= 20221213
#include "import/tiff_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- properties ---- */

/* The type of the values of a page; false: not supported. */
static bool type_of(int bits, int format, enum dnn_dtype *out)
{
    static const struct {
        int bits, format;
        enum dnn_dtype type;
    } types[] = {
        {8,  SAMPLEFORMAT_UINT,   DNN_U8 },
        {16, SAMPLEFORMAT_UINT,   DNN_U16},
        {32, SAMPLEFORMAT_UINT,   DNN_U32},
        {64, SAMPLEFORMAT_UINT,   DNN_U64},
        {8,  SAMPLEFORMAT_INT,    DNN_I8 },
        {16, SAMPLEFORMAT_INT,    DNN_I16},
        {32, SAMPLEFORMAT_INT,    DNN_I32},
        {64, SAMPLEFORMAT_INT,    DNN_I64},
        {16, SAMPLEFORMAT_IEEEFP, DNN_F16},
        {32, SAMPLEFORMAT_IEEEFP, DNN_F32},
        {64, SAMPLEFORMAT_IEEEFP, DNN_F64},
        {1,  SAMPLEFORMAT_UINT,   DNN_U8 },
        {2,  SAMPLEFORMAT_UINT,   DNN_U8 },
        {4,  SAMPLEFORMAT_UINT,   DNN_U8 },
    };

    if (format == SAMPLEFORMAT_VOID) format = SAMPLEFORMAT_UINT;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].bits == bits && types[i].format == format) {
            *out = types[i].type;
            return true;
        }
    return false;
}

static int colours_of(struct dnn_tiff *t, struct dnn_tiff_page *p, struct dnn_err *err)
{
    switch (p->photometric) {
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_MINISWHITE:
        return 0;
    case PHOTOMETRIC_PALETTE:
        if (p->samples == 1 && p->bits <= 8) return 0;
        return dnn_fail(err, DNN_EDATA,
                        "%s: page %d: palette images must have one value of at most 8 "
                        "bits per pixel, not %d of %d bits",
                        t->what, t->page + 1, p->samples, p->bits);
    case PHOTOMETRIC_RGB:
        if (p->samples >= 3) return 0;
        return dnn_fail(err, DNN_EDATA,
                        "%s: page %d: unsupported number of color channels: %d",
                        t->what, t->page + 1, p->samples);
    case PHOTOMETRIC_YCBCR: /* libjpeg converts them to RGB */
        if (p->compression == COMPRESSION_JPEG && p->samples == 3 && p->planar == 1)
            return 0;
        break;
    }
    return dnn_fail(err, DNN_EDATA,
                    "%s: page %d: photometric interpretation %d is not supported; "
                    "grayscale, RGB and palette are",
                    t->what, t->page + 1, p->photometric);
}

int dnn_tiff_inspect(struct dnn_tiff *t, struct dnn_tiff_page *p, struct dnn_err *err)
{
    uint16_t bits = 1, samples = 1, format = SAMPLEFORMAT_UINT, compression = 1,
             planar = PLANARCONFIG_CONTIG, photometric = PHOTOMETRIC_MINISBLACK;
    uint32_t width = 0, height = 0;

    t->message[0] = '\0';
    TIFFGetField(t->tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(t->tiff, TIFFTAG_IMAGELENGTH, &height);
    TIFFGetFieldDefaulted(t->tiff, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(t->tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(t->tiff, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetFieldDefaulted(t->tiff, TIFFTAG_COMPRESSION, &compression);
    TIFFGetFieldDefaulted(t->tiff, TIFFTAG_PLANARCONFIG, &planar);
    TIFFGetField(t->tiff, TIFFTAG_PHOTOMETRIC, &photometric);
    *p = (struct dnn_tiff_page){.width = width,
                                .height = height,
                                .bits = bits,
                                .samples = samples,
                                .photometric = photometric,
                                .compression = compression,
                                .planar = samples == 1 ? PLANARCONFIG_CONTIG : planar};
    if (width == 0 || height == 0 || samples == 0)
        return dnn_fail(err, DNN_EDATA, "%s: page %d is empty", t->what, t->page + 1);
    if (!type_of(bits, format, &p->type) || (bits < 8 && samples > 1))
        return dnn_fail(err, DNN_EDATA,
                        "%s: page %d: %d values of %d bits per pixel (sample format "
                        "%d) are not supported",
                        t->what, t->page + 1, samples, bits, format);
    if (!TIFFIsCODECConfigured(compression))
        return dnn_fail(
            err, DNN_EDATA,
            "%s: page %d: the installed libtiff does not support compression %d",
            t->what, t->page + 1, compression);
    return colours_of(t, p, err);
}

/* ---- pixels ---- */

/* The blocks of a page: strips or tiles. */
struct grid {
    uint32_t width, height; /* of a block                                            */
    size_t pitch;           /* bytes per row of a block                              */
    size_t size;            /* bytes of a block                                      */
    size_t element;         /* bytes of a value in memory                            */
    int planes;             /* number of channels if each has its own blocks, else 1 */
};

static int grid_of(struct dnn_tiff *t, const struct dnn_image_in *in,
                   const struct dnn_tiff_page *p, struct grid *g, struct dnn_err *err)
{
    bool tiled = TIFFIsTiled(t->tiff) != 0,
         separate = p->planar == PLANARCONFIG_SEPARATE;
    size_t bits = (size_t)p->bits * (separate ? 1 : (size_t)p->samples);

    g->element = dnn_dtype_size(p->type);
    g->planes = separate ? p->samples : 1;
    g->width = p->width;
    g->height = 0;
    if (tiled) {
        TIFFGetField(t->tiff, TIFFTAG_TILEWIDTH, &g->width);
        TIFFGetField(t->tiff, TIFFTAG_TILELENGTH, &g->height);
    } else {
        TIFFGetFieldDefaulted(t->tiff, TIFFTAG_ROWSPERSTRIP, &g->height);
        if (g->height > p->height) g->height = p->height;
    }
    tmsize_t pitch = tiled ? TIFFTileRowSize(t->tiff) : TIFFScanlineSize(t->tiff);
    tmsize_t size = tiled ? TIFFTileSize(t->tiff) : TIFFStripSize(t->tiff);
    if (pitch <= 0 || size <= 0 || g->width == 0 || g->height == 0)
        return dnn_tiff_fail(t, err);
    g->pitch = (size_t)pitch;
    g->size = (size_t)size;
    if (g->pitch != ((uint64_t)g->width * bits + 7) / 8 ||
        g->size / g->height < g->pitch || size > dnn_import_limit(in->how))
        return dnn_fail(err, DNN_EDATA,
                        "%s: page %d: strips or tiles of %ux%u pixels in %zu bytes do "
                        "not match %d values of %d bits per pixel",
                        t->what, t->page + 1, g->height, g->width, g->size, p->samples,
                        p->bits);
    return 0;
}

/* Unpack values of less than 8 bits, the first in the highest bits. */
static void unpack(const unsigned char *from, unsigned char *to, size_t n, int bits)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = i * (size_t)bits;

        to[i] = (unsigned char)(from[at / 8] >> (8 - (size_t)bits - at % 8)) &
                (unsigned char)((1 << bits) - 1);
    }
}

/* Copy the part of a block that lies in the page to its position. */
static void copy_block(const struct dnn_tiff_page *p, const struct grid *g,
                       const unsigned char *from, uint32_t x, uint32_t y, int plane,
                       unsigned char *to)
{
    size_t cols = p->width - x < g->width ? p->width - x : g->width;
    size_t rows = p->height - y < g->height ? p->height - y : g->height;
    size_t point = g->element * (size_t)p->samples;

    for (size_t r = 0; r < rows; r++, from += g->pitch) {
        unsigned char *row = to + ((y + r) * p->width + x) * point;

        if (p->bits < 8) {
            unpack(from, row, cols, p->bits);
        } else if (g->planes == 1) {
            memcpy(row, from, cols * point);
        } else {
            row += g->element * (size_t)plane;
            for (size_t i = 0; i < cols; i++)
                memcpy(row + i * point, from + i * g->element, g->element);
        }
    }
}

static int read_grid(struct dnn_tiff *t, const struct dnn_tiff_page *p,
                     const struct grid *g, unsigned char *buffer, unsigned char *to,
                     struct dnn_err *err)
{
    bool tiled = TIFFIsTiled(t->tiff) != 0;

    for (int k = 0; k < g->planes; k++)
        for (uint32_t y = 0; y < p->height;) {
            uint32_t rows = p->height - y < g->height ? p->height - y : g->height;

            for (uint32_t x = 0; x < p->width;) {
                tmsize_t want = (tmsize_t)((tiled ? g->height : rows) * g->pitch), got;

                if (tiled)
                    got = TIFFReadEncodedTile(
                        t->tiff, TIFFComputeTile(t->tiff, x, y, 0, (uint16_t)k), buffer,
                        want);
                else
                    got = TIFFReadEncodedStrip(
                        t->tiff, TIFFComputeStrip(t->tiff, y, (uint16_t)k), buffer,
                        want);
                if (got < want) return dnn_tiff_fail(t, err);
                copy_block(p, g, buffer, x, y, k, to);
                if (p->width - x <= g->width) break;
                x += g->width;
            }
            if (p->height - y <= g->height) break;
            y += g->height;
        }
    return 0;
}

/* ---- values ---- */

/* Make black 0, and scale values of less than 8 bits to 0..255. */
static int scale_levels(const struct dnn_tiff *t, const struct dnn_tiff_page *p,
                        void *data, size_t n, struct dnn_err *err)
{
    bool white = p->photometric == PHOTOMETRIC_MINISWHITE;
    int top = p->bits < 8 ? (1 << p->bits) - 1 : 255;
    unsigned char *byte = data;
    uint16_t *pair = data;

    if (!white && p->bits >= 8) return 0;
    if (p->type != DNN_U8 && p->type != DNN_U16)
        return dnn_fail(err, DNN_EDATA,
                        "%s: page %d: white-is-zero is not defined for %s", t->what,
                        t->page + 1, dnn_dtype_name(p->type));
    if (p->type == DNN_U16)
        for (size_t i = 0; i < n; i++)
            pair[i] = (uint16_t)(65535 - pair[i]);
    else
        for (size_t i = 0; i < n; i++)
            byte[i] = (unsigned char)((white ? top - byte[i] : byte[i]) * 255 / top);
    return 0;
}

static int apply_palette(struct dnn_tiff *t, const struct dnn_tiff_page *p, void *data,
                         struct dnn_err *err)
{
    uint16_t *red = NULL, *green = NULL, *blue = NULL;
    struct dnn_array array = {
        .type = DNN_U8, .shape = {3, {p->height, p->width, 3}},
             .data = data
    };
    unsigned char colour[256][4];
    int n = 1 << p->bits;

    if (TIFFGetField(t->tiff, TIFFTAG_COLORMAP, &red, &green, &blue) != 1)
        return dnn_fail(err, DNN_EDATA, "%s: page %d has no palette", t->what,
                        t->page + 1);
    for (int i = 0; i < n; i++) {
        colour[i][0] = (unsigned char)(red[i] >> 8);
        colour[i][1] = (unsigned char)(green[i] >> 8);
        colour[i][2] = (unsigned char)(blue[i] >> 8);
    }
    return dnn_image_colours(t->what, &array, (const unsigned char(*)[4])colour, n,
                             err);
}

int dnn_tiff_page(struct dnn_tiff *t, const struct dnn_image_in *in, void *to,
                  size_t bytes, struct dnn_err *err)
{
    struct dnn_tiff_page p;
    struct grid g;

    DNN_TRY(dnn_tiff_inspect(t, &p, err));
    if (p.photometric == PHOTOMETRIC_YCBCR)
        TIFFSetField(t->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    DNN_TRY(grid_of(t, in, &p, &g, err));
    size_t points = (size_t)p.width * p.height;
    size_t size = points * (size_t)p.samples * g.element;
    bool palette = p.photometric == PHOTOMETRIC_PALETTE && !in->mask;
    if (size * (palette ? 3 : 1) != bytes)
        return dnn_fail(err, DNN_EDATA, "%s: page %d changed while it was read",
                        t->what, t->page + 1);
    void *buffer = calloc(1, g.size);
    if (buffer == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "%s: not enough memory for %zu bytes of page %d", t->what,
                        g.size, t->page + 1);
    int rc = read_grid(t, &p, &g, buffer, (unsigned char *)to + (bytes - size), err);
    free(buffer);
    DNN_TRY(rc);
    if (palette) return apply_palette(t, &p, to, err);
    return in->mask ? 0 : scale_levels(t, &p, to, points * (size_t)p.samples, err);
}
#else
typedef int dnn_tiff_is_not_built; /* a C file must not be empty */
#endif
