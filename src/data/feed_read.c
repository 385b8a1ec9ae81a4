/* feed_read.c - reads from the dataset into memory: chunks of a window, or samples of a
 * batch.
 *
 * ADIOS2 allows only one thread at a time to read.  So all reads are requested first
 * and then done at once, for which ADIOS2 may use several threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data/feed_impl.h"

#include <string.h>

/* Bytes of chunks read at once: large enough for the disk, small enough that a single
 * thread soon returns to the batches. */
static const size_t load_bytes = 16 << 20;

/* ---- the sample numbers of a batch ---- */

static int64_t window_of(const struct dnn_feed *feed, int64_t epoch, int64_t position)
{
    if (dnn_feed_all_in_memory(feed)) return 0;
    return epoch * feed->windows + dnn_order_window(&feed->order, epoch, position);
}

void dnn_feed_set_up(struct dnn_feed *feed, struct dnn_feed_slot *slot)
{
    struct dnn_batch *b = &slot->batch;
    int64_t size = feed->cfg.batch_size, left;

    b->epoch = slot->seq / feed->batches;
    b->number = slot->seq % feed->batches;
    left = feed->count - b->number * size;
    b->total = left < size ? left : size;
    dnn_order_micro_batches(feed->count, size, b->number, feed->micro_batches,
                            feed->rank, feed->size, &b->first, &b->n);
    dnn_order_fill(&feed->order, b->epoch, b->first, b->n, slot->index);
    for (int64_t i = 0; i < b->n; i++)
        slot->sample[i] = dnn_feed_number(feed, slot->index[i]);
    for (int64_t i = 0; feed->mixes && i < b->n; i++)
        slot->partner[i] = dnn_augment_partner(feed->cfg.augment, feed->cfg.seed,
                                               b->epoch, slot->index[i], feed->count);
    slot->low = slot->high = -1;
    if (feed->from == DNN_FROM_MEMORY && b->n > 0) {
        slot->low = window_of(feed, b->epoch, b->first);
        slot->high = window_of(feed, b->epoch, b->first + b->n - 1);
    }
}

/* ---- rows of a column ---- */

/* How many of the selected samples from first on are contiguous in the file. */
static int64_t contiguous(const struct dnn_feed *feed, int64_t first, int64_t n)
{
    int64_t m = 1;

    if (feed->selected == NULL) return n;
    while (m < n && feed->selected[first + m] == feed->selected[first] + m)
        m++;
    return m;
}

/* If only some samples are selected, those between them are read, too, and discarded:
 * one large request instead of many small ones. */
static int rows_with_gaps(struct dnn_feed *feed, int column, int64_t first, int64_t n,
                          char *to, struct dnn_err *err)
{
    size_t each = feed->col[column].stored;
    int64_t fit = (int64_t)(feed->gap_bytes / each);

    while (n > 0) {
        int64_t begin = feed->selected[first], m = 1;

        while (m < n && feed->selected[first + m] - begin < fit)
            m++;
        int64_t span = feed->selected[first + m - 1] - begin + 1;
        DNN_TRY(dnn_dataset_request(feed->dataset, feed->split_number, column, begin,
                                    span, feed->gap, err));
        DNN_TRY(dnn_dataset_fetch(feed->dataset, err));
        for (int64_t i = 0; i < m; i++, to += each)
            memcpy(to, feed->gap + (size_t)(feed->selected[first + i] - begin) * each,
                   each);
        first += m;
        n -= m;
    }
    return 0;
}

int dnn_feed_rows(struct dnn_feed *feed, int column, int64_t first, int64_t n, char *to,
                  struct dnn_err *err)
{
    size_t each = feed->col[column].stored;

    if (contiguous(feed, first, n) < n && each < DNN_FEED_LARGE)
        return rows_with_gaps(feed, column, first, n, to, err);
    while (n > 0) {
        int64_t m = contiguous(feed, first, n);

        DNN_TRY(dnn_dataset_request(feed->dataset, feed->split_number, column,
                                    dnn_feed_number(feed, first), m, to, err));
        to += (size_t)m * each;
        first += m;
        n -= m;
    }
    return 0;
}

/* ---- windows ---- */

