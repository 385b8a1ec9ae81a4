/* h5.c - HDF5's errors, attributes and datasets, with checks, because a file may
 * contain anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#if DNN_HAVE_HDF5
#include "weights/h5_impl.h"

#include "base/text.h"

#include <stdarg.h>
#include <string.h>

enum {
    PARTS = 2 * DNN_WEIGHTS_DEPTH, /* of a path                      */
    NAME_BYTES = 1024,             /* of a name                      */
    TEXT_BYTES = 64 << 20,         /* of all names of a file         */
    CHUNK_BYTES = 64 << 20         /* of a chunk, in addition to the array's size */
};

void dnn_h5_quiet(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* The innermost function has the most specific reason. */
static herr_t innermost_reason(unsigned n, const H5E_error2_t *e, void *arg)
{
    const char **text = arg;

    if (n == 0 && e->desc != NULL) *text = e->desc;
    return 0;
}

int dnn_h5_fail(const char *path, struct dnn_err *err, const char *fmt, ...)
{
    char what[512];
    const char *why = "the file is damaged";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost_reason, &why);
    int rc = dnn_fail(err, DNN_EDATA, "%s: %s: %.300s", path, what, why);
    H5Eclear2(H5E_DEFAULT);
    return rc;
}

/* For a name without slashes. */
static hid_t open_one(hid_t group, const char *name, H5O_type_t type)
{
    H5L_info_t link;
    H5O_info_t object;

    if (H5Lexists(group, name, H5P_DEFAULT) <= 0 ||
        H5Lget_info(group, name, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)
        return -1;
    hid_t found = H5Oopen(group, name, H5P_DEFAULT);
    if (found < 0) return -1;
#if H5_VERSION_GE(1, 12, 0)
    herr_t rc = H5Oget_info3(found, &object, H5O_INFO_BASIC);
#else
    herr_t rc = H5Oget_info(found, &object);
#endif
    if (rc < 0 || object.type != type) {
        H5Oclose(found);
        return -1;
    }
    return found;
}

/* A path may contain links: open its groups one by one. */
hid_t dnn_h5_open(hid_t group, const char *name, H5O_type_t type)
{
    hid_t at = group;
    bool last = false;

    for (int part = 0; at >= 0 && !last; part++) {
        hid_t up = at;
        size_t len = strcspn(name, "/");

        last = name[len] == '\0' || name[len + 1] == '\0';
        char *one = dnn_strndup(name, len);
        at = part < PARTS ? open_one(up, one, last ? type : H5O_TYPE_GROUP) : -1;
        dnn_free(one);
        if (up != group) H5Oclose(up);
        name += len + 1;
    }
    return at;
}

int dnn_h5_count_name(struct dnn_weights *w, const char *name, struct dnn_err *err)
{
    size_t len = strlen(name);

    w->name_bytes += len + sizeof name;
    if (len <= NAME_BYTES && w->name_bytes <= TEXT_BYTES) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s: a name or path has more than %d bytes, or all of them have "
                    "more than %d",
                    w->path, NAME_BYTES, TEXT_BYTES);
}

const char *dnn_h5_clean(struct dnn_arena *arena, const char *text)
{
    return dnn_text_clean(dnn_arena_strdup(arena, text));
}

/* ---- attributes ---- */

static int read_pointers(const struct dnn_weights *w, hid_t attr, hid_t type,
                         hid_t space, int n, const char **out)
{
    char **text = dnn_alloc(((size_t)n + 1) * sizeof *text);
    herr_t rc = H5Aread(attr, type, text);

    for (int i = 0; rc >= 0 && i < n; i++)
        out[i] = dnn_arena_strdup(w->arena, text[i] == NULL ? "" : text[i]);
    if (rc >= 0) H5Dvlen_reclaim(type, space, H5P_DEFAULT, text);
    dnn_free(text);
    return rc < 0 ? -1 : 0;
}

