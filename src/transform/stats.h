/* stats.h - what is known of the values of a column: counts, moments, a histogram.
 *
 * Built per block and merged in the blocks' order, so that the result does not
 * depend on who counted which block.  All is Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_STATS_H
#define DNN_TRANSFORM_STATS_H

#include "sample/sample.h"

enum { DNN_STATS_CHANNELS = 64, DNN_STATS_CLASSES = 4096, DNN_STATS_BINS = 4096 };

/* A plain struct without pointers: it can be sent and stored as bytes.  Channels are
 * the last axis (each number of a vector is one); those beyond DNN_STATS_CHANNELS are
 * counted together in the last.  Labels and masks have classes and no channels.
 *
 * The histogram's bins are as wide as a power of two and begin at multiples of it; the
 * width is the smallest with which they reach from the smallest number to the largest,
 * and not below 1 for whole numbers, not below 2^-50 of the largest for others.  So it
 * is a function of the numbers alone, in whatever order and blocks they came. */
struct dnn_stats {
    int64_t count;     /* points: numbers per channel, bad ones too      */
    int64_t bad;       /* NaN, infinities, and what is 2^500 or more (whose
                        * square cannot be summed); not counted below    */
    int32_t nchannels; /* 0: not yet known                               */
    int32_t nclasses;  /* one more than the largest seen or foretold     */
    int32_t whole;     /* whether the numbers are of an integer type     */
    int32_t share;     /* channels that are counted in the last one      */
    int64_t good[DNN_STATS_CHANNELS]; /* numbers that the moments are of          */
    double mean[DNN_STATS_CHANNELS], m2[DNN_STATS_CHANNELS]; /* sum of squared
                                                              * deviations           */
    double min[DNN_STATS_CHANNELS], max[DNN_STATS_CHANNELS];
    double low, high;            /* what the histogram spans; equal: not yet known */
    int64_t bin[DNN_STATS_BINS]; /* all channels together                          */
    int64_t class_count[DNN_STATS_CLASSES]; /* labels: samples; masks: points        */
};

void dnn_stats_start(struct dnn_stats *stats, const struct dnn_column *column);
/* One sample's array; a class number outside [0, DNN_STATS_CLASSES) is refused, as is
 * another number of channels than before, and reals in a column of integers. */
int dnn_stats_add(struct dnn_stats *stats, const struct dnn_column *column,
                  const struct dnn_array *array, struct dnn_err *err);
/* a becomes a and b, which are of one column.  Everything but mean and m2 is the same
 * whatever the blocks were; those have the same bits if the blocks were the same
 * and are merged in the same order. */
void dnn_stats_merge(struct dnn_stats *a, const struct dnn_stats *b);
/* Whether bytes from elsewhere are such a struct that the functions here can work on;
 * DNN_EDATA and what is wrong if not. */
int dnn_stats_check(const struct dnn_stats *stats, struct dnn_err *err);
/* Of a channel's numbers as a whole population (divided by their number); NaN if there
 * are none. */
double dnn_stats_std(const struct dnn_stats *stats, int channel);
/* The smallest value that at least so much (0 to 1) of all numbers does not exceed:
 * exact where whole numbers have a bin each, else interpolated in its bin.  NaN if
 * there are no numbers, or share is outside. */
double dnn_stats_quantile(const struct dnn_stats *stats, double share);

#endif
