/* dataset_source.c - the samples of a dataset as a source.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "data/dataset_impl.h"
#include "sample/convert.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* A split, and its columns that the source has. */
struct part {
    int split;
    int64_t first; /* number of its first sample in the source */
    int column[DNN_MAX_COLUMNS];
};

struct from_dataset {
    struct dnn_source base;
    struct dnn_dataset *dataset; /* owned                                  */
    pthread_mutex_t lock;        /* of dataset, which is not thread-safe   */
    int nparts;
    struct part part[DNN_MAX_SPLITS];
};

static struct from_dataset *own_of(const struct dnn_source *source)
{
    return (struct from_dataset *)(uintptr_t)source;
}

/* The part that sample i is in, and its number in the split. */
static const struct part *find_part(const struct from_dataset *s, int64_t i,
                                    int64_t *sample)
{
    int k = 0;

    while (k + 1 < s->nparts && i >= s->part[k + 1].first)
        k++;
    *sample = i - s->part[k].first;
    return &s->part[k];
}

static const struct dnn_split *split_of(const struct from_dataset *s,
                                        const struct part *part)
{
    return &s->dataset->info.split[part->split];
}

/* ---- values ---- */

/* Restore scaled values; channel: number of the array's first one. */
static int restore(const struct dnn_stored *stored, int64_t channel,
                   struct dnn_array *array, struct dnn_err *err)
{
    int nscale = stored->nscale, n = nscale;
    int64_t count = dnn_array_count(array), bad;
    struct dnn_conversion conv = {.type = array->type};
    struct dnn_array real = {0};

    memcpy(array->spacing, stored->spacing, sizeof array->spacing);
    if (nscale == 0) return 0;
    if (nscale > 1) n = (int)array->shape.dim[array->shape.ndim - 1];
    if (nscale == 1) channel = 0;
    dnn_conversion_scale(&conv, n, stored->scale + channel, stored->offset + channel);
    int rc = dnn_array_make(&real, DNN_F32, &array->shape, err);
    if (rc == 0)
        rc = dnn_conversion_apply(&conv, array->data, real.data, count, &bad, err);
    if (rc == 0) {
        memcpy(real.spacing, array->spacing, sizeof real.spacing);
        dnn_array_swap(array, &real);
    }
    dnn_array_free(&real);
    return rc;
}

/* Read a column as stored, and its checksum.  The caller holds the lock. */
static int fetch(struct from_dataset *s, const struct part *part, int c, int64_t sample,
                 struct dnn_array *out, uint64_t *sum, struct dnn_err *err)
{
    struct dnn_dataset *d = s->dataset;
    int k = part->column[c];
    const struct dnn_column *stored = &split_of(s, part)->col[k].column;

    DNN_TRY(dnn_array_make(out, stored->type, &stored->shape, err));
    DNN_TRY(dnn_dataset_request(d, part->split, k, sample, 1, out->data, err));
    return dnn_bp_request(d->bp, d->sum[part->split][k], sample, 1, sum, err);
}

/* Damaged data must not get a new, valid checksum when it is prepared again. */
static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    struct from_dataset *s = own_of(source);
    uint64_t sum[DNN_MAX_COLUMNS];
    int64_t sample;
    const struct part *part = find_part(s, i, &sample);
    const struct dnn_split *split = split_of(s, part);
    int rc = 0;

    out->ncols = source->ncols;
    pthread_mutex_lock(&s->lock);
    for (int c = 0; rc == 0 && c < source->ncols; c++)
        rc = fetch(s, part, c, sample, &out->col[c], &sum[c], err);
    /* Also after an error: requests must not stay, because they point to out. */
    int fetched = dnn_dataset_fetch(s->dataset, rc < 0 ? NULL : err);
    pthread_mutex_unlock(&s->lock);
    DNN_TRY(rc < 0 ? rc : fetched);
    for (int c = 0; c < source->ncols; c++) {
        struct dnn_array *array = &out->col[c];

        if (sum[c] != XXH3_64bits(array->data, dnn_array_bytes(array)))
            return dnn_fail(
                err, DNN_EDATA,
                "%s: %s: sample %lld: checksum mismatch in %s; the file is damaged",
                s->dataset->path, split->name, (long long)sample, source->col[c].name);
        DNN_TRY(restore(&split->col[part->column[c]], 0, array, err));
    }
    return 0;
}

