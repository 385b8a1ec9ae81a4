/* slice.c - a source whose samples are boxes cut from volumes.
 *
 * Boxes overlap and are read in any order, so volumes stay in memory once they have
 * been read.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "source/source_impl.h"

#include "base/mem.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

struct sliced {
    struct dnn_source base;
    struct dnn_source *from; /* owned */
    struct dnn_source_slices how;
    struct dnn_slices *set, *put; /* owned */
    const char **name;            /* owned */
    pthread_mutex_t lock;
    struct dnn_sample *volume; /* owned; one for each of from's, empty until read */
};

static bool has_space(const struct dnn_column *col)
{
    return col->kind == DNN_KIND_IMAGE || col->kind == DNN_KIND_MASK;
}

void dnn_source_slice_at(const struct dnn_source_slices *slices, int64_t sample,
                         int64_t *volume, int *set, int64_t *box)
{
    *volume = sample / slices->each;
    *box = sample % slices->each;
    for (*set = 0; *box >= slices->set[*set].total; ++*set)
        *box -= slices->set[*set].total;
}

/* ---- reading ---- */

/* Reads a volume unless it is in memory; thread-safe. */
static int get_volume(struct sliced *s, int64_t v, const struct dnn_sample **out,
                      struct dnn_err *err)
{
    struct dnn_sample *volume = &s->volume[v];
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (volume->ncols == 0) {
        rc = dnn_source_read(s->from, v, volume, err);
        if (rc < 0) dnn_sample_free(volume);
    }
    pthread_mutex_unlock(&s->lock);
    *out = volume;
    return rc;
}

static int wrong_extents(const struct sliced *s, int64_t v, int c,
                         const struct dnn_shape *shape, struct dnn_err *err)
{
    char name[DNN_SAMPLE_NAME], a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];
    struct dnn_shape full = {.ndim = s->set[0].nspace};

    memcpy(full.dim, s->set[0].full, sizeof s->set[0].full);
    dnn_source_label(s->from, v, name);
    return dnn_fail(err, DNN_EDATA,
                    "%s: %s is %s, but slices are cut from volumes of %s", name,
                    s->from->col[c].name, dnn_shape_text(a, sizeof a, shape),
                    dnn_shape_text(b, sizeof b, &full));
}

static bool has_extents(const struct dnn_slices *set, const struct dnn_shape *shape)
{
    bool same = shape->ndim == set->nspace + 1;

    for (int d = 0; same && d < set->nspace; d++)
        same = shape->dim[d] == set->full[d];
    return same;
}

static int read_slice(const struct dnn_source *source, int64_t i,
                      struct dnn_sample *out, struct dnn_err *err)
{
    struct sliced *s = (struct sliced *)(uintptr_t)source;
    const struct dnn_sample *volume;
    int64_t v, box;
    int set;

    dnn_source_slice_at(&s->how, i, &v, &set, &box);
    DNN_TRY(get_volume(s, v, &volume, err));
    out->ncols = source->ncols;
    for (int c = 0; c < source->ncols; c++) {
        const struct dnn_array *from = &volume->col[c];

        if (!has_space(&source->col[c])) {
            DNN_TRY(dnn_array_copy(from, &out->col[c], err));
            continue;
        }
        if (!has_extents(&s->set[set], &from->shape))
            return wrong_extents(s, v, c, &from->shape, err);
        DNN_TRY(dnn_slices_cut(&s->set[set], from, box, &out->col[c], err));
    }
    return 0;
}

/* The box of the volume that a box of slice number `box` is; false if a part of it is
 * in the padding, or its axes have another order. */
static bool box_of_volume(const struct dnn_slices *set, int64_t box,
                          const int64_t *start, const int64_t *extent, int64_t *first,
                          int64_t *n)
{
    int axis[DNN_MAX_SPACE], naxes = dnn_slices_axes(set, axis);

    dnn_slices_start(set, box, first);
    for (int d = 0; d < set->nspace; d++)
        n[d] = 1; /* an axis that the slice does not have */
    for (int k = 0; k < naxes; k++) {
        int d = axis[k];

        first[d] += start[k] - set->before[d];
        n[d] = extent[k];
        if (k > 0 && d < axis[k - 1]) return false;
    }
    for (int d = 0; d < set->nspace; d++)
        if (first[d] < 0 || first[d] > set->full[d] - n[d]) return false;
    first[set->nspace] = start[naxes];
    n[set->nspace] = extent[naxes];
    return true;
}

