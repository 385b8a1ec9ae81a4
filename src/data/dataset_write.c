/* dataset_write.c - writes samples to a dataset.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "data/dataset_impl.h"

#include <string.h>
#include <xxhash.h>

static int agree(struct dnn_dataset_writer *w, int rc, struct dnn_err *err)
{
    return w->size > 1 ? dnn_comm_agree(w->comm, rc, err) : rc;
}

static bool is_name(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                "0123456789_.-")] == '\0';
}

/* Names that are reserved for other arrays. */
static bool is_reserved(const char *name)
{
    static const char *const names[] = {"name", "fold", "group"};
    static const char *const ends[] = {".sum", ".end", ".histogram", ".class_count"};
    size_t len = strlen(name);

    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0) return true;
    for (int i = 0; i < 4; i++) {
        size_t n = strlen(ends[i]);
        if (len >= n && strcmp(name + len - n, ends[i]) == 0) return true;
    }
    return false;
}

static int check_column(const char *path, const struct dnn_split *split, int k,
                        struct dnn_err *err)
{
    const struct dnn_stored *s = &split->col[k];
    const struct dnn_column *c = &s->column;
    char text[DNN_SHAPE_TEXT];
    int64_t all;

    if (!is_name(c->name) || is_reserved(c->name))
        return dnn_fail(err, DNN_EDATA, "%s: %s: \"%s\" is not a valid column name",
                        path, split->name, c->name);
    for (int i = 0; i < k; i++)
        if (strcmp(split->col[i].column.name, c->name) == 0)
            return dnn_fail(err, DNN_EDATA, "%s: %s: duplicate column name %s", path,
                            split->name, c->name);
    if (!dnn_shape_known(&c->shape) || dnn_shape_count(&c->shape, &all, err) < 0 ||
        all < 1 || c->shape.ndim >= DNN_MAX_DIMS)
        return dnn_fail(err, DNN_EDATA, "%s: %s: %s cannot be stored with shape %s",
                        path, split->name, c->name,
                        dnn_shape_text(text, sizeof text, &c->shape));
    if (s->nscale < 0 || s->nscale > DNN_STATS_CHANNELS)
        return dnn_fail(err, DNN_EDATA, "%s: %s: %s: scale given for %d channels", path,
                        split->name, c->name, s->nscale);
    return 0;
}

static int check_info(const char *path, const struct dnn_dataset_info *info,
                      struct dnn_err *err)
{
    if (info->nsplits < 1 || info->nsplits > DNN_MAX_SPLITS)
        return dnn_fail(err, DNN_EDATA,
                        "%s: a dataset must have 1 to %d splits, not %d", path,
                        DNN_MAX_SPLITS, info->nsplits);
    for (int i = 0; i < info->nsplits; i++) {
        const struct dnn_split *s = &info->split[i];

        if (!is_name(s->name) || strcmp(s->name, "dataset") == 0)
            return dnn_fail(err, DNN_EDATA, "%s: \"%s\" is not a valid split name",
                            path, s->name);
        for (int k = 0; k < i; k++)
            if (strcmp(info->split[k].name, s->name) == 0)
                return dnn_fail(err, DNN_EDATA, "%s: duplicate split name %s", path,
                                s->name);
        if (s->count < 1 || s->chunk < 1 || s->ncols < 1 || s->folds < 0 ||
            s->ncols > DNN_MAX_COLUMNS)
            return dnn_fail(err, DNN_EDATA,
                            "%s: %s: impossible layout: %lld samples of %d columns in "
                            "chunks of %lld, %lld folds",
                            path, s->name, (long long)s->count, s->ncols,
                            (long long)s->chunk, (long long)s->folds);
        for (int k = 0; k < s->ncols; k++)
            DNN_TRY(check_column(path, s, k, err));
    }
    return 0;
}

static int define(struct dnn_dataset_writer *w, struct dnn_err *err)
{
    for (int i = 0; i < w->info->nsplits; i++) {
        const struct dnn_split *s = &w->info->split[i];

        for (int k = 0; k < s->ncols; k++) {
            const struct dnn_column *c = &s->col[k].column;
            struct dnn_shape shape = {.ndim = c->shape.ndim + 1, .dim = {s->count}};

            for (int d = 0; d < c->shape.ndim; d++)
                shape.dim[d + 1] = c->shape.dim[d];
            /* Labels and values are small: compression is not worthwhile. */
            bool plain = c->kind == DNN_KIND_LABEL || c->kind == DNN_KIND_VALUES;
            char *name = dnn_dataset_name(s, c->name, "");
            int rc =
                dnn_bp_define(w->bp, name, c->type, &shape, plain, &w->var[i][k], err);
            dnn_free(name);
            DNN_TRY(rc);
        }
    }
    return 0;
}

/* Broadcasts the temporary path from rank 0. */
static int share_part(struct dnn_dataset_writer *w, struct dnn_err *err)
{
    int64_t len = w->part == NULL ? 0 : (int64_t)strlen(w->part);

    if (w->size == 1) return 0;
    DNN_TRY(dnn_comm_bcast(w->comm, "name of a dataset", &len, sizeof len, 0, err));
    if (w->rank != 0) w->part = dnn_alloc((size_t)len + 1);
    return dnn_comm_bcast(w->comm, "name of a dataset", w->part, (size_t)len, 0, err);
}

static void release(struct dnn_dataset_writer *w)
{
    dnn_buf_free(&w->metadata);
    dnn_free(w->path);
    dnn_free(w->part);
    dnn_free(w);
}

