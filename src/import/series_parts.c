/* series_parts.c - the files of a series: opened, kept open, and closed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/series_impl.h"

#include <inttypes.h>

enum { MAX_OPEN = 16 }; /* maximum open files, unless more are in use */

const char *dnn_series_path(const struct series *s, int64_t p)
{
    return s->given ? s->part[p].source->type->name : s->list.file[p].path;
}

int dnn_series_open_file(const struct series *s, int64_t p, struct dnn_source **out,
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

int dnn_series_acquire(struct series *s, int64_t p, struct dnn_err *err)
{
    struct part *part = &s->part[p];
    int64_t expected = part[1].first - part->first;
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (part->source == NULL) {
        rc = dnn_series_open_file(s, p, &part->source, err);
        if (rc == 0) s->nopen++;
        if (rc == 0 && part->source->count != expected) {
            rc = dnn_fail(err, DNN_EDATA,
                          "%s: changed while it was read: %" PRId64
                          " samples at first, now %" PRId64,
                          dnn_series_path(s, p), expected, part->source->count);
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

void dnn_series_release(struct series *s, int64_t p)
{
    pthread_mutex_lock(&s->lock);
    s->part[p].users--;
    close_some(s);
    pthread_mutex_unlock(&s->lock);
}

/* The part that sample i is in. */
int64_t dnn_series_find(const struct series *s, int64_t i)
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

/* ---- a file of one sample ---- */

/* Check column k of a file of one sample, which was not inspected when the series was
 * opened. */
int dnn_series_check(const struct series *s, int64_t p, int k, enum dnn_dtype type,
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
                    dnn_series_path(s, p), col->name, dnn_dtype_name(type),
                    dnn_shape_text(text, sizeof text, shape), dnn_series_path(s, 0),
                    dnn_dtype_name(col->type),
                    dnn_shape_text(expected, sizeof expected, &col->shape));
}

/* Open a file of one sample. */
int dnn_series_open_one(const struct series *s, int64_t p, struct dnn_source **out,
                        struct dnn_err *err)
{
    struct dnn_source *source;
    int rc = 0;

    DNN_TRY(dnn_series_open_file(s, p, &source, err));
    if (source->count != 1)
        rc = dnn_fail(err, DNN_EDATA, "%s: contains %" PRId64 " samples, expected one",
                      dnn_series_path(s, p), source->count);
    else if (source->ncols != s->nfrom)
        rc = dnn_fail(err, DNN_EDATA, "%s: %d columns, but %s has %d",
                      dnn_series_path(s, p), source->ncols, dnn_series_path(s, 0),
                      s->nfrom);
    if (rc < 0)
        dnn_source_close(source);
    else
        *out = source;
    return rc;
}

/* ---- boxes ---- */

/* One file of one sample stays open; another takes its place if no thread uses it. */
int dnn_series_borrow(struct series *s, int64_t p, int64_t i,
                      struct dnn_source **source, int64_t *number, struct dnn_err *err)
{
    int rc = 0;

    *number = s->one_each ? 0 : i - s->part[p].first;
    if (!s->one_each) {
        DNN_TRY(dnn_series_acquire(s, p, err));
        *source = s->part[p].source;
        return 0;
    }
    pthread_mutex_lock(&s->lock);
    if (s->boxed.source == NULL || s->boxed.first != p) {
        rc = dnn_series_open_one(s, p, source, err);
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

void dnn_series_return(struct series *s, int64_t p, struct dnn_source *source)
{
    if (!s->one_each) {
        dnn_series_release(s, p);
        return;
    }
    pthread_mutex_lock(&s->lock);
    bool kept = source == s->boxed.source;
    if (kept) s->boxed.users--;
    pthread_mutex_unlock(&s->lock);
    if (!kept) dnn_source_close(source);
}
