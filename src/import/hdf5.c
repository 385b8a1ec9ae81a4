/* hdf5.c - datasets of HDF5 files: the rows of a dataset are samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/array_impl.h"

#include <string.h>

static bool sniff(const unsigned char *head, size_t n)
{
    return n >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0;
}

#if DNN_HAVE_HDF5
#include "import/hdf5_impl.h"

#include "base/mem.h"

#include <errno.h>
#include <unistd.h>

enum {
    CACHE_BYTES = 64 << 20, /* chunk cache of a dataset in bytes               */
    CACHE_SLOTS = 10007     /* prime, much larger than the number of chunks    */
};

/* ---- the library ---- */

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

void dnn_hdf5_lock(void)
{
    pthread_mutex_lock(&library_lock);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void dnn_hdf5_unlock(void)
{
    pthread_mutex_unlock(&library_lock);
}

/* The innermost function has the most specific message. */
static herr_t first_message(unsigned n, const H5E_error2_t *e, void *arg)
{
    const char **text = arg;

    if (n == 0 && e->desc != NULL) *text = e->desc;
    return 0;
}

int dnn_hdf5_fail(const char *what, struct dnn_err *err)
{
    const char *why = "the file is damaged";

    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_message, &why);
    int rc = dnn_fail(err, DNN_EDATA, "%s: HDF5 cannot read it: %.300s", what, why);
    H5Eclear2(H5E_DEFAULT);
    return rc;
}

/* ---- the open file ---- */

struct file {
    struct dnn_file_cache entry;
    const struct dnn_store *store;
    hid_t id, data[2]; /* datasets of the columns; below 0: not open */
};

static int open_id(const char *path, hid_t *out, struct dnn_err *err)
{
    hid_t how = H5Pcreate(H5P_FILE_ACCESS);

    H5Pset_fclose_degree(how, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 12, 1)
    /* Input files are not modified, and some file systems do not support locks. */
    H5Pset_file_locking(how, false, true);
#endif
    *out = H5Fopen(path, H5F_ACC_RDONLY, how);
    /* Immediately: the next call clears the message. */
    int rc = *out < 0 ? dnn_hdf5_fail(path, err) : 0;
    H5Pclose(how);
    return rc;
}

static void close_all(struct file *f)
{
    for (int c = 0; c < 2; c++)
        if (f->data[c] >= 0) H5Dclose(f->data[c]);
    if (f->id >= 0) H5Fclose(f->id);
    f->id = f->data[0] = f->data[1] = -1;
}

static void close_file(struct dnn_file_cache *entry)
{
    dnn_hdf5_lock();
    close_all((struct file *)entry);
    dnn_hdf5_unlock();
}

/* With a chunk cache, so that not every sample decodes its chunk again. */
static hid_t open_data(hid_t file, const char *name, size_t *bytes)
{
    hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
    size_t cache = data < 0 ? 0 : dnn_hdf5_chunk(data);

    if (cache == 0) return data;
    if (cache < CACHE_BYTES) cache = CACHE_BYTES;
    H5Dclose(data);
    hid_t how = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk_cache(how, CACHE_SLOTS, cache, 1);
    data = H5Dopen2(file, name, how);
    H5Pclose(how);
    *bytes += cache;
    return data;
}

static int open_file(struct dnn_file_cache *entry, struct dnn_err *err)
{
    struct file *f = (struct file *)entry;

    dnn_hdf5_lock();
    entry->bytes = 0;
    int rc = open_id(f->store->path, &f->id, err);
    dnn_hdf5_unlock();
    return rc;
}

/* ---- reading ---- */

/* Select a box and make the matching dataspace in memory; below 0 if that fails,
 * because the file has changed since it was opened. */
static hid_t select_box(hid_t space, const struct dnn_shape *shape,
                        const int64_t *start, const int64_t *extent)
{
    hsize_t first[DNN_MAX_DIMS], count[DNN_MAX_DIMS], dims[DNN_MAX_DIMS];
    bool all = true;

    if (H5Sget_simple_extent_ndims(space) != shape->ndim ||
        H5Sget_simple_extent_dims(space, dims, NULL) < 0)
        return -1;
    for (int i = 0; i < shape->ndim; i++) {
        first[i] = (hsize_t)start[i];
        count[i] = (hsize_t)extent[i];
        if (dims[i] != (hsize_t)shape->dim[i]) return -1;
        all = all && dims[i] == count[i];
    }
    if (shape->ndim == 0) return H5Screate(H5S_SCALAR);
    if (!all &&
        H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, count, NULL) < 0)
        return -1;
    return H5Screate_simple(shape->ndim, count, NULL);
}

