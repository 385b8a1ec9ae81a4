/* bp_dataset.c - a prepared dataset as a source, so that it can be prepared again.
 *
 * Its attributes describe the arrays (docs/dataset.md).  Scaled values are restored
 * (value = stored * scale + offset).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/bp_impl.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_SPLITS = 64, CHANNELS = 64 };

struct column {
    int nscale; /* 0: as stored */
    double scale[CHANNELS], offset[CHANNELS], spacing[DNN_MAX_SPACE];
    enum dnn_dtype stored;
};

struct split {
    char *name; /* owned */
    int64_t first, count;
    int var[DNN_MAX_COLUMNS], sum[DNN_MAX_COLUMNS];
    int name_end, name_bytes, group_end, group_bytes; /* -1: none */
};

struct dataset {
    struct dnn_source base;
    struct dnn_bp *bp;
    pthread_mutex_t lock; /* of bp, which is not thread-safe */
    char *path;           /* owned */
    struct dnn_arena *arena;
    bool target; /* only target columns */
    int nsplits;
    struct split split[MAX_SPLITS];
    struct column col[DNN_MAX_COLUMNS];
};

/* ---- reading ---- */

static const struct split *find_split(const struct dataset *d, int64_t i, int64_t *row)
{
    int k = 0;

    while (k + 1 < d->nsplits && i >= d->split[k + 1].first)
        k++;
    *row = i - d->split[k].first;
    return &d->split[k];
}

static int fetch(const struct dataset *d, int var, int64_t first, int64_t rows,
                 void *to, struct dnn_err *err)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&d->lock;

    pthread_mutex_lock(lock);
    int rc = dnn_bp_request(d->bp, var, first, rows, to, err);
    if (rc == 0) rc = dnn_bp_fetch(d->bp, err);
    pthread_mutex_unlock(lock);
    return rc;
}

static void apply_scale(const struct column *c, struct dnn_array *array)
{
    float *x = array->data;
    int64_t n = dnn_array_count(array), channels = c->nscale;

    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] * c->scale[i % channels] + c->offset[i % channels]);
}

/* Damaged data must not get a new, valid checksum. */
static int check_sum(const struct dataset *d, const struct split *s, int k, int64_t row,
                     const struct dnn_array *array, struct dnn_err *err)
{
    uint64_t sum;

    DNN_TRY(fetch(d, s->sum[k], row, 1, &sum, err));
    if (sum == XXH3_64bits(array->data, dnn_array_bytes(array))) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s: %s: sample %lld: checksum mismatch in %s; the file is damaged",
                    d->path, s->name, (long long)row, d->base.col[k].name);
}

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    const struct dataset *d = (const struct dataset *)source;
    int64_t row;

    if (i < 0 || i >= source->count)
        return dnn_fail(err, DNN_EDATA,
                        "%s: sample %lld requested, but there are only %lld", d->path,
                        (long long)i, (long long)source->count);
    const struct split *s = find_split(d, i, &row);
    out->ncols = source->ncols;
    for (int k = 0; k < source->ncols; k++) {
        struct dnn_array *array = &out->col[k];

        DNN_TRY(dnn_array_make(array, d->col[k].stored, &source->col[k].shape, err));
        DNN_TRY(fetch(d, s->var[k], row, 1, array->data, err));
        DNN_TRY(check_sum(d, s, k, row, array, err));
        if (d->col[k].nscale > 0) {
            DNN_TRY(dnn_array_convert(array, DNN_F32, false, err));
            apply_scale(&d->col[k], array);
        }
        memcpy(array->spacing, d->col[k].spacing, sizeof array->spacing);
    }
    return 0;
}

/* Read the string of a row; the strings are concatenated, with the end of each in
 * another array.  False if there is none. */
static bool read_text(const struct dataset *d, int ends, int bytes, int64_t row,
                      char out[DNN_SAMPLE_NAME])
{
    int64_t end[2] = {0, 0}, before = row > 0;

    if (ends < 0 ||
        fetch(d, ends, row - before, 1 + before, end + 1 - before, NULL) < 0)
        return false;
    int64_t len = end[1] - end[0];
    if (end[0] < 0 || len < 0 || len >= DNN_SAMPLE_NAME) return false;
    if (len > 0 && (bytes < 0 || fetch(d, bytes, end[0], len, out, NULL) < 0))
        return false;
    out[len] = '\0';
    return true;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct dataset *d = (const struct dataset *)source;
    int64_t row;
    const struct split *s = find_split(d, i, &row);

    if (!read_text(d, s->name_end, s->name_bytes, row, out) || out[0] == '\0')
        snprintf(out, DNN_SAMPLE_NAME, "%.400s: %.32s[%lld]", d->path, s->name,
                 (long long)row);
}

