/* order.h - in which order samples are read: a pure function of (seed, epoch, place).
 *
 * Without shuffling, place i is sample i.  With it, a dataset that fits the window
 * is shuffled as a whole; a larger one by chunks: their order is random, and so are
 * the samples within each window of chunks, so that a reader never holds more than
 * about two windows and reads large pieces.  Neither ranks nor batches enter.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_DATA_ORDER_H
#define DNN_DATA_ORDER_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

struct dnn_order {
    int64_t count;  /* samples                                                      */
    int64_t chunk;  /* samples read together; 1: each alone                         */
    int64_t window; /* samples shuffled together; >= count: all                     */
    bool shuffle;
    uint64_t seed;
};

/* Local.  The sample at a place (0 <= place < count) of an epoch: each sample at
 * exactly one place. */
int64_t dnn_order_at(const struct dnn_order *order, int64_t epoch, int64_t place);
/* The samples at n places from first on: the same, for less. */
void dnn_order_fill(const struct dnn_order *order, int64_t epoch, int64_t first,
                    int64_t n, int64_t *out);

/* How many windows an epoch has (1 if all is shuffled together, or nothing is), which
 * one a place is in, and the chunks of one: window w has those at [*first, *first + *n)
 * of the epoch's order of chunks, which dnn_order_chunk() gives. */
int64_t dnn_order_windows(const struct dnn_order *order);
int64_t dnn_order_window(const struct dnn_order *order, int64_t epoch, int64_t place);
void dnn_order_chunks(const struct dnn_order *order, int64_t w, int64_t *first,
                      int64_t *n);
int64_t dnn_order_chunk(const struct dnn_order *order, int64_t epoch, int64_t position);

/* Rank's part of batch b of an epoch of count samples: places [*first, *first + *n);
 * parts differ by at most one sample, the last batch may be short, n may be 0. */
void dnn_order_part(int64_t count, int64_t batch_size, int64_t b, int rank, int size,
                    int64_t *first, int64_t *n);
/* The same where a batch is cut into so many micro-batches, which depend on nothing
 * else, and a rank takes some of them, one after the other. */
void dnn_order_micro_batches(int64_t count, int64_t batch_size, int64_t b,
                             int64_t micro_batches, int rank, int size, int64_t *first,
                             int64_t *n);
int64_t dnn_order_batches(int64_t count, int64_t batch_size); /* last short one kept */

#endif
