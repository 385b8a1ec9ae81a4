/* pack.c - pack temporaries: find offsets of memory ranges with lifetimes.
 *
 * Each span is placed into the smallest gap that fits, largest first or in another
 * order.  The best order is improved by placing the span at the top first, and by
 * random changes.  To find the optimum is too expensive, but for networks the result is
 * close to the lower bound, the peak of the bytes alive at the same time; the plan
 * prints how close.
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
    /* Maximum number of comparisons of two spans in total: about 0.1 s. */
    BUDGET = 20 * 1000 * 1000,
    GOOD_ENOUGH = 200, /* stop if the waste is below 1/200 of the lower bound */
    SMALL_SPAN = 1000, /* spans below 1/1000 of the lower bound are placed last */
};

struct work {
    struct dnn_span *spans; /* the caller's */
    int n;
    int *order;         /* of placement                   */
    int *sorted;        /* placed spans by offset         */
    int *best;          /* the best order so far          */
    size_t best_bytes;  /* total bytes with this order    */
    size_t lower_bound; /* of the total bytes             */
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

#define GET_SPANS(pa, pb, spans)                                                       \
    const struct dnn_span *a = (struct dnn_span *)(spans) + *(const int *)(pa);        \
    const struct dnn_span *b = (struct dnn_span *)(spans) + *(const int *)(pb)

static int by_size(const void *pa, const void *pb, void *spans)
{
    GET_SPANS(pa, pb, spans);

    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return by_lifetime(a, b);
}

static int by_area(const void *pa, const void *pb, void *spans)
{
    GET_SPANS(pa, pb, spans);
    double s = (double)a->bytes * length(a), t = (double)b->bytes * length(b);

    if (s < t || t < s) return s < t ? 1 : -1;
    return by_lifetime(a, b);
}

static int by_length(const void *pa, const void *pb, void *spans)
{
    GET_SPANS(pa, pb, spans);

    if (length(a) == length(b) && a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return by_lifetime(a, b);
}

static int by_first(const void *pa, const void *pb, void *spans)
{
    GET_SPANS(pa, pb, spans);

    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return by_lifetime(a, b);
}

static int by_last(const void *pa, const void *pb, void *spans)
{
    GET_SPANS(pa, pb, spans);

    if (a->last != b->last) return a->last > b->last ? -1 : 1;
    return by_lifetime(a, b);
}

/* The best offset for a span among n placed ones, lowest first. */
static size_t best_gap(const struct work *w, const struct dnn_span *span, int n)
{
    size_t at = 0, best = 0, smallest = SIZE_MAX;

    for (int i = 0; i < n; i++) {
        const struct dnn_span *placed = &w->spans[w->sorted[i]];

        if (span->first > placed->last || placed->first > span->last) continue;
        size_t from = placed->offset, to = from + dnn_plan_round(placed->bytes);
        if (from >= at && from - at >= span->bytes && from - at < smallest) {
            smallest = from - at;
            best = at;
        }
        if (to > at) at = to;
    }
    return smallest < SIZE_MAX ? best : at;
}

/* Place all spans in the current order; store it if it is the best so far. */
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
    if (total < w->best_bytes) {
        w->best_bytes = total;
        memcpy(w->best, w->order, (size_t)w->n * sizeof *w->best);
    }
    return total;
}

/* Whether to stop: the result is good enough, or the limit is reached. */
static bool is_done(const struct work *w)
{
    return w->best_bytes - w->lower_bound <= w->lower_bound / GOOD_ENOUGH ||
           w->budget <= 0;
}

/* Move a span in the order, from index `from` to index `to`. */
static void move(int *order, int from, int to)
{
    int span = order[from];

    if (from > to)
        memmove(order + to + 1, order + to, (size_t)(from - to) * sizeof *order);
    else
        memmove(order + from, order + from + 1, (size_t)(to - from) * sizeof *order);
    order[to] = span;
}

/* Move the span at the top to the start of the order, as long as this may help. */
static void place_top_first(struct work *w)
{
    size_t total = w->best_bytes;
    int failures = 0;

    memcpy(w->order, w->best, (size_t)w->n * sizeof *w->order);
    place(w);
    while (!is_done(w) && failures < w->n) {
        int top = 0;

        /* Of the spans that reach the top, the last one in the order. */
        for (int i = 0; i < w->n; i++) {
            const struct dnn_span *s = &w->spans[w->order[i]];

            if (s->offset + dnn_plan_round(s->bytes) == total) top = i;
        }
        if (top == 0) return;
        size_t before = w->best_bytes;
        move(w->order, top, 0);
        total = place(w);
        failures = w->best_bytes < before ? 0 : failures + 1;
    }
}

static int find(const int *order, int span)
{
    int i = 0;

    while (order[i] != span)
        i++;
    return i;
}

/* Move a random span to a random index in the order. */
static void move_random(struct work *w, const int *size, uint64_t *at)
{
    const struct dnn_rng rng = dnn_rng_make(1, 1);
    uint64_t n = (uint64_t)w->n;
    int span = size[dnn_rng_below(&rng, (struct dnn_rng_at){0, 0, (*at)++}, n)];
    int to = (int)dnn_rng_below(&rng, (struct dnn_rng_at){0, 0, (*at)++}, n);

    move(w->order, find(w->order, span), to);
}

/* Local search: accept random moves unless they are worse; after many failures restart
 * near the best order. */
static void local_search(struct work *w, const int *size)
{
    enum { FAILURES = 200, MOVES = 5 };
    size_t n = (size_t)w->n, now = w->best_bytes;
    uint64_t at = 0;
    int *current = dnn_alloc(n * sizeof *current), failures = 0;

    memcpy(current, w->best, n * sizeof *current);
    while (!is_done(w)) {
        bool restart = failures++ > FAILURES;

        memcpy(w->order, restart ? w->best : current, n * sizeof *w->order);
        for (int i = 0; i < (restart ? MOVES : 1); i++)
            move_random(w, size, &at);
        size_t total = place(w);
        if (total > now && !restart) continue;
        if (total < now || restart) failures = 0;
        now = total;
        memcpy(current, w->order, n * sizeof *current);
    }
    dnn_free(current);
}

struct event {
    int time;
    int64_t bytes; /* increase of the bytes alive; negative: decrease */
};

/* At equal times, ends come last, because the last time of a span is included. */
static int by_time(const void *pa, const void *pb)
{
    const struct event *a = pa, *b = pb;

    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return a->bytes > b->bytes ? -1 : a->bytes < b->bytes;
}

/* The peak of the bytes alive at the same time, of spans of at least `bytes`. */
static size_t peak_bytes(const struct dnn_span *spans, int n, size_t bytes)
{
    struct event *event = dnn_alloc(2 * (size_t)n * sizeof *event);
    int64_t live = 0, max = 0;
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
        if (live > max) max = live;
    }
    dnn_free(event);
    return (size_t)max;
}

