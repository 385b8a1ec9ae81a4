/* npy.c - a NumPy array: its rows are samples.
 *
 * In C order each sample is read from its position in the file.  In Fortran order the
 * values of a sample are scattered over the file, which is therefore read once and kept
 * in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct npy {
    struct dnn_file_cache entry; /* the open file, and its values if in Fortran order */
    const char *path;            /* owned by the store                                */
    struct dnn_npy header;
    struct dnn_bytes *file;
    unsigned char *values;
};

static void close_file(struct dnn_file_cache *entry)
{
    struct npy *own = (struct npy *)entry;

    dnn_bytes_close(own->file);
    free(own->values);
    own->file = NULL;
    own->values = NULL;
}

static int open_file(struct dnn_file_cache *entry, struct dnn_err *err)
{
    struct npy *own = (struct npy *)entry;

    entry->bytes = 0;
    DNN_TRY(dnn_bytes_open(own->path, &own->file, err));
    if (!own->header.fortran || own->header.bytes == 0) return 0;
    own->values = malloc(own->header.bytes);
    int rc = own->values == NULL
                 ? dnn_fail(err, DNN_ENOMEM,
                            "%s: not enough memory: Fortran order needs all %zu bytes "
                            "at once; save it in C order",
                            own->path, own->header.bytes)
                 : dnn_bytes_read(own->file, own->header.start, own->values,
                                  own->header.bytes, err);
    if (rc < 0) close_file(entry);
    entry->bytes = own->header.bytes;
    return rc;
}

static int fetch(const struct dnn_store *store, int array, int64_t row, size_t bytes,
                 void *to, struct dnn_err *err)
{
    struct npy *own = store->own;
    int rc = 0;

    (void)array;
    DNN_TRY(dnn_file_cache_take(&own->entry, open_file, err));
    if (own->values != NULL) {
        dnn_npy_copy(&own->header, own->values, row, to);
    } else {
        int64_t at = own->header.start + (row < 0 ? 0 : row * (int64_t)bytes);

        rc = dnn_bytes_read(own->file, at, to, bytes, err);
        dnn_npy_swap(&own->header, to, bytes / dnn_dtype_size(own->header.type));
    }
    dnn_file_cache_give(&own->entry);
    return rc;
}

/* Also in Fortran order, without reading the complete file. */
static int fetch_box(const struct dnn_store *store, int array, const int64_t *start,
                     const int64_t *extent, void *to, struct dnn_err *err)
{
    const struct npy *own = store->own;
    const struct dnn_npy *h = &own->header;
    int64_t stride[DNN_MAX_DIMS], at = h->start;
    struct dnn_bytes *file;
    size_t count = 1;

    (void)array;
    dnn_npy_strides(h, stride);
    for (int d = 0; d < h->shape.ndim; d++) {
        at += start[d] * stride[d];
        count *= (size_t)extent[d];
    }
    DNN_TRY(dnn_bytes_open(own->path, &file, err));
    int rc = dnn_bytes_size(file) < 0
                 ? DNN_SOURCE_WHOLE
                 : dnn_bytes_box(file, at, dnn_dtype_size(h->type), h->shape.ndim,
                                 extent, stride, to, err);
    dnn_bytes_close(file);
    dnn_npy_swap(h, to, rc == 0 ? count : 0);
    return rc;
}

static void drop(struct dnn_store *store)
{
    struct npy *own = store->own;

    dnn_file_cache_end(&own->entry);
    dnn_free(own);
}

static const struct dnn_store_type type = {DNN_STORE_SOURCE("npy"), fetch, drop,
                                           fetch_box};

/* ---- opening ---- */

static int read_header(const char *path, struct dnn_bytes *file, struct dnn_npy *out,
                       struct dnn_err *err)
{
    unsigned char first[DNN_NPY_HEAD] = {0};
    size_t n;

    DNN_TRY(dnn_bytes_some(file, 0, first, sizeof first, &n, err));
    DNN_TRY(dnn_npy_length(path, first, n, &n, err));
    unsigned char *head = dnn_alloc(n);
    int rc = dnn_bytes_read(file, 0, head, n, err);
    if (rc == 0) rc = dnn_npy_parse(path, head, n, out, err);
    dnn_free(head);
    return rc;
}

/* Check that the header matches the file size and the limit. */
static int check(const char *path, const struct dnn_import *how, int64_t size,
                 const struct dnn_npy *header, struct dnn_err *err)
{
    int64_t want = header->start + (int64_t)header->bytes;
    char text[DNN_SHAPE_TEXT];

    if (size != want)
        return dnn_fail(
            err, DNN_EDATA,
            "%s: %" PRId64
            " bytes, but the header declares %s of %s, which needs %" PRId64,
            path, size, dnn_shape_text(text, sizeof text, &header->shape),
            dnn_dtype_name(header->type), want);
    if (header->fortran && (int64_t)header->bytes > dnn_import_limit(how))
        return dnn_fail(err, DNN_EDATA,
                        "%s: %zu bytes in Fortran order exceed the limit of %" PRId64
                        "; save it in C order",
                        path, header->bytes, dnn_import_limit(how));
    return 0;
}

static int open_npy(const char *path, const struct dnn_import *how,
                    const struct dnn_import_side *side, struct dnn_source **out,
                    struct dnn_err *err)
{
    struct dnn_bytes *file;
    struct dnn_npy header;
    int64_t size;

    DNN_TRY(dnn_bytes_open(path, &file, err));
    int rc = read_header(path, file, &header, err);
    if (rc == 0) rc = dnn_bytes_length(file, &size, err);
    if (rc == 0) rc = check(path, how, size, &header, err);
    dnn_bytes_close(file);
    if (rc < 0) return rc;
    struct npy *own = dnn_alloc(sizeof *own);
    struct dnn_store *store = dnn_store_make(&type, path, how, own);
    struct dnn_store_array *array = dnn_store_add(store, NULL);
    dnn_file_cache_make(&own->entry, close_file);
    own->header = header;
    own->path = store->path;
    array->type = header.type;
    array->shape = header.shape;
    return dnn_store_open(store, side == &how->target, out, err);
}

static bool sniff(const unsigned char *head, size_t n)
{
    return n >= 6 && memcmp(head, "\x93NUMPY", 6) == 0;
}

const struct dnn_importer dnn_importer_npy = {
    .name = "npy",
    .suffixes = ".npy .npy.gz",
    .help = "a NumPy array: its rows are samples",
    .sniff = sniff,
    .open = open_npy,
};
