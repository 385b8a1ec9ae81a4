/* order.h - the order of samples: a function of seed, epoch and position only.
 *
 * Without shuffling, sample i is at position i.  With shuffling, a dataset that fits
 * into the window is shuffled as a whole; a larger one by chunks: the order of chunks
 * is random, and so is the order of samples within each window of chunks.  So a reader
 * holds at most about two windows and reads large blocks.  The order does not depend on
 * ranks or batches.
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

/* Local.  The sample at a position (0 <= position < count) of an epoch; each sample has
 * exactly one position. */
int64_t dnn_order_at(const struct dnn_order *order, int64_t epoch, int64_t position);
/* The samples at n positions from first on; faster than one by one. */
void dnn_order_fill(const struct dnn_order *order, int64_t epoch, int64_t first,
                    int64_t n, int64_t *out);

/* The number of windows of an epoch (1 if all is shuffled together, or nothing is), the
 * window of a position, and the chunks of a window: those at [*first, *first + *n) in
 * the order of chunks of the epoch, of which dnn_order_chunk() returns number c. */
int64_t dnn_order_windows(const struct dnn_order *order);
int64_t dnn_order_window(const struct dnn_order *order, int64_t epoch,
                         int64_t position);
void dnn_order_chunks(const struct dnn_order *order, int64_t w, int64_t *first,
                      int64_t *n);
int64_t dnn_order_chunk(const struct dnn_order *order, int64_t epoch, int64_t c);

/* The share of a rank of batch b of an epoch of count samples: positions [*first,
 * *first + *n).  Shares differ by at most one sample; the last batch may be short, n
 * may be 0. */
void dnn_order_part(int64_t count, int64_t batch_size, int64_t b, int rank, int size,
                    int64_t *first, int64_t *n);
/* A batch may be divided into micro-batches that do not depend on the ranks.  The
 * consecutive ones [*first, *last) of a rank: */
void dnn_order_own(int64_t micro_batches, int rank, int size, int *first, int *last);
/* The positions of their samples, as dnn_order_part(). */
void dnn_order_micro_batches(int64_t count, int64_t batch_size, int64_t b,
                             int64_t micro_batches, int rank, int size, int64_t *first,
                             int64_t *n);
int64_t dnn_order_batches(int64_t count, int64_t batch_size); /* short last one kept */

#endif
