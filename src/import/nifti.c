/* nifti.c - NIfTI-1 and NIfTI-2 volumes (.nii, .nii.gz).
 *
 * The file's axes i, j, k (i runs fastest) are the array's last to first spatial axes:
 * a volume of i x j x k voxels becomes k x j x i x C = DxHxWxC, a file of two axes
 * HxWxC.  Channels are time steps (axis 4), components of a vector (axis 5) or those of
 * a color; a file that has more than one of these is an error.  Values are as stored,
 * or f32 (stored * slope + intercept) if the header specifies a scaling.  Spacing is in
 * millimetres.  The matrix that maps (i, j, k) to the scanner's or
 * template's space is the column "input.affine" (or "target.affine"): three rows of
 * four, of the sform, else the qform, else the spacing alone.
 *
 * The NIfTI library is only used to swap the bytes of headers and to convert
 * quaternions to matrices.  It does not read data here, because it does not check
 * headers.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/image_impl.h"

#include <string.h>

#if DNN_HAVE_NIFTI
#include "import/nifti_impl.h"

#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>

enum {
    DEFLATE = 1032,  /* maximum expansion of a byte by gzip                       */
    BLOCK = 64 << 20 /* bytes read at once                                        */
};

/* ---- the shape ---- */

/* The number of channels; *channels_slowest: they are the slowest axis in the file. */
static int channels_of(const struct dnn_nifti *h, const char *what, int64_t *out,
                       bool *channels_slowest, struct dnn_err *err)
{
    int64_t of[3] = {h->colours, h->dim[4], h->dim[5]};
    int kinds = 0;

    *out = 1;
    for (int i = 0; i < 3; i++)
        if (of[i] > 1) {
            *out = of[i];
            *channels_slowest = i > 0;
            kinds++;
        }
    if (h->dim[6] > 1 || h->dim[7] > 1)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %" PRId64 " axes; axes 6 and 7 are not supported", what,
                        h->dim[0]);
    if (kinds > 1)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %" PRId64 " time steps, %" PRId64
                        " vector components and %" PRId64
                        " colors per voxel; only one of them can become channels",
                        what, h->dim[4], h->dim[5], of[0]);
    return 0;
}

static bool scaled(const struct dnn_nifti *h)
{
    return h->slope != 0 && (h->slope != 1 || h->inter != 0);
}

static int picture_of(const struct dnn_nifti *h, const char *what,
                      struct dnn_picture *out, bool *channels_slowest,
                      struct dnn_err *err)
{
    int space = h->dim[0] < 3 ? (int)h->dim[0] : 3;
    int64_t channels;

    *channels_slowest = false;
    DNN_TRY(channels_of(h, what, &channels, channels_slowest, err));
    out->shape = (struct dnn_shape){.ndim = space + 1};
    for (int i = 0; i < space; i++)
        out->shape.dim[i] = h->dim[space - i];
    out->shape.dim[space] = channels;
    out->type = scaled(h) ? DNN_F32 : h->type;
    out->classes = channels == 1 && out->type >= DNN_I8;
    memcpy(out->affine, h->affine, sizeof(out->affine));
    return 0;
}

/* ---- data ---- */

/* Check the file size before memory is allocated. */
static int check_size(struct dnn_bytes *file, const struct dnn_nifti *h,
                      const char *what, uint64_t bytes, struct dnn_err *err)
{
    int64_t size = dnn_bytes_size(file);
    uint64_t want = bytes + (uint64_t)h->offset;
    struct stat st;

    if (size >= 0 && (uint64_t)size < want)
        return dnn_fail(err, DNN_EDATA,
                        "%s: truncated: the header declares %" PRIu64
                        " bytes, but there are %" PRId64,
                        what, want, size);
    if (size < 0 && stat(what, &st) == 0 && want / DEFLATE > (uint64_t)st.st_size)
        return dnn_fail(err, DNN_EDATA,
                        "%s: truncated: the header declares %" PRIu64
                        " bytes, which %lld bytes of gzip data cannot contain",
                        what, want, (long long)st.st_size);
    return 0;
}