static int read_box(const struct dnn_source *source, int64_t i, int c,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    struct from_dataset *s = own_of(source);
    int64_t sample;
    const struct part *part = find_part(s, i, &sample);
    const struct dnn_stored *stored = &split_of(s, part)->col[part->column[c]];
    struct dnn_shape shape = stored->column.shape;
    int last = shape.ndim - 1;

    memcpy(shape.dim, extent, (size_t)shape.ndim * sizeof *extent);
    DNN_TRY(dnn_array_make(out, stored->column.type, &shape, err));
    pthread_mutex_lock(&s->lock);
    int rc = dnn_dataset_request_box(s->dataset, part->split, part->column[c], sample,
                                     start, extent, out->data, err);
    int fetched = dnn_dataset_fetch(s->dataset, rc < 0 ? NULL : err);
    pthread_mutex_unlock(&s->lock);
    DNN_TRY(rc < 0 ? rc : fetched);
    return restore(stored, last < 0 ? 0 : start[last], out, err);
}

/* ---- names, groups, classes ---- */

/* The name or group of a sample; false if it has none. */
static bool get_text(struct from_dataset *s, const struct part *part, int64_t sample,
                     bool group, char out[DNN_SAMPLE_NAME])
{
    char **text = NULL;

    pthread_mutex_lock(&s->lock);
    int rc =
        dnn_dataset_metadata(s->dataset, part->split, sample, 1, group ? NULL : &text,
                             NULL, group ? &text : NULL, NULL);
    pthread_mutex_unlock(&s->lock);
    if (rc < 0) return false;
    size_t len = strlen(text[0]);
    bool fits = len > 0 && len < DNN_SAMPLE_NAME;
    if (fits) memcpy(out, text[0], len + 1);
    dnn_free(text);
    return fits;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    struct from_dataset *s = own_of(source);
    int64_t sample;
    const struct part *part = find_part(s, i, &sample);

    if (!get_text(s, part, sample, false, out))
        snprintf(out, DNN_SAMPLE_NAME, "%.400s: %.32s[%lld]", s->dataset->path,
                 split_of(s, part)->name, (long long)sample);
}

static void group(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    struct from_dataset *s = own_of(source);
    int64_t sample;
    const struct part *part = find_part(s, i, &sample);

    if (!get_text(s, part, sample, true, out)) label(source, i, out);
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    static const int64_t none;
    struct dnn_array value = {0};
    int64_t class = -1;

    for (int c = 0; c < source->ncols; c++)
        if (source->col[c].kind == DNN_KIND_LABEL &&
            (read_box(source, i, c, &none, &none, &value, NULL) < 0 ||
             dnn_convert(value.data, value.type, &class, DNN_I64, 1, true, NULL) < 0))
            class = -1;
    dnn_array_free(&value);
    return class;
}

static void close_source(struct dnn_source *source)
{
    struct from_dataset *s = own_of(source);

    dnn_dataset_close(s->dataset);
    pthread_mutex_destroy(&s->lock);
    dnn_free(s);
}

static const struct dnn_source_type plain = {.name = "bp",
                                             .read = read_sample,
                                             .label = label,
                                             .class_of = class_of,
                                             .close = close_source,
                                             .read_box = read_box};
static const struct dnn_source_type grouped = {.name = "bp",
                                               .read = read_sample,
                                               .label = label,
                                               .group = group,
                                               .class_of = class_of,
                                               .close = close_source,
                                               .read_box = read_box};

/* ---- opening ---- */

