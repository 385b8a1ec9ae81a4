/* feed_impl.h - what the files of the feed share.
 *
 * feed.c          public functions: opens, hands batches out, closes;
 * feed_plan.c     reading order, method and memory;
 * feed_select.c   which samples take part, and their checksums;
 * feed_threads.c  the reader threads: who does what next;
 * feed_read.c     from the dataset into memory;
 * feed_make.c     makes a row of a batch from a stored sample;
 * feed_convert.c  loops over numbers;
 * feed_preload.c  memory that the ranks of a node share, for preloading.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_DATA_FEED_IMPL_H
#define DNN_DATA_FEED_IMPL_H

#include "data/dataset.h"
#include "data/feed.h"

#include <pthread.h>

/* Samples at least as large are read one by one: what a request costs is then little
 * beside what it brings.  Smaller ones come in chunks. */
enum { DNN_FEED_LARGE = 64 << 10 };

enum {
    DNN_FEED_PERIOD = 192, /* factors and terms, repeated                        */
    DNN_FEED_STAGES = 2,   /* batches read and not yet converted                 */
    DNN_FEED_WINDOWS = 2
};

/* ---- feed_convert.c ---- */

/* How the numbers of a column become what the network takes. */
struct dnn_feed_conv {
    enum dnn_dtype type; /* as stored                                              */
    bool integer;        /* to i32; else to f32                                    */
    bool check;          /* NaN and infinities are errors                          */
    int64_t classes;     /* integer: numbers from 0 to below this; 0: up to 2^31;
                          * -1: any                                                */
    int period;          /* 0: values are as stored                                */
    float factor[DNN_FEED_PERIOD], term[DNN_FEED_PERIOD];
    double wide_factor[DNN_FEED_PERIOD], wide_term[DNN_FEED_PERIOD];
};

/* The scale of n channels (1: of all), made ready. */
void dnn_feed_conv_scale(struct dnn_feed_conv *conv, int n, const double *scale,
                         const double *offset);
/* Whether bytes are the same before and after. */
bool dnn_feed_conv_same(const struct dnn_feed_conv *conv);
/* Convert; from and to are the same if dnn_feed_conv_same(), and then only looked at.
 * *bad becomes the index of the first number that must not be there, or -1. */
int dnn_feed_convert(const struct dnn_feed_conv *conv, const void *from, void *to,
                     int64_t n, int64_t *bad, struct dnn_err *err);

/* ---- the feed ---- */

enum dnn_feed_from {
    DNN_FROM_SOURCE, /* whoever makes a row reads its sample                       */
    DNN_FROM_FILE,   /* a batch's samples are asked for together                   */
    DNN_FROM_MEMORY  /* whole chunks are read before, and kept: a window or all    */
};

struct dnn_feed_col {
    struct dnn_feed_conv conv;
    int64_t count; /* numbers of a sample as stored                              */
    size_t stored; /* bytes of it                                                */
    size_t row;    /* bytes of a sample in a batch                               */
    bool straight; /* read into the batch itself                                 */
    bool later;    /* the batch has it as stored                                 */
    uint64_t *sum; /* owned: checksums of all samples of the split; NULL: not looked
                    * at                                                         */
};

/* Samples read and not yet converted. */
struct dnn_feed_stage {
    char *base[DNN_MAX_COLUMNS];    /* NULL: straight, or in memory               */
    char *partner[DNN_MAX_COLUMNS]; /* those mixed in                             */
};

/* Chunks in memory. */
struct dnn_feed_window {
    int64_t seq;      /* epoch * windows + window; -1: none                       */
    int64_t first, n; /* positions of its chunks in their order                   */
    int64_t loaded;   /* chunks that are there                                    */
    int32_t *at;      /* owned: chunk -> which one here, or -1; NULL: all in order */
    char *base[DNN_MAX_COLUMNS];
};

enum dnn_feed_state {
    DNN_SLOT_FREE,
    DNN_SLOT_READING, /* its numbers are known, its samples not all there           */
    DNN_SLOT_MAKING,  /* rows can be made                                           */
    DNN_SLOT_READY,
    DNN_SLOT_TAKEN
};

struct dnn_feed_slot {
    struct dnn_batch batch;
    enum dnn_feed_state state;
    int64_t seq;       /* epoch * batches + number                                  */
    int64_t low, high; /* windows it needs                                          */
    int64_t *index;    /* numbers among the samples that take part                  */
    int64_t *sample;   /* numbers in the split                                      */
    int64_t *partner;  /* like index; NULL: nothing is mixed                        */
    int64_t there;     /* rows whose samples have been read                         */
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
    int64_t *pick; /* owned: number among those taking part -> in the split; NULL:
                    * all take part                                                 */
    int64_t count;
    int ncols;
    struct dnn_column in[DNN_MAX_COLUMNS];  /* as stored                            */
    struct dnn_column mid[DNN_MAX_COLUMNS]; /* converted                            */
    struct dnn_column out[DNN_MAX_COLUMNS]; /* augmented                            */
    struct dnn_feed_col col[DNN_MAX_COLUMNS];
    bool taken_shape; /* shapes are those of sample 0, and must be so in all        */
    bool mixes;
    struct dnn_order order;
    int64_t windows, batches, micro_batches;
    int64_t part;  /* samples of our largest part of a batch                         */
    int64_t grain; /* rows made at a time                                           */
    int threads, nslots;
    size_t bytes;

