/* stats.h - statistics of the values of a column: counts, moments, a histogram.
 *
 * Statistics are computed per block and merged in the order of the blocks, so that the
 * result does not depend on which rank or thread computed a block.  All functions are
 * Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_STATS_H
#define DNN_TRANSFORM_STATS_H

#include "sample/sample.h"

enum { DNN_STATS_CHANNELS = 64, DNN_STATS_CLASSES = 4096, DNN_STATS_BINS = 4096 };

/* Contains no pointers: it can be sent and stored as bytes.  Channels are the last axis
 * (each element of a vector is one); the last channel of the struct contains all
 * channels beyond DNN_STATS_CHANNELS - 1.  Labels and masks have classes and no
 * channels.
 *
 * The width of a bin is a power of two, and bins begin at multiples of it.  It is the
 * smallest width with which the bins cover all values, but at least 1 for integers, and
 * at least 2^-50 of the largest magnitude for others.  So the histogram depends only on
 * the values, not on their order or on the blocks. */
struct dnn_stats {
    int64_t count;     /* values per channel, including bad ones         */
    int64_t bad;       /* NaN, infinities, and magnitudes of 2^500 or more (their
                        * squares cannot be summed); not included below  */
    int32_t nchannels; /* 0: not yet known                               */
    int32_t nclasses;  /* largest seen or declared class number, plus 1  */
    int32_t whole;     /* whether the values are of an integer type      */
    int32_t share;     /* number of channels combined in the last one    */
    int64_t good[DNN_STATS_CHANNELS]; /* values included in the moments           */
    double mean[DNN_STATS_CHANNELS], m2[DNN_STATS_CHANNELS]; /* m2: sum of squared
                                                              * deviations           */
    double min[DNN_STATS_CHANNELS], max[DNN_STATS_CHANNELS];
    double low, high;            /* range of the histogram; equal: not yet known   */
    int64_t bin[DNN_STATS_BINS]; /* of all channels                                */
    int64_t class_count[DNN_STATS_CLASSES]; /* labels: samples; masks: points        */
};

void dnn_stats_start(struct dnn_stats *stats, const struct dnn_column *column);
/* Add the array of a sample.  Errors: a class number outside [0, DNN_STATS_CLASSES),
 * another number of channels than before, floating-point values in a column of
 * integers. */
int dnn_stats_add(struct dnn_stats *stats, const struct dnn_column *column,
                  const struct dnn_array *array, struct dnn_err *err);
/* Add b to a; both are of the same column.  All members except mean and m2 do not
 * depend on the blocks; mean and m2 have the same bits if the same blocks are merged in
 * the same order. */
void dnn_stats_merge(struct dnn_stats *a, const struct dnn_stats *b);
/* The standard deviation of a channel, divided by the number of values (population);
 * NaN if there are none. */
double dnn_stats_std(const struct dnn_stats *stats, int channel);
/* The quantile of all values (share from 0 to 1): exact for integers with bins of width
 * 1, else interpolated in a bin.  NaN without values or if share is out of range. */
double dnn_stats_quantile(const struct dnn_stats *stats, double share);

#endif