static int read_box(const char *what, hid_t data, hid_t type,
                    const struct dnn_shape *shape, const int64_t *start,
                    const int64_t *extent, void *to, struct dnn_err *err)
{
    hid_t space = H5Dget_space(data);
    hid_t memory = space < 0 ? -1 : select_box(space, shape, start, extent);
    int rc = 0;

    if (memory < 0 || H5Dread(data, type, memory, space, H5P_DEFAULT, to) < 0)
        rc = dnn_hdf5_fail(what, err);
    if (memory >= 0) H5Sclose(memory);
    if (space >= 0) H5Sclose(space);
    return rc;
}

/* The dataset of an array; datasets of columns stay open. */
static hid_t data_of(struct file *f, int array, bool *keep)
{
    const struct dnn_chosen *chosen = &f->store->chosen;
    const char *name = f->store->array[array].name;
    int c = array == chosen->target ? 1 : 0;

    *keep = !chosen->members;
    if (*keep && f->data[c] >= 0) return f->data[c];
    size_t bytes = 0;
    hid_t data = open_data(f->id, name, &bytes);
    if (*keep) {
        f->data[c] = data;
        f->entry.bytes += bytes;
    }
    return data;
}

/* row: for messages; -1: none. */
static int read_array(const struct dnn_store *store, int array, int64_t row,
                      const int64_t *start, const int64_t *extent, void *to,
                      struct dnn_err *err)
{
    struct file *f = store->own;
    const struct dnn_store_array *p = &store->array[array];
    bool keep;

    DNN_TRY(dnn_file_cache_take(&f->entry, open_file, err));
    dnn_hdf5_lock();
    hid_t data = data_of(f, array, &keep);
    hid_t type = data < 0              ? -1
                 : p->type == DNN_BOOL ? H5Dget_type(data)
                                       : dnn_hdf5_type(p->type);
    char *what = row < 0
                     ? dnn_format("%s: %s", store->path, p->name)
                     : dnn_format("%s: %s[%lld]", store->path, p->name, (long long)row);
    int rc = type < 0 ? dnn_hdf5_fail(what, err)
                      : read_box(what, data, type, &p->shape, start, extent, to, err);
    dnn_free(what);
    if (type >= 0) H5Tclose(type);
    if (data >= 0 && !keep) H5Dclose(data);
    dnn_hdf5_unlock();
    dnn_file_cache_give(&f->entry);
    return rc;
}

static int fetch(const struct dnn_store *store, int array, int64_t row, size_t bytes,
                 void *to, struct dnn_err *err)
{
    int64_t start[DNN_MAX_DIMS] = {0};
    struct dnn_shape shape = store->array[array].shape;

    (void)bytes;
    if (row >= 0) {
        start[0] = row;
        shape.dim[0] = 1;
    }
    return read_array(store, array, row, start, shape.dim, to, err);
}

static int fetch_box(const struct dnn_store *store, int array, const int64_t *start,
                     const int64_t *extent, void *to, struct dnn_err *err)
{
    return read_array(store, array, -1, start, extent, to, err);
}

static void drop(struct dnn_store *store)
{
    struct file *f = store->own;

    dnn_file_cache_end(&f->entry);
    dnn_free(f);
}

static const struct dnn_store_type type = {DNN_STORE_SOURCE("hdf5"), fetch, drop,
                                           fetch_box};

/* ---- opening ---- */

static int open_hdf5(const char *path, const struct dnn_import *how,
                     const struct dnn_import_side *side, struct dnn_source **out,
                     struct dnn_err *err)
{
    if (access(path, R_OK) < 0)
        return dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    struct file *f = dnn_alloc(sizeof *f);
    struct dnn_store *store = dnn_store_make(&type, path, how, f);
    dnn_file_cache_make(&f->entry, close_file);
    f->store = store;
    f->id = f->data[0] = f->data[1] = -1;
    int rc = dnn_file_cache_take(&f->entry, open_file, err);
    if (rc == 0) {
        dnn_hdf5_lock();
        rc = dnn_hdf5_list(store, f->id, err);
        dnn_hdf5_unlock();
        dnn_file_cache_give(&f->entry);
    }
    if (rc == 0) return dnn_store_open(store, side == &how->target, out, err);
    dnn_store_close(&store->source);
    return rc;
}
#endif

const struct dnn_importer dnn_importer_hdf5 = {
    .name = "hdf5",
    .suffixes = ".h5 .hdf5 .hdf .he5",
    .help = "datasets of HDF5, such as features and labels: their rows are samples",
    .labels = true,
    .sniff = sniff,
#if DNN_HAVE_HDF5
    .open = open_hdf5,
#endif
    .lacks = "HDF5",
};
