/* order.c - the order of samples: a function of seed, epoch and position only.
 *
 * If chunks are shuffled, the last chunk may be shorter than the others.  Its position
 * among them is drawn separately, and the others are permuted, so that the first sample
 * position of each chunk can be computed without visiting those before it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data/order.h"

#include <assert.h>

/* Random streams of this file. */
enum { STREAM_SHORT = 0x5ea7, STREAM_CHUNKS, STREAM_WINDOWS };

/* The part of an epoch's order that does not depend on the position. */
struct layout {
    const struct dnn_order *order;
    int64_t epoch;
    bool whole;             /* one permutation of all samples               */
    int64_t per;            /* chunks of a window                           */
    int64_t nchunks;        /* of the epoch, with a short one               */
    int64_t short_chunk;    /* position of the short chunk; -1: none */
    int64_t missing;        /* samples that the short chunk lacks           */
    struct dnn_perm chunks; /* of the full chunks; whole: of samples        */
};

static int64_t chunk_of(const struct dnn_order *o)
{
    return o->chunk < 1 ? 1 : o->chunk;
}

static int64_t per_window(const struct dnn_order *o)
{
    int64_t n = o->window / chunk_of(o);

    return n < 1 ? 1 : n;
}

static int64_t count_chunks(const struct dnn_order *o)
{
    return o->count / chunk_of(o) + (o->count % chunk_of(o) != 0);
}

/* A seed for a stream, an epoch and a window. */
static uint64_t seed_of(uint64_t seed, uint64_t stream, int64_t epoch, int64_t w)
{
    struct dnn_rng rng = dnn_rng_make(seed, stream);
    struct dnn_rng_at at = {(uint32_t)epoch, (uint32_t)((uint64_t)epoch >> 32),
                            (uint64_t)w};
    uint32_t word[4];

    dnn_rng_words(&rng, at, word);
    return (uint64_t)word[0] << 32 | word[1];
}

static struct layout lay_out(const struct dnn_order *o, int64_t epoch)
{
    struct layout l = {.order = o, .epoch = epoch, .short_chunk = -1};

    l.whole = o->window >= o->count;
    l.per = per_window(o);
    l.nchunks = count_chunks(o);
    if (!o->shuffle) return l;
    if (l.whole) {
        l.chunks = dnn_rng_perm(o->seed, (uint64_t)epoch, (uint64_t)o->count);
        return l;
    }
    int64_t full = o->count / chunk_of(o);
    l.missing = full < l.nchunks ? chunk_of(o) - o->count % chunk_of(o) : 0;
    if (l.missing > 0) {
        struct dnn_rng rng = dnn_rng_make(o->seed, STREAM_SHORT);
        struct dnn_rng_at at = {(uint32_t)epoch, (uint32_t)((uint64_t)epoch >> 32), 0};

        l.short_chunk = (int64_t)dnn_rng_below(&rng, at, (uint64_t)l.nchunks);
    }
    l.chunks = dnn_rng_perm(seed_of(o->seed, STREAM_CHUNKS, 0, 0), (uint64_t)epoch,
                            (uint64_t)(full > 0 ? full : 1));
    return l;
}

/* The position of the first sample of chunk number c in the shuffled order. */
static int64_t begin_of(const struct layout *l, int64_t c)
{
    if (c >= l->nchunks) return l->order->count;
    return c * chunk_of(l->order) - (c > l->short_chunk ? l->missing : 0);
}

/* Which group of `per` chunks a position is in.  A short chunk before it shifts it by
 * less than a chunk, hence by one group at most. */
static int64_t group_of(const struct layout *l, int64_t position, int64_t per)
{
    int64_t g = position / (per * chunk_of(l->order));

    return position >= begin_of(l, (g + 1) * per) ? g + 1 : g;
}

static int64_t chunk_at(const struct layout *l, int64_t c)
{
    if (!l->order->shuffle || l->whole) return c;
    if (l->short_chunk < 0) return (int64_t)dnn_rng_perm_at(&l->chunks, (uint64_t)c);
    if (c == l->short_chunk) return l->nchunks - 1;
    c -= c > l->short_chunk;
    return (int64_t)dnn_rng_perm_at(&l->chunks, (uint64_t)c);
}

