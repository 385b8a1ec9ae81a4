/* feed.h - batches, ready before they are asked for.
 *
 * A feed reads one split of a prepared dataset, or raw files and generators through
 * their source, in the order of order.h, converts to what the network takes (f32
 * inputs, i32 class numbers, f32 values), applies the augmentation, and keeps a
 * bounded number of batches ready.  The work is done by threads of its own that run
 * on cores not used for computing if there are some, and else at the lowest
 * priority.
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
    bool stored;  /* batches hold numbers as they are stored, a quarter of the bytes
                   * for u8; dnn_feed_values() converts them where they are wanted.
                   * With augment it has no effect                    */
    int64_t micro_batches; /* parts a batch is cut into, of which ranks take some one
                            * after the other; 0: one for each rank                  */
    int threads;           /* that read and convert; 0: from the machine       */
    int ahead;             /* batches kept ready; 0: 3                         */
    int64_t memory;        /* bytes all this may take; 0: an eighth of the
                            * machine's per node                               */
    /* Where the threads may run: those hardware threads of the place that compute
     * nothing if there are some, else all of it.  NULL: where the caller may. */
    struct dnn_topo *topo; /* borrowed                                         */
    const struct dnn_place *place;
    enum dnn_topo_policy bind;
};

struct dnn_feed;

/* One rank's part of a batch.  Arrays are contiguous, sample first, 64-byte aligned. */
struct dnn_batch {
    int64_t epoch, number; /* which batch of which epoch                            */
    int64_t first, n;      /* our part: places of the epoch; n may be 0             */
    int64_t total;         /* samples of the whole batch, over all ranks            */
    int ncols;
    void *data[DNN_MAX_COLUMNS]; /* f32 or i32, as dnn_feed_columns() says, or as
                                  * stored                                           */
    const int64_t *sample; /* n numbers: which samples they are                     */
};

/* Collective.  Opens the dataset; bad settings, missing splits, shapes that differ are
 * found here.  cfg's pointers must outlive the feed.  The caller owns *out. */
int dnn_feed_open(struct dnn_comm *comm, const struct dnn_feed_cfg *cfg,
                  struct dnn_feed **out, struct dnn_err *err);
void dnn_feed_close(struct dnn_feed *feed); /* NULL is fine; collective if preloaded */

/* Local.  What batches hold: after augmentation, as the network takes it. */
int dnn_feed_columns(const struct dnn_feed *feed, const struct dnn_column **out);
int64_t dnn_feed_count(const struct dnn_feed *feed);    /* samples of an epoch        */
int64_t dnn_feed_batches(const struct dnn_feed *feed);  /* batches of an epoch        */
size_t dnn_feed_bytes(const struct dnn_feed *feed);     /* memory it takes at most    */
const char *dnn_feed_hash(const struct dnn_feed *feed); /* the dataset's; "": of none */
/* The split of the dataset, and how the dataset was made (JSON); NULL: of none. */
const struct dnn_split *dnn_feed_split(const struct dnn_feed *feed);
const char *dnn_feed_provenance(const struct dnn_feed *feed);

/* Local.  What a sample is called where it is from ("cats/12.jpg"), by its number in an
 * epoch that is not shuffled; that number if it has no name.  Not while a batch is
 * being asked for. */
void dnn_feed_label(struct dnn_feed *feed, int64_t index, char out[DNN_SAMPLE_NAME]);

/* Local.  Begin (again) at a batch of an epoch: reading ahead starts. */
int dnn_feed_start(struct dnn_feed *feed, int64_t epoch, int64_t batch,
                   struct dnn_err *err);
/* Local.  The next batch; it goes on into the next epoch by itself.  Valid until the
 * next call.  *waited: seconds spent waiting for it. */
int dnn_feed_next(struct dnn_feed *feed, const struct dnn_batch **out, double *waited,
                  struct dnn_err *err);
void dnn_feed_stop(struct dnn_feed *feed);

/* Local.  Samples [first, first + n) of the batch last handed out, one column of it, to
 * where it is wanted, as dnn_feed_columns() says: converted, or copied if they are so
 * already.  Numbers that must not be there are found here if batches are as stored. */
int dnn_feed_values(struct dnn_feed *feed, const struct dnn_batch *batch, int column,
                    int64_t first, int64_t n, void *to, struct dnn_err *err);

#endif
