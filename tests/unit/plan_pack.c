/* plan_pack.c - packing spans: nothing overlaps, little is wasted.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/rng.h"
#include "plan/plan.h"
#include "tap.h"

enum { MOST = 200 };

static bool clash(const struct dnn_span *a, const struct dnn_span *b)
{
    return a->first <= b->last && b->first <= a->last &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* The bytes alive together at the worst time. */
static size_t least(const struct dnn_span *s, int n)
{
    size_t worst = 0;

    for (int i = 0; i < n; i++) {
        size_t live = 0;

        for (int k = 0; k < n; k++)
            if (s[k].first <= s[i].first && s[i].first <= s[k].last)
                live +=
                    (s[k].bytes + DNN_PLAN_ALIGN - 1) / DNN_PLAN_ALIGN * DNN_PLAN_ALIGN;
        if (live > worst) worst = live;
    }
    return worst;
}

static void examples(void)
{
    struct dnn_span chain[] = {
        {100, 0, 1, 0},
        {100, 1, 2, 0},
        {100, 2, 3, 0},
        {100, 3, 4, 0}
    };
    struct dnn_span none[1];
    /* A U-Net: the first values are read last. */
    struct dnn_span u[] = {
        {4096, 0, 7, 0},
        {2048, 1, 6, 0},
        {1024, 2, 5, 0},
        {1024, 3, 4, 0},
        {2048, 5, 6, 0},
        {4096, 6, 7, 0}
    };

    is_int((long long)dnn_plan_pack(none, 0), 0, "no spans need no memory");
    is_int((long long)dnn_plan_pack(chain, 4), 256, "a chain needs two buffers");
    is_int((long long)chain[0].offset, (long long)chain[2].offset, "used in turn");
    is_int((long long)dnn_plan_pack(u, 6), (long long)least(u, 6),
           "a U-Net is packed without waste");
}

static void properties(void)
{
    struct dnn_rng rng = dnn_rng_make(1, 1);
    struct dnn_span span[MOST], again[MOST];
    int clashes = 0, crooked = 0, other = 0, below = 0;
    double waste = 0;
    enum { ROUNDS = 40 };

    for (uint32_t round = 0; round < ROUNDS; round++) {
        int n = 1 + (int)dnn_rng_below(&rng, (struct dnn_rng_at){round, 0, 0}, MOST);

        for (int i = 0; i < n; i++) {
            uint64_t k = (uint64_t)i * 3;

            span[i].bytes =
                dnn_rng_below(&rng, (struct dnn_rng_at){round, 1, k}, 1 << 16);
            span[i].first =
                (int)dnn_rng_below(&rng, (struct dnn_rng_at){round, 1, k + 1}, 100);
            span[i].last =
                span[i].first +
                (int)dnn_rng_below(&rng, (struct dnn_rng_at){round, 1, k + 2}, 20);
            again[i] = span[i];
        }
        size_t total = dnn_plan_pack(span, n);
        dnn_plan_pack(again, n);
        for (int i = 0; i < n; i++) {
            crooked += span[i].offset % DNN_PLAN_ALIGN != 0;
            other += span[i].offset != again[i].offset;
            crooked += span[i].offset + span[i].bytes > total;
            for (int k = 0; k < i; k++)
                clashes += clash(&span[i], &span[k]);
        }
        below += total < least(span, n);
        waste += (double)total / (double)(least(span, n) + 1) - 1;
    }
    is_int(clashes, 0, "spans alive at the same time do not overlap");
    is_int(crooked, 0, "every offset is aligned and inside");
    is_int(other, 0, "the same spans give the same offsets");
    is_int(below, 0, "the size is at least the bytes alive");
    ok(waste / ROUNDS < 0.02, "at random, %.1f %% above that on average",
       100 * waste / ROUNDS);
}

int main(void)
{
    examples();
    properties();
    return done();
}
