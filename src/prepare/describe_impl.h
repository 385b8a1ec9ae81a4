/* describe_impl.h - statistics as text: what describe.c prints below its tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PREPARE_DESCRIBE_IMPL_H
#define DNN_PREPARE_DESCRIBE_IMPL_H

#include "transform/stats.h"

#include <stdio.h>

enum { DNN_DESCRIBE_WIDTH = 64 }; /* columns of a histogram */

/* A line for each channel. */
void dnn_describe_channels(const struct dnn_stats *stats, FILE *where);

/* A histogram of the values of all channels.  Bars are Unicode blocks if the locale is
 * UTF-8, else '#'. */
void dnn_describe_histogram(const struct dnn_stats *stats, FILE *where);

/* A line for each class: number, name, count, share and bar.  stats may be NULL. */
void dnn_describe_classes(const struct dnn_column *column,
                          const struct dnn_stats *stats, FILE *where);

#endif
