/* series.c - consecutive files as one source.
 *
 * Files of one sample each are opened and closed for every read; the one that boxes are
 * read from stays open.  Files of many samples are opened once to count the samples,
 * and the most recently used ones stay open.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/import_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

enum { MAX_OPEN = 16 }; /* maximum open files, unless more are in use */

struct part {
    struct dnn_source *source; /* NULL: not open                                 */
    int64_t first;             /* index of its first sample                      */
    int users;                 /* number of threads reading it                   */
    uint64_t used;             /* clock of the last use                          */
};

struct series {
    struct dnn_source base;
    struct dnn_import how;
    bool target, one_each, given; /* given: the parts are open sources            */
    struct dnn_import_list list;
    struct part *part; /* nparts + 1 elements; NULL if one_each */
    struct part
        boxed; /* one_each: the file that boxes are read from; first: its number */
    int64_t nparts;
    int nfrom; /* columns of the files; a class may follow               */
    struct dnn_arena *arena;
    pthread_mutex_t lock; /* of source, users and used of parts */
    int nopen;
    uint64_t clock;
};

static const struct dnn_source_type series_type;

bool dnn_import_is_series(const struct dnn_source *source)
{
    return source->type == &series_type;
}

/* ---- one part ---- */

static const char *path_of(const struct series *s, int64_t p)
{
    return s->given ? s->part[p].source->type->name : s->list.file[p].path;
}

static int open_file(const struct series *s, int64_t p, struct dnn_source **out,
                     struct dnn_err *err)
{
    const struct dnn_import_file *file = &s->list.file[p];
    const struct dnn_import_side *side = s->target ? &s->how.target : &s->how.input;

    *out = NULL;
    return file->importer->open(file->path, &s->how, side, out, err);
}

/* Close the least recently used files above the limit.  The caller holds the lock. */
static void close_some(struct series *s)
{
    while (!s->given && s->nopen > MAX_OPEN) {
        struct part *oldest = NULL;

        for (int64_t p = 0; p < s->nparts; p++)
            if (s->part[p].source != NULL && s->part[p].users == 0 &&
                (oldest == NULL || s->part[p].used < oldest->used))
                oldest = &s->part[p];
        if (oldest == NULL) return;
        dnn_source_close(oldest->source);
        oldest->source = NULL;
        s->nopen--;
    }
}

