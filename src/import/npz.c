/* npz.c - an archive of NumPy arrays: ZIP members named NAME.npy.
 *
 * A member can only be decompressed from its start.  So a member that is used is
 * decoded completely, checked, and kept in the cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/array_impl.h"

#include <string.h>

static bool sniff(const unsigned char *head, size_t n)
{
    return n >= 4 && memcmp(head, "PK\3\4", 4) == 0;
}

#if DNN_HAVE_ZIP
#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <zip.h>

enum {
    INITIAL_BYTES = 1 << 20, /* initial size of the buffer                            */
    RATIO = 1100,            /* maximum expansion by deflate                          */
    MAX_MEMBERS = 1 << 20,   /* maximum members of an archive                         */
    SUFFIX_BYTES = sizeof ".npy" - 1
};

/* The archive while it is open. */
struct archive {
    struct dnn_file_cache entry;
    const char *path; /* owned by the store */
    zip_t *zip;
    pthread_mutex_t lock; /* libzip is not thread-safe per archive */
};

/* One array, and its decoded content. */
struct member {
    struct dnn_file_cache entry;
    struct archive *archive;
    char *what; /* "a.npz: x" */
    zip_uint64_t index, size;
    struct dnn_npy header;
    unsigned char *bytes; /* header and values */
};

/* ---- the archive ---- */

static void close_archive(struct dnn_file_cache *entry)
{
    struct archive *a = (struct archive *)entry;

    zip_discard(a->zip);
    a->zip = NULL;
}

static int open_archive(struct dnn_file_cache *entry, struct dnn_err *err)
{
    struct archive *a = (struct archive *)entry;
    zip_error_t error;
    int code = 0;

    errno = 0;
    a->zip = zip_open(a->path, ZIP_RDONLY, &code);
    if (a->zip != NULL) return 0;
    zip_error_init_with_code(&error, code);
    int kind = zip_error_system_type(&error) == ZIP_ET_SYS ? DNN_EIO : DNN_EDATA;
    int rc = code == ZIP_ER_NOENT
                 ? dnn_fail(err, DNN_EIO, "%s: %s", a->path, strerror(ENOENT))
                 : dnn_fail(err, kind, "%s: cannot be read as a zip archive: %s",
                            a->path, zip_error_strerror(&error));
    zip_error_fini(&error);
    return rc;
}

/* ---- decoding ---- */

static int failed(const char *what, zip_file_t *file, struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA, "%s: cannot be decoded: %s", what,
                    zip_error_strerror(zip_file_get_error(file)));
}

/* Read n bytes; at the end of the member, *got may be less. */
static int read_some(const char *what, zip_file_t *file, unsigned char *to, size_t n,
                     size_t *got, struct dnn_err *err)
{
    *got = 0;
    while (*got < n) {
        zip_int64_t k = zip_fread(file, to + *got, n - *got);

        if (k < 0) return failed(what, file, err);
        if (k == 0) break;
        *got += (size_t)k;
    }
    return 0;
}

/* Read a complete member into a growing buffer, as its declared size may be wrong. */
static int read_all(struct member *m, zip_file_t *file, struct dnn_err *err)
{
    size_t cap = 0, n = 0, got;
    unsigned char more;

    while (n < m->size) {
        cap = cap == 0 ? INITIAL_BYTES : cap * 2;
        if (cap > m->size) cap = m->size;
        unsigned char *bytes = realloc(m->bytes, cap);
        if (bytes == NULL)
            return dnn_fail(err, DNN_ENOMEM, "%s: not enough memory to read %zu bytes",
                            m->what, cap);
        m->bytes = bytes;
        DNN_TRY(read_some(m->what, file, bytes + n, cap - n, &got, err));
        n += got;
        if (n < cap)
            return dnn_fail(err, DNN_EDATA, "%s: truncated: %zu of %" PRIu64 " bytes",
                            m->what, n, (uint64_t)m->size);
    }
    /* libzip checks the checksum when reading past the last byte. */
    DNN_TRY(read_some(m->what, file, &more, 1, &got, err));
    return got == 0 ? 0
                    : dnn_fail(err, DNN_EDATA, "%s: longer than its header declares",
                               m->what);
}

