/* hdf5_list.c - list and check the datasets of an HDF5 file, which may be damaged.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#if DNN_HAVE_HDF5
#include "import/hdf5_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <string.h>

enum {
    MAX_DEPTH = 16,        /* of nested groups                                        */
    MAX_OBJECTS = 1 << 16, /* objects in a file                                       */
    MAX_CHUNK = 1 << 30,   /* of a chunk, which is decoded completely                 */
    MAX_RATIO = 1 << 20    /* maximum bytes per stored byte: filters, and chunks that
                            * were never written                                      */
};

#if H5_VERSION_GE(1, 12, 0)
typedef H5L_info2_t link_info;
#define ITERATE H5Literate2
#else
typedef H5L_info_t link_info;
#define ITERATE H5Literate
#endif

/* ---- types ---- */

/* h5py stores bools as an enumeration of FALSE and TRUE. */
static bool is_bool(hid_t type)
{
    char *low = NULL, *high = NULL;
    bool is = false;

    if (H5Tget_class(type) == H5T_ENUM && H5Tget_size(type) == 1 &&
        H5Tget_nmembers(type) == 2) {
        low = H5Tget_member_name(type, 0);
        high = H5Tget_member_name(type, 1);
        is = low != NULL && high != NULL && strcmp(low, "FALSE") == 0 &&
             strcmp(high, "TRUE") == 0;
    }
    H5free_memory(low);
    H5free_memory(high);
    return is;
}

/* Whether a 2-byte float is IEEE half precision, not bfloat16. */
static bool is_half(hid_t type)
{
    size_t sign, exponent, esize, mantissa, msize;

    return H5Tget_fields(type, &sign, &exponent, &esize, &mantissa, &msize) >= 0 &&
           esize == 5 && msize == 10;
}

static bool find_type(hid_t type, enum dnn_dtype *out)
{
    static const enum dnn_dtype real[] = {DNN_U8, DNN_F16, DNN_F32, DNN_F64};
    static const enum dnn_dtype integer[] = {DNN_I8, DNN_I16, DNN_I32, DNN_I64};
    static const enum dnn_dtype unsigned_integer[] = {DNN_U8, DNN_U16, DNN_U32,
                                                      DNN_U64};
    H5T_class_t class = H5Tget_class(type);
    size_t size = H5Tget_size(type);
    int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : -1;

    *out = DNN_BOOL;
    if (is_bool(type)) return true;
    if (log < 0) return false;
    if (class == H5T_FLOAT) {
        *out = real[log];
        return log > 0 && (log > 1 || is_half(type));
    }
    *out = H5Tget_sign(type) == H5T_SGN_NONE ? unsigned_integer[log] : integer[log];
    return class == H5T_INTEGER;
}

static hid_t half_type(void)
{
    hid_t type = H5Tcopy(H5T_NATIVE_FLOAT);

    if (type >= 0 && (H5Tset_fields(type, 15, 10, 5, 0, 10) < 0 ||
                      H5Tset_size(type, 2) < 0 || H5Tset_ebias(type, 15) < 0)) {
        H5Tclose(type);
        return -1;
    }
    return type;
}

hid_t dnn_hdf5_type(enum dnn_dtype type)
{
    switch (type) {
    case DNN_F16:
        return half_type();
    case DNN_F32:
        return H5Tcopy(H5T_NATIVE_FLOAT);
    case DNN_F64:
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    case DNN_I8:
        return H5Tcopy(H5T_NATIVE_INT8);
    case DNN_U8:
        return H5Tcopy(H5T_NATIVE_UINT8);
    case DNN_I16:
        return H5Tcopy(H5T_NATIVE_INT16);
    case DNN_U16:
        return H5Tcopy(H5T_NATIVE_UINT16);
    case DNN_I32:
        return H5Tcopy(H5T_NATIVE_INT32);
    case DNN_U32:
        return H5Tcopy(H5T_NATIVE_UINT32);
    case DNN_I64:
        return H5Tcopy(H5T_NATIVE_INT64);
    case DNN_U64:
        return H5Tcopy(H5T_NATIVE_UINT64);
    default:
        return -1; /* bools are read with the type of the file */
    }
}

/* ---- one dataset ---- */

size_t dnn_hdf5_chunk(hid_t data)
{
    hid_t plist = H5Dget_create_plist(data), type = H5Dget_type(data);
    size_t bytes = type < 0 ? 0 : H5Tget_size(type);
    hsize_t dims[H5S_MAX_RANK];
    int n = plist < 0 || H5Pget_layout(plist) != H5D_CHUNKED
                ? 0
                : H5Pget_chunk(plist, H5S_MAX_RANK, dims);

    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(bytes, dims[i], &bytes)) bytes = SIZE_MAX;
    if (type >= 0) H5Tclose(type);
    if (plist >= 0) H5Pclose(plist);
    return n <= 0 ? 0 : bytes;
}

