/* tiff.c - TIFF and BigTIFF images, and stacks of pages as volumes.
 *
 * Several pages are a volume DxHxWxC, one page is an image HxWxC.  Pages that say they
 * are a smaller copy or a transparency mask of another are left out.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/image_impl.h"

#if DNN_HAVE_TIFF
#include <tiffio.h>
#endif

/* Words of the library per file instead of per process came with 4.5. */
#if DNN_HAVE_TIFF && TIFFLIB_VERSION >= 20221213
#include "import/tiff_impl.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Bytes that one byte may become: stored, packed runs, deflate, LZW; 0: no bound. */
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
    if (t->said[0] == '\0') vsnprintf(t->said, sizeof(t->said), fmt, ap);
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
    const char *said = t->said[0] == '\0' ? "libtiff gave no reason" : t->said;
    size_t n = strlen(t->what);

    if (strncmp(said, t->what, n) == 0 && strncmp(said + n, ": ", 2) == 0)
        said += n + 2; /* it is named already */

    if (t->page < 0)
        return dnn_fail(err, DNN_EDATA, "%s: damaged TIFF: %s", t->what, said);
    return dnn_fail(err, DNN_EDATA, "%s: damaged TIFF: page %d: %s", t->what,
                    t->page + 1, said);
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
    /* Not mapped: a file that becomes shorter meanwhile must not be a signal. */
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

/* Some writers put one page in front of what they hold and say so in words only. */
static int hidden(const struct dnn_tiff *t, int pages, struct dnn_err *err)
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

/* Go to the next page that counts; false: there is none, or it is damaged (said). */
static bool next(struct dnn_tiff *t)
{
    uint32_t sub = 0;

    do {
        if (t->page >= 0 && TIFFReadDirectory(t->tiff) == 0) return false;
        t->page++;
        sub = 0;
        TIFFGetField(t->tiff, TIFFTAG_SUBFILETYPE, &sub);
    } while ((sub & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0);
    return true;
}

/* All pages: how many, and that they are alike. */
static int survey(struct dnn_tiff *t, struct dnn_tiff_page *first, int64_t *pages,
                  struct dnn_err *err)
{
    struct dnn_tiff_page p;

    for (*pages = 0; next(t); ++*pages) {
        DNN_TRY(dnn_tiff_look(t, &p, err));
        if (*pages == 0) *first = p;
        if (!same(first, &p))
            return dnn_fail(
                err, DNN_EDATA,
                "%s: page %d is %ux%u of %d x %d bits, but the first is %ux%u of %d x "
                "%d bits; all pages of a volume must be alike",
                t->what, t->page + 1, p.height, p.width, p.samples, p.bits,
                first->height, first->width, first->samples, first->bits);
    }
    if (t->said[0] != '\0') {
        t->page++; /* the one that could not be read */
        return dnn_tiff_fail(t, err);
    }
    if (TIFFLastDirectory(t->tiff) == 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: damaged TIFF: the page list loops back after page %d",
                        t->what, t->page + 1);
    if (*pages == 0)
        return dnn_fail(err, DNN_EDATA, "%s: contains no image page", t->what);
    return hidden(t, t->page + 1, err);
}

static int measure(struct dnn_tiff *t, const struct dnn_image_in *in,
                   struct dnn_tiff_page *first, struct dnn_picture *out,
                   struct dnn_err *err)
{
    int64_t pages;

    DNN_TRY(survey(t, first, &pages, err));
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
    return dnn_image_holds(in->what, out, t->bytes, ratio * (palette ? 3 : 1), err);
}

static int with(const struct dnn_image_in *in, struct dnn_picture *about,
                struct dnn_array *out, struct dnn_err *err)
{
    struct dnn_tiff t = {0};
    struct dnn_tiff_page first = {0};

    DNN_TRY(open_file(&t, in, err));
    int rc = measure(&t, in, &first, about, err);
    if (rc == 0 && out != NULL) {
        rc = dnn_array_make(out, about->type, &about->shape, err);
        size_t bytes = dnn_array_bytes(out);
        size_t part =
            about->shape.ndim == 4 ? bytes / (size_t)about->shape.dim[0] : bytes;

        if (rc == 0 && TIFFSetDirectory(t.tiff, 0) == 0) rc = dnn_tiff_fail(&t, err);
        t.page = -1;
        for (size_t at = 0; rc == 0 && at < bytes; at += part)
            rc = next(&t) ? dnn_tiff_page(&t, in, (char *)out->data + at, part, err)
                          : dnn_tiff_fail(&t, err);
    }
    TIFFClose(t.tiff);
    return rc;
}

static int look(const struct dnn_image_in *in, struct dnn_picture *out,
                struct dnn_err *err)
{
    return with(in, out, NULL, err);
}

static int open_tiff(const char *path, const struct dnn_import *how,
                     const struct dnn_import_side *side, struct dnn_source **out,
                     struct dnn_err *err)
{
    static const struct dnn_image_kind kind = {"tiff", false, false, look, with};

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
