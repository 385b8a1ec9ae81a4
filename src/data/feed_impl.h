/* feed_impl.h - declarations shared by the files of the feed.
 *
 * feed.c          public functions: opens, returns batches, closes;
 * feed_plan.c     reading order, method and memory;
 * feed_select.c   which samples are selected, and their checksums;
 * feed_threads.c  the reader threads and their scheduling;
 * feed_read.c     reads from the dataset into memory;
 * feed_make.c     makes a row of a batch from a stored sample;
 * feed_preload.c  memory that the ranks of a node share, for preloading.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_DATA_FEED_IMPL_H
#define DNN_DATA_FEED_IMPL_H

#include "data/dataset.h"
#include "data/feed.h"
#include "sample/convert.h"

#include <pthread.h>

/* Samples of this size or larger are read one by one: the cost of a request is then
 * small.  Smaller ones are read in chunks. */
enum { DNN_FEED_LARGE = 64 << 10 };

enum {
    DNN_FEED_STAGES = 2, /* batches read and not yet converted                 */
    DNN_FEED_WINDOWS = 2
};

/* ---- the feed ---- */

enum dnn_feed_from {
    DNN_FROM_SOURCE, /* the thread that makes a row reads its sample               */
    DNN_FROM_FILE,   /* the samples of a batch are requested together              */
    DNN_FROM_MEMORY  /* complete chunks are read ahead: a window, or all           */
};

struct dnn_feed_col {
    struct dnn_conversion conv;
    int64_t count; /* elements of a sample                                       */
    size_t stored; /* bytes of a sample as stored                                */
    size_t row;    /* bytes of a sample in a batch                               */
    bool direct;   /* read into the batch directly                               */
    bool deferred; /* the batch has it as stored, converted later                */
    uint64_t *sum; /* owned: checksums of all samples of the split; NULL: not checked */
};

/* Samples read and not yet converted. */
struct dnn_feed_stage {
    char *base[DNN_MAX_COLUMNS];    /* NULL: direct, or in memory                 */
    char *partner[DNN_MAX_COLUMNS]; /* samples mixed in                           */
};

/* Chunks in memory. */
struct dnn_feed_window {
    int64_t seq;      /* epoch * windows + window; -1: none                       */
    int64_t first, n; /* positions of its chunks in their order                   */
    int64_t loaded;   /* chunks that have been read                               */
    int32_t *at;      /* owned: chunk -> its index here, or -1; NULL: all, in order */
    char *base[DNN_MAX_COLUMNS];
};

enum dnn_feed_state {
    DNN_SLOT_FREE,
    DNN_SLOT_READING, /* sample numbers are set, not all samples are read           */
    DNN_SLOT_MAKING,  /* all samples are read, not all rows are made                */
    DNN_SLOT_READY,
    DNN_SLOT_TAKEN
};

struct dnn_feed_slot {
    struct dnn_batch batch;
    enum dnn_feed_state state;
    int64_t seq;       /* epoch * batches + number                                  */
    int64_t low, high; /* windows it needs                                          */
    int64_t *index;    /* numbers among the selected samples                        */
    int64_t *sample;   /* numbers in the split                                      */
    int64_t *partner;  /* like index; NULL: no mixing                               */
    int64_t fetched;   /* rows whose samples have been read                         */
    int64_t claimed, made;
    int64_t bad; /* row of err                                                      */
    struct dnn_err err;
    int rc;
};

struct dnn_feed {
    struct dnn_feed_cfg cfg;
    struct dnn_comm *comm;
    int rank, size, local_rank, local_size;
    enum dnn_feed_from from;
    char *about; /* owned: "path: train", or the kind of source                     */
    struct dnn_dataset *dataset;   /* owned; NULL: a source                        */
    const struct dnn_split *split; /* of it                                        */
    int split_number;
    int64_t *selected; /* owned: number among the selected samples -> in the split;
                        * NULL: all are selected */
    int64_t count;
    int ncols;
    struct dnn_column in[DNN_MAX_COLUMNS];  /* as stored                            */
    struct dnn_column mid[DNN_MAX_COLUMNS]; /* converted                            */
    struct dnn_column out[DNN_MAX_COLUMNS]; /* augmented                            */
    struct dnn_feed_col col[DNN_MAX_COLUMNS];
    bool shape_from_first; /* shapes are those of sample 0, and must be equal in all */
    bool mixes;
    struct dnn_order order;
    int64_t windows, batches, micro_batches;
    int64_t part;  /* samples of our largest share of a batch                        */
    int64_t grain; /* rows a thread makes at a time                                 */
    int threads, nslots;
    size_t bytes;

