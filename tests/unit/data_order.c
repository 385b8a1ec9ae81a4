/* data_order.c - every sample once in each epoch, for any chunks and windows.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/mem.h"
#include "data/order.h"

#include <stdlib.h>

/* Each of count samples at exactly one position, by both functions. */
static bool each_once(const struct dnn_order *o, int64_t epoch)
{
    int64_t *at = dnn_alloc(((size_t)o->count + 1) * sizeof *at);
    bool *seen = dnn_alloc((size_t)o->count + 1), good = true;

    dnn_order_fill(o, epoch, 0, o->count, at);
    for (int64_t i = 0; i < o->count && good; i++) {
        good = at[i] >= 0 && at[i] < o->count && !seen[at[i]] &&
               at[i] == dnn_order_at(o, epoch, i);
        if (good) seen[at[i]] = true;
    }
    dnn_free(at);
    dnn_free(seen);
    return good;
}

/* The samples of a window come from the chunks of that window. */
static bool windows_agree(const struct dnn_order *o, int64_t epoch)
{
    int64_t nw = dnn_order_windows(o), chunk = o->chunk, seen = 0;

    for (int64_t i = 0; i < o->count; i++) {
        int64_t w = dnn_order_window(o, epoch, i), first, n;
        bool found = false;

        if (w < 0 || w >= nw) return false;
        dnn_order_chunks(o, w, &first, &n);
        for (int64_t p = first; p < first + n && !found; p++)
            found = dnn_order_chunk(o, epoch, p) == dnn_order_at(o, epoch, i) / chunk;
        if (!found) return false;
        /* Windows come one after the other. */
        if (w != seen && w != seen + 1) return false;
        seen = w;
    }
    return seen == nw - 1;
}

static void all_sizes(void)
{
    bool once = true, agree = true;
    int tried = 0;

    for (int64_t count = 1; count <= 66; count += count < 20 ? 1 : 7)
        for (int64_t chunk = 1; chunk <= 17; chunk += chunk < 6 ? 1 : 5)
            for (int64_t window = 0; window <= 70; window += 5)
                for (int64_t epoch = 0; epoch < 3; epoch++) {
                    struct dnn_order o = {count, chunk, window, true, 99};

                    once &= each_once(&o, epoch);
                    agree &= windows_agree(&o, epoch);
                    tried++;
                }
    ok(once, "every sample once: %d shapes", tried);
    ok(agree, "windows and their chunks");
    struct dnn_order large = {100003, 64, 4096, true, 1};
    ok(each_once(&large, 5), "every sample once: 100003 in windows of 4096");
    large.window = large.count;
    ok(each_once(&large, 5), "every sample once: 100003 at once");
}

static int64_t equal_places(const struct dnn_order *a, int64_t ea,
                            const struct dnn_order *b, int64_t eb)
{
    int64_t same = 0;

    for (int64_t i = 0; i < a->count; i++)
        same += dnn_order_at(a, ea, i) == dnn_order_at(b, eb, i);
    return same;
}

static void others(void)
{
    static const int64_t windows[] = {1000, 96};

    for (int k = 0; k < 2; k++) {
        struct dnn_order a = {1000, 16, windows[k], true, 7}, b = a;

        b.seed = 8;
        is_int(equal_places(&a, 3, &a, 3), 1000, "the same again");
        ok(equal_places(&a, 3, &a, 4) < 20, "another epoch, another order");
        ok(equal_places(&a, 3, &b, 3) < 20, "another seed, another order");
    }
    struct dnn_order full = {1000, 16, 5000, true, 7};
    struct dnn_perm perm = dnn_rng_perm(7, 3, 1000);
    bool same = true;
    for (int64_t i = 0; i < 1000; i++)
        same &=
            dnn_order_at(&full, 3, i) == (int64_t)dnn_rng_perm_at(&perm, (uint64_t)i);
    ok(same, "if all samples fit the window, it is one permutation");
    struct dnn_order plain = {1000, 16, 96, false, 7};
    same = true;
    for (int64_t i = 0; i < 1000; i++)
        same &= dnn_order_at(&plain, 3, i) == i;
    ok(same, "not shuffled: in order");
    is_int(dnn_order_windows(&plain), 1, "not shuffled: one window");
}

/* The short last chunk can be at any position. */
static void short_chunk(void)
{
    struct dnn_order o = {100 * 8 + 3, 8, 16, true, 5};
    int64_t sum = 0, low = 1000, high = -1;

    for (int64_t epoch = 0; epoch < 400; epoch++)
        for (int64_t p = 0; p <= 100; p++)
            if (dnn_order_chunk(&o, epoch, p) == 100) {
                sum += p;
                low = p < low ? p : low;
                high = p > high ? p : high;
            }
    ok(low < 5 && high > 95 && sum > 400 * 44 && sum < 400 * 56,
       "a short last chunk can be at any position (mean %.1f)", (double)sum / 400);
}

static void parts(void)
{
    bool good = true;

    for (int64_t count = 1; count < 60; count++)
        for (int64_t batch = 1; batch < 23; batch++)
            for (int size = 1; size < 9; size++) {
                int64_t next = 0, nb = dnn_order_batches(count, batch);

                for (int64_t b = 0; b < nb; b++) {
                    int64_t least = count, most = 0;
                    for (int r = 0; r < size; r++) {
                        int64_t first, n;
                        dnn_order_part(count, batch, b, r, size, &first, &n);
                        good &= first == next;
                        next += n;
                        least = n < least ? n : least;
                        most = n > most ? n : most;
                    }
                    good &= most - least <= 1;
                    good &= next == (b == nb - 1 ? count : (b + 1) * batch);
                }
                good &= next == count;
            }
    ok(good, "parts of batches are contiguous, and their sizes differ by at most one");
}

/* On any number of ranks, micro-batches are distributed completely and in order. */
static void micro_batches(void)
{
    bool good = true;

    for (int64_t total = 1; total < 20; total++)
        for (int64_t n = 1; n <= 8; n++)
            for (int size = 1; size <= 9; size++) {
                int64_t at = 100;

                for (int rank = 0; rank < size; rank++) {
                    int64_t first, m;

                    dnn_order_micro_batches(100 + total, 100, 1, n, rank, size, &first,
                                            &m);
                    good = good && m >= 0 && (m == 0 || first == at);
                    at += m;
                }
                good = good && at == 100 + total;
            }
    ok(good, "micro-batches are distributed completely, in order");
}

int main(void)
{
    micro_batches();
    all_sizes();
    others();
    short_chunk();
    parts();
    return done();
}
