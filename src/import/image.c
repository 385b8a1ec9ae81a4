/* image.c - an image or volume of any format as a source; grayscale and palettes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/image_impl.h"

#include "base/file.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum {
    MAX_METADATA = 64 << 20, /* maximum size of a file without its pixels            */
    MAX_CONTENT = 4 << 20    /* maximum size of a file kept between open and read    */
};

/* ---- the source ---- */

struct image {
    struct dnn_source base;
    const struct dnn_image_kind *kind;
    struct dnn_import how; /* a copy                                                 */
    bool gray, mask;
    char *path;
    const char *file; /* base.file points to it                                      */
    char *_Atomic content; /* owned: content read by open, for the first read */
    size_t ncontent;
};

static int load(const struct dnn_image_kind *kind, struct dnn_image_in *in, char **mem,
                struct dnn_err *err)
{
    *mem = NULL;
    if (!kind->in_memory) return 0;
    size_t most = (size_t)dnn_import_limit(in->how) + MAX_METADATA;
    DNN_TRY(dnn_file_read(in->what, most, mem, &in->n, err));
    in->bytes = *mem;
    return 0;
}

/* Apply gray and mask to a decoded image. */
static int apply_options(const struct dnn_image_in *in, struct dnn_array *array,
                         struct dnn_err *err)
{
    const struct dnn_shape *s = &array->shape;

    if (in->gray && s->dim[s->ndim - 1] > 1)
        DNN_TRY(dnn_image_gray(in->what, array, err));
    if (in->mask && array->type < DNN_I8 &&
        dnn_array_convert(array, DNN_I32, true, err) < 0)
        return dnn_prefix(err,
                          "%s: a mask must contain integer class numbers: ", in->what);
    return 0;
}

/* The properties of an image after read() and apply_options(). */
static void set_options_info(const struct dnn_image_in *in, struct dnn_picture *about)
{
    if (in->gray) about->shape.dim[about->shape.ndim - 1] = 1;
    if (in->mask && about->type < DNN_I8) about->type = DNN_I32;
}

/* Get the content of the file.  A sample is usually read right after it was opened;
 * then its file is read only once. */
static int fetch(struct image *im, struct dnn_image_in *in, char **mem,
                 struct dnn_err *err)
{
    *mem = atomic_exchange(&im->content, NULL);
    if (*mem == NULL) return load(im->kind, in, mem, err);
    in->bytes = *mem;
    in->n = im->ncontent;
    return 0;
}

static int read_image(const struct dnn_source *source, int64_t i,
                      struct dnn_sample *out, struct dnn_err *err)
{
    struct image *im = (struct image *)source;
    struct dnn_image_in in = {.what = im->path, .gray = im->gray, .mask = im->mask};
    struct dnn_picture about;
    char *mem;

    (void)i;
    in.how = &im->how;
    DNN_TRY(fetch(im, &in, &mem, err));
    int rc = im->kind->read(&in, &about, &out->col[0], err);
    dnn_free(mem);
    DNN_TRY(rc);
    DNN_TRY(apply_options(&in, &out->col[0], err));
    out->ncols = source->ncols;
    if (im->kind->affine) {
        DNN_TRY(dnn_array_make(&out->col[1], DNN_F64, &source->col[1].shape, err));
        memcpy(out->col[1].data, about.affine, sizeof(about.affine));
    }
    return 0;
}

/* Luma needs all channels of the file. */
static int read_box(const struct dnn_source *source, int64_t i, int c,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    struct image *im = (struct image *)source;
    struct dnn_image_in in = {.what = im->path, .mask = im->mask};
    struct dnn_picture about;
    struct dnn_array all = {
        .type = DNN_F64, .shape = {1, {12}},
             .data = about.affine
    };

    (void)i;
    in.how = &im->how;
    if (im->kind->read_box == NULL || im->gray) return DNN_SOURCE_WHOLE;
    if (c == 1) { /* the affine matrix */
        DNN_TRY(im->kind->inspect(&in, &about, err));
        return dnn_array_box(&all, start, extent, out, err);
    }
    int rc = im->kind->read_box(&in, &source->col[0].shape, start, extent, out, err);
    return rc != 0 ? rc : apply_options(&in, out, err);
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    (void)i;
    snprintf(out, DNN_SAMPLE_NAME, "%s", ((const struct image *)source)->path);
}

static void close_image(struct dnn_source *source)
{
    struct image *im = (struct image *)source;

    dnn_free(atomic_load(&im->content));
    dnn_free(im->path);
    dnn_free(im);
}

