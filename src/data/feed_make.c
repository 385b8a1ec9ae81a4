/* feed_make.c - makes a row of a batch from a stored sample.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data/feed_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { NAME = DNN_SAMPLE_NAME + 300 };

/* ---- errors ---- */

/* The index of element at, such as "[3,4,0]"; "" for a scalar. */
static const char *index_text(char out[128], const struct dnn_shape *shape, int64_t at)
{
    int64_t index[DNN_MAX_DIMS];
    size_t len = 0;

    for (int d = shape->ndim - 1; d >= 0; d--) {
        index[d] = at % shape->dim[d];
        at /= shape->dim[d];
    }
    out[0] = '\0';
    for (int d = 0; d < shape->ndim && len < 100; d++)
        len += (size_t)snprintf(out + len, 128 - len, "%s%" PRId64 "%s",
                                d == 0 ? "[" : ",", index[d],
                                d == shape->ndim - 1 ? "]" : "");
    return out;
}

static int bad_number(struct dnn_feed *feed, int64_t index, int k, const void *made,
                      const struct dnn_shape *shape, int64_t at, struct dnn_err *err)
{
    const struct dnn_conversion *conv = &feed->col[k].conv;
    char name[NAME], where[128];

    dnn_feed_name(feed, index, name, sizeof name);
    index_text(where, shape, at);
    if (!conv->integer) {
        float x = ((const float *)made)[at];

        return dnn_fail(err, DNN_EDATA, "%s: %s%s is %s; values must be finite", name,
                        feed->in[k].name, where, isnan(x) ? "NaN" : "infinite");
    }
    int32_t x = ((const int32_t *)made)[at];
    if (conv->classes == 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %s%s is %" PRId32 "; class numbers must be 0 or more",
                        name, feed->in[k].name, where, x);
    return dnn_fail(err, DNN_EDATA,
                    "%s: %s%s is %" PRId32 ", but there are %" PRId64
                    " classes, 0 to %" PRId64,
                    name, feed->in[k].name, where, x, conv->classes, conv->classes - 1);
}

/* ---- a source's sample ---- */

static int check_shape(struct dnn_feed *feed, int64_t index, int k,
                       const struct dnn_array *array, struct dnn_err *err)
{
    const struct dnn_shape *want = &feed->in[k].shape;
    bool same = array->shape.ndim == want->ndim;
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT], one[NAME], two[NAME];

    for (int d = 0; same && d < want->ndim; d++)
        same = want->dim[d] == DNN_UNKNOWN || want->dim[d] == array->shape.dim[d];
    if (same && array->type == feed->in[k].type) return 0;
    dnn_feed_name(feed, index, one, sizeof one);
    if (same)
        return dnn_fail(err, DNN_EDATA, "%s: %s has dtype %s, expected %s", one,
                        feed->in[k].name, dnn_dtype_name(array->type),
                        dnn_dtype_name(feed->in[k].type));
    dnn_shape_text(a, sizeof a, &array->shape);
    dnn_shape_text(b, sizeof b, want);
    if (!feed->shape_from_first)
        return dnn_fail(err, DNN_EDATA, "%s: %s has shape %s, expected %s", one,
                        feed->in[k].name, a, b);
    dnn_feed_name(feed, 0, two, sizeof two);
    return dnn_fail(err, DNN_EDATA,
                    "%.350s: %s is %s, but %s in %.350s; samples of a batch must have "
                    "the same shape: resize, crop or pad",
                    one, feed->in[k].name, a, b, two);
}

int dnn_feed_read_source(struct dnn_feed *feed, int64_t index, struct dnn_sample *out,
                         struct dnn_err *err)
{
    DNN_TRY(dnn_source_read(feed->cfg.source, index, out, err));
    for (int k = 0; k < feed->ncols; k++)
        DNN_TRY(check_shape(feed, index, k, &out->col[k], err));
    return 0;
}

/* ---- conversion ---- */

/* The columns of a sample as stored, and their shapes. */
struct stored {
    int64_t index;
    const void *data[DNN_MAX_COLUMNS];
    const struct dnn_shape *shape[DNN_MAX_COLUMNS];
};

static int verify(struct dnn_feed *feed, int k, const struct stored *s,
                  struct dnn_err *err)
{
    const struct dnn_feed_col *col = &feed->col[k];
    char name[NAME];

