/* series.c - consecutive files as one source.
 *
 * Files of one sample each are opened and closed for every read; the one that boxes are
 * read from stays open.  Files of many samples are opened once to count the samples,
 * and the most recently used ones stay open.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/series_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

static const struct dnn_source_type series_type;

bool dnn_import_is_series(const struct dnn_source *source)
{
    return source->type == &series_type;
}

/* ---- counting ---- */

static int add_part(struct series *s, const struct dnn_source *from, int64_t p,
                    struct dnn_err *err)
{
    if (p == 0) {
        dnn_import_columns_copy(&s->base, from, s->arena);
        s->nfrom = from->ncols;
    } else {
        DNN_TRY(dnn_import_columns_join(&s->base, dnn_series_path(s, 0), from,
                                        dnn_series_path(s, p), err));
    }
    if (s->one_each) return 0;
    s->part[p].first = s->base.count;
    if (__builtin_add_overflow(s->base.count, from->count, &s->base.count))
        return dnn_fail(err, DNN_EDATA, "%s: the number of samples overflows",
                        dnn_series_path(s, p));
    s->part[p + 1].first = s->base.count;
    return 0;
}

static int read_one(const struct series *s, int64_t p, struct dnn_sample *out,
                    struct dnn_err *err)
{
    struct dnn_source *source;

    DNN_TRY(dnn_series_open_one(s, p, &source, err));
    int rc = dnn_source_read(source, 0, out, err);
    for (int k = 0; rc == 0 && k < s->nfrom; k++)
        rc = dnn_series_check(s, p, k, out->col[k].type, &out->col[k].shape, err);
    dnn_source_close(source);
    return rc;
}

/* ---- boxes ---- */

static int shape_of(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_shape *out, struct dnn_err *err)
{
    struct series *s = (struct series *)(uintptr_t)source;
    int64_t p = dnn_series_find(s, i), number;
    struct dnn_source *part;

    DNN_TRY(dnn_series_borrow(s, p, i, &part, &number, err));
    int rc = dnn_source_try_shape(part, number, c, out, err);
    if (rc == 0 && s->one_each)
        rc = dnn_series_check(s, p, c, part->col[c].type, out, err);
    dnn_series_return(s, p, part);
    return rc;
}

static int make_label(const struct series *s, int64_t p, struct dnn_array *out,
                      struct dnn_err *err)
{
    DNN_TRY(dnn_array_make(out, DNN_I32, &(struct dnn_shape){0}, err));
    *(int32_t *)out->data = (int32_t)s->list.file[p].class_of;
    return 0;
}

static int read_box(const struct dnn_source *source, int64_t i, int c,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    struct series *s = (struct series *)(uintptr_t)source;
    int64_t p = dnn_series_find(s, i), number;
    struct dnn_source *part;

    if (c == s->nfrom) return make_label(s, p, out, err);
    DNN_TRY(dnn_series_borrow(s, p, i, &part, &number, err));
    int rc = dnn_source_try_box(part, number, c, start, extent, out, err);
    dnn_series_return(s, p, part);
    return rc;
}

/* ---- reading ---- */

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    struct series *s = (struct series *)source;
    int64_t p = dnn_series_find(s, i);

    if (s->one_each) {
        DNN_TRY(read_one(s, p, out, err));
    } else {
        DNN_TRY(dnn_series_acquire(s, p, err));
        int rc = dnn_source_read(s->part[p].source, i - s->part[p].first, out, err);
        dnn_series_release(s, p);
        if (rc < 0) return rc;
    }
    out->ncols = s->base.ncols;
    return s->base.ncols > s->nfrom ? make_label(s, p, &out->col[s->nfrom], err) : 0;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    struct series *s = (struct series *)source;
    int64_t p = dnn_series_find(s, i);

    if (s->given)
        dnn_source_label(s->part[p].source, i - s->part[p].first, out);
    else if (s->one_each)
        snprintf(out, DNN_SAMPLE_NAME, "%s", s->list.file[p].name);
    else
        snprintf(out, DNN_SAMPLE_NAME, "%s[%" PRId64 "]", s->list.file[p].name,
                 i - s->part[p].first);
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    struct series *s = (struct series *)source;
    int64_t p = dnn_series_find(s, i), found = -1;

    if (s->base.ncols > s->nfrom) return s->list.file[p].class_of;
    if (s->one_each || dnn_series_acquire(s, p, NULL) < 0) return -1;
    const struct dnn_source *part = s->part[p].source;
    if (part->type->class_of != NULL)
        found = part->type->class_of(part, i - s->part[p].first);
    dnn_series_release(s, p);
    return found;
}

