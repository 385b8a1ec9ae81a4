/* dataset_finish.c - writes what is complete only at the end: names, folds, groups and
 * checksums, which rank 0 gathers, and the hash.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "comm/collect.h"
#include "data/dataset_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The metadata of a chunk, as dataset_write.c encodes it. */
struct chunk_meta {
    int64_t split, first, n;
    const char *sum, *fold, *name, *group; /* fold, group: or NULL */
};

/* A split's arrays, on rank 0. */
struct arrays {
    uint64_t *sum[DNN_MAX_COLUMNS]; /* owned */
    uint64_t *meta_sum;             /* owned */
    int32_t *fold;                  /* owned; or NULL */
    struct dnn_buf name, group;     /* strings without NULs */
    int64_t *name_end, *group_end;  /* owned */
};

/* What all ranks need to define the arrays. */
struct sizes {
    int64_t name, group; /* bytes */
    int64_t groups;      /* 0: there are none */
};

uint64_t dnn_dataset_metadata_sum(const char *name, int32_t fold, const char *group)
{
    struct dnn_buf all = {0};

    dnn_buf_bytes(&all, name, strlen(name) + 1);
    dnn_buf_bytes(&all, &fold, sizeof fold);
    if (group != NULL) dnn_buf_bytes(&all, group, strlen(group) + 1);
    uint64_t sum = XXH3_64bits(all.text, all.len);
    dnn_buf_free(&all);
    return sum;
}

static const char *skip_texts(const char *at, int64_t n)
{
    while (n-- > 0)
        at += strlen(at) + 1;
    return at;
}

static struct chunk_meta *read_metadata(const struct dnn_dataset_info *info,
                                        const char *at, size_t len, size_t *n)
{
    struct chunk_meta *meta = NULL;
    size_t cap = 0;

    *n = 0;
    for (const char *end = at + len; at < end;) {
        int64_t head[4];

        memcpy(head, at, sizeof head);
        at += sizeof head;
        meta = dnn_grow(meta, &cap, *n + 1, sizeof *meta);
        struct chunk_meta *x = &meta[(*n)++];
        const struct dnn_split *s = &info->split[head[0]];
        *x = (struct chunk_meta){
            .split = head[0], .first = head[1], .n = head[2], .sum = at};
        at += (size_t)s->ncols * (size_t)x->n * 8;
        if (s->folds > 0) {
            x->fold = at;
            at += (size_t)x->n * 4;
        }
        x->name = at;
        at = skip_texts(at, x->n);
        if (head[3]) {
            x->group = at;
            at = skip_texts(at, x->n);
        }
    }
    return meta;
}