    if (col->sum == NULL) return 0;
    if (XXH3_64bits(s->data[k], col->stored) ==
        col->sum[dnn_feed_number(feed, s->index)])
        return 0;
    dnn_feed_name(feed, s->index, name, sizeof name);
    return dnn_fail(err, DNN_EDATA, "%s: checksum mismatch in %s; the file is damaged",
                    name, feed->in[k].name);
}

static int convert(struct dnn_feed *feed, int k, const struct stored *s, void *to,
                   struct dnn_err *err)
{
    int64_t bad = -1, count = 1;
    char name[NAME];

    for (int d = 0; d < s->shape[k]->ndim; d++)
        count *= s->shape[k]->dim[d];
    DNN_TRY(verify(feed, k, s, err));
    if (feed->col[k].deferred) {
        if (s->data[k] != to) memcpy(to, s->data[k], feed->col[k].stored);
        return 0;
    }
    int rc = dnn_conversion_apply(&feed->col[k].conv, s->data[k], to, count, &bad, err);
    if (rc < 0) {
        dnn_feed_name(feed, s->index, name, sizeof name);
        return dnn_prefix(err, "%s: %s: ", name, feed->in[k].name);
    }
    return bad < 0 ? 0 : bad_number(feed, s->index, k, to, s->shape[k], bad, err);
}

/* ---- a row ---- */

static char *row_of(const struct dnn_feed *feed, const struct dnn_feed_slot *slot,
                    int k, int64_t i)
{
    return (char *)slot->batch.data[k] + (size_t)i * feed->col[k].row;
}

/* Finds the sample of row i, or the one mixed into it. */
static int find_stored(struct dnn_feed_worker *w, struct dnn_feed_slot *slot, int64_t i,
                       bool partner, struct stored *out, struct dnn_err *err)
{
    struct dnn_feed *feed = w->feed;
    const struct dnn_feed_stage *stage = &feed->stage[slot->seq % DNN_FEED_STAGES];
    struct dnn_sample *raw = partner ? &w->raw_partner : &w->raw;

    out->index = partner ? slot->partner[i] : slot->index[i];
    if (feed->from == DNN_FROM_SOURCE)
        DNN_TRY(dnn_feed_read_source(feed, out->index, raw, err));
    for (int k = 0; k < feed->ncols; k++) {
        const char *at = partner ? stage->partner[k] : stage->base[k];

        out->shape[k] = &feed->in[k].shape;
        if (feed->from == DNN_FROM_SOURCE) {
            out->data[k] = raw->col[k].data;
            out->shape[k] = &raw->col[k].shape;
        } else if (at != NULL) {
            out->data[k] = at + (size_t)i * feed->col[k].stored;
        } else if (feed->from == DNN_FROM_FILE) {
            out->data[k] = row_of(feed, slot, k, i);
        } else {
            out->data[k] = dnn_feed_find(feed, slot, k, out->index);
        }
    }
    return 0;
}

/* Converts a sample into arrays that the augmentation can change. */
static int into_sample(struct dnn_feed *feed, const struct stored *s,
                       const struct dnn_sample *raw, struct dnn_sample *out,
                       struct dnn_err *err)
{
    out->ncols = feed->ncols;
    for (int k = 0; k < feed->ncols; k++) {
        struct dnn_array *array = &out->col[k];

        DNN_TRY(dnn_array_make(array, feed->mid[k].type, s->shape[k], err));
        DNN_TRY(convert(feed, k, s, array->data, err));
        if (feed->split != NULL)
            memcpy(array->spacing, feed->split->col[k].spacing, sizeof array->spacing);
        else if (feed->from == DNN_FROM_SOURCE)
            memcpy(array->spacing, raw->col[k].spacing, sizeof array->spacing);
    }
    return 0;
}

static int copy_row(struct dnn_feed *feed, struct dnn_feed_slot *slot, int64_t i,
                    const struct dnn_sample *made, struct dnn_err *err)
{
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT], one[NAME];

    for (int k = 0; k < feed->ncols; k++) {
        const struct dnn_array *array = &made->col[k];

        if (array->type == feed->out[k].type &&
            dnn_shape_equal(&array->shape, &feed->out[k].shape)) {
            memcpy(row_of(feed, slot, k, i), array->data, feed->col[k].row);
            continue;
        }
        dnn_feed_name(feed, slot->index[i], one, sizeof one);
        return dnn_fail(
            err, DNN_EDATA,
            "%s: %s is %s %s after the transforms, expected %s %s; resize, crop or pad",
            one, feed->out[k].name, dnn_dtype_name(array->type),
            dnn_shape_text(a, sizeof a, &array->shape),
            dnn_dtype_name(feed->out[k].type),
            dnn_shape_text(b, sizeof b, &feed->out[k].shape));
    }
    return 0;
}

