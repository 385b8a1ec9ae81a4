/* stats_impl.h - the histogram of a struct dnn_stats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_STATS_IMPL_H
#define DNN_TRANSFORM_STATS_IMPL_H

#include "transform/stats.h"

/* Sums side by side, always eight, whatever the processor's vectors hold: the order of
 * additions is the same everywhere. */
enum { LANES = 8 };
typedef double lanes __attribute__((vector_size(8 * LANES)));
/* Comparisons, whose order does not matter, in pairs: every processor has those. */
typedef double pair __attribute__((vector_size(16)));
typedef int64_t choice __attribute__((vector_size(16))); /* all bits or none */

/* What a count can be: doubles are exact so far, and sums of many do not overflow. */
static inline bool dnn_stats_countable(int64_t n)
{
    return n >= 0 && n <= (int64_t)1 << 53;
}

/* Make the bins what they must be for the smallest min and the largest max. */
void dnn_stats_widen(struct dnn_stats *stats);
/* Whether the bins are such as widening makes. */
bool dnn_stats_bins_sound(const struct dnn_stats *stats);
/* Count numbers that lie between those (times 0: nothing). */
void dnn_stats_bins_add(struct dnn_stats *stats, const double *x, int64_t n);
void dnn_stats_bin_add(struct dnn_stats *stats, double x, int64_t times);
/* The bins of a and b in a; min and max of a are already those of both. */
void dnn_stats_bins_merge(struct dnn_stats *a, const struct dnn_stats *b);

#endif