static int read_fixed(const struct dnn_weights *w, hid_t attr, hid_t type, int n,
                      const char **out)
{
    size_t size = H5Tget_size(type);

    if (size == 0 || size > TEXT_BYTES || (size_t)n > TEXT_BYTES / size) return -1;
    char *text = dnn_alloc(size * (size_t)n + 1);
    herr_t rc = H5Aread(attr, type, text);
    for (int i = 0; rc >= 0 && i < n; i++) {
        char *one = dnn_strndup(text + (size_t)i * size, size);
        size_t len = strlen(one);

        while (len > 0 && one[len - 1] == ' ')
            one[--len] = '\0';
        out[i] = dnn_arena_strdup(w->arena, one);
        dnn_free(one);
    }
    dnn_free(text);
    return rc < 0 ? -1 : 0;
}

/* Append the strings of one attribute; an empty one may have any type. */
static int read_attr(struct dnn_weights *w, hid_t at, const char *name, int *n,
                     const char ***out, struct dnn_err *err)
{
    hid_t attr = H5Aopen(at, name, H5P_DEFAULT);
    hid_t type = attr < 0 ? -1 : H5Aget_type(attr);
    hid_t space = attr < 0 ? -1 : H5Aget_space(attr);
    hssize_t count = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    int rc = 0;

    if (type < 0 || count < 0) {
        rc = dnn_h5_fail(w->path, err, "the attribute \"%s\"", name);
    } else if (count > DNN_WEIGHTS_ARRAYS - *n) {
        rc = dnn_fail(err, DNN_EDATA, "%s: the attribute \"%s\" has %lld names",
                      w->path, name, (long long)count);
    } else if (count > 0 && H5Tget_class(type) != H5T_STRING) {
        rc = dnn_fail(err, DNN_EDATA, "%s: the attribute \"%s\" is not a list of names",
                      w->path, name);
    } else if (count > 0) {
        const char **all =
            dnn_arena_alloc(w->arena, ((size_t)*n + (size_t)count) * sizeof *all);
        if (*n > 0) memcpy(all, *out, (size_t)*n * sizeof *all);
        int bad = H5Tis_variable_str(type) > 0
                      ? read_pointers(w, attr, type, space, (int)count, all + *n)
                      : read_fixed(w, attr, type, (int)count, all + *n);
        if (bad < 0) rc = dnn_h5_fail(w->path, err, "the attribute \"%s\"", name);
        for (hssize_t i = 0; rc == 0 && i < count; i++)
            rc = dnn_h5_count_name(w, all[*n + i], err);
        *out = all;
        *n += (int)count;
    }
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (attr >= 0) H5Aclose(attr);
    return rc;
}

int dnn_h5_texts(struct dnn_weights *w, hid_t at, const char *name, int *n,
                 const char ***out, struct dnn_err *err)
{
    char part_name[80];

    *n = -1;
    *out = NULL;
    if (H5Aexists(at, name) > 0) {
        *n = 0;
        return read_attr(w, at, name, n, out, err);
    }
    for (int i = 0; i < DNN_WEIGHTS_ARRAYS; i++) {
        snprintf(part_name, sizeof part_name, "%s%d", name, i);
        if (H5Aexists(at, part_name) <= 0) break;
        if (*n < 0) *n = 0;
        DNN_TRY(read_attr(w, at, part_name, n, out, err));
    }
    return 0;
}

/* ---- datasets ---- */

static bool find_dtype(hid_t type, enum dnn_dtype *out)
{
    static const enum dnn_dtype real[] = {DNN_F16, DNN_F32, DNN_F64};
    static const enum dnn_dtype integer[] = {DNN_I8, DNN_I16, DNN_I32, DNN_I64};
    static const enum dnn_dtype unsigned_integer[] = {DNN_U8, DNN_U16, DNN_U32,
                                                      DNN_U64};
    H5T_class_t class = H5Tget_class(type);
    size_t size = H5Tget_size(type);
    int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : -1;

    if (log < 0 || (class != H5T_FLOAT && class != H5T_INTEGER)) return false;
    if (class == H5T_FLOAT && log == 0) return false;
    *out = class == H5T_FLOAT                  ? real[log - 1]
           : H5Tget_sign(type) == H5T_SGN_NONE ? unsigned_integer[log]
                                               : integer[log];
    return true;
}