static bool same_column(const struct dnn_stored *a, const struct dnn_stored *b)
{
    const struct dnn_column *x = &a->column, *y = &b->column;
    size_t scales = (size_t)a->nscale * sizeof *a->scale;

    return strcmp(x->name, y->name) == 0 && x->role == y->role && x->kind == y->kind &&
           x->type == y->type && dnn_shape_equal(&x->shape, &y->shape) &&
           a->nscale == b->nscale && memcmp(a->scale, b->scale, scales) == 0 &&
           memcmp(a->offset, b->offset, scales) == 0 &&
           memcmp(a->spacing, b->spacing, sizeof a->spacing) == 0;
}

static int check_scale(const struct from_dataset *s, const struct dnn_split *split,
                       const struct dnn_stored *stored, struct dnn_err *err)
{
    const struct dnn_shape *shape = &stored->column.shape;

    if (stored->nscale <= 1 ||
        (shape->ndim > 0 && shape->dim[shape->ndim - 1] == stored->nscale))
        return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s: %s: %s: damaged: %d scales, but it has another number of "
                    "channels",
                    s->dataset->path, split->name, stored->column.name, stored->nscale);
}

static int add_split(struct from_dataset *s, int number, bool targets,
                     struct dnn_err *err)
{
    const struct dnn_split *split = &s->dataset->info.split[number];
    const struct dnn_split *first = s->nparts > 0 ? split_of(s, &s->part[0]) : split;
    struct part *part = &s->part[s->nparts++];
    bool same = true;
    int n = 0;

    *part = (struct part){.split = number, .first = s->base.count};
    for (int k = 0; k < split->ncols; k++) {
        const struct dnn_stored *stored = &split->col[k];

        if (targets && stored->column.role != DNN_ROLE_TARGET) continue;
        DNN_TRY(check_scale(s, split, stored, err));
        if (s->nparts == 1) {
            s->base.col[n] = stored->column;
            if (stored->nscale > 0) s->base.col[n].type = DNN_F32;
        } else {
            same = same && n < s->base.ncols &&
                   same_column(&first->col[s->part[0].column[n]], stored);
        }
        part->column[n++] = k;
    }
    if (n == 0)
        return dnn_fail(err, DNN_EDATA, "%s: %s: contains no targets", s->dataset->path,
                        split->name);
    if (s->nparts == 1) s->base.ncols = n;
    s->base.count += split->count;
    if (same && n == s->base.ncols) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s: the splits %s and %s have different columns; set \"split\" to "
                    "one of them",
                    s->dataset->path, first->name, split->name);
}

static int add_splits(struct from_dataset *s, const char *split, bool targets,
                      struct dnn_err *err)
{
    const struct dnn_dataset_info *info = &s->dataset->info;
    int found = split == NULL ? -1 : dnn_dataset_find(s->dataset, split);

    if (split != NULL && found < 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: there is no split \"%s\"; the first split is \"%s\"",
                        s->dataset->path, split, info->split[0].name);
    for (int i = 0; i < info->nsplits; i++)
        if (split == NULL || i == found) DNN_TRY(add_split(s, i, targets, err));
    return 0;
}

int dnn_dataset_source(struct dnn_dataset *dataset, const char *split, bool targets,
                       struct dnn_source **out, struct dnn_err *err)
{
    struct from_dataset *s = dnn_alloc(sizeof *s);
    bool groups = true;

    s->dataset = dataset;
    pthread_mutex_init(&s->lock, NULL);
    int rc = add_splits(s, split, targets, err);
    if (rc < 0) {
        close_source(&s->base);
        return rc;
    }
    for (int i = 0; i < s->nparts; i++)
        groups = groups && dataset->meta[s->part[i].split].group_end >= 0;
    s->base.type = groups ? &grouped : &plain;
    s->base.nfiles = 1;
    s->base.file = (const char *const *)&dataset->path;
    if (split != NULL) s->base.split = split_of(s, &s->part[0])->name;
    *out = &s->base;
    return 0;
}

int dnn_dataset_source_open(const char *path, const char *split,
                            struct dnn_source **out, struct dnn_err *err)
{
    struct dnn_dataset *dataset;

    DNN_TRY(dnn_dataset_open(NULL, path, 1, &dataset, err));
    return dnn_dataset_source(dataset, split, false, out, err);
}
