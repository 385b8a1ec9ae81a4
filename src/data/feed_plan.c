/* feed_plan.c - plans the order, the method and the memory of a feed.
 *
 * The order depends on the samples and the settings only.  The method also depends on
 * ranks and memory, and affects only the speed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data/feed_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64, LARGE_PAGE = 2 << 20, DEFAULT_AHEAD = 3, GAP = 4 << 20 };
static const int64_t default_window = (int64_t)512 << 20;

size_t dnn_feed_stored(const struct dnn_feed *feed)
{
    size_t all = 0;

    for (int k = 0; k < feed->ncols; k++)
        all += feed->col[k].stored;
    return all;
}

bool dnn_feed_all_in_memory(const struct dnn_feed *feed)
{
    return feed->from == DNN_FROM_MEMORY && (feed->cfg.preload || feed->windows == 1);
}

/* ---- the order ---- */

static void plan_order(struct dnn_feed *feed)
{
    const struct dnn_feed_cfg *cfg = &feed->cfg;
    size_t stored = dnn_feed_stored(feed);
    struct dnn_order *o = &feed->order;

    *o = (struct dnn_order){feed->count, 1, feed->count, cfg->shuffle, cfg->seed};
    if (feed->dataset != NULL && stored < DNN_FEED_LARGE) {
        int64_t bytes = cfg->window > 0 ? cfg->window : default_window;

        o->chunk = feed->split->chunk > 0 ? feed->split->chunk : 1;
        o->window = bytes / (int64_t)(stored > 0 ? stored : 1);
        if (o->window < o->chunk) o->window = o->chunk;
    }
    feed->windows = dnn_order_windows(o);
    feed->batches = dnn_order_batches(feed->count, cfg->batch_size);
    if (cfg->steps > 0 && cfg->steps < feed->batches) feed->batches = cfg->steps;
    int64_t first;
    dnn_order_micro_batches(feed->count, cfg->batch_size, 0, feed->micro_batches,
                            feed->rank, feed->size, &first, &feed->part);
}

/* Samples that the memory of a window holds. */
static int64_t window_samples(const struct dnn_feed *feed)
{
    const struct dnn_order *o = &feed->order;

    if (feed->windows == 1) return feed->count;
    return o->window / o->chunk * o->chunk;
}

/* Whether to read complete chunks: samples are small and shuffled, a batch is in two
 * windows at most, and other ranks do not need most of what we would read. */
static bool by_chunks(const struct dnn_feed *feed)
{
    const struct dnn_order *o = &feed->order;
    size_t stored = dnn_feed_stored(feed);

    if (!o->shuffle || stored >= DNN_FEED_LARGE) return false;
    if (feed->windows == 1) return true;
    return window_samples(feed) - o->chunk >= feed->cfg.batch_size &&
           (size_t)(feed->size - 1) * stored < DNN_FEED_LARGE;
}

/* Sets the method.  Columns that need no conversion are read into the batch
 * directly. */
static void set_method(struct dnn_feed *feed, enum dnn_feed_from from)
{
    feed->from = from;
    for (int k = 0; k < feed->ncols; k++)
        feed->col[k].direct =
            from == DNN_FROM_FILE && feed->cfg.augment == NULL &&
            (feed->col[k].deferred || dnn_conversion_same(&feed->col[k].conv));
}

/* ---- threads ---- */

static int default_threads(const struct dnn_feed *feed)
{
    cpu_set_t set;
    int cpus = 1;

    if (feed->cfg.place != NULL)
        cpus = dnn_topo_count(&feed->cfg.place->pus);
    else if (sched_getaffinity(0, sizeof set, &set) == 0)
        cpus = CPU_COUNT(&set);
    /* At least one thread to read and one to convert; a quarter of the CPUs is enough
     * to keep the others busy. */
    return cpus / 4 < 2 ? 2 : cpus / 4 > 8 ? 8 : cpus / 4;
}

/* Rows a thread makes at a time: enough to make locking cheap. */
static int64_t rows_at_a_time(const struct dnn_feed *feed)
{
    const size_t worth = 256 << 10;
    size_t row = 1;

    for (int k = 0; k < feed->ncols; k++)
        row += feed->col[k].row;
    return row >= worth ? 1 : (int64_t)(worth / row);
}