#define SWAP(T, swap)                                                                  \
    for (size_t i = 0; i < n / sizeof(T); i++) {                                       \
        T x;                                                                           \
        memcpy(&x, at + i * sizeof(T), sizeof(T));                                     \
        x = swap(x);                                                                   \
        memcpy(at + i * sizeof(T), &x, sizeof(T));                                     \
    }

/* Swap the bytes of each element. */
static void swap_bytes(unsigned char *at, size_t n, size_t element)
{
    if (element == 2) {
        SWAP(uint16_t, __builtin_bswap16)
    } else if (element == 4) {
        SWAP(uint32_t, __builtin_bswap32)
    } else if (element == 8) {
        SWAP(uint64_t, __builtin_bswap64)
    }
}

static int read_values(struct dnn_bytes *file, const struct dnn_nifti *h,
                       struct dnn_array *out, struct dnn_err *err)
{
    size_t bytes = dnn_array_bytes(out), n;
    unsigned char *to = out->data;

    for (size_t at = 0; at < bytes; at += n) {
        n = bytes - at < BLOCK ? bytes - at : BLOCK;
        DNN_TRY(dnn_bytes_read(file, h->offset + (int64_t)at, to + at, n, err));
    }
    if (h->swapped) swap_bytes(to, bytes, dnn_dtype_size(out->type));
    return 0;
}

/* stored * slope + intercept, computed in double precision. */
static int scale(const struct dnn_nifti *h, struct dnn_array *array,
                 struct dnn_err *err)
{
    enum { ROW = 1024 };
    size_t element = dnn_dtype_size(array->type);
    int64_t count = dnn_array_count(array);
    struct dnn_array real = {0};
    double row[ROW];

    DNN_TRY(dnn_array_make(&real, DNN_F32, &array->shape, err));
    for (int64_t at = 0; at < count; at += ROW) {
        int64_t n = count - at < ROW ? count - at : ROW;
        const char *from = (const char *)array->data + (size_t)at * element;

        int rc = dnn_convert(from, array->type, row, DNN_F64, n, false, err);
        if (rc < 0) {
            dnn_array_free(&real);
            return rc;
        }
        for (int64_t i = 0; i < n; i++)
            ((float *)real.data)[at + i] = (float)(row[i] * h->slope + h->inter);
    }
    dnn_array_swap(array, &real);
    dnn_array_free(&real);
    return 0;
}

static void set_spacing(const struct dnn_nifti *h, int space, struct dnn_array *out)
{
    for (int i = 0; i < space; i++)
        out->spacing[i] = h->spacing[space - 1 - i];
}

static int read_data(struct dnn_bytes *file, const struct dnn_nifti *h,
                     const struct dnn_picture *about, bool channels_slowest,
                     struct dnn_array *out, struct dnn_err *err)
{
    struct dnn_shape shape = about->shape;
    int space = shape.ndim - 1;

    if (channels_slowest) { /* as in the file */
        memmove(shape.dim + 1, shape.dim, (size_t)space * sizeof(shape.dim[0]));
        shape.dim[0] = about->shape.dim[space];
    }
    DNN_TRY(dnn_array_make(out, h->type, &shape, err));
    DNN_TRY(read_values(file, h, out, err));
    if (scaled(h)) DNN_TRY(scale(h, out, err));
    if (channels_slowest) DNN_TRY(dnn_array_channels_last(out, err));
    set_spacing(h, space, out);
    return 0;
}

/* Read the header and check it, also against the file size. */
static int inspect_file(const struct dnn_image_in *in, struct dnn_bytes *file,
                        struct dnn_nifti *h, struct dnn_picture *about,
                        bool *channels_slowest, struct dnn_err *err)
{
    struct dnn_tensor stored;
    size_t bytes;

    DNN_TRY(dnn_nifti_header(file, in->what, h, err));
    DNN_TRY(picture_of(h, in->what, about, channels_slowest, err));
    DNN_TRY(dnn_import_fits(in->how, in->what, about->type, &about->shape, err));
    DNN_TRY(dnn_import_fits(in->how, in->what, h->type, &about->shape, err));
    stored = (struct dnn_tensor){in->what, h->type, about->shape};
    DNN_TRY(dnn_tensor_bytes(&stored, &bytes, err));
    return check_size(file, h, in->what, bytes, err);
}