static const struct dnn_source_type image_type = {
    .name = "image",
    .read = read_image,
    .label = label,
    .close = close_image,
    .read_box = read_box,
};

/* ---- opening ---- */

/* The kind of the column: image or mask; other kinds are an error. */
static int kind_of(const struct dnn_import_side *side, bool target,
                   const struct dnn_image_in *in, const struct dnn_picture *about,
                   enum dnn_kind *out, struct dnn_err *err)
{
    if (side->kind == DNN_KIND_LABEL || side->kind == DNN_KIND_VALUES)
        return dnn_fail(
            err, DNN_ECONFIG,
            "%s: is an image; \"kind\" must be \"image\" or \"mask\", not \"%s\"",
            in->what, dnn_choice_name(dnn_kind_choices, side->kind));
    *out = side->kind >= 0            ? (enum dnn_kind)side->kind
           : target && about->classes ? DNN_KIND_MASK
                                      : DNN_KIND_IMAGE;
    return 0;
}

static int inspect(const struct dnn_image_kind *kind, struct dnn_image_in *in,
                   const struct dnn_import_side *side, bool target,
                   struct dnn_picture *about, enum dnn_kind *as, struct dnn_err *err)
{
    DNN_TRY(kind->inspect(in, about, err));
    DNN_TRY(kind_of(side, target, in, about, as, err));
    if (*as == DNN_KIND_MASK && !in->mask) {
        in->mask = true;
        DNN_TRY(kind->inspect(in, about, err));
    }
    in->gray = in->gray && about->shape.dim[about->shape.ndim - 1] > 1;
    set_options_info(in, about);
    int64_t channels = about->shape.dim[about->shape.ndim - 1];
    if (in->mask && channels != 1)
        return dnn_fail(
            err, DNN_EDATA,
            "%s: a mask must have one channel (the class number), not %" PRId64,
            in->what, channels);
    return 0;
}

static struct image *make(const struct dnn_image_kind *kind,
                          const struct dnn_image_in *in, bool target,
                          const struct dnn_picture *about, enum dnn_kind as)
{
    struct image *im = dnn_alloc(sizeof(*im));
    const char *side = target ? "target" : "input";

    im->kind = kind;
    im->how = *in->how;
    im->gray = in->gray;
    im->mask = in->mask;
    im->path = dnn_strdup(in->what);
    im->file = im->path;
    im->base.type = &image_type;
    im->base.count = 1;
    im->base.ncols = 1;
    im->base.nfiles = 1;
    im->base.file = &im->file;
    struct dnn_column *col = &im->base.col[0];
    snprintf(col->name, sizeof(col->name), "%s", side);
    col->role = target ? DNN_ROLE_TARGET : DNN_ROLE_INPUT;
    col->kind = as;
    col->type = about->type;
    col->shape = about->shape;
    if (kind->affine) {
        im->base.ncols = 2;
        col = &im->base.col[1];
        snprintf(col->name, sizeof(col->name), "%s.affine", side);
        col->role = DNN_ROLE_EXTRA;
        col->kind = DNN_KIND_VALUES;
        col->type = DNN_F64;
        col->shape = (struct dnn_shape){1, {12}};
    }
    return im;
}

int dnn_image_open(const struct dnn_image_kind *kind, const char *path,
                   const struct dnn_import *how, const struct dnn_import_side *side,
                   struct dnn_source **out, struct dnn_err *err)
{
    struct dnn_image_in in = {.what = path, .how = how, .gray = side->gray};
    bool target = side == &how->target;
    struct dnn_picture about = {0};
    enum dnn_kind as = DNN_KIND_IMAGE;
    char *mem;

    *out = NULL;
    in.mask = side->kind == DNN_KIND_MASK;
    DNN_TRY(load(kind, &in, &mem, err));
    int rc = inspect(kind, &in, side, target, &about, &as, err);
    if (rc == 0) {
        struct image *im = make(kind, &in, target, &about, as);

        if (in.n <= MAX_CONTENT) {
            im->ncontent = in.n;
            atomic_store(&im->content, mem);
            mem = NULL;
        }
        *out = &im->base;
    }
    dnn_free(mem);
    return rc;
}

/* ---- in memory ---- */

int dnn_image_decode(const void *bytes, size_t n, const char *what,
                     const struct dnn_import *how, bool gray, struct dnn_array *out,
                     struct dnn_err *err)
{
    struct dnn_image_in in = {what, bytes, n, how, gray, false};
    const struct dnn_image_kind *kind;
    struct dnn_picture about;

