/* feed_plan.c - what a feed reads how, in which order, and what memory that takes.
 *
 * The order depends on the samples and the settings alone.  How they are read depends
 * on ranks and memory, too, and changes nothing but time.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data/feed_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 64, LARGE_PAGE = 2 << 20, USUAL_AHEAD = 3, GAP = 4 << 20 };
static const int64_t usual_window = (int64_t)512 << 20;

size_t dnn_feed_stored(const struct dnn_feed *feed)
{
    size_t all = 0;

    for (int k = 0; k < feed->ncols; k++)
        all += feed->col[k].stored;
    return all;
}

bool dnn_feed_whole(const struct dnn_feed *feed)
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
        int64_t bytes = cfg->window > 0 ? cfg->window : usual_window;

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

/* Samples in one window's memory. */
static int64_t window_samples(const struct dnn_feed *feed)
{
    const struct dnn_order *o = &feed->order;

    if (feed->windows == 1) return feed->count;
    return o->window / o->chunk * o->chunk;
}

/* Whether whole chunks are worth reading: samples are small and shuffled, a batch lies
 * in two windows at most, and other ranks do not use most of what we would read. */
static bool by_chunks(const struct dnn_feed *feed)
{
    const struct dnn_order *o = &feed->order;
    size_t stored = dnn_feed_stored(feed);

    if (!o->shuffle || stored >= DNN_FEED_LARGE) return false;
    if (feed->windows == 1) return true;
    return window_samples(feed) - o->chunk >= feed->cfg.batch_size &&
           (size_t)(feed->size - 1) * stored < DNN_FEED_LARGE;
}

/* What needs no conversion is read into the batch itself. */
static void read_from(struct dnn_feed *feed, enum dnn_feed_from from)
{
    feed->from = from;
    for (int k = 0; k < feed->ncols; k++)
        feed->col[k].straight =
            from == DNN_FROM_FILE && feed->cfg.augment == NULL &&
            (feed->col[k].later || dnn_feed_conv_same(&feed->col[k].conv));
}

/* ---- threads ---- */

static int usual_threads(const struct dnn_feed *feed)
{
    cpu_set_t set;
    int cpus = 1;

    if (feed->cfg.place != NULL)
        cpus = dnn_topo_count(&feed->cfg.place->pus);
    else if (sched_getaffinity(0, sizeof set, &set) == 0)
        cpus = CPU_COUNT(&set);
    /* One that reads and one that converts at least; a quarter of what there is is
     * enough to keep the others busy. */
    return cpus / 4 < 2 ? 2 : cpus / 4 > 8 ? 8 : cpus / 4;
}

/* Rows a thread makes at a time: not so few that taking them costs more. */
static int64_t rows_at_a_time(const struct dnn_feed *feed)
{
    const size_t worth = 256 << 10;
    size_t row = 1;

    for (int k = 0; k < feed->ncols; k++)
        row += feed->col[k].row;
    return row >= worth ? 1 : (int64_t)(worth / row);
}

/* ---- memory ---- */

/* One after the other: with base NULL only counted. */
struct room {
    char *base;
    size_t used;
    bool over;
};

static void *take(struct room *r, int64_t n, size_t each)
{
    size_t bytes;

    if (__builtin_mul_overflow((size_t)n, each, &bytes) ||
        __builtin_add_overflow(r->used, bytes, &bytes) || bytes > SIZE_MAX / 4) {
        r->over = true;
        return NULL;
    }
    char *at = r->base == NULL ? NULL : r->base + r->used;
    r->used = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static void lay_slot(struct dnn_feed *feed, struct dnn_feed_slot *slot, struct room *r)
{
    for (int k = 0; k < feed->ncols; k++)
        slot->batch.data[k] = take(r, feed->part, feed->col[k].row);
    slot->index = take(r, feed->part, sizeof *slot->index);
    slot->sample = take(r, feed->part, sizeof *slot->sample);
    slot->partner = feed->mixes ? take(r, feed->part, sizeof *slot->partner) : NULL;
    slot->batch.sample = slot->sample;
}

static void lay_stage(struct dnn_feed *feed, struct dnn_feed_stage *stage,
                      struct room *r)
{
    bool mine = feed->from == DNN_FROM_FILE;
    bool theirs = feed->mixes && feed->from != DNN_FROM_SOURCE && !dnn_feed_whole(feed);

    for (int k = 0; k < feed->ncols; k++) {
        const struct dnn_feed_col *col = &feed->col[k];

        stage->base[k] =
            mine && !col->straight ? take(r, feed->part, col->stored) : NULL;
        stage->partner[k] = theirs ? take(r, feed->part, col->stored) : NULL;
    }
}

/* Preloaded samples lie elsewhere. */
static void lay_windows(struct dnn_feed *feed, struct room *r)
{
    int n = feed->windows == 1 ? 1 : DNN_FEED_WINDOWS;

    if (feed->from != DNN_FROM_MEMORY || feed->cfg.preload) return;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < feed->ncols; k++)
            feed->window[i].base[k] =
                take(r, window_samples(feed), feed->col[k].stored);
}