static int acquire(struct series *s, int64_t p, struct dnn_err *err)
{
    struct part *part = &s->part[p];
    int64_t expected = part[1].first - part->first;
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (part->source == NULL) {
        rc = open_file(s, p, &part->source, err);
        if (rc == 0) s->nopen++;
        if (rc == 0 && part->source->count != expected) {
            rc = dnn_fail(err, DNN_EDATA,
                          "%s: changed while it was read: %" PRId64
                          " samples at first, now %" PRId64,
                          path_of(s, p), expected, part->source->count);
            dnn_source_close(part->source);
            part->source = NULL;
            s->nopen--;
        }
    }
    if (rc == 0) {
        part->users++;
        part->used = ++s->clock;
        close_some(s);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static void release(struct series *s, int64_t p)
{
    pthread_mutex_lock(&s->lock);
    s->part[p].users--;
    close_some(s);
    pthread_mutex_unlock(&s->lock);
}

/* The part that sample i is in. */
static int64_t find_part(const struct series *s, int64_t i)
{
    int64_t low = 0, high = s->nparts;

    if (s->one_each) return i;
    while (high - low > 1) { /* part[low].first <= i < part[high].first */
        int64_t mid = low + (high - low) / 2;

        if (s->part[mid].first <= i)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* ---- counting ---- */

static int add_part(struct series *s, const struct dnn_source *from, int64_t p,
                    struct dnn_err *err)
{
    if (p == 0) {
        dnn_import_columns_copy(&s->base, from, s->arena);
        s->nfrom = from->ncols;
    } else {
        DNN_TRY(
            dnn_import_columns_join(&s->base, path_of(s, 0), from, path_of(s, p), err));
    }
    if (s->one_each) return 0;
    s->part[p].first = s->base.count;
    if (__builtin_add_overflow(s->base.count, from->count, &s->base.count))
        return dnn_fail(err, DNN_EDATA, "%s: the number of samples overflows",
                        path_of(s, p));
    s->part[p + 1].first = s->base.count;
    return 0;
}

/* ---- a file of one sample ---- */

/* Check column k of a file of one sample, which was not inspected when the series was
 * opened. */
static int check_column(const struct series *s, int64_t p, int k, enum dnn_dtype type,
                        const struct dnn_shape *shape, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT], expected[DNN_SHAPE_TEXT];
    const struct dnn_column *col = &s->base.col[k];
    bool same = type == col->type && shape->ndim == col->shape.ndim;

    for (int d = 0; same && d < col->shape.ndim; d++)
        same = col->shape.dim[d] == DNN_UNKNOWN || col->shape.dim[d] == shape->dim[d];
    if (same) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s: \"%s\" is %s %s, but in the first file, %s, it is %s %s",
                    path_of(s, p), col->name, dnn_dtype_name(type),
                    dnn_shape_text(text, sizeof text, shape), path_of(s, 0),
                    dnn_dtype_name(col->type),
                    dnn_shape_text(expected, sizeof expected, &col->shape));
}

/* Open a file of one sample. */
static int open_one(const struct series *s, int64_t p, struct dnn_source **out,
                    struct dnn_err *err)
{
    struct dnn_source *source;
    int rc = 0;

    DNN_TRY(open_file(s, p, &source, err));
    if (source->count != 1)
        rc = dnn_fail(err, DNN_EDATA, "%s: contains %" PRId64 " samples, expected one",
                      path_of(s, p), source->count);
    else if (source->ncols != s->nfrom)
        rc = dnn_fail(err, DNN_EDATA, "%s: %d columns, but %s has %d", path_of(s, p),
                      source->ncols, path_of(s, 0), s->nfrom);
    if (rc < 0)
        dnn_source_close(source);
    else
        *out = source;
    return rc;
}

static int read_one(const struct series *s, int64_t p, struct dnn_sample *out,
                    struct dnn_err *err)
{
    struct dnn_source *source;

    DNN_TRY(open_one(s, p, &source, err));
    int rc = dnn_source_read(source, 0, out, err);
    for (int k = 0; rc == 0 && k < s->nfrom; k++)
        rc = check_column(s, p, k, out->col[k].type, &out->col[k].shape, err);
    dnn_source_close(source);
    return rc;
}

/* ---- boxes ---- */

/* Acquire the source of part p; *number: of sample i in it.  One file of one sample
 * stays open; another one is only opened while all threads are done with it. */
static int acquire_part(struct series *s, int64_t p, int64_t i,
                        struct dnn_source **source, int64_t *number,
                        struct dnn_err *err)
{
    int rc = 0;

    *number = s->one_each ? 0 : i - s->part[p].first;
    if (!s->one_each) {
        DNN_TRY(acquire(s, p, err));
        *source = s->part[p].source;
        return 0;
    }
    pthread_mutex_lock(&s->lock);
    if (s->boxed.source == NULL || s->boxed.first != p) {
        rc = open_one(s, p, source, err);
        if (rc == 0 && s->boxed.users == 0) {
            dnn_source_close(s->boxed.source);
            s->boxed = (struct part){.source = *source, .first = p};
        }
    } else {
        *source = s->boxed.source;
    }
    if (rc == 0 && *source == s->boxed.source) s->boxed.users++;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static void release_part(struct series *s, int64_t p, struct dnn_source *source)
{
    if (!s->one_each) {
        release(s, p);
        return;
    }
    pthread_mutex_lock(&s->lock);
    bool kept = source == s->boxed.source;
    if (kept) s->boxed.users--;
    pthread_mutex_unlock(&s->lock);
    if (!kept) dnn_source_close(source);
}

static int shape_of(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_shape *out, struct dnn_err *err)
{
    struct series *s = (struct series *)(uintptr_t)source;
    int64_t p = find_part(s, i), number;
    struct dnn_source *part;

    DNN_TRY(acquire_part(s, p, i, &part, &number, err));
    int rc = dnn_source_try_shape(part, number, c, out, err);
    if (rc == 0 && s->one_each) rc = check_column(s, p, c, part->col[c].type, out, err);
    release_part(s, p, part);
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
    int64_t p = find_part(s, i), number;
    struct dnn_source *part;

    if (c == s->nfrom) return make_label(s, p, out, err);
    DNN_TRY(acquire_part(s, p, i, &part, &number, err));
    int rc = dnn_source_try_box(part, number, c, start, extent, out, err);
    release_part(s, p, part);
    return rc;
}

/* ---- reading ---- */

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    struct series *s = (struct series *)source;
    int64_t p = find_part(s, i);

    if (s->one_each) {
        DNN_TRY(read_one(s, p, out, err));
    } else {
        DNN_TRY(acquire(s, p, err));
        int rc = dnn_source_read(s->part[p].source, i - s->part[p].first, out, err);
        release(s, p);
        if (rc < 0) return rc;
    }
    out->ncols = s->base.ncols;
    return s->base.ncols > s->nfrom ? make_label(s, p, &out->col[s->nfrom], err) : 0;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    struct series *s = (struct series *)source;
    int64_t p = find_part(s, i);

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
    int64_t p = find_part(s, i), found = -1;

    if (s->base.ncols > s->nfrom) return s->list.file[p].class_of;
    if (s->one_each || acquire(s, p, NULL) < 0) return -1;
    const struct dnn_source *part = s->part[p].source;
    if (part->type->class_of != NULL)
        found = part->type->class_of(part, i - s->part[p].first);
    release(s, p);
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

        DNN_TRY(open_file(s, p, &source, err));
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
            path_of(s, 0), s->nfrom);
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
