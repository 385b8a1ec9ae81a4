/* tfrecord.c - files of TensorFlow records: each record is an example with named
 * features.
 *
 * A record consists of its length (8 bytes), the checksum of the length, the data and
 * the checksum of the data.  The positions of records are determined once, from the
 * lengths; the checksum of the data is verified when a record is read.  Files may be
 * compressed with gzip.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/array_impl.h"

#include <string.h>

#if DNN_HAVE_PROTOBUFC
#include "import/tfrecord_impl.h"

#include "base/crc.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    HEAD = 12, /* bytes before the data: length and checksum */
    TAIL = 4   /* after the data: checksum                   */
};

struct records {
    struct dnn_source source; /* must be first */
    struct dnn_import how;
    struct dnn_feature feature[2]; /* of the columns; member what is NULL */
    const char *path;              /* owned */
    int64_t *start;                /* offset of each record, and the end of the last */
    struct dnn_file_cache entry;   /* the open file */
    struct dnn_bytes *file;
};

static uint64_t read_little_endian(const unsigned char *at, int bytes)
{
    uint64_t value = 0;

    for (int i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

/* ---- the file ---- */

static struct records *from_entry(struct dnn_file_cache *entry)
{
    return (struct records *)((char *)entry - offsetof(struct records, entry));
}

static void close_file(struct dnn_file_cache *entry)
{
    struct records *r = from_entry(entry);

    dnn_bytes_close(r->file);
    r->file = NULL;
}

static int open_file(struct dnn_file_cache *entry, struct dnn_err *err)
{
    struct records *r = from_entry(entry);

    return dnn_bytes_open(r->path, &r->file, err);
}

/* Find the positions of all records. */
static int find_records(struct records *r, struct dnn_err *err)
{
    unsigned char head[HEAD];
    int64_t size, at = 0, n = 0;
    size_t cap = 0;

    DNN_TRY(dnn_bytes_length(r->file, &size, err));
    for (;; n++) {
        r->start = dnn_grow(r->start, &cap, (size_t)n + 2, sizeof *r->start);
        r->start[n] = at;
        if (at == size) break;
        if (size - at < HEAD)
            return dnn_fail(err, DNN_EDATA,
                            "%s: truncated in the header of record %" PRId64, r->path,
                            n);
        DNN_TRY(dnn_bytes_read(r->file, at, head, HEAD, err));
        if (dnn_crc_record(head, 8) != (uint32_t)read_little_endian(head + 8, 4))
            return dnn_fail(err, DNN_EDATA,
                            "%s: record %" PRId64
                            ": checksum mismatch in its length; the file is damaged",
                            r->path, n);
        uint64_t length = read_little_endian(head, 8),
                 left = (uint64_t)(size - at - HEAD);
        if (left < TAIL || length > left - TAIL)
            return dnn_fail(err, DNN_EDATA,
                            "%s: record %" PRId64 ": %" PRIu64
                            " bytes, but the file ends after %" PRIu64,
                            r->path, n, length, left);
        if (length > (uint64_t)dnn_import_limit(&r->how))
            return dnn_fail(err, DNN_EDATA,
                            "%s: record %" PRId64 ": %" PRIu64
                            " bytes exceed the limit of %" PRId64,
                            r->path, n, length, dnn_import_limit(&r->how));
        at += HEAD + (int64_t)length + TAIL;
    }
    r->source.count = n;
    return n > 0 ? 0 : dnn_fail(err, DNN_EDATA, "%s: contains no records", r->path);
}

/* Read record i; the caller frees *bytes with free(). */
static int read_bytes(struct records *r, int64_t i, unsigned char **bytes, size_t *n,
                      struct dnn_err *err)
{
    int64_t at = r->start[i] + HEAD;
    int rc;

    *n = (size_t)(r->start[i + 1] - at - TAIL);
    *bytes = malloc(*n + TAIL);
    if (*bytes == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "%s: not enough memory for the %zu bytes of record %" PRId64,
                        r->path, *n, i);
    rc = dnn_file_cache_take(&r->entry, open_file, err);
    if (rc == 0) {
        rc = dnn_bytes_read(r->file, at, *bytes, *n + TAIL, err);
        dnn_file_cache_give(&r->entry);
    }
    if (rc == 0 &&
        dnn_crc_record(*bytes, *n) != (uint32_t)read_little_endian(*bytes + *n, 4))
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: record %" PRId64 ": checksum mismatch; the file is damaged",
                      r->path, i);
    if (rc < 0) {
        free(*bytes);
        *bytes = NULL;
    }
    return rc;
}

static const char *name_of(const struct records *r, int64_t i,
                           char out[DNN_SAMPLE_NAME])
{
    snprintf(out, DNN_SAMPLE_NAME, "%.470s: record %" PRId64, r->path, i);
    return out;
}

/* For dnn_example_free(). */
static int read_example(struct records *r, int64_t i, dnn_example **out,
                        struct dnn_err *err)
{
    char what[DNN_SAMPLE_NAME];
    unsigned char *bytes;
    size_t n;

    DNN_TRY(read_bytes(r, i, &bytes, &n, err));
    int rc = dnn_example_parse(name_of(r, i, what), bytes, n, out, err);
    free(bytes);
    return rc;
}

/* ---- reading ---- */

/* Check an array against its column, which was set from the first record. */
static int check_axes(const char *what, const struct dnn_column *col,
                      const struct dnn_axes *axes, struct dnn_err *err)
{
    char is[DNN_SHAPE_TEXT], first[DNN_SHAPE_TEXT];
    bool same = axes->kind == col->kind && axes->type == col->type &&
                axes->shape.ndim == col->shape.ndim;

    for (int i = 0; same && i < col->shape.ndim; i++)
        same =
            col->shape.dim[i] == DNN_UNKNOWN || col->shape.dim[i] == axes->shape.dim[i];
    if (same) return 0;
    return dnn_fail(
        err, DNN_EDATA, "%s: %s is %s %s %s, but in record 0 it is %s %s %s", what,
        col->name, dnn_choice_name(dnn_kind_choices, (int)axes->kind),
        dnn_dtype_name(axes->type), dnn_shape_text(is, sizeof is, &axes->shape),
        dnn_choice_name(dnn_kind_choices, (int)col->kind), dnn_dtype_name(col->type),
        dnn_shape_text(first, sizeof first, &col->shape));
}

static int read_column(const struct records *r, const dnn_example *example, int64_t i,
                       int c, struct dnn_array *out, struct dnn_err *err)
{
    char what[DNN_SAMPLE_NAME];
    struct dnn_feature feature = r->feature[c];
    struct dnn_axes axes;
    bool varying;

    feature.what = name_of(r, i, what);
    DNN_TRY(dnn_example_read(example, &feature, &axes, &varying, out, err));
    return check_axes(what, &r->source.col[c], &axes, err);
}

static int read_record(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    struct records *r = (struct records *)(uintptr_t)source;
    dnn_example *example;

    DNN_TRY(read_example(r, i, &example, err));
    int rc = 0;
    for (int c = 0; rc == 0 && c < source->ncols; c++)
        rc = read_column(r, example, i, c, &out->col[c], err);
    out->ncols = source->ncols;
    dnn_example_free(example);
    return rc;
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    struct records *r = (struct records *)(uintptr_t)source;
    struct dnn_array label = {0};
    dnn_example *example = NULL;
    int64_t class = -1;

    for (int c = 0; c < source->ncols; c++)
        if (source->col[c].kind == DNN_KIND_LABEL &&
            ((example == NULL && read_example(r, i, &example, NULL) < 0) ||
             read_column(r, example, i, c, &label, NULL) < 0 ||
             dnn_convert(label.data, label.type, &class, DNN_I64, 1, true, NULL) < 0))
            class = -1;
    dnn_array_free(&label);
    dnn_example_free(example);
    return class;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    snprintf(out, DNN_SAMPLE_NAME, "%.480s[%" PRId64 "]",
             ((const struct records *)source)->path, i);
}

static void close_records(struct dnn_source *source)
{
    struct records *r = (struct records *)source;

    dnn_file_cache_end(&r->entry);
    dnn_free(r->start);
    dnn_free((void *)(uintptr_t)r->path);
    dnn_free(r);
}

static const struct dnn_source_type type = {.name = "tfrecord",
                                            .read = read_record,
                                            .label = label,
                                            .class_of = class_of,
                                            .close = close_records};

/* ---- opening ---- */

/* Add the column of a side from the first record, if it has one. */
static int add_column(struct records *r, const dnn_example *example, bool target,
                      struct dnn_err *err)
{
    char what[DNN_SAMPLE_NAME];
    struct dnn_feature f = {.how = &r->how, .target = target};
    struct dnn_array array = {0};
    struct dnn_axes axes;
    bool varying;

    f.side = target ? &r->how.target : &r->how.input;
    f.what = name_of(r, 0, what);
    DNN_TRY(dnn_example_choose(example, &f, err));
    if (f.name == NULL) return 0;
    int rc = dnn_example_read(example, &f, &axes, &varying, &array, err);
    dnn_array_free(&array);
    DNN_TRY(rc);
    struct dnn_column *col = &r->source.col[r->source.ncols];
    dnn_axes_column(&axes, target, col);
    for (int i = 0; varying && i < col->shape.ndim; i++)
        col->shape.dim[i] = DNN_UNKNOWN;
    f.what = NULL;
    r->feature[r->source.ncols++] = f;
    return 0;
}

static int fill_in(struct records *r, bool target, struct dnn_err *err)
{
    dnn_example *example;

    int rc = dnn_file_cache_take(&r->entry, open_file, err);
    if (rc < 0) return rc;
    rc = find_records(r, err);
    dnn_file_cache_give(&r->entry);
    DNN_TRY(rc);
    DNN_TRY(read_example(r, 0, &example, err));
    rc = add_column(r, example, target, err);
    if (rc == 0 && !target && r->how.target.path == NULL)
        rc = add_column(r, example, true, err);
    dnn_example_free(example);
    return rc;
}

static int open_tfrecord(const char *path, const struct dnn_import *how,
                         const struct dnn_import_side *side, struct dnn_source **out,
                         struct dnn_err *err)
{
    if (!dnn_import_of_split(path, how->split))
        return dnn_fail(err, DNN_EDATA,
                        "%s: not part of the split \"%s\": neither a directory nor the "
                        "file name says so",
                        path, how->split);
    struct records *r = dnn_alloc(sizeof *r);
    r->source = (struct dnn_source){.type = &type, .nfiles = 1, .file = &r->path};
    r->path = dnn_strdup(path);
    r->how = *how;
    dnn_file_cache_make(&r->entry, close_file);
    int rc = fill_in(r, side == &how->target, err);
    if (rc < 0)
        close_records(&r->source);
    else
        *out = &r->source;
    return rc;
}

/* The checksum of the first length identifies the format. */
static bool sniff(const unsigned char *head, size_t n)
{
    return n >= HEAD &&
           dnn_crc_record(head, 8) == (uint32_t)read_little_endian(head + 8, 4);
}
#endif

const struct dnn_importer dnn_importer_tfrecord = {
    .name = "tfrecord",
    .suffixes = ".tfrecord .tfrecords .tfrecord.gz .tfrecords.gz",
    .help = "TensorFlow records: examples with features such as image/encoded",
    .labels = true,
#if DNN_HAVE_PROTOBUFC
    .sniff = sniff,
    .open = open_tfrecord,
#endif
    .lacks = "protobuf-c",
};