/* What threads have of their own, and what is asked for piece by piece. */
static size_t small_change(const struct dnn_feed *feed)
{
    size_t each = 0, tables = 0, mid = 0;

    for (int k = 0; k < feed->ncols; k++) {
        mid += (size_t)feed->col[k].count * 4;
        if (feed->col[k].sum != NULL) tables += (size_t)feed->split->count * 8;
    }
    if (feed->from == DNN_FROM_SOURCE)
        each += dnn_feed_stored(feed) * (feed->mixes ? 2 : 1);
    if (feed->cfg.augment != NULL) each += mid * (feed->mixes ? 4 : 3);
    if (feed->pick != NULL) tables += (size_t)feed->split->count * 8;
    if (feed->from == DNN_FROM_MEMORY && feed->windows > 1)
        tables += (size_t)(feed->count / feed->order.chunk + 1) * 8;
    return tables + each * (size_t)feed->threads;
}

static size_t lay_out(struct dnn_feed *feed, char *base)
{
    struct room r = {.base = base};
    size_t most = dnn_feed_stored(feed);

    for (int i = 0; i < feed->nslots; i++)
        lay_slot(feed, &feed->slot[i], &r);
    for (int i = 0; i < DNN_FEED_STAGES; i++)
        lay_stage(feed, &feed->stage[i], &r);
    lay_windows(feed, &r);
    feed->gap_bytes = feed->pick == NULL || feed->from != DNN_FROM_MEMORY ? 0
                      : most > GAP                                        ? most
                                                                          : GAP;
    feed->gap = take(&r, 1, feed->gap_bytes);
    feed->memory_bytes = r.used;
    return r.over ? SIZE_MAX / 4 : r.used + small_change(feed);
}

static size_t budget(const struct dnn_feed *feed)
{
    if (feed->cfg.memory > 0) return (size_t)feed->cfg.memory;
    size_t all = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

    return all / 8 / (size_t)feed->local_size;
}

static int too_much(const struct dnn_feed *feed, size_t need, size_t may,
                    struct dnn_err *err)
{
    char a[32], b[32];

    return dnn_fail(err, DNN_ENOMEM,
                    "%s: batches of %" PRId64 " samples (%" PRId64
                    " on this rank), %d in memory, need %s, but the limit is %s; use a "
                    "smaller batch, prefetch fewer batches, or raise the memory limit",
                    feed->about, feed->cfg.batch_size, feed->part, feed->nslots,
                    dnn_text_bytes(a, sizeof a, (double)need),
                    dnn_text_bytes(b, sizeof b, (double)may));
}

/* First what makes it fast goes, then what hides unevenness; results stay. */
static int plan_memory(struct dnn_feed *feed, struct dnn_err *err)
{
    size_t may = budget(feed), need = lay_out(feed, NULL);

    if (need > may && feed->from == DNN_FROM_MEMORY && !feed->cfg.preload) {
        dnn_log(DNN_INFO, "data",
                "%s: shuffle windows do not fit into the memory limit; samples are "
                "read one by one, which is slower",
                feed->about);
        read_from(feed, DNN_FROM_FILE);
        need = lay_out(feed, NULL);
    }
    while (need > may && feed->cfg.ahead == 0 && feed->nslots > 2) {
        feed->nslots--;
        need = lay_out(feed, NULL);
    }
    if (need > may) return too_much(feed, need, may, err);
    feed->bytes = need;
    return 0;
}

int dnn_feed_plan(struct dnn_feed *feed, struct dnn_err *err)
{
    const struct dnn_feed_cfg *cfg = &feed->cfg;

    feed->micro_batches = cfg->micro_batches > 0 ? cfg->micro_batches : feed->size;
    plan_order(feed);
    feed->threads = cfg->threads > 0 ? cfg->threads : usual_threads(feed);
    feed->nslots = (cfg->ahead > 0 ? cfg->ahead : USUAL_AHEAD) + 1;
    feed->slot = dnn_alloc((size_t)feed->nslots * sizeof *feed->slot);
    feed->worker = dnn_alloc((size_t)feed->threads * sizeof *feed->worker);
    if (cfg->preload || (feed->dataset != NULL && by_chunks(feed)))
        read_from(feed, DNN_FROM_MEMORY);
    else
        read_from(feed, feed->dataset != NULL ? DNN_FROM_FILE : DNN_FROM_SOURCE);
    DNN_TRY(plan_memory(feed, err));
    feed->grain = rows_at_a_time(feed);
    return 0;
}

int dnn_feed_memory(struct dnn_feed *feed, struct dnn_err *err)
{
    char text[32];
    /* Large pages make the first touch, and every one after it, cheaper. */
    size_t align = feed->memory_bytes > 2 * LARGE_PAGE ? LARGE_PAGE : ALIGN;

    if (feed->memory_bytes > 0 &&
        posix_memalign(&feed->memory, align, feed->memory_bytes) != 0) {
        feed->memory = NULL;
        return dnn_fail(
            err, DNN_ENOMEM, "%s: batches need %s of memory, which is not available",
            feed->about, dnn_text_bytes(text, sizeof text, (double)feed->memory_bytes));
    }
    if (align == LARGE_PAGE) madvise(feed->memory, feed->memory_bytes, MADV_HUGEPAGE);
    lay_out(feed, feed->memory);
    int64_t chunks = feed->count / feed->order.chunk + 1;
    for (int i = 0; i < DNN_FEED_WINDOWS; i++) {
        feed->window[i].seq = -1;
        if (feed->from != DNN_FROM_MEMORY || dnn_feed_whole(feed)) continue;
        feed->window[i].at = dnn_alloc((size_t)chunks * sizeof *feed->window[i].at);
        memset(feed->window[i].at, -1, (size_t)chunks * sizeof *feed->window[i].at);
    }
    return 0;
}
