/* dataset_verify.c - compares samples with their checksums.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "data/dataset_impl.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { BUFFER = 16 << 20 };

static int fail(struct dnn_dataset *d, int split, int64_t sample, const char *what,
                struct dnn_err *err)
{
    char **name = NULL;
    struct dnn_err unused = {0};
    int found = dnn_dataset_metadata(d, split, sample, 1, &name, NULL, NULL, &unused);
    int rc = dnn_fail(
        err, DNN_EDATA,
        "%s: %s: sample %lld (%.200s): checksum mismatch in %s; the file is damaged",
        d->path, d->info.split[split].name, (long long)sample,
        found == 0 ? name[0] : "?", what);
    dnn_free(name);
    return rc;
}

static int verify_samples(struct dnn_dataset *d, int split, int column, int64_t first,
                          int64_t n, size_t bytes, char *buffer, uint64_t *sum,
                          struct dnn_err *err)
{
    DNN_TRY(dnn_bp_request(d->bp, d->var[split][column], first, n, buffer, err));
    DNN_TRY(dnn_bp_request(d->bp, d->sum[split][column], first, n, sum, err));
    DNN_TRY(dnn_bp_fetch(d->bp, err));
    for (int64_t i = 0; i < n; i++)
        if (XXH3_64bits(buffer + (size_t)i * bytes, bytes) != sum[i])
            return fail(d, split, first + i,
                        d->info.split[split].col[column].column.name, err);
    return 0;
}

static int verify_column(struct dnn_dataset *d, int split, int column, int64_t first,
                         int64_t n, struct dnn_err *err)
{
    const struct dnn_split *s = &d->info.split[split];
    const struct dnn_column *c = &s->col[column].column;
    struct dnn_tensor t = {.dtype = c->type, .shape = c->shape};
    size_t bytes;
    int rc = 0;

    DNN_TRY(dnn_tensor_bytes(&t, &bytes, err));
    int64_t many = bytes < BUFFER ? (int64_t)(BUFFER / bytes) : 1;
    if (many > s->chunk) many -= many % s->chunk; /* complete chunks only */
    if (many > n) many = n;
    char *buffer = malloc((size_t)many * bytes + 1);
    uint64_t *sum = dnn_alloc((size_t)many * sizeof *sum + 1);
    if (buffer == NULL)
        rc = dnn_fail(err, DNN_ENOMEM,
                      "%s: %s: not enough memory for a sample of %zu bytes", d->path,
                      s->name, bytes);
    while (rc == 0 && n > 0) {
        int64_t k = n < many ? n : many;

        rc = verify_samples(d, split, column, first, k, bytes, buffer, sum, err);
        first += k;
        n -= k;
    }
    free(buffer);
    dnn_free(sum);
    return rc;
}

static int verify_metadata(struct dnn_dataset *d, int split, int64_t first, int64_t n,
                           struct dnn_err *err)
{
    char **name = NULL, **group = NULL;
    int32_t *fold = dnn_alloc((size_t)n * sizeof *fold + 1);
    uint64_t *sum = dnn_alloc((size_t)n * sizeof *sum + 1);
    bool groups = d->meta[split].group_end >= 0;

    int rc = dnn_dataset_metadata(d, split, first, n, &name, fold,
                                  groups ? &group : NULL, err);
    if (rc == 0) rc = dnn_bp_request(d->bp, d->meta[split].sum, first, n, sum, err);
    if (rc == 0) rc = dnn_bp_fetch(d->bp, err);
    for (int64_t i = 0; rc == 0 && i < n; i++)
        if (dnn_dataset_metadata_sum(name[i], fold[i], groups ? group[i] : NULL) !=
            sum[i])
            rc = fail(d, split, first + i, "name, fold or group", err);
    dnn_free(name);
    dnn_free(group);
    dnn_free(fold);
    dnn_free(sum);
    return rc;
}

int dnn_dataset_verify(struct dnn_dataset *d, int split, int64_t first, int64_t n,
                       struct dnn_err *err)
{
    if (split < 0 || split >= d->info.nsplits)
        return dnn_fail(err, DNN_EDATA, "%s: no split number %d", d->path, split);
    const struct dnn_split *s = &d->info.split[split];
    if (first < 0 || n < 0 || n > s->count || first > s->count - n)
        return dnn_fail(
            err, DNN_EDATA,
            "%s: %s: samples %lld to %lld requested, but there are only %lld", d->path,
            s->name, (long long)first, (long long)(first + n), (long long)s->count);
    for (int k = 0; k < s->ncols; k++)
        DNN_TRY(verify_column(d, split, k, first, n, err));
    while (n > 0) {
        int64_t part = n < 65536 ? n : 65536;

        DNN_TRY(verify_metadata(d, split, first, part, err));
        first += part;
        n -= part;
    }
    return 0;
}