static int read_box(const struct dnn_source *source, int64_t i, int c,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    const struct sliced *s = (const struct sliced *)source;
    int64_t v, box, first[DNN_MAX_SPACE + 1], n[DNN_MAX_SPACE + 1];
    double spacing[DNN_MAX_SPACE];
    int set, axis[DNN_MAX_SPACE];
    struct dnn_shape shape;

    dnn_source_slice_at(&s->how, i, &v, &set, &box);
    if (!has_space(&source->col[c]))
        return dnn_source_try_box(s->from, v, c, start, extent, out, err);
    int rc = dnn_source_try_shape(s->from, v, c, &shape, err);
    if (rc != 0) return rc;
    if (!has_extents(&s->set[set], &shape)) return wrong_extents(s, v, c, &shape, err);
    if (!box_of_volume(&s->set[set], box, start, extent, first, n))
        return DNN_SOURCE_WHOLE;
    rc = dnn_source_try_box(s->from, v, c, first, n, out, err);
    if (rc != 0) return rc;
    int naxes = dnn_slices_axes(&s->set[set], axis);
    memcpy(spacing, out->spacing, sizeof spacing);
    memset(out->spacing, 0, sizeof out->spacing);
    out->shape = (struct dnn_shape){.ndim = naxes + 1};
    memcpy(out->shape.dim, extent, (size_t)(naxes + 1) * sizeof *extent);
    for (int k = 0; k < naxes; k++)
        out->spacing[k] = spacing[axis[k]];
    return 0;
}

/* Only the spacing: a part of a volume has no header of its own. */
static int position(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_position *out, struct dnn_err *err)
{
    const struct sliced *s = (const struct sliced *)source;
    struct dnn_position all;
    int64_t v, box;
    int set, axis[DNN_MAX_SPACE];

    *out = (struct dnn_position){0};
    dnn_source_slice_at(&s->how, i, &v, &set, &box);
    DNN_TRY(dnn_source_position(s->from, v, c, &all, err));
    for (int k = dnn_slices_axes(&s->set[set], axis); k-- > 0;)
        out->spacing[k] = all.spacing[axis[k]];
    return 0;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct sliced *s = (const struct sliced *)source;
    char name[DNN_SAMPLE_NAME];
    int64_t v, box;
    int set;

    dnn_source_slice_at(&s->how, i, &v, &set, &box);
    dnn_source_label(s->from, v, name);
    snprintf(out, DNN_SAMPLE_NAME, "%.400s: %.60s[%" PRId64 "]", name, s->name[set],
             box);
}

static void close_sliced(struct dnn_source *source)
{
    struct sliced *s = (struct sliced *)source;

    for (int64_t v = 0; v < s->from->count; v++)
        dnn_sample_free(&s->volume[v]);
    dnn_free(s->volume);
    dnn_free(s->set);
    dnn_free(s->put);
    dnn_free(s->name);
    pthread_mutex_destroy(&s->lock);
    dnn_source_close(s->from);
    dnn_free(s);
}

static const struct dnn_source_type type = {
    .name = "slices",
    .read = read_slice,
    .label = label,
    .close = close_sliced,
    .read_box = read_box,
    .position = position,
};

const struct dnn_source_slices *dnn_source_slices(const struct dnn_source *source)
{
    if (source == NULL || source->type != &type) return NULL;
    return &((const struct sliced *)source)->how;
}

/* ---- opening ---- */

static int wrong_axes(const struct dnn_column *col, int nsizes, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];

    return dnn_fail(
        err, DNN_EDATA,
        "data.slicers: %s of the data is %s, which has %d spatial axes, but "
        "there are %d sizes",
        col->name, dnn_shape_text(text, sizeof text, &col->shape), col->shape.ndim - 1,
        nsizes);
}

/* Unknown shapes are those of the first volume. */
static int fill_shapes(struct sliced *s, struct dnn_err *err)
{
    const struct dnn_sample *first;

    for (int c = 0; c < s->base.ncols; c++) {
        if (dnn_shape_known(&s->base.col[c].shape)) continue;
        DNN_TRY(get_volume(s, 0, &first, err));
        s->base.col[c].shape = first->col[c].shape;
    }
    return 0;
}

/* All volumes must fit into memory. */
static int check_memory(const struct sliced *s, int64_t limit, struct dnn_err *err)
{
    size_t all = 0, each;
    char a[32], b[32];

    if (limit <= 0) limit = (int64_t)(dnn_memory_total() / 2);
    for (int c = 0; c < s->base.ncols; c++) {
        const struct dnn_tensor volume = {NULL, s->base.col[c].type,
                                          s->base.col[c].shape};

        DNN_TRY(dnn_tensor_bytes(&volume, &each, err));
        all += each * (size_t)s->from->count;
    }
    if (all <= (size_t)limit) return 0;
    return dnn_fail(err, DNN_ENOMEM,
                    "data.slicers: %" PRId64 " volumes need %s of memory, more than "
                    "%s; cut them with dnn-prepare and its step \"slice\", or raise "
                    "data.memory",
                    s->from->count, dnn_text_bytes(a, sizeof a, (double)all),
                    dnn_text_bytes(b, sizeof b, (double)limit));
}

