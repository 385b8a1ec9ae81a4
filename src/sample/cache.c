/* cache.c - samples that stay in memory once they have been read.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "sample/source.h"

#include "base/mem.h"

#include <stdatomic.h>

struct keeper {
    struct dnn_source base;
    struct dnn_source_type type;
    struct dnn_source *from; /* owned */
    int64_t limit;
    atomic_llong bytes;                   /* that are kept */
    _Atomic(struct dnn_sample *) *sample; /* owned, and what it points to; NULL: not
                                             read yet */
};

static int copy(const struct dnn_sample *from, struct dnn_sample *to,
                struct dnn_err *err)
{
    for (int c = 0; c < from->ncols; c++)
        DNN_TRY(dnn_array_copy(&from->col[c], &to->col[c], err));
    to->ncols = from->ncols;
    return 0;
}

/* What does not fit, or cannot be had, is read again the next time. */
static void keep(struct keeper *k, int64_t i, const struct dnn_sample *sample)
{
    long long bytes = 0;
    struct dnn_sample *none = NULL;

    for (int c = 0; c < sample->ncols; c++)
        bytes += (long long)dnn_array_bytes(&sample->col[c]);
    if (atomic_fetch_add(&k->bytes, bytes) + bytes > k->limit) {
        atomic_fetch_sub(&k->bytes, bytes);
        return;
    }
    struct dnn_sample *own = dnn_alloc(sizeof *own);
    if (copy(sample, own, NULL) < 0 ||
        !atomic_compare_exchange_strong(&k->sample[i], &none, own)) {
        dnn_sample_free(own);
        dnn_free(own);
        atomic_fetch_sub(&k->bytes, bytes);
    }
}

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    struct keeper *k = (struct keeper *)(uintptr_t)source;
    const struct dnn_sample *there = atomic_load(&k->sample[i]);

    if (there != NULL) return copy(there, out, err);
    DNN_TRY(dnn_source_read(k->from, i, out, err));
    keep(k, i, out);
    return 0;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    dnn_source_label(((const struct keeper *)source)->from, i, out);
}

static void group(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct dnn_source *from = ((const struct keeper *)source)->from;

    from->type->group(from, i, out);
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    const struct dnn_source *from = ((const struct keeper *)source)->from;

    return from->type->class_of(from, i);
}

static void close_keeper(struct dnn_source *source)
{
    struct keeper *k = (struct keeper *)source;

    for (int64_t i = 0; i < source->count; i++) {
        struct dnn_sample *own = atomic_load(&k->sample[i]);

        if (own == NULL) continue;
        dnn_sample_free(own);
        dnn_free(own);
    }
    dnn_free((void *)k->sample);
    dnn_source_close(k->from);
    dnn_free(k);
}

struct dnn_source *dnn_source_keep(struct dnn_source *from, int64_t limit)
{
    struct keeper *k = dnn_alloc(sizeof *k);

    k->from = from;
    k->limit = limit;
    k->base = *from;
    k->type = (struct dnn_source_type){
        .name = from->type->name,
        .read = read_sample,
        .label = label,
        .group = from->type->group == NULL ? NULL : group,
        .class_of = from->type->class_of == NULL ? NULL : class_of,
        .close = close_keeper};
    k->base.type = &k->type;
    k->sample = dnn_alloc(((size_t)from->count + 1) * sizeof *k->sample);
    return &k->base;
}