/* ---- memory ---- */

/* Divides a block of memory; with base NULL only counts bytes. */
struct pool {
    char *base;
    size_t used;
    bool overflow;
};

static void *reserve(struct pool *r, int64_t n, size_t each)
{
    size_t bytes;

    if (__builtin_mul_overflow((size_t)n, each, &bytes) ||
        __builtin_add_overflow(r->used, bytes, &bytes) || bytes > SIZE_MAX / 4) {
        r->overflow = true;
        return NULL;
    }
    char *at = r->base == NULL ? NULL : r->base + r->used;
    r->used = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static void reserve_slot(struct dnn_feed *feed, struct dnn_feed_slot *slot,
                         struct pool *r)
{
    for (int k = 0; k < feed->ncols; k++)
        slot->batch.data[k] = reserve(r, feed->part, feed->col[k].row);
    slot->index = reserve(r, feed->part, sizeof *slot->index);
    slot->sample = reserve(r, feed->part, sizeof *slot->sample);
    slot->partner = feed->mixes ? reserve(r, feed->part, sizeof *slot->partner) : NULL;
    slot->batch.sample = slot->sample;
}

static void reserve_stage(struct dnn_feed *feed, struct dnn_feed_stage *stage,
                          struct pool *r)
{
    bool bases = feed->from == DNN_FROM_FILE;
    bool partners =
        feed->mixes && feed->from != DNN_FROM_SOURCE && !dnn_feed_all_in_memory(feed);

    for (int k = 0; k < feed->ncols; k++) {
        const struct dnn_feed_col *col = &feed->col[k];

        stage->base[k] =
            bases && !col->direct ? reserve(r, feed->part, col->stored) : NULL;
        stage->partner[k] = partners ? reserve(r, feed->part, col->stored) : NULL;
    }
}

/* Preloaded samples have memory of their own. */
static void reserve_windows(struct dnn_feed *feed, struct pool *r)
{
    int n = feed->windows == 1 ? 1 : DNN_FEED_WINDOWS;

    if (feed->from != DNN_FROM_MEMORY || feed->cfg.preload) return;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < feed->ncols; k++)
            feed->window[i].base[k] =
                reserve(r, window_samples(feed), feed->col[k].stored);
}

/* Memory of each thread, and of tables that are allocated separately. */
static size_t other_bytes(const struct dnn_feed *feed)
{
    size_t each = 0, tables = 0, mid = 0;

    for (int k = 0; k < feed->ncols; k++) {
        mid += (size_t)feed->col[k].count * 4;
        if (feed->col[k].sum != NULL) tables += (size_t)feed->split->count * 8;
    }
    if (feed->from == DNN_FROM_SOURCE)
        each += dnn_feed_stored(feed) * (feed->mixes ? 2 : 1);
    if (feed->cfg.augment != NULL) each += mid * (feed->mixes ? 4 : 3);
    if (feed->selected != NULL) tables += (size_t)feed->split->count * 8;
    if (feed->from == DNN_FROM_MEMORY && feed->windows > 1)
        tables += (size_t)(feed->count / feed->order.chunk + 1) * 8;
    return tables + each * (size_t)feed->threads;
}

static size_t reserve_all(struct dnn_feed *feed, char *base)
{
    struct pool r = {.base = base};
    size_t most = dnn_feed_stored(feed);

    for (int i = 0; i < feed->nslots; i++)
        reserve_slot(feed, &feed->slot[i], &r);
    for (int i = 0; i < DNN_FEED_STAGES; i++)
        reserve_stage(feed, &feed->stage[i], &r);
    reserve_windows(feed, &r);
    feed->gap_bytes = feed->selected == NULL || feed->from != DNN_FROM_MEMORY ? 0
                      : most > GAP                                            ? most
                                                                              : GAP;
    feed->gap = reserve(&r, 1, feed->gap_bytes);
    feed->memory_bytes = r.used;
    return r.overflow ? SIZE_MAX / 4 : r.used + other_bytes(feed);
}