static int decode_file(const struct dnn_image_in *in, struct dnn_bytes *file,
                       struct dnn_picture *about, struct dnn_array *out,
                       struct dnn_err *err)
{
    struct dnn_nifti h;
    bool channels_slowest;

    DNN_TRY(inspect_file(in, file, &h, about, &channels_slowest, err));
    return out == NULL ? 0 : read_data(file, &h, about, channels_slowest, out, err);
}

static int decode(const struct dnn_image_in *in, struct dnn_picture *about,
                  struct dnn_array *out, struct dnn_err *err)
{
    struct dnn_bytes *file;

    DNN_TRY(dnn_bytes_open(in->what, &file, err));
    int rc = decode_file(in, file, about, out, err);
    dnn_bytes_close(file);
    return rc;
}

/* Axes of the array are slowest first, channels last; in the file the channels may be
 * the slowest of all. */
static int box_of_file(const struct dnn_image_in *in, struct dnn_bytes *file,
                       const struct dnn_shape *shape, const int64_t *start,
                       const int64_t *extent, struct dnn_array *out,
                       struct dnn_err *err)
{
    struct dnn_nifti h;
    struct dnn_picture about;
    bool channels_slowest;
    int64_t stride[DNN_MAX_DIMS];
    int space = shape->ndim - 1;

    DNN_TRY(inspect_file(in, file, &h, &about, &channels_slowest, err));
    if (!dnn_shape_equal(&about.shape, shape))
        return dnn_fail(err, DNN_EDATA, "%s: changed while it was read", in->what);
    size_t size = dnn_dtype_size(h.type);
    int64_t at = h.offset, channels = shape->dim[space];
    dnn_box_strides(shape->ndim, shape->dim, size, stride);
    for (int d = 0; channels_slowest && d < space; d++)
        stride[d] /= channels;
    if (channels_slowest) stride[space] = shape->dim[0] * stride[0];
    for (int d = 0; d <= space; d++) {
        at += start[d] * stride[d];
        about.shape.dim[d] = extent[d];
    }
    DNN_TRY(dnn_array_make(out, h.type, &about.shape, err));
    DNN_TRY(dnn_bytes_box(file, at, size, space + 1, extent, stride, out->data, err));
    if (h.swapped) swap_bytes(out->data, dnn_array_bytes(out), size);
    if (scaled(&h)) DNN_TRY(scale(&h, out, err));
    set_spacing(&h, space, out);
    return 0;
}

/* Of a compressed file only the first voxel, to get the spacing. */
static int read_box(const struct dnn_image_in *in, const struct dnn_shape *shape,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    struct dnn_bytes *file;

    bool first = true;

    for (int d = 0; d < shape->ndim; d++)
        first = first && start[d] == 0 && extent[d] == 1;
    DNN_TRY(dnn_bytes_open(in->what, &file, err));
    int rc = dnn_bytes_size(file) < 0 && !first
                 ? DNN_SOURCE_WHOLE
                 : box_of_file(in, file, shape, start, extent, out, err);
    dnn_bytes_close(file);
    return rc;
}

static int inspect(const struct dnn_image_in *in, struct dnn_picture *out,
                   struct dnn_err *err)
{
    return decode(in, out, NULL, err);
}

static int open_nifti(const char *path, const struct dnn_import *how,
                      const struct dnn_import_side *side, struct dnn_source **out,
                      struct dnn_err *err)
{
    static const struct dnn_image_kind kind = {"nifti", false,  true,
                                               inspect, decode, read_box};

    return dnn_image_open(&kind, path, how, side, out, err);
}
#define OPEN open_nifti
#else
#define OPEN NULL
#endif

static bool sniff(const unsigned char *head, size_t n)
{
    return (n >= 348 && memcmp(head + 344, "n+1", 4) == 0) ||
           (n >= 12 && memcmp(head + 4, "n+2\0\r\n\032\n", 8) == 0);
}

const struct dnn_importer dnn_importer_nifti = {
    .name = "nifti",
    .suffixes = ".nii .nii.gz",
    .help =
        "NIfTI-1 and NIfTI-2 volumes; time steps or vector components become channels",
    .single = true,
    .sniff = sniff,
    .open = OPEN,
    .lacks = "libnifti2",
};
