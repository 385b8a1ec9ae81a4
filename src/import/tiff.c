/* tiff.c - TIFF and BigTIFF images, and stacks of pages as volumes.
 *
 * Several pages are a volume DxHxWxC, one page is an image HxWxC.  Pages that are a
 * reduced copy or a transparency mask of another page are skipped.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/image_impl.h"

#if DNN_HAVE_TIFF
#include <tiffio.h>
#endif

/* Error handlers per file, not per process, exist since libtiff 4.5. */
#if DNN_HAVE_TIFF && TIFFLIB_VERSION >= 20221213
#include "import/tiff_impl.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Maximum expansion of a byte by the compression; 0: no bound. */
static uint64_t ratio_of(int compression)
{
    switch (compression) {
    case COMPRESSION_NONE:
        return 1;
    case COMPRESSION_PACKBITS:
        return 64;
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
        return 1032;
    case COMPRESSION_LZW:
        return 4096;
    default:
        return 0;
    }
}

static int on_error(TIFF *tiff, void *user, const char *module, const char *fmt,
                    va_list ap)
{
    struct dnn_tiff *t = user;

    (void)tiff, (void)module;
    if (t->message[0] == '\0') vsnprintf(t->message, sizeof(t->message), fmt, ap);
    return 1;
}

static int on_warning(TIFF *tiff, void *user, const char *module, const char *fmt,
                      va_list ap)
{
    (void)tiff, (void)user, (void)module, (void)fmt, (void)ap;
    return 1;
}

int dnn_tiff_fail(const struct dnn_tiff *t, struct dnn_err *err)
{
    const char *message = t->message[0] == '\0' ? "libtiff gave no reason" : t->message;
    size_t n = strlen(t->what);

    if (strncmp(message, t->what, n) == 0 && strncmp(message + n, ": ", 2) == 0)
        message += n + 2; /* the path is added below */

    if (t->page < 0)
        return dnn_fail(err, DNN_EDATA, "%s: damaged TIFF: %s", t->what, message);
    return dnn_fail(err, DNN_EDATA, "%s: damaged TIFF: page %d: %s", t->what,
                    t->page + 1, message);
}

static int open_file(struct dnn_tiff *t, const struct dnn_image_in *in,
                     struct dnn_err *err)
{
    TIFFOpenOptions *opts = TIFFOpenOptionsAlloc();
    int64_t limit = dnn_import_limit(in->how);
    struct stat st;

    t->what = in->what;
    t->page = -1;
    if (opts == NULL)
        return dnn_fail(err, DNN_ENOMEM, "%s: libtiff could not be initialised",
                        in->what);
    TIFFOpenOptionsSetErrorHandlerExtR(opts, on_error, t);
    TIFFOpenOptionsSetWarningHandlerExtR(opts, on_warning, t);
    TIFFOpenOptionsSetMaxSingleMemAlloc(opts, (tmsize_t)limit);
    /* "m": no mmap(), because a file truncated meanwhile would cause SIGBUS. */
    t->tiff = TIFFOpenExt(in->what, "rm", opts);
    TIFFOpenOptionsFree(opts);
    if (t->tiff == NULL) {
        if (stat(in->what, &st) != 0) return dnn_fail(err, DNN_EIO, "%s: %m", in->what);
        return dnn_tiff_fail(t, err);
    }
    t->bytes = fstat(TIFFFileno(t->tiff), &st) == 0 ? (uint64_t)st.st_size : 0;
    return 0;
}

static bool same(const struct dnn_tiff_page *a, const struct dnn_tiff_page *b)
{
    return a->width == b->width && a->height == b->height && a->bits == b->bits &&
           a->samples == b->samples && a->type == b->type &&
           a->photometric == b->photometric;
}