static int make_augmented(struct dnn_feed_worker *w, struct dnn_feed_slot *slot,
                          int64_t i, const struct stored *s, struct dnn_err *err)
{
    struct dnn_feed *feed = w->feed;
    struct stored other;
    char name[NAME];

    DNN_TRY(into_sample(feed, s, &w->raw, &w->sample, err));
    if (feed->mixes) {
        DNN_TRY(find_stored(w, slot, i, true, &other, err));
        DNN_TRY(into_sample(feed, &other, &w->raw_partner, &w->partner, err));
    }
    if (w->scratch == NULL) w->scratch = dnn_augment_scratch_make();
    int rc = dnn_augment_apply(
        feed->cfg.augment, feed->ncols, feed->mid, feed->cfg.seed, slot->batch.epoch,
        slot->index[i], &w->sample, feed->mixes ? &w->partner : NULL, w->scratch, err);
    if (rc == 0) return copy_row(feed, slot, i, &w->sample, err);
    dnn_feed_name(feed, slot->index[i], name, sizeof name);
    return dnn_prefix(err, "%s: ", name);
}

int dnn_feed_make(struct dnn_feed_worker *worker, struct dnn_feed_slot *slot, int64_t i,
                  struct dnn_err *err)
{
    struct dnn_feed *feed = worker->feed;
    struct stored s;

    DNN_TRY(find_stored(worker, slot, i, false, &s, err));
    if (feed->cfg.augment != NULL) return make_augmented(worker, slot, i, &s, err);
    for (int k = 0; k < feed->ncols; k++)
        DNN_TRY(convert(feed, k, &s, row_of(feed, slot, k, i), err));
    return 0;
}

/* Converts a sample of a batch that is as stored. */
static int convert_stored(struct dnn_feed *feed, int64_t index, int k, const char *from,
                          void *to, struct dnn_err *err)
{
    const struct dnn_feed_col *col = &feed->col[k];
    int64_t bad = -1;
    char name[NAME];
    int rc = dnn_conversion_apply(&col->conv, from, to, col->count, &bad, err);

    if (rc == 0 && bad >= 0)
        return bad_number(feed, index, k, to, &feed->in[k].shape, bad, err);
    if (rc == 0) return 0;
    dnn_feed_name(feed, index, name, sizeof name);
    return dnn_prefix(err, "%s: %s: ", name, feed->in[k].name);
}

int dnn_feed_values(struct dnn_feed *feed, const struct dnn_batch *batch, int column,
                    int64_t first, int64_t n, void *to, struct dnn_err *err)
{
    const struct dnn_feed_col *col = &feed->col[column];
    const char *from = (const char *)batch->data[column] + (size_t)first * col->row;
    size_t row = (size_t)col->count * 4;
    int64_t bad = n;

    if (!col->deferred) {
        memcpy(to, from, (size_t)n * col->row);
        return 0;
    }
    /* The first invalid sample is converted again, for the message. */
#pragma omp parallel for schedule(static) reduction(min : bad) if (n > 1)
    for (int64_t i = 0; i < n; i++) {
        int64_t at = -1;
        struct dnn_err why;

        if ((dnn_conversion_apply(&col->conv, from + (size_t)i * col->row,
                                  (char *)to + (size_t)i * row, col->count, &at,
                                  &why) < 0 ||
             at >= 0) &&
            i < bad)
            bad = i;
    }
    if (bad == n) return 0;
    return convert_stored(feed, feed->taken->index[first + bad], column,
                          from + (size_t)bad * col->row, (char *)to + (size_t)bad * row,
                          err);
}

void dnn_feed_worker_free(struct dnn_feed_worker *worker)
{
    dnn_sample_free(&worker->raw);
    dnn_sample_free(&worker->raw_partner);
    dnn_sample_free(&worker->sample);
    dnn_sample_free(&worker->partner);
    dnn_augment_scratch_free(worker->scratch);
    worker->scratch = NULL;
}
