/* save.c - writes a program's weights to a file that Keras can load.
 *
 * HDF5 writes to memory; the bytes are then written by dnn_file_write(), completely or
 * not at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#if DNN_HAVE_HDF5
#include "weights/h5_impl.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { INCREMENT = 1 << 20, ATTRIBUTE = 60000 }; /* HDF5 allows 64 KiB in a header */

struct save {
    const char *path;
    const struct dnn_prog *prog;
    const struct dnn_weights_order *order;
    const char *scaling;
    dnn_weights_source *source;
    void *arg;
    struct dnn_arena *arena;
    hid_t file;
    hid_t groups; /* property list: create intermediate groups */
    hid_t plain;  /* property list: no timestamps, so that equal values give equal
                     bytes */
    int nvalues;
    int *value; /* weights and states */
    int *owner; /* their layers, as indices of order */
};

static int fail(const struct save *s, const char *what, struct dnn_err *err)
{
    return dnn_h5_fail(s->path, err, "%s", what);
}

/* ---- the layers of weights ---- */

struct entry {
    const char *name;
    int at;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int find_owners(struct save *s, struct dnn_err *err)
{
    size_t n = (size_t)s->order->n;
    struct entry *all = dnn_alloc((n + 1) * sizeof *all);
    int rc = 0;

    for (size_t i = 0; i < n; i++)
        all[i] = (struct entry){s->order->name[i], (int)i};
    qsort(all, n, sizeof *all, by_name);
    for (int v = 0; rc == 0 && v < s->prog->nvalues; v++) {
        const struct dnn_value *value = &s->prog->value[v];

        if (value->role != DNN_WEIGHT && value->role != DNN_STATE) continue;
        struct entry key = {value->layer == NULL ? "" : value->layer, 0}, *e;
        e = bsearch(&key, all, n, sizeof *all, by_name);
        if (e == NULL)
            rc = dnn_fail(err, DNN_ECONFIG,
                          "%s: the layer '%.80s' is not in the network's list", s->path,
                          key.name);
        else {
            s->value[s->nvalues] = v;
            s->owner[s->nvalues++] = e->at;
        }
    }
    dnn_free(all);
    return rc;
}

/* ---- arrays and attributes ---- */

static int put_array(struct save *s, hid_t at, const char *path, int v,
                     struct dnn_err *err)
{
    const struct dnn_tensor *is = &s->prog->value[v].is;
    bool wide = is->dtype == DNN_F64;
    bool half = is->dtype == DNN_F16 || is->dtype == DNN_BF16;
    hsize_t dims[DNN_MAX_DIMS];
    int64_t n = 0;

    if (!wide && !half && is->dtype != DNN_F32)
        return dnn_fail(err, DNN_ECONFIG, "%s: weights of %s are not written", s->path,
                        dnn_dtype_name(is->dtype));
    DNN_TRY(dnn_shape_count(&is->shape, &n, err));
    for (int i = 0; i < is->shape.ndim; i++)
        dims[i] = (hsize_t)is->shape.dim[i];
    void *raw = dnn_alloc((size_t)n * (wide ? sizeof(double) : sizeof(float)) + 1);
    int rc = s->source(s->arg, v, raw, err);
    for (int64_t i = n; half && i-- > 0;) { /* backward, as it expands in place */
        uint16_t bits = ((uint16_t *)raw)[i];

        ((float *)raw)[i] =
            is->dtype == DNN_F16 ? dnn_f16_to_f32(bits) : dnn_bf16_to_f32(bits);
    }
    hid_t space = H5Screate_simple(is->shape.ndim, dims, NULL);
    hid_t data = rc < 0 ? -1
                        : H5Dcreate2(at, path, wide ? H5T_IEEE_F64LE : H5T_IEEE_F32LE,
                                     space, s->groups, s->plain, H5P_DEFAULT);
    if (rc == 0 &&
        (data < 0 || H5Dwrite(data, wide ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT,
                              H5S_ALL, H5S_ALL, H5P_DEFAULT, raw) < 0))
        rc = fail(s, path, err);
    if (data >= 0) H5Dclose(data);
    H5Sclose(space);
    dnn_free(raw);
    return rc;
}

/* A string (n < 0) or a list of n strings, all with the size of the longest. */
static int put_texts(struct save *s, hid_t at, const char *name, int n,
                     const char *const *text, struct dnn_err *err)
{
    size_t count = n < 0 ? 1 : (size_t)n, size = 1;
    hsize_t dims = count;

    for (size_t i = 0; i < count; i++)
        if (strlen(text[i]) > size) size = strlen(text[i]);
    char *raw = dnn_alloc(count * size + 1);
    for (size_t i = 0; i < count; i++)
        memcpy(raw + i * size, text[i], strlen(text[i]));
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, size);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    hid_t space = n < 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &dims, NULL);
    hid_t attr = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    int rc = attr < 0 || (count > 0 && H5Awrite(attr, type, raw) < 0)
                 ? fail(s, name, err)
                 : 0;
    if (attr >= 0) H5Aclose(attr);
    H5Sclose(space);
    H5Tclose(type);
    dnn_free(raw);
    return rc;
}