static size_t budget(const struct dnn_feed *feed)
{
    if (feed->cfg.memory > 0) return (size_t)feed->cfg.memory;
    return dnn_memory_total() / 8 / (size_t)feed->local_size;
}

static int over_limit(const struct dnn_feed *feed, size_t need, size_t limit,
                      struct dnn_err *err)
{
    char a[32], b[32];

    return dnn_fail(err, DNN_ENOMEM,
                    "%s: batches of %" PRId64 " samples (%" PRId64
                    " on this rank), %d in memory, need %s, but the limit is %s; use a "
                    "smaller batch, prefetch fewer batches, or raise the memory limit",
                    feed->about, feed->cfg.batch_size, feed->part, feed->nslots,
                    dnn_text_bytes(a, sizeof a, (double)need),
                    dnn_text_bytes(b, sizeof b, (double)limit));
}

/* If there is not enough memory, windows are given up first, then prefetched batches.
 * Results do not change. */
static int plan_memory(struct dnn_feed *feed, struct dnn_err *err)
{
    size_t limit = budget(feed), need = reserve_all(feed, NULL);

    if (need > limit && feed->from == DNN_FROM_MEMORY && !feed->cfg.preload) {
        dnn_log(DNN_INFO, "data",
                "%s: shuffle windows do not fit into the memory limit; samples are "
                "read one by one, which is slower",
                feed->about);
        set_method(feed, DNN_FROM_FILE);
        need = reserve_all(feed, NULL);
    }
    while (need > limit && feed->cfg.ahead == 0 && feed->nslots > 2) {
        feed->nslots--;
        need = reserve_all(feed, NULL);
    }
    if (need > limit) return over_limit(feed, need, limit, err);
    feed->bytes = need;
    return 0;
}

int dnn_feed_plan(struct dnn_feed *feed, struct dnn_err *err)
{
    const struct dnn_feed_cfg *cfg = &feed->cfg;

    feed->micro_batches = cfg->micro_batches > 0 ? cfg->micro_batches : feed->size;
    plan_order(feed);
    feed->threads = cfg->threads > 0 ? cfg->threads : default_threads(feed);
    feed->nslots = (cfg->ahead > 0 ? cfg->ahead : DEFAULT_AHEAD) + 1;
    feed->slot = dnn_alloc((size_t)feed->nslots * sizeof *feed->slot);
    feed->worker = dnn_alloc((size_t)feed->threads * sizeof *feed->worker);
    if (cfg->preload || (feed->dataset != NULL && by_chunks(feed)))
        set_method(feed, DNN_FROM_MEMORY);
    else
        set_method(feed, feed->dataset != NULL ? DNN_FROM_FILE : DNN_FROM_SOURCE);
    DNN_TRY(plan_memory(feed, err));
    feed->grain = rows_at_a_time(feed);
    return 0;
}

int dnn_feed_memory(struct dnn_feed *feed, struct dnn_err *err)
{
    char text[32];
    /* Huge pages make page faults and accesses cheaper. */
    size_t align = feed->memory_bytes > 2 * LARGE_PAGE ? LARGE_PAGE : ALIGN;

    if (feed->memory_bytes > 0 &&
        posix_memalign(&feed->memory, align, feed->memory_bytes) != 0) {
        feed->memory = NULL;
        return dnn_fail(
            err, DNN_ENOMEM, "%s: batches need %s of memory, which is not available",
            feed->about, dnn_text_bytes(text, sizeof text, (double)feed->memory_bytes));
    }
    if (align == LARGE_PAGE) madvise(feed->memory, feed->memory_bytes, MADV_HUGEPAGE);
    reserve_all(feed, feed->memory);
    int64_t chunks = feed->count / feed->order.chunk + 1;
    for (int i = 0; i < DNN_FEED_WINDOWS; i++) {
        feed->window[i].seq = -1;
        if (feed->from != DNN_FROM_MEMORY || dnn_feed_all_in_memory(feed)) continue;
        feed->window[i].at = dnn_alloc((size_t)chunks * sizeof *feed->window[i].at);
        memset(feed->window[i].at, -1, (size_t)chunks * sizeof *feed->window[i].at);
    }
    return 0;
}
