/* dataset_read.c - opens and reads datasets.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "data/dataset_impl.h"

#include <string.h>

int dnn_dataset_from(struct dnn_comm *comm, struct dnn_bp *bp, const char *path,
                     struct dnn_dataset **out, struct dnn_err *err)
{
    struct dnn_err own = {0};
    struct dnn_dataset *d = dnn_alloc(sizeof *d);

    if (err == NULL) err = &own;
    d->path = dnn_strdup(path);
    d->arena = dnn_arena_make();
    d->bp = bp;
    int rc = dnn_dataset_attributes(d, err);
    if (rc == 0) rc = dnn_dataset_stats(d, comm, err);
    if (comm != NULL && dnn_comm_size(comm) > 1) rc = dnn_comm_agree(comm, rc, err);
    if (rc < 0) {
        dnn_dataset_close(d);
        return rc;
    }
    *out = d;
    return 0;
}

int dnn_dataset_open(struct dnn_comm *comm, const char *path, int threads,
                     struct dnn_dataset **out, struct dnn_err *err)
{
    struct dnn_bp *bp;

    DNN_TRY(dnn_bp_open(comm, path, threads, &bp, err));
    return dnn_dataset_from(comm, bp, path, out, err);
}

void dnn_dataset_close(struct dnn_dataset *d)
{
    if (d == NULL) return;
    dnn_bp_close(d->bp);
    for (int i = 0; i < DNN_MAX_SPLITS; i++)
        for (int k = 0; k < DNN_MAX_COLUMNS; k++)
            dnn_free(d->info.split[i].col[k].stats);
    dnn_free(d->info.provenance);
    dnn_arena_free(d->arena);
    dnn_free(d->path);
    dnn_free(d);
}

const struct dnn_dataset_info *dnn_dataset_info(const struct dnn_dataset *d)
{
    return &d->info;
}

int dnn_dataset_find(const struct dnn_dataset *d, const char *split)
{
    for (int i = 0; i < d->info.nsplits; i++)
        if (strcmp(d->info.split[i].name, split) == 0) return i;
    return -1;
}

static int check_range(const struct dnn_dataset *d, int split, int column,
                       int64_t first, int64_t n, struct dnn_err *err)
{
    if (split < 0 || split >= d->info.nsplits)
        return dnn_fail(err, DNN_EDATA, "%s: no split number %d", d->path, split);
    const struct dnn_split *s = &d->info.split[split];
    if (column < 0 || column >= s->ncols)
        return dnn_fail(err, DNN_EDATA, "%s: %s: no column number %d", d->path, s->name,
                        column);
    if (first < 0 || n < 0 || n > s->count || first > s->count - n)
        return dnn_fail(
            err, DNN_EDATA,
            "%s: %s: samples %lld to %lld requested, but there are only %lld", d->path,
            s->name, (long long)first, (long long)(first + n), (long long)s->count);
    return 0;
}

int dnn_dataset_request(struct dnn_dataset *d, int split, int column, int64_t first,
                        int64_t n, void *to, struct dnn_err *err)
{
    DNN_TRY(check_range(d, split, column, first, n, err));
    return dnn_bp_request(d->bp, d->var[split][column], first, n, to, err);
}

int dnn_dataset_request_box(struct dnn_dataset *d, int split, int column,
                            int64_t sample, const int64_t *start, const int64_t *extent,
                            void *to, struct dnn_err *err)
{
    int64_t first[DNN_MAX_DIMS] = {sample}, n[DNN_MAX_DIMS] = {1};

    DNN_TRY(check_range(d, split, column, sample, 1, err));
    int ndim = d->info.split[split].col[column].column.shape.ndim;
    memcpy(first + 1, start, (size_t)ndim * sizeof *start);
    memcpy(n + 1, extent, (size_t)ndim * sizeof *extent);
    return dnn_bp_request_box(d->bp, d->var[split][column], first, n, to, err);
}

int dnn_dataset_fetch(struct dnn_dataset *d, struct dnn_err *err)
{
    return dnn_bp_fetch(d->bp, err);
}

static int fetch_rows(struct dnn_dataset *d, int var, int64_t first, int64_t n,
                      void *to, struct dnn_err *err)
{
    DNN_TRY(dnn_bp_request(d->bp, var, first, n, to, err));
    return dnn_bp_fetch(d->bp, err);
}

/* Reads n strings from an array of bytes; another array contains the end of each. */
static int read_texts(struct dnn_dataset *d, int bytes, int ends, int64_t first,
                      int64_t n, char ***out, struct dnn_err *err)
{
    int64_t before = first > 0, last = 0;
    int64_t *end = dnn_alloc((size_t)(n + 1) * sizeof *end);
    int64_t total = bytes < 0 ? 0 : dnn_bp_var(d->bp, bytes)->shape.dim[0];

    /* end[0] is the begin of the first string. */
    int rc = fetch_rows(d, ends, first - before, n + before, end + 1 - before, err);
    for (int64_t i = 0; rc == 0 && i <= n; last = end[i++])
        if (end[i] < last || end[i] > total)
            rc = dnn_fail(err, DNN_EDATA,
                          "%s: %s: damaged: the text of sample %lld ends at %lld",
                          d->path, dnn_bp_var(d->bp, ends)->name,
                          (long long)(first + i - 1), (long long)end[i]);
    if (rc < 0) {
        dnn_free(end);
        return rc;
    }
    size_t length = (size_t)(end[n] - end[0]), texts = (size_t)n * sizeof **out;
    char *raw = dnn_alloc(length + 1);
    char **list = dnn_alloc(texts + length + (size_t)n + 1);
    if (length > 0) rc = fetch_rows(d, bytes, end[0], (int64_t)length, raw, err);
    char *to = (char *)list + texts;
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        size_t len = (size_t)(end[i + 1] - end[i]);

        list[i] = to;
        memcpy(to, raw + (end[i] - end[0]), len);
        to += len + 1;
    }
    dnn_free(raw);
    dnn_free(end);
    if (rc < 0)
        dnn_free(list);
    else
        *out = list;
    return rc;
}

/* n empty strings, if the dataset has no groups. */
static char **no_texts(int64_t n)
{
    char **list = dnn_alloc((size_t)n * sizeof *list + 1);

    for (int64_t i = 0; i < n; i++)
        list[i] = (char *)list + (size_t)n * sizeof *list;
    return list;
}

int dnn_dataset_metadata(struct dnn_dataset *d, int split, int64_t first, int64_t n,
                         char ***name, int32_t *fold, char ***group,
                         struct dnn_err *err)
{
    DNN_TRY(check_range(d, split, 0, first, n, err));
    if (fold != NULL) {
        if (d->meta[split].fold < 0)
            memset(fold, 0, (size_t)n * sizeof *fold);
        else
            DNN_TRY(fetch_rows(d, d->meta[split].fold, first, n, fold, err));
    }
    if (name != NULL)
        DNN_TRY(read_texts(d, d->meta[split].name, d->meta[split].name_end, first, n,
                           name, err));
    if (group == NULL) return 0;
    if (d->meta[split].group_end < 0) {
        *group = no_texts(n);
        return 0;
    }
    int rc = read_texts(d, d->meta[split].group, d->meta[split].group_end, first, n,
                        group, err);
    if (rc < 0 && name != NULL) {
        dnn_free(*name);
        *name = NULL;
    }
    return rc;
}