static void group(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct dataset *d = (const struct dataset *)source;
    int64_t row;
    const struct split *s = find_split(d, i, &row);

    if (!read_text(d, s->group_end, s->group_bytes, row, out) || out[0] == '\0')
        label(source, i, out);
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    const struct dataset *d = (const struct dataset *)source;
    int64_t row, class = -1;
    char number[8];
    const struct split *s = find_split(d, i, &row);

    for (int k = 0; k < source->ncols; k++)
        if (source->col[k].kind == DNN_KIND_LABEL &&
            (fetch(d, s->var[k], row, 1, number, NULL) < 0 ||
             dnn_convert(number, d->col[k].stored, &class, DNN_I64, 1, true, NULL) < 0))
            class = -1;
    return class;
}

static void close_dataset(struct dnn_source *source)
{
    struct dataset *d = (struct dataset *)source;

    dnn_bp_close(d->bp);
    pthread_mutex_destroy(&d->lock);
    for (int i = 0; i < d->nsplits; i++)
        dnn_free(d->split[i].name);
    dnn_arena_free(d->arena);
    dnn_free(d->path);
    dnn_free(d);
}

static const struct dnn_source_type grouped = {"bp",  read_sample, label,
                                               group, class_of,    close_dataset};
static const struct dnn_source_type plain = {"bp", read_sample, label,
                                             NULL, class_of,    close_dataset};

/* ---- opening ---- */

static int incomplete(const struct dataset *d, const char *name, struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA, "%s: incomplete description of %s", d->path, name);
}

/* The value of the string attribute "PREFIX/NAME" in choices, or -1. */
static int read_choice(struct dataset *d, const char *prefix, const char *name,
                       const struct dnn_choice *choices)
{
    char *full = dnn_format("%s/%s", prefix, name), *text = dnn_bp_text(d->bp, full);
    int value = -1;

    if (text == NULL || dnn_choice_find(choices, text, &value, NULL) < 0) value = -1;
    dnn_free(text);
    dnn_free(full);
    return value;
}

static int64_t read_reals(struct dataset *d, const char *prefix, const char *name,
                          double *to, int64_t max)
{
    char *full = dnn_format("%s/%s", prefix, name);
    int64_t n;
    double *x = dnn_bp_reals(d->bp, full, &n);

    if (n > max) n = -1;
    if (n > 0) memcpy(to, x, (size_t)n * sizeof *to);
    dnn_free(x);
    dnn_free(full);
    return n;
}

static void read_classes(struct dataset *d, const char *prefix, struct dnn_column *c)
{
    char *full = dnn_format("%s/classes", prefix);
    int64_t n, *x = dnn_bp_ints(d->bp, full, &n);

    if (n == 1 && x[0] > 0) c->classes = x[0];
    dnn_free(x);
    dnn_free(full);
    full = dnn_format("%s/class_names", prefix);
    char **list = dnn_bp_texts(d->bp, full, &n);
    dnn_free(full);
    if (list != NULL && n == c->classes) {
        const char **copy = dnn_arena_alloc(d->arena, (size_t)(n + 1) * sizeof *copy);

        for (int64_t i = 0; i < n; i++)
            copy[i] = dnn_arena_strdup(d->arena, list[i]);
        c->class_name = copy;
    }
    dnn_free(list);
}

/* The description and the array of one column of a split. */
static int read_column(struct dataset *d, const char *prefix, const char *name,
                       struct dnn_column *out, struct column *extra, int *var,
                       struct dnn_err *err)
{
    int role = read_choice(d, prefix, "role", dnn_role_choices);
    int kind = read_choice(d, prefix, "kind", dnn_kind_choices);
    int64_t nscale = read_reals(d, prefix, "scale", extra->scale, CHANNELS);
    int64_t noffset = read_reals(d, prefix, "offset", extra->offset, CHANNELS);

    *var = dnn_bp_find(d->bp, prefix);
    if (role < 0 || kind < 0 || *var < 0 || strlen(name) >= sizeof out->name ||
        nscale < 0 || noffset != nscale)
        return incomplete(d, prefix, err);
    const struct dnn_bp_var *v = dnn_bp_var(d->bp, *var);
    if (kind == DNN_KIND_LABEL && v->shape.ndim != 1) return incomplete(d, prefix, err);
    memcpy(out->name, name, strlen(name) + 1);
    out->role = (enum dnn_column_role)role;
    out->kind = (enum dnn_kind)kind;
    out->type = nscale > 0 ? DNN_F32 : v->type;
    out->shape.ndim = v->shape.ndim - 1;
    for (int i = 0; i < out->shape.ndim; i++)
        out->shape.dim[i] = v->shape.dim[i + 1];
    extra->nscale = (int)nscale;
    extra->stored = v->type;
    read_reals(d, prefix, "spacing", extra->spacing, DNN_MAX_SPACE);
    read_classes(d, prefix, out);
    return 0;
}

static bool same_column(const struct dnn_column *a, const struct dnn_column *b)
{
    return strcmp(a->name, b->name) == 0 && a->role == b->role && a->kind == b->kind &&
           a->type == b->type && dnn_shape_equal(&a->shape, &b->shape);
}

static int find_var(const struct dataset *d, const struct split *s, const char *name)
{
    char *full = dnn_format("%s/%s", s->name, name);
    int var = dnn_bp_find(d->bp, full);

    dnn_free(full);
    return var;
}

