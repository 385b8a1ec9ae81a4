/* dataset_finish.c - what is known only when all samples are written: their names,
 * folds, groups and sums, gathered on rank 0 and written by it, and the hash.
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

/* A portion as dataset_write.c noted it. */
struct note {
    int64_t split, first, n;
    const char *sum, *fold, *name, *group; /* fold, group: or NULL */
};

/* A split's arrays, on rank 0. */
struct column_of {
    uint64_t *sum[DNN_MAX_COLUMNS]; /* owned */
    uint64_t *about;                /* owned */
    int32_t *fold;                  /* owned; or NULL */
    struct dnn_buf name, group;     /* texts without NULs */
    int64_t *name_end, *group_end;  /* owned */
};

/* What the other ranks must know to define the arrays. */
struct sizes {
    int64_t name, group; /* bytes */
    int64_t groups;      /* there are some */
};

uint64_t dnn_dataset_about_sum(const char *name, int32_t fold, const char *group)
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

static struct note *read_notes(const struct dnn_dataset_info *info, const char *at,
                               size_t len, size_t *n)
{
    struct note *note = NULL;
    size_t cap = 0;

    *n = 0;
    for (const char *end = at + len; at < end;) {
        int64_t head[4];

        memcpy(head, at, sizeof head);
        at += sizeof head;
        note = dnn_grow(note, &cap, *n + 1, sizeof *note);
        struct note *x = &note[(*n)++];
        const struct dnn_split *s = &info->split[head[0]];
        *x = (struct note){.split = head[0], .first = head[1], .n = head[2], .sum = at};
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
    return note;
}

static int by_place(const void *a, const void *b)
{
    const struct note *x = a, *y = b;

    if (x->split != y->split) return x->split < y->split ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Each sample once. */
static int check_notes(const struct dnn_dataset_writer *w, const struct note *note,
                       size_t n, struct dnn_err *err)
{
    size_t at = 0;

    for (int i = 0; i < w->info->nsplits; i++) {
        const struct dnn_split *s = &w->info->split[i];
        int64_t next = 0;

        for (; at < n && note[at].split == i; at++) {
            if (note[at].first < next)
                return dnn_fail(err, DNN_EDATA, "%s: %s: sample %lld was written twice",
                                w->path, s->name, (long long)note[at].first);
            if (note[at].first > next) break;
            next += note[at].n;
        }
        if (next < s->count)
            return dnn_fail(err, DNN_EDATA,
                            "%s: %s: sample %lld (perhaps more) was not written",
                            w->path, s->name, (long long)next);
    }
    return 0;
}

static void fill(const struct dnn_split *s, const struct note *x, struct column_of *c)
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
        c->about[row] =
            dnn_dataset_about_sum(name, x->fold == NULL ? 0 : c->fold[row], group);
        name += strlen(name) + 1;
        if (group != NULL) group += strlen(group) + 1;
    }
}

static void make(const struct dnn_split *s, struct column_of *c)
{
    size_t n = (size_t)s->count;

    for (int k = 0; k < s->ncols; k++)
        c->sum[k] = dnn_alloc(n * 8);
    c->about = dnn_alloc(n * 8);
    c->fold = dnn_alloc(n * 4);
    c->name_end = dnn_alloc(n * 8);
    c->group_end = dnn_alloc(n * 8);
}

static void drop(struct column_of *c)
{
    for (int k = 0; k < DNN_MAX_COLUMNS; k++)
        dnn_free(c->sum[k]);
    dnn_free(c->about);
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

/* docs/dataset.md has this in words: a changed line there and here. */
static void hash_split(XXH3_state_t *h, const struct dnn_split *s,
                       const struct column_of *c, bool groups)
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

static void hash_all(const struct dnn_dataset_info *info, const struct column_of *c,
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
static int put(struct dnn_dataset_writer *w, const struct dnn_split *s,
               const char *column, const char *what, enum dnn_dtype type, int64_t n,
               const void *data, struct dnn_err *err)
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
                     const struct column_of *c, const struct sizes *size,
                     struct dnn_err *err)
{
    int64_t n = s->count;

    for (int k = 0; k < s->ncols; k++)
        DNN_TRY(put(w, s, s->col[k].column.name, ".sum", DNN_U64, n, c->sum[k], err));
    DNN_TRY(put(w, s, "name", "", DNN_U8, size->name, c->name.text, err));
    DNN_TRY(put(w, s, "name", ".end", DNN_I64, n, c->name_end, err));
    DNN_TRY(put(w, s, "name", ".sum", DNN_U64, n, c->about, err));
    if (s->folds > 0) DNN_TRY(put(w, s, "fold", "", DNN_I32, n, c->fold, err));
    if (size->groups == 0) return 0;
    DNN_TRY(put(w, s, "group", "", DNN_U8, size->group, c->group.text, err));
    return put(w, s, "group", ".end", DNN_I64, n, c->group_end, err);
}

/* On rank 0: from the notes of all to arrays, sizes and the hash. */
static int arrange(struct dnn_dataset_writer *w, const char *text, size_t len,
                   struct column_of *c, struct sizes *size, char hash[33],
                   struct dnn_err *err)
{
    size_t n;
    struct note *note = read_notes(w->info, text, len, &n);

    if (n > 0) qsort(note, n, sizeof *note, by_place);
    int rc = check_notes(w, note, n, err);
    for (int i = 0; rc == 0 && i < w->info->nsplits; i++)
        make(&w->info->split[i], &c[i]);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        fill(&w->info->split[note[i].split], &note[i], &c[note[i].split]);
        if (note[i].group != NULL) size[note[i].split].groups = 1;
    }
    for (int i = 0; rc == 0 && i < w->info->nsplits; i++) {
        size[i].name = (int64_t)c[i].name.len;
        size[i].group = (int64_t)c[i].group.len;
    }
    if (rc == 0) hash_all(w->info, c, size, hash);
    dnn_free(note);
    return rc;
}

int dnn_dataset_complete(struct dnn_dataset_writer *w, char hash[33],
                         struct dnn_err *err)
{
    struct column_of *c = dnn_alloc(DNN_MAX_SPLITS * sizeof *c);
    struct {
        struct sizes size[DNN_MAX_SPLITS];
        char hash[33];
    } told = {0};
    void *text = NULL;
    size_t len = 0;

    int rc = dnn_comm_collect(w->comm, "names and checksums", w->notes.text,
                              w->notes.len, &text, &len, err);
    if (rc == 0) {
        if (w->rank == 0) rc = arrange(w, text, len, c, told.size, told.hash, err);
        if (w->size > 1) rc = dnn_comm_agree(w->comm, rc, err);
    }
    dnn_free(text);
    if (rc == 0 && w->size > 1)
        rc = dnn_comm_bcast(w->comm, "sizes of names", &told, sizeof told, 0, err);
    if (rc == 0) {
        for (int i = 0; rc == 0 && i < w->info->nsplits; i++)
            rc = put_split(w, &w->info->split[i], &c[i], &told.size[i], err);
        if (rc == 0) rc = dnn_dataset_describe(w->bp, w->info, w->rank, err);
        if (rc == 0) rc = dnn_bp_attr_text(w->bp, "dataset/hash", told.hash, err);
        if (w->size > 1) rc = dnn_comm_agree(w->comm, rc, err);
    }
    if (rc == 0 && hash != NULL) memcpy(hash, told.hash, sizeof told.hash);
    for (int i = 0; i < DNN_MAX_SPLITS; i++)
        drop(&c[i]);
    dnn_free(c);
    return rc;
}
