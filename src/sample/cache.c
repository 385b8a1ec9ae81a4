/* cache.c - a source that caches samples in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "sample/source.h"

#include "base/mem.h"

#include <stdatomic.h>

struct cache {
    struct dnn_source base;
    struct dnn_source_type type;
    struct dnn_source *from; /* owned */
    int64_t limit;
    atomic_llong bytes;                   /* of cached samples */
    _Atomic(struct dnn_sample *) *sample; /* owned array of owned samples; NULL: not
                                             cached */
};

static int copy(const struct dnn_sample *from, struct dnn_sample *to,
                struct dnn_err *err)
{
    for (int c = 0; c < from->ncols; c++)
        DNN_TRY(dnn_array_copy(&from->col[c], &to->col[c], err));
    to->ncols = from->ncols;
    return 0;
}

/* Add a sample.  If it exceeds the limit, or there is not enough memory, it is read
 * again the next time. */
static void add_sample(struct cache *k, int64_t i, const struct dnn_sample *sample)
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
    struct cache *k = (struct cache *)(uintptr_t)source;
    const struct dnn_sample *cached = atomic_load(&k->sample[i]);

    if (cached != NULL) return copy(cached, out, err);
    DNN_TRY(dnn_source_read(k->from, i, out, err));
    add_sample(k, i, out);
    return 0;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    dnn_source_label(((const struct cache *)source)->from, i, out);
}

static void group(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct dnn_source *from = ((const struct cache *)source)->from;

    from->type->group(from, i, out);
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    const struct dnn_source *from = ((const struct cache *)source)->from;

    return from->type->class_of(from, i);
}

static int shape(const struct dnn_source *source, int64_t i, int c,
                 struct dnn_shape *out, struct dnn_err *err)
{
    return dnn_source_try_shape(((const struct cache *)source)->from, i, c, out, err);
}

static int read_box(const struct dnn_source *source, int64_t i, int c,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    struct cache *k = (struct cache *)(uintptr_t)source;
    const struct dnn_sample *cached = atomic_load(&k->sample[i]);

    if (cached != NULL) return dnn_array_box(&cached->col[c], start, extent, out, err);
    return dnn_source_try_box(k->from, i, c, start, extent, out, err);
}

static int position(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_position *out, struct dnn_err *err)
{
    return dnn_source_position(((const struct cache *)source)->from, i, c, out, err);
}

static void close_cache(struct dnn_source *source)
{
    struct cache *k = (struct cache *)source;

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

struct dnn_source *dnn_source_cache(struct dnn_source *from, int64_t limit)
{
    struct cache *k = dnn_alloc(sizeof *k);

    k->from = from;
    k->limit = limit;
    k->type = (struct dnn_source_type){
        .name = from->type->name,
        .read = read_sample,
        .label = label,
        .group = from->type->group == NULL ? NULL : group,
        .class_of = from->type->class_of == NULL ? NULL : class_of,
        .close = close_cache,
        .shape = shape,
        .read_box = read_box,
        .position = position};
    k->base = dnn_source_like(from, &k->type);
    k->sample = dnn_alloc(((size_t)from->count + 1) * sizeof *k->sample);
    return &k->base;
}