    struct dnn_feed_slot *slot;                   /* owned; nslots                 */
    struct dnn_feed_stage stage[DNN_FEED_STAGES]; /* parts of memory               */
    struct dnn_feed_window window[DNN_FEED_WINDOWS];
    char *gap; /* buffer for chunks with samples that are not selected */
    size_t gap_bytes;
    void *memory; /* owned: all of the above                                 */
    size_t memory_bytes;
    void *shared; /* preloaded samples, mapped                               */
    size_t shared_bytes;

    /* Under lock. */
    pthread_mutex_t lock;
    pthread_cond_t work, ready;
    struct dnn_feed_worker *worker; /* owned; threads of them                       */
    int running;
    bool stop;
    bool reading; /* a thread is reading the dataset                                */
    bool prefetch_failed;      /* the error is reported when the window is needed */
    int64_t next_in, next_out; /* next batch to read, to return                     */
    struct dnn_feed_slot *taken;
    bool failed;             /* an error was returned                               */
    struct filling *filling; /* while a source is preloaded                         */
};

struct dnn_feed_worker {
    struct dnn_feed *feed;
    pthread_t thread;
    int (*task)(struct dnn_feed_worker *worker);
    struct dnn_sample raw, raw_partner; /* as read from a source                    */
    struct dnn_sample sample, partner;  /* converted, to be augmented               */
    struct dnn_augment_scratch *scratch;
};

/* ---- feed_plan.c ---- */

/* Plans everything before the large allocations. */
int dnn_feed_plan(struct dnn_feed *feed, struct dnn_err *err);
/* Allocates the memory. */
int dnn_feed_memory(struct dnn_feed *feed, struct dnn_err *err);
/* Bytes of all columns of one sample, as stored. */
size_t dnn_feed_stored(const struct dnn_feed *feed);
/* Whether all selected samples stay in memory once they have been read. */
bool dnn_feed_all_in_memory(const struct dnn_feed *feed);

/* ---- feed_select.c ---- */

int dnn_feed_select(struct dnn_feed *feed, struct dnn_err *err);
int dnn_feed_sums(struct dnn_feed *feed, struct dnn_err *err);
int64_t dnn_feed_number(const struct dnn_feed *feed, int64_t index); /* in the split */

/* ---- feed_threads.c ---- */

/* Starts threads, each of which calls task(); dnn_feed_end() waits for them. */
int dnn_feed_begin(struct dnn_feed *feed, int (*task)(struct dnn_feed_worker *),
                   struct dnn_err *err);
void dnn_feed_end(struct dnn_feed *feed);
/* The task of the threads while batches are read. */
int dnn_feed_serve(struct dnn_feed_worker *worker);
/* "path: train[12] (cats/12.jpg)".  Not with the lock held, nor by a thread that
 * reads. */
void dnn_feed_name(struct dnn_feed *feed, int64_t index, char *out, size_t size);

/* ---- feed_read.c: one thread at a time, without the lock ---- */

/* Sets the samples and windows of a slot. */
void dnn_feed_set_up(struct dnn_feed *feed, struct dnn_feed_slot *slot);
/* Reads some more chunks of a window. */
int dnn_feed_load(struct dnn_feed *feed, struct dnn_feed_window *window,
                  struct dnn_err *err);
/* Starts a new window in the memory of an old one. */
void dnn_feed_window_set(struct dnn_feed *feed, struct dnn_feed_window *window,
                         int64_t seq);
bool dnn_feed_loaded(const struct dnn_feed_window *window, int64_t seq);
/* Reads what rows [from, from + n) of a slot need and windows do not have: samples,
 * those mixed in. */
int dnn_feed_fetch(struct dnn_feed *feed, struct dnn_feed_slot *slot, int64_t from,
                   int64_t n, struct dnn_err *err);
/* Requests one column of the selected samples [first, first + n), for
 * dnn_dataset_fetch(). */
int dnn_feed_rows(struct dnn_feed *feed, int column, int64_t first, int64_t n, char *to,
                  struct dnn_err *err);
/* A column of a sample in memory, as stored, by its number among the selected
 * samples. */
const void *dnn_feed_find(const struct dnn_feed *feed, const struct dnn_feed_slot *slot,
                          int column, int64_t index);

/* ---- feed_make.c ---- */

int dnn_feed_make(struct dnn_feed_worker *worker, struct dnn_feed_slot *slot, int64_t i,
                  struct dnn_err *err);
/* Reads a sample of a source and checks its shapes. */
int dnn_feed_read_source(struct dnn_feed *feed, int64_t index, struct dnn_sample *out,
                         struct dnn_err *err);
void dnn_feed_worker_free(struct dnn_feed_worker *worker);

/* ---- feed_preload.c ---- */

/* Collective.  Reads all selected samples into memory. */
int dnn_feed_preload(struct dnn_feed *feed, struct dnn_err *err);
void dnn_feed_unload(struct dnn_feed *feed);

#endif