/* ---- Keras 3 ---- */

/* Every layer and the network must have a group "vars": Keras opens all of them. */
static int save_numbered(struct save *s, struct dnn_err *err)
{
    const char **class_path = dnn_weights_class_paths(s->order, s->arena);
    char **path = dnn_alloc(((size_t)s->order->n + 1) * sizeof *path);
    int *count = dnn_alloc(((size_t)s->order->n + 1) * sizeof *count), rc = 0;

    hid_t own = H5Gcreate2(s->file, "vars", s->groups, H5P_DEFAULT, H5P_DEFAULT);
    if (own < 0 || H5Gclose(own) < 0) rc = fail(s, "vars", err);
    for (int i = 0; rc == 0 && i < s->order->n; i++) {
        int model = s->order->model[i];
        const char *last = strrchr(class_path[i], '/'), *leaf = s->order->name[i];

        path[i] = dnn_format("%s%slayers/%s", model == DNN_NONE ? "" : path[model],
                             model == DNN_NONE ? "" : "/",
                             last == NULL ? class_path[i] : last + 1);
        if (model != DNN_NONE) leaf += strlen(s->order->name[model]) + 1;
        char *vars = dnn_format("%s/vars", path[i]);
        hid_t group = H5Gcreate2(s->file, vars, s->groups, H5P_DEFAULT, H5P_DEFAULT);

        rc = group < 0 ? fail(s, vars, err)
                       : put_texts(s, group, "name", -1, &leaf, err);
        if (group >= 0) H5Gclose(group);
        dnn_free(vars);
    }
    for (int k = 0; rc == 0 && k < s->nvalues; k++) {
        int i = s->owner[k];
        char *array = dnn_format("%s/vars/%d", path[i], count[i]++);

        rc = put_array(s, s->file, array, s->value[k], err);
        dnn_free(array);
    }
    for (int i = 0; i < s->order->n; i++)
        dnn_free(path[i]);
    dnn_free(path);
    dnn_free(count);
    return rc;
}

/* ---- Keras 2 ---- */

/* The outermost model that layer i is in; i if there is none. */
static int top_of(const struct save *s, int i)
{
    while (s->order->model[i] != DNN_NONE)
        i = s->order->model[i];
    return i;
}

/* Sort key of a weight, for the order of Keras: trainable weights first. */
struct sort_key {
    int top, frozen, owner, at;
};

static int by_key(const void *a, const void *b)
{
    const struct sort_key *x = a, *y = b;

    if (x->top != y->top) return x->top - y->top;
    if (x->frozen != y->frozen) return x->frozen - y->frozen;
    return x->owner != y->owner ? x->owner - y->owner : x->at - y->at;
}

/* A long list is split, as an attribute has at most 64 KiB. */
static int put_list(struct save *s, hid_t at, const char *name, int n,
                    const char *const *text, struct dnn_err *err)
{
    size_t longest = 1;
    char part_name[64];

    for (int i = 0; i < n; i++)
        if (strlen(text[i]) > longest) longest = strlen(text[i]);
    if ((size_t)n * longest <= ATTRIBUTE) return put_texts(s, at, name, n, text, err);
    int each = longest > ATTRIBUTE ? 1 : (int)(ATTRIBUTE / longest);
    for (int i = 0; i * each < n; i++) {
        int left = n - i * each;

        snprintf(part_name, sizeof part_name, "%s%d", name, i);
        DNN_TRY(put_texts(s, at, part_name, left < each ? left : each, text + i * each,
                          err));
    }
    return 0;
}

static int save_layer(struct save *s, int top, int n, const struct sort_key *at,
                      struct dnn_err *err)
{
    const char *name = s->order->name[top];
    const char **text = dnn_alloc(((size_t)n + 1) * sizeof *text);
    hid_t group = H5Gcreate2(s->file, name, s->groups, H5P_DEFAULT, H5P_DEFAULT);
    int rc = group < 0 ? fail(s, name, err) : 0;

    for (int k = 0; rc == 0 && k < n; k++) {
        const char *layer = s->order->name[at[k].owner];
        int v = s->value[at[k].at];

        if (at[k].owner != top) layer += strlen(name) + 1;
        char *path = dnn_format("%s/%s:0", layer, s->prog->value[v].is.name);
        text[k] = dnn_arena_strdup(s->arena, path);
        dnn_free(path);
        rc = put_array(s, group, text[k], v, err);
    }
    if (rc == 0) rc = put_list(s, group, "weight_names", n, text, err);
    if (group >= 0) H5Gclose(group);
    dnn_free(text);
    return rc;
}