static int add_column(struct dataset *d, struct split *s, const char *name, int *n,
                      struct dnn_err *err)
{
    struct dnn_column c = {0};
    struct column extra = {0};
    char *prefix = dnn_format("%s/%s", s->name, name);
    int var, rc = read_column(d, prefix, name, &c, &extra, &var, err);

    dnn_free(prefix);
    if (rc < 0) return rc;
    if (d->target && c.role != DNN_ROLE_TARGET) return 0;
    if (*n >= DNN_MAX_COLUMNS) return incomplete(d, s->name, err);
    if (dnn_bp_var(d->bp, var)->shape.dim[0] != s->count)
        return incomplete(d, name, err);
    if (d->nsplits == 1) {
        d->base.col[*n] = c;
        d->col[*n] = extra;
    } else if (*n >= d->base.ncols || !same_column(&d->base.col[*n], &c) ||
               memcmp(&d->col[*n], &extra, sizeof extra) != 0) {
        return dnn_fail(err, DNN_EDATA,
                        "%s: the splits %s and %s have different columns; set "
                        "\"split\" to one of them",
                        d->path, d->split[0].name, s->name);
    }
    prefix = dnn_format("%s.sum", name);
    s->sum[*n] = find_var(d, s, prefix);
    dnn_free(prefix);
    if (s->sum[*n] < 0 || dnn_bp_var(d->bp, s->sum[*n])->shape.dim[0] != s->count ||
        dnn_bp_var(d->bp, s->sum[*n])->type != DNN_U64)
        return incomplete(d, name, err);
    s->var[(*n)++] = var;
    return 0;
}

static int add_split(struct dataset *d, const char *name, struct dnn_err *err)
{
    struct split *s = &d->split[d->nsplits++];
    int64_t n;
    int ncols = 0, rc = 0;

    s->name = dnn_strdup(name);
    char *full = dnn_format("%s/columns", name);
    char **list = dnn_bp_texts(d->bp, full, &n);
    dnn_free(full);
    s->first = d->base.count;
    s->name_end = find_var(d, s, "name.end");
    s->name_bytes = find_var(d, s, "name");
    s->group_end = find_var(d, s, "group.end");
    s->group_bytes = find_var(d, s, "group");
    if (list == NULL || n < 1 || s->name_end < 0)
        rc = incomplete(d, name, err);
    else
        s->count = dnn_bp_var(d->bp, s->name_end)->shape.dim[0];
    for (int64_t k = 0; rc == 0 && k < n; k++)
        rc = add_column(d, s, list[k], &ncols, err);
    dnn_free(list);
    if (rc < 0) return rc;
    if (ncols == 0)
        return dnn_fail(err, DNN_EDATA, "%s: %s: contains no targets", d->path, name);
    if (d->nsplits > 1 && ncols != d->base.ncols)
        return dnn_fail(err, DNN_EDATA,
                        "%s: the splits %s and %s have different columns; set "
                        "\"split\" to one of them",
                        d->path, d->split[0].name, name);
    d->base.ncols = ncols;
    d->base.count += s->count;
    return 0;
}

static int add_splits(struct dataset *d, const char *wanted, struct dnn_err *err)
{
    int64_t n;
    char **list = dnn_bp_texts(d->bp, "dataset/splits", &n);
    int rc = 0;

    if (list == NULL || n < 1 || n > MAX_SPLITS) rc = incomplete(d, "splits", err);
    for (int64_t i = 0; rc == 0 && i < n; i++)
        if (wanted == NULL || strcmp(wanted, list[i]) == 0)
            rc = add_split(d, list[i], err);
    if (rc == 0 && d->nsplits == 0)
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: there is no split \"%s\"; the first split is \"%s\"",
                      d->path, wanted, list[0]);
    dnn_free(list);
    return rc;
}

int dnn_import_dataset(struct dnn_bp *bp, const char *path,
                       const struct dnn_import *how, bool target,
                       struct dnn_source **out, struct dnn_err *err)
{
    struct dataset *d = dnn_alloc(sizeof *d);
    int rc = 0;

    d->bp = bp;
    d->path = dnn_strdup(path);
    d->arena = dnn_arena_make();
    d->target = target;
    pthread_mutex_init(&d->lock, NULL);
    if (!dnn_bp_complete(bp))
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: incomplete dataset: the file dnn.idx, which is written "
                      "last, is missing; prepare it again",
                      path);
    if (rc == 0) rc = add_splits(d, how->split, err);
    for (int k = 0; rc == 0 && k < d->base.ncols; k++)
        rc = dnn_import_fits(how, path, d->col[k].stored, &d->base.col[k].shape, err);
    if (rc < 0) {
        close_dataset(&d->base);
        return rc;
    }
    bool groups = true;
    for (int i = 0; i < d->nsplits; i++)
        groups &= d->split[i].group_end >= 0;
    d->base.type = groups ? &grouped : &plain;
    d->base.nfiles = 1;
    d->base.file = (const char *const *)&d->path;
    d->base.split = how->split;
    *out = &d->base;
    return 0;
}
