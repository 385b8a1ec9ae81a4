/* pack.c - packs temporaries: memory ranges with lifetimes.
 *
 * Each is placed into the smallest gap that fits, largest first or in another order;
 * the best order is improved by placing earlier what ended up on top, and by random
 * changes. The optimum is hard to find, but for networks the result is close to the
 * bytes alive at the peak, and the plan prints how close.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/mem.h"
#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Limit of comparisons of two spans in all attempts: about a tenth of a second. */
    BUDGET = 20 * 1000 * 1000,
    NEAR = 200,   /* waste below this fraction of the peak is good enough */
    SMALL = 1000, /* spans below this fraction of it are placed last */
};

struct work {
    struct dnn_span *spans; /* the caller's */
    int n;
    int *order;   /* in which they are placed       */
    int *sorted;  /* those placed, lowest first     */
    int *best;    /* the order that was best        */
    size_t least; /* what that takes                */
    size_t live;  /* nothing can take less          */
    int64_t budget;
};

typedef int compare(const void *pa, const void *pb, void *spans);

static int length(const struct dnn_span *s)
{
    return s->last - s->first + 1;
}

/* Ties: longer lifetime first, then earlier start, then the order of the caller's
 * array. */
static int by_lifetime(const struct dnn_span *a, const struct dnn_span *b)
{
    if (length(a) != length(b)) return length(a) < length(b) ? 1 : -1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a < b ? -1 : a > b;
}

#define TWO(pa, pb, spans)                                                             \
    const struct dnn_span *a = (struct dnn_span *)(spans) + *(const int *)(pa);        \
    const struct dnn_span *b = (struct dnn_span *)(spans) + *(const int *)(pb)

static int by_size(const void *pa, const void *pb, void *spans)
{
    TWO(pa, pb, spans);

    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return by_lifetime(a, b);
}

static int by_area(const void *pa, const void *pb, void *spans)
{
    TWO(pa, pb, spans);
    double s = (double)a->bytes * length(a), t = (double)b->bytes * length(b);

    if (s < t || t < s) return s < t ? 1 : -1;
    return by_lifetime(a, b);
}

