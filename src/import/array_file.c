/* array_file.c - an array file as a source of samples.
 *
 * Either the rows of an array are the samples, or each array is one sample.  The
 * formats only list their arrays and read rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

#include "base/mem.h"

#include <string.h>

struct dnn_store *dnn_store_make(const struct dnn_store_type *type, const char *path,
                                 const struct dnn_import *how, void *own)
{
    struct dnn_store *store = dnn_alloc(sizeof *store);

    store->type = type;
    store->how = *how;
    store->path = dnn_strdup(path);
    store->own = own;
    store->source = (struct dnn_source){.type = &type->source, .nfiles = 1};
    store->source.file = &store->path;
    return store;
}

struct dnn_store_array *dnn_store_add(struct dnn_store *store, const char *name)
{
    store->array =
        dnn_grow(store->array, &store->cap, store->narrays + 1, sizeof *store->array);
    struct dnn_store_array *array = &store->array[store->narrays++];
    *array = (struct dnn_store_array){0};
    if (name != NULL) array->name = dnn_strdup(name);
    return array;
}

void dnn_store_close(struct dnn_source *source)
{
    struct dnn_store *store = (struct dnn_store *)source;

    if (store->type->drop != NULL) store->type->drop(store);
    for (size_t i = 0; i < store->narrays; i++) {
        dnn_free(store->array[i].name);
        dnn_free(store->array[i].error);
    }
    dnn_free(store->array);
    dnn_free((void *)(uintptr_t)store->path);
    dnn_free(store);
}

/* "a.npz: x", or "a.npz: x[7]" for a row. */
static const char *name_of(const struct dnn_store *store, int array, int64_t row,
                           char out[DNN_SAMPLE_NAME])
{
    const char *name = store->array[array].name;
    int n = snprintf(out, DNN_SAMPLE_NAME, "%.400s%s%.80s", store->path,
                     name != NULL ? ": " : "", name != NULL ? name : "");

    if (row >= 0)
        snprintf(out + n, (size_t)(DNN_SAMPLE_NAME - n), "[%lld]", (long long)row);
    return out;
}

/* The shape of a sample in the file. */
static struct dnn_shape sample_shape(const struct dnn_store *store, int array)
{
    struct dnn_shape shape = store->array[array].shape;

    if (store->how.whole || store->chosen.members) return shape;
    memmove(shape.dim, shape.dim + 1, sizeof shape.dim - sizeof *shape.dim);
    shape.dim[DNN_MAX_DIMS - 1] = 0;
    shape.ndim--;
    return shape;
}

/* The array and the row (-1: all) of column c of sample i. */
static int array_of(const struct dnn_store *store, int c, int64_t i, int64_t *row)
{
    *row = store->how.whole || store->chosen.members ? -1 : i;
    if (store->chosen.members) return (int)i;
    return c == 0 ? store->chosen.input : store->chosen.target;
}

static bool is_target(const struct dnn_store *store, int c)
{
    return c == 1 || store->side[0] == &store->how.target;
}

/* ---- opening ---- */

/* Set column c from an array, or with again, check that it matches the others. */
static int add_column(struct dnn_store *store, int c, int array, bool again,
                      struct dnn_err *err)
{
    char what[DNN_SAMPLE_NAME];
    const struct dnn_store_array *p = &store->array[array];
    struct dnn_column *col = &store->source.col[c], now;
    struct dnn_axes axes;

    name_of(store, array, -1, what);
    if (!store->how.whole && p->shape.ndim == 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: contains a scalar without a sample axis; \"whole\": true "
                        "makes it one sample",
                        what);
    struct dnn_shape shape = sample_shape(store, array);
    DNN_TRY(dnn_axes_find(what, store->side[c], is_target(store, c), p->type, &shape,
                          &axes, err));
    DNN_TRY(dnn_import_fits(&store->how, what, p->type, &shape, err));
    dnn_axes_column(&axes, is_target(store, c), &now);
    if (!again) {
        *col = now;
        return 0;
    }
    if (now.type != col->type || now.kind != col->kind ||
        now.shape.ndim != col->shape.ndim)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %s with %d axes, but the array before is %s with %d", what,
                        dnn_dtype_name(now.type), now.shape.ndim,
                        dnn_dtype_name(col->type), col->shape.ndim);
    for (int i = 0; i < now.shape.ndim; i++)
        if (now.shape.dim[i] != col->shape.dim[i]) col->shape.dim[i] = DNN_UNKNOWN;
    return 0;
}

static int fill_in(struct dnn_store *store, const struct dnn_import_side *side,
                   struct dnn_err *err)
{
    struct dnn_source *source = &store->source;
    const struct dnn_chosen *chosen = &store->chosen;

    DNN_TRY(dnn_store_select(store->path, store->array, store->narrays, &store->how,
                             side, &store->chosen, err));
    store->side[0] = side;
    store->side[1] = &store->how.target;
    source->ncols = chosen->target >= 0 ? 2 : 1;
    source->split = chosen->split;
    source->count = 1;
    if (chosen->members) {
        source->count = (int64_t)store->narrays;
        for (size_t i = 0; i < store->narrays; i++)
            DNN_TRY(add_column(store, 0, (int)i, i > 0, err));
        return 0;
    }
    DNN_TRY(add_column(store, 0, chosen->input, false, err));
    if (chosen->target >= 0) DNN_TRY(add_column(store, 1, chosen->target, false, err));
    if (store->how.whole) return 0;
    source->count = store->array[chosen->input].shape.dim[0];
    if (source->count == 0)
        return dnn_fail(err, DNN_EDATA, "%s: contains no samples", store->path);
    if (chosen->target >= 0 &&
        store->array[chosen->target].shape.dim[0] != source->count)
        return dnn_fail(err, DNN_EDATA, "%s: %s has %lld samples, but %s has %lld",
                        store->path, store->array[chosen->input].name,
                        (long long)source->count, store->array[chosen->target].name,
                        (long long)store->array[chosen->target].shape.dim[0]);
    return 0;
}

