/* histogram.c - a histogram whose bins are widened by doubling, and whose result does
 * not depend on the order of the values.
 *
 * A bin of level e contains the values x with the same floor(x / 2^e), its index.  An
 * index of level e + 1 is one of level e shifted by one bit.  So bins can be moved
 * exactly to a higher level.  The level is the lowest allowed one at which 4096 bins,
 * beginning with that of the smallest value, reach the largest value.  The level of a
 * subset of the values never exceeds the level of all values, so that histograms of
 * blocks can always be merged exactly.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/stats_impl.h"

#include "transform/transform_impl.h"

#include <math.h>
#include <string.h>

enum {
    MIN_LEVEL = -1000, /* minimum level, so that 2^-level is finite */
    INDEX_BITS = 50    /* bits of an index                          */
};

/* A level, and the index of the first bin. */
struct window {
    int level;
    int64_t first;
};

static bool window_known(const struct dnn_stats *s)
{
    return s->low < s->high;
}

/* Exact: all numbers are multiples of 2^level that a double can represent. */
static struct window window_of(const struct dnn_stats *s)
{
    int level = ilogb((s->high - s->low) / DNN_STATS_BINS);

    return (struct window){level, (int64_t)ldexp(s->low, -level)};
}

static void window_span(struct window w, double *low, double *high)
{
    *low = ldexp((double)w.first, w.level);
    *high = ldexp((double)(w.first + DNN_STATS_BINS), w.level);
}

/* floor(x / 2^level); inverse is 2^-level.  The index is -1 for a negative x whose
 * quotient underflows to 0. */
static inline int64_t index_of(double x, double inverse)
{
    double y = x * inverse;
    int64_t k = (int64_t)y;

    return k - (((double)k > y) | ((y == 0) & (x < 0)));
}

static int64_t raise_level(int64_t index, int levels)
{
    return index >> (levels < 63 ? levels : 63);
}

static struct window window_for(double min, double max, bool whole, int level)
{
    double size = fabs(min) > fabs(max) ? fabs(min) : fabs(max);
    struct window w;

    if (whole && level < 0) level = 0;
    if (size > 0 && level <= ilogb(size) - INDEX_BITS)
        level = ilogb(size) - INDEX_BITS + 1;
    for (;; level++) {
        double inverse = ldexp(1, -level);

        w = (struct window){level, index_of(min, inverse)};
        if (index_of(max, inverse) - w.first < DNN_STATS_BINS) return w;
    }
}

static void add_bins(int64_t *to, struct window at, const int64_t *from,
                     struct window before)
{
    for (int i = 0; i < DNN_STATS_BINS; i++)
        if (from[i] != 0)
            to[raise_level(before.first + i, at.level - before.level) - at.first] +=
                from[i];
}

void dnn_stats_widen(struct dnn_stats *stats)
{
    double min = INFINITY, max = -INFINITY;
    struct window before = {MIN_LEVEL, 0};
    int64_t bin[DNN_STATS_BINS];

    for (int c = 0; c < DNN_STATS_CHANNELS; c++) {
        min = stats->min[c] < min ? stats->min[c] : min;
        max = stats->max[c] > max ? stats->max[c] : max;
    }
    if (min > max) return;
    if (window_known(stats)) before = window_of(stats);
    struct window w = window_for(min, max, stats->whole, before.level);
    if (window_known(stats)) {
        if (w.level == before.level && w.first == before.first) return;
        memcpy(bin, stats->bin, sizeof bin);
        memset(stats->bin, 0, sizeof stats->bin);
        add_bins(stats->bin, w, bin, before);
    }
    window_span(w, &stats->low, &stats->high);
}

/* index_of() - first for two values, computed with doubles: adding 1.5 * 2^52 rounds to
 * an integer, which is decremented if it was rounded up. */
static inline pair indices_of(const double *x, double inverse, double first)
{
    const pair none = {0, 0}, one = {1, 1};
    pair v, y, k;

    memcpy(&v, x, sizeof v);
    y = v * inverse;
    k = (y + 0x1.8p52) - 0x1.8p52;
    k -= (pair)((k > y) & (mask)one);
    k -= (pair)((y == none) & (v < none) & (mask)one);
    return k - first;
}

void dnn_stats_bins_add(struct dnn_stats *stats, const double *x, int64_t n)
{
    struct window w = window_of(stats);
    double inverse = ldexp(1, -w.level), first = (double)w.first;
    int64_t *bin = stats->bin, i = 0;

    for (; i + 4 <= n; i += 4) {
        pair a = indices_of(x + i, inverse, first);
        pair b = indices_of(x + i + 2, inverse, first);

        bin[(int)a[0]]++;
        bin[(int)a[1]]++;
        bin[(int)b[0]]++;
        bin[(int)b[1]]++;
    }
    for (; i < n; i++)
        bin[index_of(x[i], inverse) - w.first]++;
}

void dnn_stats_bin_add(struct dnn_stats *stats, double x, int64_t times)
{
    struct window w = window_of(stats);

    if (times > 0) stats->bin[index_of(x, ldexp(1, -w.level)) - w.first] += times;
}

void dnn_stats_bins_merge(struct dnn_stats *a, const struct dnn_stats *b)
{
    dnn_stats_widen(a);
    if (window_known(b)) add_bins(a->bin, window_of(a), b->bin, window_of(b));
}

/* The range of the bins is determined by the minimum and the maximum, so it can be
 * checked without the values. */
double dnn_stats_quantile(const struct dnn_stats *stats, double share)
{
    double total = 0, below = 0, width = (stats->high - stats->low) / DNN_STATS_BINS;
    int k = 0;

    for (int i = 0; i < DNN_STATS_BINS; i++)
        total += (double)stats->bin[i];
    if (!(share >= 0 && share <= 1) || total == 0) return NAN;
    for (;; below += (double)stats->bin[k++])
        if (stats->bin[k] > 0 && below + (double)stats->bin[k] >= share * total) break;
    if (stats->whole && width == 1) return stats->low + k;

    double part = (share * total - below) / (double)stats->bin[k];
    double value = stats->low + (k + part) * width, min = INFINITY, max = -INFINITY;
    for (int c = 0; c < DNN_STATS_CHANNELS; c++) {
        min = stats->min[c] < min ? stats->min[c] : min;
        max = stats->max[c] > max ? stats->max[c] : max;
    }
    if (stats->whole) value = floor(value);
    return value < min ? min : value > max ? max : value;
}
