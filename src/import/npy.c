/* npy.c - one array of NumPy's in a file: its rows are samples.
 *
 * In C order a sample is read where it lies.  In Fortran order the numbers of a sample
 * are scattered over all of the file, which is then read once and kept in memory.
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
    struct dnn_kept kept; /* the open file, and its numbers if they must be in memory */
    const char *path;     /* the store's                                              */
    struct dnn_npy is;
    struct dnn_bytes *file;
    unsigned char *numbers;
};

static void close_file(struct dnn_kept *kept)
{
    struct npy *own = (struct npy *)kept;

    dnn_bytes_close(own->file);
    free(own->numbers);
    own->file = NULL;
    own->numbers = NULL;
}

static int open_file(struct dnn_kept *kept, struct dnn_err *err)
{
    struct npy *own = (struct npy *)kept;

    kept->bytes = 0;
    DNN_TRY(dnn_bytes_open(own->path, &own->file, err));
    if (!own->is.fortran || own->is.bytes == 0) return 0;
    own->numbers = malloc(own->is.bytes);
    int rc = own->numbers == NULL
                 ? dnn_fail(err, DNN_ENOMEM,
                            "%s: not enough memory: Fortran order needs all %zu bytes "
                            "at once; save it in C order",
                            own->path, own->is.bytes)
                 : dnn_bytes_read(own->file, own->is.start, own->numbers, own->is.bytes,
                                  err);
    if (rc < 0) close_file(kept);
    kept->bytes = own->is.bytes;
    return rc;
}

static int fetch(const struct dnn_store *store, int part, int64_t row, size_t bytes,
                 void *to, struct dnn_err *err)
{
    struct npy *own = store->own;
    int rc = 0;

    (void)part;
    DNN_TRY(dnn_kept_take(&own->kept, open_file, err));
    if (own->numbers != NULL) {
        dnn_npy_pick(&own->is, own->numbers, row, to);
    } else {
        int64_t at = own->is.start + (row < 0 ? 0 : row * (int64_t)bytes);

        rc = dnn_bytes_read(own->file, at, to, bytes, err);
        dnn_npy_swap(&own->is, to, bytes / dnn_dtype_size(own->is.type));
    }
    dnn_kept_give(&own->kept);
    return rc;
}

static void drop(struct dnn_store *store)
{
    struct npy *own = store->own;

    dnn_kept_end(&own->kept);
    dnn_free(own);
}

static const struct dnn_store_type type = {DNN_STORE_SOURCE("npy"), fetch, drop};

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

/* The header may claim anything; what can be known is checked now. */
static int check(const char *path, const struct dnn_import *how, int64_t size,
                 const struct dnn_npy *is, struct dnn_err *err)
{
    int64_t want = is->start + (int64_t)is->bytes;
    char text[DNN_SHAPE_TEXT];

    if (size != want)
        return dnn_fail(
            err, DNN_EDATA,
            "%s: %" PRId64
            " bytes, but the header declares %s of %s, which needs %" PRId64,
            path, size, dnn_shape_text(text, sizeof text, &is->shape),
            dnn_dtype_name(is->type), want);
    if (is->fortran && (int64_t)is->bytes > dnn_import_limit(how))
        return dnn_fail(err, DNN_EDATA,
                        "%s: %zu bytes in Fortran order exceed the limit of %" PRId64
                        "; save it in C order",
                        path, is->bytes, dnn_import_limit(how));
    return 0;
}

static int open_npy(const char *path, const struct dnn_import *how,
                    const struct dnn_import_side *side, struct dnn_source **out,
                    struct dnn_err *err)
{
    struct dnn_bytes *file;
    struct dnn_npy is;
    int64_t size;

    DNN_TRY(dnn_bytes_open(path, &file, err));
    int rc = read_header(path, file, &is, err);
    if (rc == 0) rc = dnn_bytes_length(file, &size, err);
    if (rc == 0) rc = check(path, how, size, &is, err);
    dnn_bytes_close(file);
    if (rc < 0) return rc;
    struct npy *own = dnn_alloc(sizeof *own);
    struct dnn_store *store = dnn_store_make(&type, path, how, own);
    struct dnn_part *part = dnn_store_add(store, NULL);
    dnn_kept_make(&own->kept, close_file);
    own->is = is;
    own->path = store->path;
    part->type = is.type;
    part->shape = is.shape;
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