/* Search for the best order of the `large` largest spans, the first ones in size[]. */
static void search(struct work *w, const int *size, int large)
{
    static compare *const orders[] = {by_size, by_area, by_length, by_first, by_last};
    int all = w->n;

    w->n = large;
    for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++) {
        memcpy(w->order, size, (size_t)large * sizeof *w->order);
        qsort_r(w->order, (size_t)large, sizeof *w->order, orders[k], w->spans);
        if (k == 0 || !is_done(w)) place(w);
    }
    if (!is_done(w)) place_top_first(w);
    if (!is_done(w)) local_search(w, size);
    w->n = all;
}

size_t dnn_plan_pack(struct dnn_span *spans, int n)
{
    size_t bytes = ((size_t)n + 1) * sizeof(int), lower_bound = peak_bytes(spans, n, 0);
    int *size = dnn_alloc(bytes), large = 0;
    struct work w = {.spans = spans,
                     .n = n,
                     .order = dnn_alloc(bytes),
                     .sorted = dnn_alloc(bytes),
                     .best = dnn_alloc(bytes),
                     .best_bytes = SIZE_MAX,
                     .lower_bound = peak_bytes(spans, n, lower_bound / SMALL_SPAN),
                     .budget = BUDGET};

    for (int i = 0; i < n; i++)
        size[i] = i;
    qsort_r(size, (size_t)n, sizeof *size, by_size, spans);
    while (large < n && spans[size[large]].bytes >= lower_bound / SMALL_SPAN)
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
