/* stats_impl.h - the histogram of a struct dnn_stats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_STATS_IMPL_H
#define DNN_TRANSFORM_STATS_IMPL_H

#include "transform/stats.h"

/* Always eight partial sums, independent of the vector length of the processor, so that
 * the order of additions is the same everywhere. */
enum { LANES = 8 };
typedef double lanes __attribute__((vector_size(8 * LANES)));
/* Comparisons, whose order does not matter, in pairs, which all processors support. */
typedef double pair __attribute__((vector_size(16)));
typedef int64_t mask __attribute__((vector_size(16))); /* all bits or none */

/* Adjust the bins to the smallest min and the largest max. */
void dnn_stats_widen(struct dnn_stats *stats);
/* Count values within the range of the bins (times 0: nothing). */
void dnn_stats_bins_add(struct dnn_stats *stats, const double *x, int64_t n);
void dnn_stats_bin_add(struct dnn_stats *stats, double x, int64_t times);
/* Add the bins of b to a; min and max of a are already those of both. */
void dnn_stats_bins_merge(struct dnn_stats *a, const struct dnn_stats *b);

#endif
