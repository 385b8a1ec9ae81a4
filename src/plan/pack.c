/* pack.c - placing stretches of memory that are needed for stretches of time.
 *
 * The large ones first, each into the smallest gap that holds it.  That is not the
 * optimum, which is hard to find, but for networks it is near what is alive at the
 * worst moment, and the plan says how near.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Larger first; of equal ones those needed longer, then those needed earlier. */
static int by_size(const void *pa, const void *pb)
{
    const struct dnn_span *a = *(const struct dnn_span *const *)pa;
    const struct dnn_span *b = *(const struct dnn_span *const *)pb;
    int la = a->last - a->first, lb = b->last - b->first;

    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    if (la != lb) return la < lb ? 1 : -1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a < b ? -1 : a > b; /* their places in the caller's array */
}

static int by_offset(const void *pa, const void *pb)
{
    const struct dnn_span *a = *(const struct dnn_span *const *)pa;
    const struct dnn_span *b = *(const struct dnn_span *const *)pb;

    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    return a < b ? -1 : a > b;
}

static bool together(const struct dnn_span *a, const struct dnn_span *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The best offset for a span among those already placed that share its time, which
 * are in rival[], ordered by offset. */
static size_t best_gap(const struct dnn_span *span, struct dnn_span *const *rival,
                       int n)
{
    size_t at = 0, best = 0, least = SIZE_MAX;

    for (int i = 0; i < n; i++) {
        size_t from = rival[i]->offset, to = from + dnn_plan_round(rival[i]->bytes);

        if (from >= at && from - at >= span->bytes && from - at < least) {
            least = from - at;
            best = at;
        }
        if (to > at) at = to;
    }
    return least < SIZE_MAX ? best : at;
}

size_t dnn_plan_pack(struct dnn_span *spans, int n)
{
    struct dnn_span **order = dnn_alloc((size_t)n * sizeof *order);
    struct dnn_span **rival = dnn_alloc((size_t)n * sizeof(*rival));
    size_t total = 0;

    for (int i = 0; i < n; i++)
        order[i] = &spans[i];
    qsort(order, (size_t)n, sizeof(*order), by_size);
    for (int i = 0; i < n; i++) {
        int rivals = 0;

        for (int k = 0; k < i; k++)
            if (together(order[i], order[k])) rival[rivals++] = order[k];
        qsort(rival, (size_t)rivals, sizeof(*rival), by_offset);
        order[i]->offset = best_gap(order[i], rival, rivals);
        size_t end = order[i]->offset + dnn_plan_round(order[i]->bytes);
        if (end > total) total = end;
    }
    dnn_free(order);
    dnn_free(rival);
    return total;
}