static void drop_member(struct dnn_file_cache *entry)
{
    struct member *m = (struct member *)entry;

    free(m->bytes);
    m->bytes = NULL;
}

static int fill_member(struct dnn_file_cache *entry, struct dnn_err *err)
{
    struct member *m = (struct member *)entry;
    struct archive *a = m->archive;
    int rc;

    DNN_TRY(dnn_file_cache_take(&a->entry, open_archive, err));
    pthread_mutex_lock(&a->lock);
    zip_file_t *file = zip_fopen_index(a->zip, m->index, 0);
    if (file == NULL)
        rc = dnn_fail(err, DNN_EDATA, "%s: cannot be decoded: %s", m->what,
                      zip_strerror(a->zip));
    else
        rc = read_all(m, file, err);
    if (file != NULL) zip_fclose(file);
    pthread_mutex_unlock(&a->lock);
    dnn_file_cache_give(&a->entry);
    if (rc < 0) drop_member(entry);
    entry->bytes = m->size;
    return rc;
}

static int fetch(const struct dnn_store *store, int array, int64_t row, size_t bytes,
                 void *to, struct dnn_err *err)
{
    struct member *m = store->array[array].own;

    (void)bytes;
    DNN_TRY(dnn_file_cache_take(&m->entry, fill_member, err));
    dnn_npy_copy(&m->header, m->bytes + m->header.start, row, to);
    dnn_file_cache_give(&m->entry);
    return 0;
}

static void drop(struct dnn_store *store)
{
    struct archive *a = store->own;

    for (size_t i = 0; i < store->narrays; i++) {
        struct member *m = store->array[i].own;

        if (m == NULL) continue;
        dnn_file_cache_end(&m->entry);
        dnn_free(m->what);
        dnn_free(m);
    }
    dnn_file_cache_end(&a->entry);
    pthread_mutex_destroy(&a->lock);
    dnn_free(a);
}

static const struct dnn_store_type type = {DNN_STORE_SOURCE("npz"), fetch, drop, NULL};

/* ---- opening ---- */

static int read_header(struct member *m, zip_file_t *file, struct dnn_err *err)
{
    unsigned char first[DNN_NPY_HEAD] = {0};
    size_t n, got;

    DNN_TRY(read_some("", file, first, sizeof first, &n, err));
    DNN_TRY(dnn_npy_length("", first, n, &n, err));
    unsigned char *head = dnn_alloc(n + DNN_NPY_HEAD);
    memcpy(head, first, sizeof first);
    size_t rest = n > sizeof first ? n - sizeof first : 0;
    int rc = read_some("", file, head + sizeof first, rest, &got, err);
    if (rc == 0 && got < rest)
        rc = dnn_fail(err, DNN_EDATA, ": truncated in the header");
    if (rc == 0) rc = dnn_npy_parse("", head, n, &m->header, err);
    dnn_free(head);
    return rc;
}

/* Check the size in the archive against the NumPy header and the limit. */
static int check(const struct dnn_import *how, struct member *m, const zip_stat_t *stat,
                 struct dnn_err *err)
{
    const zip_uint64_t known = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
    uint64_t want = (uint64_t)m->header.start + m->header.bytes;
    char text[DNN_SHAPE_TEXT];