static int by_position(const void *a, const void *b)
{
    const struct chunk_meta *x = a, *y = b;

    if (x->split != y->split) return x->split < y->split ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Each sample must have been put once. */
static int check_metadata(const struct dnn_dataset_writer *w,
                          const struct chunk_meta *meta, size_t n, struct dnn_err *err)
{
    size_t at = 0;

    for (int i = 0; i < w->info->nsplits; i++) {
        const struct dnn_split *s = &w->info->split[i];
        int64_t next = 0;

        for (; at < n && meta[at].split == i; at++) {
            if (meta[at].first < next)
                return dnn_fail(err, DNN_EDATA, "%s: %s: sample %lld was written twice",
                                w->path, s->name, (long long)meta[at].first);
            if (meta[at].first > next) break;
            next += meta[at].n;
        }
        if (next < s->count)
            return dnn_fail(err, DNN_EDATA,
                            "%s: %s: sample %lld (perhaps more) was not written",
                            w->path, s->name, (long long)next);
    }
    return 0;
}

static void fill_arrays(const struct dnn_split *s, const struct chunk_meta *x,
                        struct arrays *c)
{
    const char *name = x->name, *group = x->group;

    for (int k = 0; k < s->ncols; k++)
        memcpy(c->sum[k] + x->first, x->sum + (size_t)k * (size_t)x->n * 8,
               (size_t)x->n * 8);
    if (x->fold != NULL) memcpy(c->fold + x->first, x->fold, (size_t)x->n * 4);
    for (int64_t i = 0; i < x->n; i++) {
        int64_t row = x->first + i;

        dnn_buf_bytes(&c->name, name, strlen(name));
        c->name_end[row] = (int64_t)c->name.len;
        if (group != NULL) dnn_buf_bytes(&c->group, group, strlen(group));
        c->group_end[row] = (int64_t)c->group.len;
        c->meta_sum[row] =
            dnn_dataset_metadata_sum(name, x->fold == NULL ? 0 : c->fold[row], group);
        name += strlen(name) + 1;
        if (group != NULL) group += strlen(group) + 1;
    }
}

static void alloc_arrays(const struct dnn_split *s, struct arrays *c)
{
    size_t n = (size_t)s->count;

    for (int k = 0; k < s->ncols; k++)
        c->sum[k] = dnn_alloc(n * 8);
    c->meta_sum = dnn_alloc(n * 8);
    c->fold = dnn_alloc(n * 4);
    c->name_end = dnn_alloc(n * 8);
    c->group_end = dnn_alloc(n * 8);
}

static void free_arrays(struct arrays *c)
{
    for (int k = 0; k < DNN_MAX_COLUMNS; k++)
        dnn_free(c->sum[k]);
    dnn_free(c->meta_sum);
    dnn_free(c->fold);
    dnn_free(c->name_end);
    dnn_free(c->group_end);
    dnn_buf_free(&c->name);
    dnn_buf_free(&c->group);
}

/* ---- the hash ---- */

static void hash_text(XXH3_state_t *h, const char *fmt, ...) DNN_PRINTF(2, 3);
static void hash_text(XXH3_state_t *h, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    XXH3_128bits_update(h, text, (size_t)n);
}

static void hash_column(XXH3_state_t *h, const struct dnn_stored *s)
{
    const struct dnn_column *c = &s->column;
    char shape[DNN_SHAPE_TEXT];

    hash_text(h, "column %s %s %s %s %s %lld\n", c->name,
              dnn_choice_name(dnn_role_choices, (int)c->role),
              dnn_choice_name(dnn_kind_choices, (int)c->kind), dnn_dtype_name(c->type),
              dnn_shape_text(shape, sizeof shape, &c->shape), (long long)c->classes);
    for (int64_t i = 0; c->class_name != NULL && i < c->classes; i++)
        XXH3_128bits_update(h, c->class_name[i], strlen(c->class_name[i]) + 1);
    XXH3_128bits_update(h, s->scale, (size_t)s->nscale * sizeof s->scale[0]);
    XXH3_128bits_update(h, s->offset, (size_t)s->nscale * sizeof s->offset[0]);
    XXH3_128bits_update(h, s->spacing, sizeof s->spacing);
}

/* Described in docs/dataset.md: change both together. */
static void hash_split(XXH3_state_t *h, const struct dnn_split *s,
                       const struct arrays *c, bool groups)
{
    size_t n = (size_t)s->count;

    hash_text(h, "split %s %lld %lld\n", s->name, (long long)s->count,
              (long long)s->folds);
    for (int k = 0; k < s->ncols; k++) {
        hash_column(h, &s->col[k]);
        XXH3_128bits_update(h, c->sum[k], n * 8);
    }
    XXH3_128bits_update(h, c->name.text == NULL ? "" : c->name.text, c->name.len);
    XXH3_128bits_update(h, c->name_end, n * 8);
    if (s->folds > 0) XXH3_128bits_update(h, c->fold, n * 4);
    if (!groups) return;
    XXH3_128bits_update(h, c->group.text == NULL ? "" : c->group.text, c->group.len);
    XXH3_128bits_update(h, c->group_end, n * 8);
}

static void hash_all(const struct dnn_dataset_info *info, const struct arrays *c,
                     const struct sizes *size, char hash[33])
{
    XXH3_state_t *h = XXH3_createState();

    XXH3_128bits_reset(h);
    for (int i = 0; i < info->nsplits; i++)
        hash_split(h, &info->split[i], &c[i], size[i].groups != 0);
    XXH128_hash_t sum = XXH3_128bits_digest(h);
    XXH3_freeState(h);
    snprintf(hash, 33, "%016llx%016llx", (unsigned long long)sum.high64,
             (unsigned long long)sum.low64);
}

/* ---- writing ---- */

/* An array of one axis, put by rank 0; on the others data is NULL. */
static int put_array(struct dnn_dataset_writer *w, const struct dnn_split *s,
                     const char *column, const char *what, enum dnn_dtype type,
                     int64_t n, const void *data, struct dnn_err *err)
{
    struct dnn_shape shape = {.ndim = 1, .dim = {n}};
    char *name = dnn_dataset_name(s, column, what);
    int var = -1;

    if (n == 0) { /* all names are empty: there is no such array */
        dnn_free(name);
        return 0;
    }
    int rc = dnn_bp_define(w->bp, name, type, &shape, true, &var, err);
    if (rc == 0 && w->rank == 0) rc = dnn_bp_put(w->bp, var, 0, n, data, err);
    dnn_free(name);
    return rc;
}

static int put_split(struct dnn_dataset_writer *w, const struct dnn_split *s,
                     const struct arrays *c, const struct sizes *size,
                     struct dnn_err *err)
{
    int64_t n = s->count;

    for (int k = 0; k < s->ncols; k++)
        DNN_TRY(
            put_array(w, s, s->col[k].column.name, ".sum", DNN_U64, n, c->sum[k], err));
    DNN_TRY(put_array(w, s, "name", "", DNN_U8, size->name, c->name.text, err));
    DNN_TRY(put_array(w, s, "name", ".end", DNN_I64, n, c->name_end, err));
    DNN_TRY(put_array(w, s, "name", ".sum", DNN_U64, n, c->meta_sum, err));
    if (s->folds > 0) DNN_TRY(put_array(w, s, "fold", "", DNN_I32, n, c->fold, err));
    if (size->groups == 0) return 0;
    DNN_TRY(put_array(w, s, "group", "", DNN_U8, size->group, c->group.text, err));
    return put_array(w, s, "group", ".end", DNN_I64, n, c->group_end, err);
}

/* Rank 0: makes arrays, sizes and the hash from the metadata of all ranks. */
static int build_arrays(struct dnn_dataset_writer *w, const char *text, size_t len,
                        struct arrays *c, struct sizes *size, char hash[33],
                        struct dnn_err *err)
{
    size_t n;
    struct chunk_meta *meta = read_metadata(w->info, text, len, &n);

    if (n > 0) qsort(meta, n, sizeof *meta, by_position);
    int rc = check_metadata(w, meta, n, err);
    for (int i = 0; rc == 0 && i < w->info->nsplits; i++)
        alloc_arrays(&w->info->split[i], &c[i]);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        fill_arrays(&w->info->split[meta[i].split], &meta[i], &c[meta[i].split]);
        if (meta[i].group != NULL) size[meta[i].split].groups = 1;
    }
    for (int i = 0; rc == 0 && i < w->info->nsplits; i++) {
        size[i].name = (int64_t)c[i].name.len;
        size[i].group = (int64_t)c[i].group.len;
    }
    if (rc == 0) hash_all(w->info, c, size, hash);
    dnn_free(meta);
    return rc;
}