static void close_series(struct dnn_source *source)
{
    struct series *s = (struct series *)source;

    for (int64_t p = 0; s->part != NULL && p < s->nparts; p++)
        dnn_source_close(s->part[p].source);
    dnn_source_close(s->boxed.source);
    dnn_import_list_free(&s->list);
    dnn_arena_free(s->arena);
    pthread_mutex_destroy(&s->lock);
    dnn_free(s->part);
    dnn_free(s);
}

static const struct dnn_source_type series_type = {
    .name = "series",
    .read = read_sample,
    .label = label,
    .class_of = class_of,
    .close = close_series,
    .shape = shape_of,
    .read_box = read_box,
};

/* ---- making ---- */

static struct series *make(int64_t nparts)
{
    struct series *s = dnn_alloc(sizeof *s);

    s->base.type = &series_type;
    s->arena = dnn_arena_make();
    s->nparts = nparts;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

int dnn_import_series(struct dnn_source **part, int64_t nparts, struct dnn_source **out,
                      struct dnn_err *err)
{
    struct series *s = make(nparts);
    int64_t nfiles = 0;
    int rc = 0;

    s->given = true;
    s->part = dnn_alloc(((size_t)nparts + 1) * sizeof *s->part);
    for (int64_t p = 0; p < nparts; p++) {
        s->part[p].source = part[p];
        nfiles += part[p]->nfiles;
    }
    const char **file = dnn_arena_alloc(s->arena, (size_t)(nfiles + 1) * sizeof *file);
    s->base.file = file;
    for (int64_t p = 0; p < nparts && rc == 0; p++) {
        rc = add_part(s, part[p], p, err);
        for (int64_t f = 0; f < part[p]->nfiles; f++)
            file[s->base.nfiles++] = part[p]->file[f];
    }
    if (rc < 0)
        close_series(&s->base);
    else
        *out = &s->base;
    return rc;
}

/* Set to unknown the extents that may differ in other files.  Fixed are those of raw
 * files (given by the configuration), the channel of a mask, and extra columns. */
static void clear_extents(struct series *s, int k)
{
    struct dnn_column *col = &s->base.col[k];
    int n = col->kind == DNN_KIND_MASK ? col->shape.ndim - 1 : col->shape.ndim;

    if (s->list.file[0].importer == &dnn_importer_raw || col->role == DNN_ROLE_EXTRA)
        return;
    for (int d = 0; d < n; d++)
        col->shape.dim[d] = DNN_UNKNOWN;
}

/* Inspect all files, or only the first one if each is one sample. */
static int inspect_files(struct series *s, struct dnn_err *err)
{
    int64_t n = s->one_each ? 1 : s->nparts;

    for (int64_t p = 0; p < n; p++) {
        struct dnn_source *source;

        DNN_TRY(dnn_series_open_file(s, p, &source, err));
        int rc = add_part(s, source, p, err);
        dnn_source_close(source);
        if (rc < 0) return rc;
    }
    if (!s->one_each) return 0;
    s->base.count = s->nparts;
    for (int k = 0; k < s->nfrom && s->nparts > 1; k++)
        clear_extents(s, k);
    return 0;
}

static int add_class(struct series *s, const struct dnn_import_series_how *as,
                     struct dnn_err *err)
{
    if (s->nfrom == DNN_MAX_COLUMNS)
        return dnn_fail(
            err, DNN_EDATA,
            "%s: %d columns are the maximum, so there is none left for the class",
            dnn_series_path(s, 0), s->nfrom);
    struct dnn_column *col = &s->base.col[s->base.ncols++];
    *col = (struct dnn_column){.name = "target",
                               .role = DNN_ROLE_TARGET,
                               .kind = DNN_KIND_LABEL,
                               .type = DNN_I32,
                               .classes = as->nclasses,
                               .class_name = as->class_name};
    return 0;
}

int dnn_import_files(struct dnn_import_list *list,
                     const struct dnn_import_series_how *as, struct dnn_source **out,
                     struct dnn_err *err)
{
    struct series *s = make((int64_t)list->n);
    int rc;

    s->how = *as->how;
    s->target = as->target;
    s->one_each = as->one_each;
    s->list = *list;
    *list = (struct dnn_import_list){0};
    if (!s->one_each) s->part = dnn_alloc(((size_t)s->nparts + 1) * sizeof *s->part);
    const char **file = dnn_arena_alloc(s->arena, (s->list.n + 1) * sizeof *file);
    for (size_t i = 0; i < s->list.n; i++)
        file[i] = s->list.file[i].path;
    s->base.file = file;
    s->base.nfiles = (int64_t)s->list.n;
    rc = inspect_files(s, err);
    if (rc == 0 && as->nclasses > 0) rc = add_class(s, as, err);
    if (rc < 0)
        close_series(&s->base);
    else
        *out = &s->base;
    return rc;
}