int dnn_dataset_create(struct dnn_comm *comm, const char *path,
                       const struct dnn_dataset_info *info,
                       const struct dnn_bp_how *how, struct dnn_dataset_writer **out,
                       struct dnn_err *err)
{
    struct dnn_err own = {0};
    struct dnn_dataset_writer *w = dnn_alloc(sizeof *w);

    if (err == NULL) err = &own;
    w->comm = comm;
    w->size = comm == NULL ? 1 : dnn_comm_size(comm);
    w->rank = comm == NULL ? 0 : dnn_comm_rank(comm);
    w->info = info;
    w->replace = how != NULL && how->replace;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    w->path = dnn_strndup(path, len);
    int rc = check_info(w->path, info, err);
    if (rc == 0 && w->rank == 0)
        rc = dnn_dataset_temp_path(w->path, w->replace, &w->part, err);
    rc = agree(w, rc, err);
    if (rc == 0) rc = share_part(w, err);
    if (rc == 0) rc = dnn_bp_create(comm, w->part, how, &w->bp, err);
    if (rc == 0) rc = agree(w, define(w, err), err);
    if (rc < 0) {
        dnn_dataset_abandon(w);
        return rc;
    }
    *out = w;
    return 0;
}

static int check_put(const struct dnn_dataset_writer *w, int split, int64_t first,
                     int64_t n, const int32_t *fold, struct dnn_err *err)
{
    if (split < 0 || split >= w->info->nsplits)
        return dnn_fail(err, DNN_EDATA, "%s: no split number %d", w->path, split);
    const struct dnn_split *s = &w->info->split[split];
    int64_t left = s->count - first, want = left < s->chunk ? left : s->chunk;
    if (first < 0 || first >= s->count || first % s->chunk != 0 || n != want)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %s: samples %lld to %lld are not a chunk: chunks have "
                        "%lld of the %lld samples",
                        w->path, s->name, (long long)first, (long long)(first + n),
                        (long long)s->chunk, (long long)s->count);
    if ((fold != NULL) != (s->folds > 0))
        return dnn_fail(err, DNN_EDATA, "%s: %s: %lld folds, but %s given", w->path,
                        s->name, (long long)s->folds, fold == NULL ? "none" : "some");
    for (int64_t i = 0; fold != NULL && i < n; i++)
        if (fold[i] < 0 || fold[i] >= s->folds)
            return dnn_fail(err, DNN_EDATA, "%s: %s: sample %lld: no fold number %d",
                            w->path, s->name, (long long)(first + i), (int)fold[i]);
    return 0;
}

/* Appends the metadata of a chunk, for dataset_finish.c: split, first, n, whether there
 * are groups; checksums column by column; folds; names and groups with their NULs. */
static void add_metadata(struct dnn_dataset_writer *w, int split, int64_t first,
                         int64_t n, const void *const *data, const char *const *name,
                         const int32_t *fold, const char *const *group)
{
    const struct dnn_split *s = &w->info->split[split];
    int64_t head[4] = {split, first, n, group != NULL};

    dnn_buf_bytes(&w->metadata, head, sizeof head);
    for (int k = 0; k < s->ncols; k++) {
        struct dnn_tensor t = {.dtype = s->col[k].column.type,
                               .shape = s->col[k].column.shape};
        size_t bytes = 0;

        dnn_tensor_bytes(&t, &bytes, NULL); /* cannot fail: it was defined */
        for (int64_t i = 0; i < n; i++) {
            uint64_t sum =
                XXH3_64bits((const char *)data[k] + (size_t)i * bytes, bytes);
            dnn_buf_bytes(&w->metadata, &sum, sizeof sum);
        }
    }
    for (int64_t i = 0; fold != NULL && i < n; i++)
        dnn_buf_bytes(&w->metadata, &fold[i], sizeof fold[i]);
    for (int64_t i = 0; i < n; i++)
        dnn_buf_bytes(&w->metadata, name[i], strlen(name[i]) + 1);
    for (int64_t i = 0; group != NULL && i < n; i++)
        dnn_buf_bytes(&w->metadata, group[i], strlen(group[i]) + 1);
}

int dnn_dataset_put(struct dnn_dataset_writer *w, int split, int64_t first, int64_t n,
                    const void *const *data, const char *const *name,
                    const int32_t *fold, const char *const *group, struct dnn_err *err)
{
    DNN_TRY(check_put(w, split, first, n, fold, err));
    for (int k = 0; k < w->info->split[split].ncols; k++)
        DNN_TRY(dnn_bp_put(w->bp, w->var[split][k], first, n, data[k], err));
    add_metadata(w, split, first, n, data, name, fold, group);
    return 0;
}

int dnn_dataset_flush(struct dnn_dataset_writer *w, struct dnn_err *err)
{
    return dnn_bp_flush(w->bp, err);
}

int dnn_dataset_finish(struct dnn_dataset_writer *w, char hash[33], struct dnn_err *err)
{
    struct dnn_err own = {0};

    if (err == NULL) err = &own;
    int rc = dnn_dataset_complete(w, hash, err);
    if (rc == 0) {
        rc = dnn_bp_finish(w->bp, err);
        w->bp = NULL;
    }
    if (rc == 0) {
        if (w->rank == 0) rc = dnn_dataset_publish(w->part, w->path, w->replace, err);
        rc = agree(w, rc, err);
    }
    if (rc < 0) {
        dnn_dataset_abandon(w);
        return rc;
    }
    release(w);
    return 0;
}

void dnn_dataset_abandon(struct dnn_dataset_writer *w)
{
    if (w == NULL) return;
    dnn_bp_close(w->bp);
    /* If other ranks are still writing, the next writer removes the rest. */
    if (w->rank == 0 && w->part != NULL) dnn_file_remove_tree(w->part, NULL);
    release(w);
}