static int save_named(struct save *s, struct dnn_err *err)
{
    static const char *const version = "2.15.0", *const backend = "tensorflow";
    struct sort_key *all = dnn_alloc(((size_t)s->nvalues + 1) * sizeof *all);
    const char **top = dnn_alloc(((size_t)s->order->n + 1) * sizeof *top);
    int ntop = 0, first = 0, rc = 0;

    for (int k = 0; k < s->nvalues; k++) {
        const struct dnn_value *v = &s->prog->value[s->value[k]];

        all[k] =
            (struct sort_key){top_of(s, s->owner[k]),
                              v->role == DNN_STATE || !v->trainable, s->owner[k], k};
    }
    qsort(all, (size_t)s->nvalues, sizeof *all, by_key);
    for (int i = 0; rc == 0 && i < s->order->n; i++) {
        int last = first;

        if (s->order->model[i] != DNN_NONE) continue;
        while (last < s->nvalues && all[last].top == i)
            last++;
        rc = save_layer(s, i, last - first, all + first, err);
        first = last;
        top[ntop++] = s->order->name[i];
    }
    if (rc == 0) rc = put_list(s, s->file, "layer_names", ntop, top, err);
    if (rc == 0) rc = put_texts(s, s->file, "keras_version", -1, &version, err);
    if (rc == 0) rc = put_texts(s, s->file, "backend", -1, &backend, err);
    dnn_free(all);
    dnn_free(top);
    return rc;
}

/* ---- the file ---- */

/* Copy the file out of HDF5's memory. */
static int take(const struct save *s, char **out, size_t *len, struct dnn_err *err)
{
    ssize_t size = H5Fflush(s->file, H5F_SCOPE_GLOBAL) < 0
                       ? -1
                       : H5Fget_file_image(s->file, NULL, 0);

    if (size < 0) return fail(s, "HDF5 cannot write the file", err);
    char *bytes = malloc((size_t)size + 1);
    if (bytes == NULL)
        return dnn_fail(err, DNN_ENOMEM, "%s: no memory for %zd bytes to write",
                        s->path, size);
    if (H5Fget_file_image(s->file, bytes, (size_t)size) != size) {
        free(bytes);
        return fail(s, "HDF5 cannot write the file", err);
    }
    *out = bytes;
    *len = (size_t)size;
    return 0;
}

static int make(struct save *s, char **out, size_t *len, struct dnn_err *err)
{
    size_t total = 0, bytes = 0;

    for (int k = 0; k < s->nvalues; k++)
        if (dnn_tensor_bytes(&s->prog->value[s->value[k]].is, &bytes, NULL) == 0)
            total += bytes;
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(fapl, INCREMENT + total / 8, false);
    char *name = dnn_format("/dev/null/%p", (void *)s); /* a unique name */
    s->file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    dnn_free(name);
    int rc = s->file < 0 ? fail(s, "HDF5 cannot make a file in memory", err) : 0;
    H5Pclose(fapl);
    if (rc == 0)
        rc = dnn_text_ends(s->path, ".weights.h5") ? save_numbered(s, err)
                                                   : save_named(s, err);
    if (rc == 0 && s->scaling != NULL && strlen(s->scaling) <= ATTRIBUTE)
        rc = put_texts(s, s->file, "dnn_toolkit", -1, &s->scaling, err);
    if (rc == 0) rc = take(s, out, len, err);
    if (s->file >= 0) H5Fclose(s->file);
    return rc;
}

int dnn_weights_image(const char *path, const struct dnn_prog *prog,
                      const struct dnn_weights_order *order, const char *scaling,
                      dnn_weights_source *source, void *arg, char **out, size_t *len,
                      struct dnn_err *err)
{
    struct save s = {.path = path,
                     .prog = prog,
                     .order = order,
                     .scaling = scaling,
                     .source = source,
                     .arg = arg};

    dnn_h5_quiet();
    s.arena = dnn_arena_make();
    s.value = dnn_alloc(((size_t)prog->nvalues + 1) * sizeof *s.value);
    s.owner = dnn_alloc(((size_t)prog->nvalues + 1) * sizeof *s.owner);
    s.groups = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(s.groups, 1);
    s.plain = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(s.plain, false);
    int rc = find_owners(&s, err);
    if (rc == 0) rc = make(&s, out, len, err);
    H5Pclose(s.groups);
    H5Pclose(s.plain);
    dnn_free(s.value);
    dnn_free(s.owner);
    dnn_arena_free(s.arena);
    return rc;
}

int dnn_weights_save(const char *path, const struct dnn_prog *prog,
                     const struct dnn_weights_order *order, const char *scaling,
                     dnn_weights_source *source, void *arg, struct dnn_err *err)
{
    char *bytes = NULL;
    size_t len = 0;

    DNN_TRY(
        dnn_weights_image(path, prog, order, scaling, source, arg, &bytes, &len, err));
    int rc = dnn_file_write(path, bytes, len, err);
    free(bytes);
    return rc;
}
#endif