void dnn_feed_window_set(struct dnn_feed *feed, struct dnn_feed_window *window,
                         int64_t seq)
{
    int64_t epoch = seq / feed->windows, w = seq % feed->windows;

    if (window->at != NULL && window->seq >= 0) {
        int64_t old = window->seq / feed->windows;

        for (int64_t i = 0; i < window->n; i++)
            window->at[dnn_order_chunk(&feed->order, old, window->first + i)] = -1;
    }
    dnn_order_chunks(&feed->order, w, &window->first, &window->n);
    for (int64_t i = 0; window->at != NULL && i < window->n; i++)
        window->at[dnn_order_chunk(&feed->order, epoch, window->first + i)] =
            (int32_t)i;
    window->seq = seq;
    window->loaded = 0;
}

bool dnn_feed_loaded(const struct dnn_feed_window *window, int64_t seq)
{
    return window->seq == seq && window->loaded == window->n;
}

int dnn_feed_load(struct dnn_feed *feed, struct dnn_feed_window *window,
                  struct dnn_err *err)
{
    int64_t epoch = window->seq / feed->windows, chunk = feed->order.chunk;
    int64_t i = window->loaded;
    size_t bytes = 0;

    for (; i < window->n && bytes < load_bytes; i++) {
        int64_t c = window->at == NULL
                        ? i
                        : dnn_order_chunk(&feed->order, epoch, window->first + i);
        int64_t left = feed->count - c * chunk, n = left < chunk ? left : chunk;

        for (int k = 0; k < feed->ncols; k++) {
            size_t each = feed->col[k].stored;

            DNN_TRY(dnn_feed_rows(feed, k, c * chunk, n,
                                  window->base[k] + (size_t)(i * chunk) * each, err));
            bytes += (size_t)n * each;
        }
    }
    DNN_TRY(dnn_dataset_fetch(feed->dataset, err));
    window->loaded = i;
    return 0;
}

/* ---- a batch's samples ---- */

/* Requests n samples by their numbers; contiguous ones together. */
static int request_samples(struct dnn_feed *feed, int column, const int64_t *index,
                           int64_t n, char *to, struct dnn_err *err)
{
    size_t each = feed->col[column].stored;

    for (int64_t i = 0, m; i < n; i += m) {
        int64_t number = dnn_feed_number(feed, index[i]);

        for (m = 1; i + m < n && dnn_feed_number(feed, index[i + m]) == number + m;)
            m++;
        DNN_TRY(dnn_dataset_request(feed->dataset, feed->split_number, column, number,
                                    m, to + (size_t)i * each, err));
    }
    return 0;
}

int dnn_feed_fetch(struct dnn_feed *feed, struct dnn_feed_slot *slot, int64_t from,
                   int64_t n, struct dnn_err *err)
{
    const struct dnn_feed_stage *stage = &feed->stage[slot->seq % DNN_FEED_STAGES];
    bool any = false;

    for (int k = 0; k < feed->ncols; k++) {
        char *to = feed->col[k].direct ? slot->batch.data[k] : stage->base[k];
        size_t skip = (size_t)from * feed->col[k].stored;

        if (to != NULL && feed->from == DNN_FROM_FILE) {
            DNN_TRY(request_samples(feed, k, slot->index + from, n, to + skip, err));
            any = true;
        }
        if (stage->partner[k] != NULL) {
            DNN_TRY(request_samples(feed, k, slot->partner + from, n,
                                    stage->partner[k] + skip, err));
            any = true;
        }
    }
    return any ? dnn_dataset_fetch(feed->dataset, err) : 0;
}

const void *dnn_feed_find(const struct dnn_feed *feed, const struct dnn_feed_slot *slot,
                          int column, int64_t index)
{
    size_t each = feed->col[column].stored;

    if (dnn_feed_all_in_memory(feed))
        return feed->window[0].base[column] + (size_t)index * each;
    int64_t chunk = feed->order.chunk;
    /* Windows of one epoch have no chunk in common. */
    const struct dnn_feed_window *w = &feed->window[slot->low % DNN_FEED_WINDOWS];
    if (w->at[index / chunk] < 0) w = &feed->window[slot->high % DNN_FEED_WINDOWS];
    int64_t at = w->at[index / chunk] * chunk + index % chunk;

    return w->base[column] + (size_t)at * each;
}