    if ((stat->valid & known) != known)
        return dnn_fail(err, DNN_EDATA, ": its size is unknown");
    if (stat->size != want)
        return dnn_fail(
            err, DNN_EDATA,
            ": %" PRIu64
            " bytes, but the header declares %s of %s, which needs %" PRIu64,
            (uint64_t)stat->size, dnn_shape_text(text, sizeof text, &m->header.shape),
            dnn_dtype_name(m->header.type), want);
    if (stat->size / RATIO > stat->comp_size)
        return dnn_fail(err, DNN_EDATA,
                        ": %" PRIu64 " bytes cannot be decompressed from %" PRIu64,
                        (uint64_t)stat->size, (uint64_t)stat->comp_size);
    if (stat->size > (uint64_t)dnn_import_limit(how))
        return dnn_fail(err, DNN_EDATA,
                        ": %" PRIu64 " bytes exceed the limit of %" PRId64,
                        (uint64_t)stat->size, dnn_import_limit(how));
    m->size = stat->size;
    return 0;
}

/* Add a member that is an array; its error, if any, is only reported if it is used. */
static void add_member(struct dnn_store *store, const zip_stat_t *stat)
{
    struct archive *a = store->own;
    struct member *m = dnn_alloc(sizeof *m);
    char *name = dnn_strndup(stat->name, strlen(stat->name) - SUFFIX_BYTES);
    struct dnn_err err = {0};
    int rc;

    struct dnn_store_array *array = dnn_store_add(store, dnn_text_clean(name));
    array->own = m;
    dnn_file_cache_make(&m->entry, drop_member);
    m->archive = a;
    m->index = stat->index;
    m->what = dnn_format("%s: %s", store->path, name);
    zip_file_t *file = zip_fopen_index(a->zip, stat->index, 0);
    if (file == NULL)
        rc = dnn_fail(&err, DNN_EDATA, ": cannot be decoded: %s", zip_strerror(a->zip));
    else
        rc = read_header(m, file, &err);
    if (file != NULL) zip_fclose(file);
    if (rc == 0) rc = check(&store->how, m, stat, &err);
    array->type = m->header.type;
    array->shape = m->header.shape;
    if (rc < 0) array->error = dnn_strdup(err.text + strspn(err.text, ": "));
    dnn_free(name);
}

static int list(struct dnn_store *store, struct dnn_err *err)
{
    struct archive *a = store->own;
    zip_int64_t n = zip_get_num_entries(a->zip, 0);
    zip_stat_t stat;

    if (n > MAX_MEMBERS)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %" PRId64 " members; at most %d are supported",
                        store->path, (int64_t)n, MAX_MEMBERS);
    for (zip_int64_t i = 0; i < n; i++) {
        if (zip_stat_index(a->zip, (zip_uint64_t)i, 0, &stat) < 0)
            return dnn_fail(err, DNN_EDATA, "%s: member %" PRId64 ": %s", store->path,
                            (int64_t)i, zip_strerror(a->zip));
        size_t len = (stat.valid & ZIP_STAT_NAME) != 0 ? strlen(stat.name) : 0;
        if (len > SUFFIX_BYTES && strcmp(stat.name + len - SUFFIX_BYTES, ".npy") == 0)
            add_member(store, &stat);
    }
    return 0;
}

static int open_npz(const char *path, const struct dnn_import *how,
                    const struct dnn_import_side *side, struct dnn_source **out,
                    struct dnn_err *err)
{
    struct archive *a = dnn_alloc(sizeof *a);
    struct dnn_store *store = dnn_store_make(&type, path, how, a);

    dnn_file_cache_make(&a->entry, close_archive);
    pthread_mutex_init(&a->lock, NULL);
    a->path = store->path;
    int rc = dnn_file_cache_take(&a->entry, open_archive, err);
    if (rc == 0) {
        rc = list(store, err);
        dnn_file_cache_give(&a->entry);
    }
    if (rc == 0) return dnn_store_open(store, side == &how->target, out, err);
    dnn_store_close(&store->source);
    return rc;
}
#endif

const struct dnn_importer dnn_importer_npz = {
    .name = "npz",
    .suffixes = ".npz",
    .help = "an archive of NumPy arrays, such as x and y: their rows are samples",
    .labels = true,
    .sniff = sniff,
#if DNN_HAVE_ZIP
    .open = open_npz,
#endif
    .lacks = "libzip",
};