/* What is wrong with the storage of a dataset, NULL if nothing: it must be in this
 * file, and reading it must not need much more memory than its size. */
static const char *check_layout(hid_t data, const struct dnn_tensor *is)
{
    hid_t plist = H5Dget_create_plist(data);
    const char *wrong = NULL;
    size_t bytes = 0, chunk = dnn_dtype_size(is->dtype);
    hsize_t dims[DNN_MAX_DIMS];

    if (plist < 0) return "cannot be read";
    H5D_layout_t layout = H5Pget_layout(plist);
    if (dnn_tensor_bytes(is, &bytes, NULL) < 0)
        wrong = "is too large";
    else if (layout < 0 || layout == H5D_VIRTUAL || H5Pget_external_count(plist) != 0)
        wrong = "stores its values in another file";
    else if (layout == H5D_CHUNKED) {
        int n = H5Pget_chunk(plist, DNN_MAX_DIMS, dims);

        for (int i = 0; i < n && i < DNN_MAX_DIMS && wrong == NULL; i++)
            if (__builtin_mul_overflow(chunk, dims[i], &chunk) ||
                chunk > bytes + CHUNK_BYTES)
                wrong = "has chunks larger than itself";
        if (n < 0) wrong = "has chunks that cannot be read";
    }
    if (wrong == NULL && bytes > 0 && H5Dget_storage_size(data) == 0)
        wrong = "has no values";
    H5Pclose(plist);
    return wrong;
}

static const char *check_dataset(hid_t data, struct dnn_tensor *is)
{
    hid_t type = H5Dget_type(data), space = H5Dget_space(data);
    const char *wrong = NULL;
    hsize_t dims[DNN_MAX_DIMS];

    if (type < 0 || space < 0)
        wrong = "cannot be read";
    else if (!find_dtype(type, &is->dtype))
        wrong = "has an element type that is not supported";
    else if (H5Sis_simple(space) <= 0 || H5Sget_simple_extent_type(space) == H5S_NULL ||
             H5Sget_simple_extent_ndims(space) > DNN_MAX_DIMS)
        wrong = "is not an array of at most 8 axes";
    else {
        is->shape = (struct dnn_shape){.ndim = H5Sget_simple_extent_ndims(space)};
        if (H5Sget_simple_extent_dims(space, dims, NULL) < 0) wrong = "has no shape";
        for (int i = 0; i < is->shape.ndim && wrong == NULL; i++) {
            if (dims[i] > INT64_MAX) wrong = "is too large";
            is->shape.dim[i] = (int64_t)dims[i];
        }
    }
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return wrong != NULL ? wrong : check_layout(data, is);
}

struct weights_group *dnn_h5_group(struct dnn_weights *w)
{
    w->group = dnn_grow(w->group, &w->group_cap, w->ngroups + 1, sizeof *w->group);
    w->group[w->ngroups].first = (int)w->narrays;
    return &w->group[w->ngroups++];
}

int dnn_h5_array(struct dnn_weights *w, hid_t data, const char *path, const char *name,
                 struct dnn_err *err)
{
    struct weights_group *g = &w->group[w->ngroups - 1];
    struct dnn_weights_array a = {
        .is.name = name,
        .layer = g->shown,
        .group = (int)w->ngroups - 1,
        .index = g->n,
        .path = dnn_arena_strdup(w->arena, path),
    };
    const char *wrong = check_dataset(data, &a.is);

    if (wrong != NULL)
        return dnn_fail(err, DNN_EDATA, "%s: the array %.200s %s", w->path,
                        dnn_h5_clean(w->arena, path), wrong);
    if (w->narrays >= DNN_WEIGHTS_ARRAYS)
        return dnn_fail(err, DNN_EDATA, "%s: there are more than %d arrays", w->path,
                        DNN_WEIGHTS_ARRAYS);
    w->array = dnn_grow(w->array, &w->array_cap, w->narrays + 1, sizeof *w->array);
    w->array[w->narrays++] = a;
    g->n++;
    return 0;
}
#endif
