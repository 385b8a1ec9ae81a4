/* feed.h - reads batches ahead of their use (prefetching).
 *
 * A feed reads one split of a prepared dataset, or raw files and generators through
 * their source, in the order of order.h, converts them for the network (f32 inputs, i32
 * class numbers, f32 values), applies the augmentation, and keeps a bounded number of
 * batches ready.  Its own threads do the work, at low priority and on cores not used
 * for computing, if there are any.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_DATA_FEED_H
#define DNN_DATA_FEED_H

#include "comm/comm.h"
#include "data/order.h"
#include "sample/source.h"
#include "topo/topo.h"
#include "transform/augment.h"

struct dnn_feed_cfg {
    const char *path;          /* a prepared dataset; NULL: source                 */
    const char *split;         /* of the dataset; NULL: "train", or its only one   */
    struct dnn_source *source; /* raw files or a generator; borrowed               */
    double image_scale;        /* raw integer images are multiplied by this; 0: 1/255
                                * for u8, 1 else                                   */
    int64_t fold;              /* datasets with folds: 0: all; k > 0: all but fold
                                * k - 1; k < 0: only fold -k - 1                   */
    int64_t batch_size;        /* global                                           */
    int64_t steps;             /* batches of an epoch; 0: all                      */
    bool shuffle;
    uint64_t seed;
    int64_t window; /* bytes shuffled together; 0: 512 MiB              */
    const struct dnn_augment *augment; /* or NULL; borrowed                          */
    bool preload; /* all samples into memory first, shared by the ranks
                   * of a node                                        */
    bool verify;  /* check each sample's checksum as it is read       */
    bool stored;  /* batches are as stored (u8: a quarter of the bytes);
                   * dnn_feed_values() converts them.  Ignored with augment */
    bool dry_run; /* plan only: samples are not read, and it cannot be started */
    int64_t micro_batches; /* micro-batches of a batch; each rank gets consecutive ones;
                            * 0: one per rank */
    int threads;           /* to read and convert; 0: from the machine         */
    int ahead;             /* batches kept ready; 0: 3                         */
    int64_t memory; /* limit in bytes; 0: an eighth of what the job has on the node,
                     * divided by its ranks */
    /* Where the threads may run: those hardware threads of the place that do not
     * compute, if there are any, else all of them.  NULL: where the caller may. */
    struct dnn_topo *topo; /* borrowed                                         */
    const struct dnn_place *place;
    enum dnn_topo_policy bind;
};

struct dnn_feed;

/* One rank's share of a batch.  Arrays are contiguous, sample first, 64-byte
 * aligned. */
struct dnn_batch {
    int64_t epoch, number; /* which batch of which epoch                            */
    int64_t first, n;      /* our share: positions in the epoch; n may be 0         */
    int64_t total;         /* samples of the batch, over all ranks                  */
    void *data[DNN_MAX_COLUMNS]; /* f32 or i32, see dnn_feed_columns(), or as stored */
    const int64_t *sample; /* [n]: numbers of the samples                           */
};

/* Collective.  Opens the dataset; reports bad settings, missing splits and shapes that
 * differ.  cfg's pointers must outlive the feed.  The caller owns *out. */
int dnn_feed_open(struct dnn_comm *comm, const struct dnn_feed_cfg *cfg,
                  struct dnn_feed **out, struct dnn_err *err);
void dnn_feed_close(struct dnn_feed *feed); /* NULL is fine; collective if preloaded */

/* Local.  The columns of a batch, converted and augmented; returns their number. */
int dnn_feed_columns(const struct dnn_feed *feed, const struct dnn_column **out);
int64_t dnn_feed_count(const struct dnn_feed *feed);    /* samples of an epoch        */
int64_t dnn_feed_batches(const struct dnn_feed *feed);  /* batches of an epoch        */
size_t dnn_feed_bytes(const struct dnn_feed *feed);     /* memory it needs at most    */
const char *dnn_feed_hash(const struct dnn_feed *feed); /* "": no dataset */
/* The split of the dataset, and how the dataset was made (JSON); NULL: no dataset. */
const struct dnn_split *dnn_feed_split(const struct dnn_feed *feed);
const char *dnn_feed_provenance(const struct dnn_feed *feed);

/* Local.  The name of a sample ("cats/12.jpg"), by its number in an epoch without
 * shuffling; that number if it has no name.  Not during dnn_feed_next(). */
void dnn_feed_label(struct dnn_feed *feed, int64_t index, char out[DNN_SAMPLE_NAME]);

/* Local.  Starts reading (again) at a batch of an epoch. */
int dnn_feed_start(struct dnn_feed *feed, int64_t epoch, int64_t batch,
                   struct dnn_err *err);
/* Local.  The next batch; after the last one of an epoch, the first of the next epoch.
 * Valid until the next call.  *waited: seconds spent waiting for it. */
int dnn_feed_next(struct dnn_feed *feed, const struct dnn_batch **out, double *waited,
                  struct dnn_err *err);
void dnn_feed_stop(struct dnn_feed *feed);

/* Local.  One column of samples [first, first + n) of the current batch, with the dtype
 * of dnn_feed_columns(): converted, or copied if batches are not as stored.  Invalid
 * values in batches as stored are reported here. */
int dnn_feed_values(struct dnn_feed *feed, const struct dnn_batch *batch, int column,
                    int64_t first, int64_t n, void *to, struct dnn_err *err);

#endif
