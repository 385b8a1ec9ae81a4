/* set.c - sets of small numbers that can be sent as bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "topo/topo_impl.h"

#include <string.h>

enum { WORDS = DNN_TOPO_PUS / 64 };

bool dnn_topo_has(const struct dnn_topo_set *set, int n)
{
    return n >= 0 && n < DNN_TOPO_PUS && (set->word[n / 64] >> (n % 64) & 1) != 0;
}

void dnn_topo_add(struct dnn_topo_set *set, int n)
{
    if (n >= 0 && n < DNN_TOPO_PUS) set->word[n / 64] |= UINT64_C(1) << (n % 64);
}

int dnn_topo_count(const struct dnn_topo_set *set)
{
    int n = 0;

    for (int i = 0; i < WORDS; i++)
        n += __builtin_popcountll(set->word[i]);
    return n;
}

bool dnn_topo_intersect(const struct dnn_topo_set *a, const struct dnn_topo_set *b,
                        struct dnn_topo_set *both)
{
    uint64_t any = 0;

    for (int i = 0; i < WORDS; i++) {
        uint64_t w = a->word[i] & b->word[i];

        any |= w;
        if (both != NULL) both->word[i] = w;
    }
    return any != 0;
}

bool dnn_topo_same(const struct dnn_topo_set *a, const struct dnn_topo_set *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

void dnn_topo_list(struct dnn_buf *out, const struct dnn_topo_set *set)
{
    const char *comma = "";

    for (int n = 0; n < DNN_TOPO_PUS; n++) {
        int low = n;

        if (!dnn_topo_has(set, n)) continue;
        while (dnn_topo_has(set, n + 1))
            n++;
        if (n == low)
            dnn_buf_add(out, "%s%d", comma, low);
        else
            dnn_buf_add(out, "%s%d-%d", comma, low, n);
        comma = ",";
    }
    if (*comma == '\0') dnn_buf_add(out, "-");
}

void dnn_topo_from_bitmap(struct dnn_topo_set *into, hwloc_const_bitmap_t from)
{
    for (int n = hwloc_bitmap_first(from); n >= 0 && n < DNN_TOPO_PUS;
         n = hwloc_bitmap_next(from, n))
        dnn_topo_add(into, n);
}

hwloc_bitmap_t dnn_topo_to_bitmap(const struct dnn_topo_set *set)
{
    hwloc_bitmap_t map = hwloc_bitmap_alloc();

    for (int n = 0; map != NULL && n < DNN_TOPO_PUS; n++)
        if (dnn_topo_has(set, n)) hwloc_bitmap_set(map, (unsigned)n);
    return map;
}