int dnn_store_open(struct dnn_store *store, bool target, struct dnn_source **out,
                   struct dnn_err *err)
{
    int rc = fill_in(store, target ? &store->how.target : &store->how.input, err);

    if (rc < 0)
        dnn_store_close(&store->source);
    else
        *out = &store->source;
    return rc;
}

/* ---- reading ---- */

static int read_column(const struct dnn_store *store, int c, int64_t i,
                       struct dnn_array *out, struct dnn_err *err)
{
    char what[DNN_SAMPLE_NAME];
    struct dnn_axes axes;
    int64_t row;
    int array = array_of(store, c, i, &row);
    struct dnn_shape shape = sample_shape(store, array);
    enum dnn_dtype type = store->array[array].type;

    name_of(store, array, row, what);
    DNN_TRY(dnn_axes_find(what, store->side[c], is_target(store, c), type, &shape,
                          &axes, err));
    if (dnn_array_make(out, type, &shape, err) < 0)
        return dnn_prefix(err, "%s: ", what);
    DNN_TRY(
        store->type->fetch(store, array, row, dnn_array_bytes(out), out->data, err));
    return dnn_axes_apply(&axes, what, out, err);
}

int dnn_store_read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                   struct dnn_err *err)
{
    const struct dnn_store *store = (const struct dnn_store *)source;

    if (i < 0 || i >= source->count)
        return dnn_fail(err, DNN_EDATA,
                        "%s: sample %lld requested, but there are only %lld",
                        store->path, (long long)i, (long long)source->count);
    out->ncols = source->ncols;
    for (int c = 0; c < source->ncols; c++)
        DNN_TRY(read_column(store, c, i, &out->col[c], err));
    return 0;
}

int dnn_store_shape(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_shape *out, struct dnn_err *err)
{
    const struct dnn_store *store = (const struct dnn_store *)source;
    char what[DNN_SAMPLE_NAME];
    struct dnn_axes axes;
    int64_t row;
    int array = array_of(store, c, i, &row);
    struct dnn_shape shape = sample_shape(store, array);

    name_of(store, array, row, what);
    DNN_TRY(dnn_axes_find(what, store->side[c], is_target(store, c),
                          store->array[array].type, &shape, &axes, err));
    *out = axes.shape;
    return 0;
}

/* A box of a label or a vector, which is small, is cut from all of it. */
static int cut_box(const struct dnn_store *store, int c, int64_t i,
                   const int64_t *start, const int64_t *extent, struct dnn_array *out,
                   struct dnn_err *err)
{
    struct dnn_array whole = {0};
    int rc = read_column(store, c, i, &whole, err);

    if (rc == 0) rc = dnn_array_box(&whole, start, extent, out, err);
    dnn_array_free(&whole);
    return rc;
}

int dnn_store_box(const struct dnn_source *source, int64_t i, int c,
                  const int64_t *start, const int64_t *extent, struct dnn_array *out,
                  struct dnn_err *err)
{
    const struct dnn_store *store = (const struct dnn_store *)source;
    char what[DNN_SAMPLE_NAME];
    struct dnn_axes axes;
    int64_t row, first[DNN_MAX_DIMS] = {0}, n[DNN_MAX_DIMS] = {1};
    int array = array_of(store, c, i, &row);
    struct dnn_shape shape = sample_shape(store, array);
    enum dnn_dtype type = store->array[array].type;
    int skip = store->array[array].shape.ndim - shape.ndim; /* the axis of the rows */

    if (store->type->fetch_box == NULL) return DNN_SOURCE_WHOLE;
    name_of(store, array, row, what);
    DNN_TRY(dnn_axes_find(what, store->side[c], is_target(store, c), type, &shape,
                          &axes, err));
    if (axes.kind != DNN_KIND_IMAGE && axes.kind != DNN_KIND_MASK)
        return cut_box(store, c, i, start, extent, out, err);
    if (skip > 0) first[0] = row;
    dnn_axes_box(&axes, shape.ndim, start, extent, first + skip, n + skip);
    memcpy(shape.dim, n + skip, (size_t)shape.ndim * sizeof *shape.dim);
    if (dnn_array_make(out, type, &shape, err) < 0)
        return dnn_prefix(err, "%s: ", what);
    int rc = store->type->fetch_box(store, array, first, n, out->data, err);
    return rc != 0 ? rc : dnn_axes_apply_box(&axes, what, out, err);
}

void dnn_store_label(const struct dnn_source *source, int64_t i,
                     char out[DNN_SAMPLE_NAME])
{
    const struct dnn_store *store = (const struct dnn_store *)source;

    if (store->chosen.members)
        name_of(store, (int)i, -1, out);
    else
        snprintf(out, DNN_SAMPLE_NAME, store->how.whole ? "%.480s" : "%.480s[%lld]",
                 store->path, (long long)i);
}

int64_t dnn_store_class(const struct dnn_source *source, int64_t i)
{
    const struct dnn_store *store = (const struct dnn_store *)source;
    struct dnn_array label = {0};
    int64_t class = -1;

    for (int c = 0; c < source->ncols; c++)
        if (source->col[c].kind == DNN_KIND_LABEL &&
            (read_column(store, c, i, &label, NULL) < 0 ||
             dnn_convert(label.data, label.type, &class, DNN_I64, 1, true, NULL) < 0))
            class = -1;
    dnn_array_free(&label);
    return class;
}