    if (dnn_image_is_png(bytes, n))
        kind = dnn_image_png;
    else if (dnn_image_is_jpeg(bytes, n))
        kind = dnn_image_jpeg;
    else
        return dnn_fail(err, DNN_EDATA, "%s: not a PNG or JPEG image", what);
    if (kind == NULL)
        return dnn_fail(err, DNN_ECONFIG, "%s: this program was built without %s", what,
                        dnn_image_is_png(bytes, n) ? "libpng" : "libjpeg");
    DNN_TRY(kind->read(&in, &about, out, err));
    return apply_options(&in, out, err);
}

bool dnn_image_is_png(const unsigned char *head, size_t n)
{
    return n >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0;
}

bool dnn_image_is_jpeg(const unsigned char *head, size_t n)
{
    return n >= 3 && memcmp(head, "\xff\xd8\xff", 3) == 0;
}

int dnn_image_check_size(const char *what, const struct dnn_picture *about,
                         uint64_t bytes, uint64_t ratio, struct dnn_err *err)
{
    const struct dnn_tensor t = {NULL, about->type, about->shape};
    char shape[DNN_SHAPE_TEXT];
    size_t needed;

    DNN_TRY(dnn_tensor_bytes(&t, &needed, err));
    if (needed / ratio <= bytes) return 0;
    return dnn_fail(
        err, DNN_EDATA,
        "%s: the header declares %s elements, but the file has only %" PRIu64 " bytes",
        what, dnn_shape_text(shape, sizeof(shape), &about->shape), bytes);
}

/* ---- colors ---- */

/* The sum of the weights is 65536, so that white stays white. */
enum { RED = 19595, GREEN = 38470, BLUE = 7471, HALF = 32768 };

#define GRAY_INTEGER(T)                                                                \
    do {                                                                               \
        const T *from = array->data;                                                   \
        T *to = array->data;                                                           \
        for (int64_t i = 0; i < points; i++, from += c)                                \
            to[i] = c < 3 ? from[0]                                                    \
                          : (T)(((uint32_t)from[0] * RED + (uint32_t)from[1] * GREEN + \
                                 (uint32_t)from[2] * BLUE + HALF) >>                   \
                                16);                                                   \
    } while (0)

#define GRAY_REAL(T)                                                                   \
    do {                                                                               \
        const T *from = array->data;                                                   \
        T *to = array->data;                                                           \
        for (int64_t i = 0; i < points; i++, from += c)                                \
            to[i] = c < 3 ? from[0]                                                    \
                          : (T)(((double)from[0] * RED + (double)from[1] * GREEN +     \
                                 (double)from[2] * BLUE) /                             \
                                65536);                                                \
    } while (0)

int dnn_image_gray(const char *what, struct dnn_array *array, struct dnn_err *err)
{
    struct dnn_shape *s = &array->shape;
    int64_t c = s->dim[s->ndim - 1];

    if (c > 4)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %" PRId64 " channels cannot be converted to grayscale",
                        what, c);
    int64_t points = c == 0 ? 0 : dnn_array_count(array) / c;
    switch (array->type) {
    case DNN_U8:
        GRAY_INTEGER(uint8_t);
        break;
    case DNN_U16:
        GRAY_INTEGER(uint16_t);
        break;
    case DNN_F32:
        GRAY_REAL(float);
        break;
    case DNN_F64:
        GRAY_REAL(double);
        break;
    default:
        return dnn_fail(err, DNN_EDATA,
                        "%s: color images of type %s cannot be converted to grayscale",
                        what, dnn_dtype_name(array->type));
    }
    s->dim[s->ndim - 1] = 1;
    return 0;
}

int dnn_image_colours(const char *what, struct dnn_array *array,
                      const unsigned char (*colour)[4], int ncolours,
                      struct dnn_err *err)
{
    int64_t c = array->shape.dim[array->shape.ndim - 1];
    int64_t points = dnn_array_count(array) / c;
    unsigned char *to = array->data;
    const unsigned char *from = to + points * (c - 1);

    for (int64_t i = 0; i < points; i++, to += c) {
        int k = from[i]; /* does not overwrite indices that are still to be read */

        if (k >= ncolours)
            return dnn_fail(err, DNN_EDATA,
                            "%s: pixel %" PRId64
                            " refers to color %d, but the palette has %d",
                            what, i, k, ncolours);
        for (int64_t j = 0; j < c; j++)
            to[j] = colour[k][j];
    }
    return 0;
}