/* Check that all values are stored in this file. */
static const char *check_layout(hid_t data, const struct dnn_store_array *array)
{
    hid_t plist = H5Dget_create_plist(data);
    struct dnn_tensor is = {.dtype = array->type, .shape = array->shape};
    size_t bytes = 0;

    if (plist < 0) return "has an unknown type";
    H5D_layout_t layout = H5Pget_layout(plist);
    int elsewhere = H5Pget_external_count(plist);
    H5Pclose(plist);
    if (dnn_tensor_bytes(&is, &bytes, NULL) < 0) return "is too large";
    if (layout < 0) return "has an unknown type";
    if (layout == H5D_VIRTUAL || elsewhere != 0)
        return "stores its data in another file (external storage)";
    if (dnn_hdf5_chunk(data) > MAX_CHUNK) return "has chunks larger than 1 GiB";
    size_t stored = H5Dget_storage_size(data);
    if (bytes > 0 && stored == 0) return "is empty";
    if (bytes / MAX_RATIO > stored)
        return "is larger than the file; the file is damaged";
    if (layout == H5D_CONTIGUOUS && bytes > stored) return "is truncated";
    return NULL;
}

static const char *inspect(hid_t data, struct dnn_store_array *array)
{
    hid_t type = H5Dget_type(data), space = H5Dget_space(data);
    const char *error = NULL;
    hsize_t dims[DNN_MAX_DIMS];

    if (type < 0 || space < 0)
        error = "has an unknown type";
    else if (!find_type(type, &array->type))
        error = "has an unsupported element type";
    else if (H5Sis_simple(space) <= 0 || H5Sget_simple_extent_type(space) == H5S_NULL ||
             H5Sget_simple_extent_ndims(space) > DNN_MAX_DIMS)
        error = "has more than 8 axes";
    else {
        array->shape = (struct dnn_shape){.ndim = H5Sget_simple_extent_ndims(space)};
        if (H5Sget_simple_extent_dims(space, dims, NULL) < 0) error = "has no shape";
        for (int i = 0; i < array->shape.ndim && error == NULL; i++) {
            if (dims[i] > INT64_MAX) error = "is too large";
            array->shape.dim[i] = (int64_t)dims[i];
        }
    }
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return error != NULL ? error : check_layout(data, array);
}

/* The error if a filter of its chunks is missing, or NULL; for dnn_free(). */
static char *missing_filter(hid_t data)
{
    hid_t plist = H5Dget_create_plist(data);
    int n = plist < 0 ? 0 : H5Pget_nfilters(plist);
    char *error = NULL;

    for (int i = 0; i < n && error == NULL; i++) {
        char name[64] = "";
        unsigned flags, config;
        size_t nvalues = 0;
        H5Z_filter_t id = H5Pget_filter2(plist, (unsigned)i, &flags, &nvalues, NULL,
                                         sizeof name, name, &config);

        if (id < 0 || H5Zfilter_avail(id) <= 0)
            error =
                dnn_format("needs the HDF5 filter %d (%s), which is not installed",
                           (int)id, name[0] != '\0' ? dnn_text_clean(name) : "unnamed");
    }
    if (plist >= 0) H5Pclose(plist);
    return error;
}

/* ---- all datasets ---- */

struct walk {
    struct dnn_store *store;
    const char *prefix; /* path of the group, ending in a slash, or empty */
    int depth, *seen;
    struct dnn_err *err;
    int rc;
};

static herr_t visit(hid_t group, const char *name, const link_info *link, void *arg);

/* In the order of names, which does not depend on how the file was written. */
static int walk_group(hid_t group, struct walk *w)
{
    hsize_t at = 0;

    if (ITERATE(group, H5_INDEX_NAME, H5_ITER_INC, &at, visit, w) < 0 && w->rc == 0)
        w->rc = dnn_hdf5_fail(w->store->path, w->err);
    return w->rc;
}

static void add_dataset(struct walk *w, hid_t data, const char *path)
{
    struct dnn_store_array *array = dnn_store_add(w->store, path);
    const char *error = inspect(data, array);

    array->error = error != NULL ? dnn_strdup(error) : missing_filter(data);
    H5Eclear2(H5E_DEFAULT);
}

static herr_t visit(hid_t group, const char *name, const link_info *link, void *arg)
{
    struct walk *w = arg;

    if (++*w->seen > MAX_OBJECTS) {
        w->rc = dnn_fail(w->err, DNN_EDATA, "%s: has more than %d objects",
                         w->store->path, MAX_OBJECTS);
        return -1;
    }
    /* Skip soft and external links. */
    if (link->type != H5L_TYPE_HARD) return 0;
    char *path = dnn_text_clean(dnn_format("%s%s", w->prefix, name));
    hid_t found = H5Oopen(group, name, H5P_DEFAULT);
    H5I_type_t kind = found < 0 ? H5I_BADID : H5Iget_type(found);
    if (kind == H5I_DATASET) {
        add_dataset(w, found, path);
    } else if (kind == H5I_GROUP && w->depth < MAX_DEPTH) {
        char *prefix = dnn_format("%s/", path);
        struct walk inner = *w;

        inner.prefix = prefix;
        inner.depth++;
        w->rc = walk_group(found, &inner);
        dnn_free(prefix);
    } else if (found < 0) {
        dnn_store_add(w->store, path)->error = dnn_strdup("cannot be opened");
        H5Eclear2(H5E_DEFAULT);
    }
    if (found >= 0) H5Oclose(found);
    dnn_free(path);
    return w->rc < 0 ? -1 : 0;
}

int dnn_hdf5_list(struct dnn_store *store, hid_t file, struct dnn_err *err)
{
    int seen = 0;
    struct walk w = {.store = store, .prefix = "", .seen = &seen, .err = err};
    hid_t root = H5Gopen2(file, "/", H5P_DEFAULT);

    if (root < 0) return dnn_hdf5_fail(store->path, err);
    walk_group(root, &w);
    H5Gclose(root);
    return w.rc;
}
#endif