static int make_set(struct sliced *s, const struct dnn_slicer *how, int k,
                    const struct dnn_column *space, struct dnn_err *err)
{
    struct dnn_shape first, now;
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];

    s->name[k] = how->name == NULL ? "slices" : how->name;
    if (how->sizes.count != space->shape.ndim - 1)
        return wrong_axes(space, (int)how->sizes.count, err);
    if (dnn_slices_make(how, space->shape.ndim - 1, space->shape.dim, &s->set[k], err) <
        0)
        return dnn_prefix(err, "data.slicers[%d]: ", k);
    s->how.each += s->set[k].total;
    s->put[k] = s->set[k];
    for (int d = 0; how->discard_remainders && d < s->set[k].nspace; d++)
        s->put[k].full[d] =
            (s->set[k].count[d] - 1) * s->set[k].stride[d] + s->set[k].size[d];
    dnn_slices_shape(&s->set[0], 1, &first);
    dnn_slices_shape(&s->set[k], 1, &now);
    for (int i = 0; i < k; i++)
        if (strcmp(s->name[i], s->name[k]) == 0)
            return dnn_fail(err, DNN_ECONFIG,
                            "data.slicers[%d]: the name \"%s\" is used twice", k,
                            s->name[k]);
    if (dnn_shape_equal(&first, &now)) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "data.slicers[%d]: slices are %s, but %s in the first slicer; they "
                    "must be equal",
                    k, dnn_shape_text(a, sizeof a, &now),
                    dnn_shape_text(b, sizeof b, &first));
}

static int make_sets(struct sliced *s, const struct dnn_config_data *data,
                     struct dnn_err *err)
{
    const struct dnn_slicer *how = data->slicers.objects;
    const struct dnn_column *space = NULL;

    DNN_TRY(fill_shapes(s, err));
    for (int c = 0; c < s->base.ncols; c++) {
        const struct dnn_column *col = &s->base.col[c];

        if (!has_space(col)) continue;
        if (space == NULL) space = col;
        for (int d = 0; d < space->shape.ndim - 1; d++)
            if (col->shape.ndim != space->shape.ndim ||
                col->shape.dim[d] != space->shape.dim[d]) {
                char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];

                return dnn_fail(err, DNN_EDATA,
                                "data.slicers: %s is %s, but %s is %s; all volumes "
                                "must have the same shape",
                                space->name, dnn_shape_text(a, sizeof a, &space->shape),
                                col->name, dnn_shape_text(b, sizeof b, &col->shape));
            }
    }
    if (space == NULL)
        return dnn_fail(err, DNN_EDATA,
                        "data.slicers: the data has no spatial axes to cut");
    DNN_TRY(check_memory(s, data->memory, err));
    for (int k = 0; k < s->how.nsets; k++)
        DNN_TRY(make_set(s, &how[k], k, space, err));
    for (int c = 0; c < s->base.ncols; c++) {
        struct dnn_column *col = &s->base.col[c];

        if (has_space(col))
            dnn_slices_shape(&s->set[0], col->shape.dim[col->shape.ndim - 1],
                             &col->shape);
    }
    s->base.count = s->from->count * s->how.each;
    return 0;
}

int dnn_source_slice(struct dnn_source *from, const struct dnn_config_data *data,
                     struct dnn_source **out, struct dnn_err *err)
{
    struct sliced *s = dnn_alloc(sizeof *s);
    size_t n = (size_t)data->slicers.count;

    s->base = dnn_source_like(from, &type);
    s->from = from;
    s->set = dnn_alloc(n * sizeof *s->set);
    s->put = dnn_alloc(n * sizeof *s->put);
    s->name = dnn_alloc(n * sizeof *s->name);
    s->volume = dnn_alloc(((size_t)from->count + 1) * sizeof *s->volume);
    s->how = (struct dnn_source_slices){
        .nsets = (int)n, .set = s->set, .put = s->put, .name = s->name, .from = from};
    pthread_mutex_init(&s->lock, NULL);
    int rc = make_sets(s, data, err);
    if (rc < 0) {
        close_sliced(&s->base);
        return rc;
    }
    *out = &s->base;
    return 0;
}