/* The permutation of a window, kept for positions that follow each other. */
struct window {
    int64_t w, begin;
    struct dnn_perm perm;
};

static void make_window(const struct layout *l, int64_t w, struct window *win)
{
    const struct dnn_order *o = l->order;
    int64_t end = begin_of(l, (w + 1) * l->per);

    win->w = w;
    win->begin = begin_of(l, w * l->per);
    win->perm = dnn_rng_perm(seed_of(o->seed, STREAM_WINDOWS, l->epoch, w), 0,
                             (uint64_t)(end - win->begin));
}

static int64_t sample_at(const struct layout *l, struct window *win, int64_t position)
{
    if (!l->order->shuffle) return position;
    if (l->whole) return (int64_t)dnn_rng_perm_at(&l->chunks, (uint64_t)position);
    int64_t w = group_of(l, position, l->per);
    if (w != win->w) make_window(l, w, win);
    /* Its position if only the chunks were shuffled. */
    int64_t at = win->begin + (int64_t)dnn_rng_perm_at(
                                  &win->perm, (uint64_t)(position - win->begin));
    int64_t c = group_of(l, at, 1);

    return chunk_at(l, c) * chunk_of(l->order) + at - begin_of(l, c);
}

int64_t dnn_order_at(const struct dnn_order *order, int64_t epoch, int64_t position)
{
    int64_t sample;

    dnn_order_fill(order, epoch, position, 1, &sample);
    return sample;
}

void dnn_order_fill(const struct dnn_order *order, int64_t epoch, int64_t first,
                    int64_t n, int64_t *out)
{
    struct layout l = lay_out(order, epoch);
    struct window win = {.w = -1};

    assert(first >= 0 && n >= 0 && first + n <= order->count);
    for (int64_t i = 0; i < n; i++)
        out[i] = sample_at(&l, &win, first + i);
}

/* ---- windows ---- */

int64_t dnn_order_windows(const struct dnn_order *order)
{
    int64_t per = per_window(order), n = count_chunks(order);

    if (!order->shuffle || order->window >= order->count) return 1;
    return n / per + (n % per != 0);
}

int64_t dnn_order_window(const struct dnn_order *order, int64_t epoch, int64_t position)
{
    if (dnn_order_windows(order) == 1) return 0;
    struct layout l = lay_out(order, epoch);

    return group_of(&l, position, l.per);
}

void dnn_order_chunks(const struct dnn_order *order, int64_t w, int64_t *first,
                      int64_t *n)
{
    int64_t all = count_chunks(order), per = per_window(order);

    if (dnn_order_windows(order) == 1) per = all;
    *first = w * per;
    *n = all - *first < per ? all - *first : per;
}

int64_t dnn_order_chunk(const struct dnn_order *order, int64_t epoch, int64_t c)
{
    struct layout l = lay_out(order, epoch);

    return chunk_at(&l, c);
}

/* ---- batches ---- */

int64_t dnn_order_batches(int64_t count, int64_t batch_size)
{
    return count / batch_size + (count % batch_size != 0);
}

void dnn_order_part(int64_t count, int64_t batch_size, int64_t b, int rank, int size,
                    int64_t *first, int64_t *n)
{
    int64_t begin = b * batch_size;
    int64_t all = count - begin < batch_size ? count - begin : batch_size;
    /* The first ranks get one more if it is not divisible. */
    int64_t each = all / size, more = all % size;

    *first = begin + rank * each + (rank < more ? rank : more);
    *n = each + (rank < more);
}

void dnn_order_own(int64_t micro_batches, int rank, int size, int *first, int *last)
{
    *first = (int)(rank * micro_batches / size);
    *last = (int)((rank + 1) * micro_batches / size);
}

void dnn_order_micro_batches(int64_t count, int64_t batch_size, int64_t b,
                             int64_t micro_batches, int rank, int size, int64_t *first,
                             int64_t *n)
{
    int from, to, parts = (int)micro_batches;
    int64_t begin, m;

    dnn_order_own(micro_batches, rank, size, &from, &to);
    dnn_order_part(count, batch_size, b, from < parts ? from : parts - 1, parts, first,
                   n);
    *n = 0;
    if (from == to) return;
    dnn_order_part(count, batch_size, b, to - 1, parts, &begin, &m);
    *n = begin + m - *first;
}