static int by_length(const void *pa, const void *pb, void *spans)
{
    TWO(pa, pb, spans);

    if (length(a) == length(b) && a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return by_lifetime(a, b);
}

static int by_first(const void *pa, const void *pb, void *spans)
{
    TWO(pa, pb, spans);

    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return by_lifetime(a, b);
}

static int by_last(const void *pa, const void *pb, void *spans)
{
    TWO(pa, pb, spans);

    if (a->last != b->last) return a->last > b->last ? -1 : 1;
    return by_lifetime(a, b);
}

/* The best offset for a span among n placed ones, lowest first. */
static size_t best_gap(const struct work *w, const struct dnn_span *span, int n)
{
    size_t at = 0, best = 0, least = SIZE_MAX;

    for (int i = 0; i < n; i++) {
        const struct dnn_span *rival = &w->spans[w->sorted[i]];

        if (span->first > rival->last || rival->first > span->last) continue;
        size_t from = rival->offset, to = from + dnn_plan_round(rival->bytes);
        if (from >= at && from - at >= span->bytes && from - at < least) {
            least = from - at;
            best = at;
        }
        if (to > at) at = to;
    }
    return least < SIZE_MAX ? best : at;
}

/* Place all in the current order; remember it if it is the best. */
static size_t place(struct work *w)
{
    size_t total = 0;

    for (int i = 0; i < w->n; i++) {
        struct dnn_span *span = &w->spans[w->order[i]];
        int at = i;

        span->offset = best_gap(w, span, i);
        for (; at > 0 && w->spans[w->sorted[at - 1]].offset > span->offset; at--)
            w->sorted[at] = w->sorted[at - 1];
        w->sorted[at] = w->order[i];
        size_t end = span->offset + dnn_plan_round(span->bytes);
        if (end > total) total = end;
    }
    w->budget -= (int64_t)w->n * w->n / 2;
    if (total < w->least) {
        w->least = total;
        memcpy(w->best, w->order, (size_t)w->n * sizeof *w->best);
    }
    return total;
}

/* Whether to stop: little can be gained, or the limit is reached. */
static bool good(const struct work *w)
{
    return w->least - w->live <= w->live / NEAR || w->budget <= 0;
}

/* Move what is placed as number from to number to. */
static void move(int *order, int from, int to)
{
    int span = order[from];

    if (from > to)
        memmove(order + to + 1, order + to, (size_t)(from - to) * sizeof *order);
    else
        memmove(order + from, order + from + 1, (size_t)(to - from) * sizeof *order);
    order[to] = span;
}

/* Place earlier what is on top, as long as that may help. */
static void place_top_first(struct work *w)
{
    size_t total = w->least;
    int stuck = 0;

    memcpy(w->order, w->best, (size_t)w->n * sizeof *w->order);
    place(w);
    while (!good(w) && stuck < w->n) {
        int top = 0;

        /* The last placed of those that reach the top. */
        for (int i = 0; i < w->n; i++) {
            const struct dnn_span *s = &w->spans[w->order[i]];

            if (s->offset + dnn_plan_round(s->bytes) == total) top = i;
        }
        if (top == 0) return;
        size_t before = w->least;
        move(w->order, top, 0);
        total = place(w);
        stuck = w->least < before ? 0 : stuck + 1;
    }
}

static int find(const int *order, int span)
{
    int i = 0;

    while (order[i] != span)
        i++;
    return i;
}

/* Move a random span to a random place in the order. */
static void disturb(struct work *w, const int *size, uint64_t *at)
{
    const struct dnn_rng rng = dnn_rng_make(1, 1);
    uint64_t n = (uint64_t)w->n;
    int which = size[dnn_rng_below(&rng, (struct dnn_rng_at){0, 0, (*at)++}, n)];
    int to = (int)dnn_rng_below(&rng, (struct dnn_rng_at){0, 0, (*at)++}, n);

    move(w->order, find(w->order, which), to);
}

/* Local search: accept random moves unless they are worse; where it is stuck,
 * restart near the best. */
static void shuffle(struct work *w, const int *size)
{
    enum { FAILURES = 200, MOVES = 5 };
    size_t n = (size_t)w->n, now = w->least;
    uint64_t at = 0;
    int *kept = dnn_alloc(n * sizeof *kept), stuck = 0;

    memcpy(kept, w->best, n * sizeof *kept);
    while (!good(w)) {
        bool again = stuck++ > FAILURES;

        memcpy(w->order, again ? w->best : kept, n * sizeof *w->order);
        for (int i = 0; i < (again ? MOVES : 1); i++)
            disturb(w, size, &at);
        size_t total = place(w);
        if (total > now && !again) continue;
        if (total < now || again) stuck = 0;
        now = total;
        memcpy(kept, w->order, n * sizeof *kept);
    }
    dnn_free(kept);
}

struct event {
    int time;
    int64_t bytes; /* more or, if it is negative, less */
};

/* At equal times ends come last: both ends of a span are included. */
static int by_time(const void *pa, const void *pb)
{
    const struct event *a = pa, *b = pb;

    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return a->bytes > b->bytes ? -1 : a->bytes < b->bytes;
}

/* The peak of the bytes alive at the same time, of spans of at least this many
 * bytes. */
static size_t alive(const struct dnn_span *spans, int n, size_t bytes)
{
    struct event *event = dnn_alloc(2 * (size_t)n * sizeof *event);
    int64_t live = 0, most = 0;
    size_t k = 0;

    for (int i = 0; i < n; i++) {
        int64_t size = (int64_t)dnn_plan_round(spans[i].bytes);

        if (spans[i].bytes < bytes) continue;
        event[k++] = (struct event){spans[i].first, size};
        event[k++] = (struct event){spans[i].last, -size};
    }
    qsort(event, k, sizeof *event, by_time);
    for (size_t i = 0; i < k; i++) {
        live += event[i].bytes;
        if (live > most) most = live;
    }
    dnn_free(event);
    return (size_t)most;
}

/* Search for the best order of the first large spans in size. */
static void search(struct work *w, const int *size, int large)
{
    static compare *const orders[] = {by_size, by_area, by_length, by_first, by_last};
    int all = w->n;

    w->n = large;
    for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++) {
        memcpy(w->order, size, (size_t)large * sizeof *w->order);
        qsort_r(w->order, (size_t)large, sizeof *w->order, orders[k], w->spans);
        if (k == 0 || !good(w)) place(w);
    }
    if (!good(w)) place_top_first(w);
    if (!good(w)) shuffle(w, size);
    w->n = all;
}

size_t dnn_plan_pack(struct dnn_span *spans, int n)
{
    size_t bytes = ((size_t)n + 1) * sizeof(int), live = alive(spans, n, 0);
    int *size = dnn_alloc(bytes), large = 0;
    struct work w = {.spans = spans,
                     .n = n,
                     .order = dnn_alloc(bytes),
                     .sorted = dnn_alloc(bytes),
                     .best = dnn_alloc(bytes),
                     .least = SIZE_MAX,
                     .live = alive(spans, n, live / SMALL),
                     .budget = BUDGET};

    for (int i = 0; i < n; i++)
        size[i] = i;
    qsort_r(size, (size_t)n, sizeof *size, by_size, spans);
    while (large < n && spans[size[large]].bytes >= live / SMALL)
        large++;
    if (n > 0) search(&w, size, large);
    memcpy(w.order, w.best, (size_t)large * sizeof *w.order);
    memcpy(w.order + large, size + large, (size_t)(n - large) * sizeof *w.order);
    size_t total = place(&w);
    dnn_free(size);
    dnn_free(w.order);
    dnn_free(w.sorted);
    dnn_free(w.best);
    return total;
}