/* ImageJ can store several images in one page, given only in the description. */
static int check_imagej(const struct dnn_tiff *t, int pages, struct dnn_err *err)
{
    const char *text = NULL, *at;

    if (TIFFSetDirectory(t->tiff, 0) == 0 ||
        TIFFGetField(t->tiff, TIFFTAG_IMAGEDESCRIPTION, &text) != 1 || text == NULL ||
        strncmp(text, "ImageJ=", 7) != 0 || (at = strstr(text, "\nimages=")) == NULL)
        return 0;
    long images = strtol(at + 8, NULL, 10);
    if (images <= pages) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s: the description declares %ld images, but there are %d pages; "
                    "save it as an ordinary stack",
                    t->what, images, pages);
}

/* Go to the next page that is not skipped; false: none, or damaged (message is set). */
static bool next_page(struct dnn_tiff *t)
{
    uint32_t subfile_type = 0;

    do {
        if (t->page >= 0 && TIFFReadDirectory(t->tiff) == 0) return false;
        t->page++;
        subfile_type = 0;
        TIFFGetField(t->tiff, TIFFTAG_SUBFILETYPE, &subfile_type);
    } while ((subfile_type & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0);
    return true;
}

/* Count the pages and check that they have the same properties. */
static int inspect_pages(struct dnn_tiff *t, struct dnn_tiff_page *first,
                         int64_t *pages, struct dnn_err *err)
{
    struct dnn_tiff_page p;

    for (*pages = 0; next_page(t); ++*pages) {
        DNN_TRY(dnn_tiff_inspect(t, &p, err));
        if (*pages == 0) *first = p;
        if (!same(first, &p))
            return dnn_fail(
                err, DNN_EDATA,
                "%s: page %d is %ux%u of %d x %d bits, but the first is %ux%u of %d x "
                "%d bits; all pages of a volume must be alike",
                t->what, t->page + 1, p.height, p.width, p.samples, p.bits,
                first->height, first->width, first->samples, first->bits);
    }
    if (t->message[0] != '\0') {
        t->page++; /* the page that could not be read */
        return dnn_tiff_fail(t, err);
    }
    if (TIFFLastDirectory(t->tiff) == 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: damaged TIFF: the page list loops back after page %d",
                        t->what, t->page + 1);
    if (*pages == 0)
        return dnn_fail(err, DNN_EDATA, "%s: contains no image page", t->what);
    return check_imagej(t, t->page + 1, err);
}

static int inspect_file(struct dnn_tiff *t, const struct dnn_image_in *in,
                        struct dnn_tiff_page *first, struct dnn_picture *out,
                        struct dnn_err *err)
{
    int64_t pages;

    DNN_TRY(inspect_pages(t, first, &pages, err));
    bool palette = first->photometric == PHOTOMETRIC_PALETTE;
    int64_t channels = palette && !in->mask ? 3 : first->samples;
    out->type = first->type;
    out->shape = (struct dnn_shape){
        4, {pages, first->height, first->width, channels}
    };
    if (pages == 1)
        out->shape = (struct dnn_shape){
            3, {first->height, first->width, channels}
        };
    out->classes = first->samples == 1 && first->type >= DNN_I8;
    DNN_TRY(dnn_import_fits(in->how, in->what, out->type, &out->shape, err));
    uint64_t ratio = ratio_of(first->compression);
    if (ratio == 0) return 0;
    if (first->bits < 8) ratio *= 8;
    return dnn_image_check_size(in->what, out, t->bytes, ratio * (palette ? 3 : 1),
                                err);
}

static int decode(const struct dnn_image_in *in, struct dnn_picture *about,
                  struct dnn_array *out, struct dnn_err *err)
{
    struct dnn_tiff t = {0};
    struct dnn_tiff_page first = {0};

    DNN_TRY(open_file(&t, in, err));
    int rc = inspect_file(&t, in, &first, about, err);
    if (rc == 0 && out != NULL) {
        rc = dnn_array_make(out, about->type, &about->shape, err);
        size_t bytes = dnn_array_bytes(out);
        size_t page_bytes =
            about->shape.ndim == 4 ? bytes / (size_t)about->shape.dim[0] : bytes;

        if (rc == 0 && TIFFSetDirectory(t.tiff, 0) == 0) rc = dnn_tiff_fail(&t, err);
        t.page = -1;
        for (size_t at = 0; rc == 0 && at < bytes; at += page_bytes)
            rc = next_page(&t)
                     ? dnn_tiff_page(&t, in, (char *)out->data + at, page_bytes, err)
                     : dnn_tiff_fail(&t, err);
    }
    TIFFClose(t.tiff);
    return rc;
}

/* Read the pages of a box, and cut each. */
static int cut_pages(struct dnn_tiff *t, const struct dnn_image_in *in,
                     const struct dnn_shape *shape, const int64_t *start,
                     const int64_t *extent, struct dnn_array *out, struct dnn_err *err)
{
    bool stack = shape->ndim == 4;
    int64_t first = stack ? start[0] : 0, pages = stack ? extent[0] : 1;
    const int64_t *in_page = start + stack;
    struct dnn_shape page_shape = {
        3, {shape->dim[stack], shape->dim[stack + 1], shape->dim[stack + 2]}
    };
    struct dnn_shape box = {.ndim = shape->ndim};
    struct dnn_array page = {0}, part = {0};
    struct dnn_tiff_page p;
    int rc = 0;

    memcpy(box.dim, extent, (size_t)box.ndim * sizeof *extent);
    for (int64_t i = 0; rc == 0 && i < first + pages; i++) {
        if (!next_page(t)) rc = dnn_tiff_fail(t, err);
        if (rc < 0 || i < first) continue;
        rc = dnn_tiff_inspect(t, &p, err);
        if (rc == 0 && i == first) rc = dnn_array_make(out, p.type, &box, err);
        if (rc == 0 && p.type != out->type)
            rc = dnn_fail(err, DNN_EDATA, "%s: changed while it was read", t->what);
        if (rc == 0) rc = dnn_array_make(&page, p.type, &page_shape, err);
        if (rc == 0) rc = dnn_tiff_page(t, in, page.data, dnn_array_bytes(&page), err);
        if (rc == 0) rc = dnn_array_box(&page, in_page, extent + stack, &part, err);
        size_t bytes = dnn_array_bytes(&part);
        if (rc == 0)
            memcpy((char *)out->data + (size_t)(i - first) * bytes, part.data, bytes);
    }
    dnn_array_free(&page);
    dnn_array_free(&part);
    return rc;
}

static int read_box(const struct dnn_image_in *in, const struct dnn_shape *shape,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    struct dnn_tiff t = {0};

    DNN_TRY(open_file(&t, in, err));
    int rc = cut_pages(&t, in, shape, start, extent, out, err);
    TIFFClose(t.tiff);
    return rc;
}

static int inspect(const struct dnn_image_in *in, struct dnn_picture *out,
                   struct dnn_err *err)
{
    return decode(in, out, NULL, err);
}

static int open_tiff(const char *path, const struct dnn_import *how,
                     const struct dnn_import_side *side, struct dnn_source **out,
                     struct dnn_err *err)
{
    static const struct dnn_image_kind kind = {"tiff",  false,  false,
                                               inspect, decode, read_box};

    return dnn_image_open(&kind, path, how, side, out, err);
}
#define OPEN open_tiff
#else
#define OPEN NULL
#endif

static bool sniff(const unsigned char *h, size_t n)
{
    if (n < 4) return false;
    return (h[0] == 'I' && h[1] == 'I' && (h[2] == 42 || h[2] == 43) && h[3] == 0) ||
           (h[0] == 'M' && h[1] == 'M' && h[2] == 0 && (h[3] == 42 || h[3] == 43));
}

const struct dnn_importer dnn_importer_tiff = {
    .name = "tiff",
    .suffixes = ".tif .tiff .btf",
    .help = "images of 1 to 64 bits, grayscale, color or palette; several pages are a "
            "volume",
    .single = true,
    .sniff = sniff,
    .open = OPEN,
    .lacks = "libtiff 4.5 or later",
};