    struct dnn_feed_slot *slot;                   /* owned; nslots                 */
    struct dnn_feed_stage stage[DNN_FEED_STAGES]; /* parts of memory               */
    struct dnn_feed_window window[DNN_FEED_WINDOWS];
    char *gap; /* chunks of which not all samples take part go through it */
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
    bool reading; /* somebody uses the dataset                                      */
    bool blind;   /* looking ahead failed: what is wrong shows when it is needed    */
    int64_t next_in, next_out; /* batches to set up and to hand out                 */
    struct dnn_feed_slot *taken;
    bool failed;             /* an error was handed out                             */
    struct filling *filling; /* while a source is preloaded                         */
};

struct dnn_feed_worker {
    struct dnn_feed *feed;
    pthread_t thread;
    int (*job)(struct dnn_feed_worker *worker);
    struct dnn_sample raw, raw_partner; /* as a source gives them                   */
    struct dnn_sample sample, partner;  /* converted, to be augmented               */
    struct dnn_augment_scratch *scratch;
};

/* ---- feed_plan.c ---- */

/* Everything that can be known before memory is taken. */
int dnn_feed_plan(struct dnn_feed *feed, struct dnn_err *err);
/* Take the memory. */
int dnn_feed_memory(struct dnn_feed *feed, struct dnn_err *err);
/* Bytes of all columns of one sample, as stored. */
size_t dnn_feed_stored(const struct dnn_feed *feed);
/* Whether all samples that take part are in memory, once they have been read. */
bool dnn_feed_whole(const struct dnn_feed *feed);

/* ---- feed_pick.c ---- */

int dnn_feed_pick(struct dnn_feed *feed, struct dnn_err *err);
int dnn_feed_sums(struct dnn_feed *feed, struct dnn_err *err);
int64_t dnn_feed_number(const struct dnn_feed *feed, int64_t index); /* in the split */

/* ---- feed_work.c ---- */

/* Start threads that each do job until it returns; and wait for them to end. */
int dnn_feed_begin(struct dnn_feed *feed, int (*job)(struct dnn_feed_worker *),
                   struct dnn_err *err);
void dnn_feed_end(struct dnn_feed *feed);
/* What threads do while batches are wanted. */
int dnn_feed_serve(struct dnn_feed_worker *worker);
/* "path: train[12] (cats/12.jpg)".  Not with the lock held, nor while reading. */
void dnn_feed_name(struct dnn_feed *feed, int64_t index, char *out, size_t size);

/* ---- feed_read.c: one thread at a time, without the lock ---- */

/* Which samples and windows a slot is about. */
void dnn_feed_set_up(struct dnn_feed *feed, struct dnn_feed_slot *slot);
/* Some more of a window's chunks: a portion. */
int dnn_feed_load(struct dnn_feed *feed, struct dnn_feed_window *window,
                  struct dnn_err *err);
/* Begin to fill a window with others. */
void dnn_feed_window_set(struct dnn_feed *feed, struct dnn_feed_window *window,
                         int64_t seq);
bool dnn_feed_loaded(const struct dnn_feed_window *window, int64_t seq);
/* What of rows [from, from + n) of a slot is read by itself: samples, those mixed in.
 */
int dnn_feed_fetch(struct dnn_feed *feed, struct dnn_feed_slot *slot, int64_t from,
                   int64_t n, struct dnn_err *err);
/* Rows [first, first + n) of those taking part, of one column, to be there after
 * dnn_dataset_fetch(). */
int dnn_feed_rows(struct dnn_feed *feed, int column, int64_t first, int64_t n, char *to,
                  struct dnn_err *err);
/* Where a sample's column lies as stored, by its number among those taking part. */
const void *dnn_feed_find(const struct dnn_feed *feed, const struct dnn_feed_slot *slot,
                          int column, int64_t index);

/* ---- feed_make.c ---- */

int dnn_feed_make(struct dnn_feed_worker *worker, struct dnn_feed_slot *slot, int64_t i,
                  struct dnn_err *err);
/* A sample of a source, whose shapes must be those of the columns. */
int dnn_feed_take(struct dnn_feed *feed, int64_t index, struct dnn_sample *out,
                  struct dnn_err *err);
void dnn_feed_worker_free(struct dnn_feed_worker *worker);

/* ---- feed_share.c ---- */

/* Collective.  Read all samples that take part into memory. */
int dnn_feed_preload(struct dnn_feed *feed, struct dnn_err *err);
void dnn_feed_unload(struct dnn_feed *feed);

#endif