int dnn_dataset_complete(struct dnn_dataset_writer *w, char hash[33],
                         struct dnn_err *err)
{
    struct arrays *c = dnn_alloc(DNN_MAX_SPLITS * sizeof *c);
    struct {
        struct sizes size[DNN_MAX_SPLITS];
        char hash[33];
    } shared = {0};
    void *text = NULL;
    size_t len = 0;

    int rc = dnn_comm_collect(w->comm, "names and checksums", w->metadata.text,
                              w->metadata.len, &text, &len, err);
    if (rc == 0) {
        if (w->rank == 0)
            rc = build_arrays(w, text, len, c, shared.size, shared.hash, err);
        if (w->size > 1) rc = dnn_comm_agree(w->comm, rc, err);
    }
    dnn_free(text);
    if (rc == 0 && w->size > 1)
        rc = dnn_comm_bcast(w->comm, "sizes of names", &shared, sizeof shared, 0, err);
    if (rc == 0) {
        for (int i = 0; rc == 0 && i < w->info->nsplits; i++)
            rc = put_split(w, &w->info->split[i], &c[i], &shared.size[i], err);
        if (rc == 0) rc = dnn_dataset_describe(w->bp, w->info, w->rank, err);
        if (rc == 0) rc = dnn_bp_attr_text(w->bp, "dataset/hash", shared.hash, err);
        if (w->size > 1) rc = dnn_comm_agree(w->comm, rc, err);
    }
    if (rc == 0 && hash != NULL) memcpy(hash, shared.hash, sizeof shared.hash);
    for (int i = 0; i < DNN_MAX_SPLITS; i++)
        free_arrays(&c[i]);
    dnn_free(c);
    return rc;
}
