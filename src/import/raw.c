/* raw.c - raw binary data, described by configuration keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

struct raw {
    struct dnn_source base;
    struct dnn_bytes *bytes;
    char *path;
    const char *file[1];
    enum dnn_dtype type;
    struct dnn_shape shape; /* of a sample in the file */
    struct dnn_axes axes;
    int64_t offset;
    size_t sample_bytes; /* bytes of a sample */
    bool swap;
};

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    const struct raw *r = (const struct raw *)source;
    struct dnn_npy order = {.type = r->type, .swap = r->swap};
    struct dnn_array *array = &out->col[0];

    DNN_TRY(dnn_array_make(array, r->type, &r->shape, err));
    DNN_TRY(dnn_bytes_read(r->bytes, r->offset + i * (int64_t)r->sample_bytes,
                           array->data, r->sample_bytes, err));
    dnn_npy_swap(&order, array->data, r->sample_bytes / dnn_dtype_size(r->type));
    DNN_TRY(dnn_axes_apply(&r->axes, r->path, array, err));
    out->ncols = 1;
    return 0;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct raw *r = (const struct raw *)source;

    if (r->base.count == 1)
        snprintf(out, DNN_SAMPLE_NAME, "%s", dnn_import_base(r->path));
    else
        snprintf(out, DNN_SAMPLE_NAME, "%.400s[%" PRId64 "]", dnn_import_base(r->path),
                 i);
}

static int read_box(const struct dnn_source *source, int64_t i, int c,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    const struct raw *r = (const struct raw *)source;
    struct dnn_npy order = {.type = r->type, .swap = r->swap};
    int64_t first[DNN_MAX_DIMS], stride[DNN_MAX_DIMS];
    int64_t at = r->offset + i * (int64_t)r->sample_bytes;
    struct dnn_shape shape = r->shape;

    (void)c;
    if ((r->axes.kind != DNN_KIND_IMAGE && r->axes.kind != DNN_KIND_MASK) ||
        dnn_bytes_size(r->bytes) < 0)
        return DNN_SOURCE_WHOLE;
    dnn_axes_box(&r->axes, shape.ndim, start, extent, first, shape.dim);
    DNN_TRY(dnn_array_make(out, r->type, &shape, err));
    dnn_box_strides(shape.ndim, r->shape.dim, dnn_dtype_size(r->type), stride);
    for (int d = 0; d < shape.ndim; d++)
        at += first[d] * stride[d];
    DNN_TRY(dnn_bytes_box(r->bytes, at, dnn_dtype_size(r->type), shape.ndim, shape.dim,
                          stride, out->data, err));
    dnn_npy_swap(&order, out->data, (size_t)dnn_array_count(out));
    return dnn_axes_apply_box(&r->axes, r->path, out, err);
}

static void close_source(struct dnn_source *source)
{
    struct raw *r = (struct raw *)source;

    dnn_bytes_close(r->bytes);
    dnn_free(r->path);
    dnn_free(r);
}

static const struct dnn_source_type raw_type = {
    .name = "raw",
    .read = read_sample,
    .label = label,
    .close = close_source,
    .read_box = read_box,
};

/* Read the description of the data. */
static int describe(struct raw *r, const struct dnn_import *how,
                    const struct dnn_import_side *side, struct dnn_err *err)
{
    struct dnn_tensor sample = {.name = r->path};

    if (side->shape.count == 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: raw file: set \"shape\" to the shape of a sample",
                        r->path);
    if (side->shape.count > DNN_MAX_DIMS)
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: a shape can have at most %d axes, not %" PRId64, r->path,
                        DNN_MAX_DIMS, side->shape.count);
    if (dnn_shape_make((int)side->shape.count, side->shape.ints, &r->shape, err) < 0 ||
        dnn_dtype_find(side->type == NULL ? "u8" : side->type, &r->type, err) < 0)
        return dnn_prefix(err, "%s: ", r->path);
    r->offset = side->offset;
    r->swap = side->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    sample.dtype = r->type;
    sample.shape = r->shape;
    DNN_TRY(dnn_tensor_bytes(&sample, &r->sample_bytes, err));
    DNN_TRY(dnn_import_fits(how, r->path, r->type, &r->shape, err));
    return dnn_axes_find(r->path, side, side == &how->target, r->type, &r->shape,
                         &r->axes, err);
}

/* Count the samples; the file size must be a multiple of the sample size. */
static int count(struct raw *r, bool whole, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];
    int64_t length, rest;

    DNN_TRY(dnn_bytes_length(r->bytes, &length, err));
    rest = length - r->offset;
    dnn_shape_text(text, sizeof text, &r->shape);
    if (rest <= 0 || rest % (int64_t)r->sample_bytes != 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %" PRId64 " bytes after an offset of %" PRId64
                        " is not a multiple of the sample size: %s %s (%zu bytes each)",
                        r->path, rest > 0 ? rest : 0, r->offset,
                        dnn_dtype_name(r->type), text, r->sample_bytes);
    r->base.count = rest / (int64_t)r->sample_bytes;
    if (whole && r->base.count != 1)
        return dnn_fail(err, DNN_EDATA,
                        "%s: contains %" PRId64
                        " samples of %s %s, but each file must be one sample",
                        r->path, r->base.count, dnn_dtype_name(r->type), text);
    return 0;
}

static int open_file(const char *path, const struct dnn_import *how,
                     const struct dnn_import_side *side, struct dnn_source **out,
                     struct dnn_err *err)
{
    struct raw *r = dnn_alloc(sizeof *r);
    int rc;

    r->base.type = &raw_type;
    r->path = dnn_strdup(path);
    r->file[0] = r->path;
    r->base.file = r->file;
    r->base.nfiles = 1;
    rc = describe(r, how, side, err);
    if (rc == 0) rc = dnn_bytes_open(path, &r->bytes, err);
    if (rc == 0) rc = count(r, how->whole, err);
    if (rc < 0) {
        close_source(&r->base);
        return rc;
    }
    dnn_axes_column(&r->axes, side == &how->target, &r->base.col[0]);
    r->base.ncols = 1;
    *out = &r->base;
    return 0;
}

const struct dnn_importer dnn_importer_raw = {
    .name = "raw",
    .suffixes = ".raw .vol .dat",
    .help = "raw binary data: shape, dtype, byte order and offset are given by keys",
    .open = open_file,
};
