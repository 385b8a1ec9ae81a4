/* convert.h - convert stored elements of a column to the f32 or i32 of a batch.
 *
 * dnn_convert() of sample.h converts between any two types; this is for large arrays:
 * it also applies the scale of each channel, and finds invalid values, in the same
 * pass. All functions are Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SAMPLE_CONVERT_H
#define DNN_SAMPLE_CONVERT_H

#include "sample/sample.h"

enum { DNN_SCALE_PERIOD = 192 };

/* value = stored * factor + term: those of all channels, repeated. */
struct dnn_scale {
    int period; /* 0: values are as stored */
    float factor[DNN_SCALE_PERIOD], term[DNN_SCALE_PERIOD];
    double wide_factor[DNN_SCALE_PERIOD], wide_term[DNN_SCALE_PERIOD];
};

/* The conversion of the elements of a column. */
struct dnn_conversion {
    enum dnn_dtype type; /* as stored                                              */
    bool integer;        /* to i32; else to f32                                    */
    bool check;          /* NaN and infinities are errors                          */
    int64_t classes;     /* integer: 0 to below this; 0: to 2^31; -1: any          */
    struct dnn_scale scale;
};

/* The conversion of a column that is not of a prepared dataset: class numbers, except
 * inputs, to i32, others to f32.  Images of integers are multiplied by image_scale; 0:
 * 1/255 for u8, 1 else. */
void dnn_conversion_column(const struct dnn_column *column, double image_scale,
                           struct dnn_conversion *out);
/* Set the scale of n channels, at most DNN_SCALE_PERIOD (1: the same for all). */
void dnn_conversion_scale(struct dnn_conversion *conv, int n, const double *scale,
                          const double *offset);
/* Whether conversion does not change the bytes. */
bool dnn_conversion_same(const struct dnn_conversion *conv);
/* Convert n elements.  from and to may be equal if dnn_conversion_same(); then elements
 * are only checked.  *bad: index of the first invalid element, or -1. */
int dnn_conversion_apply(const struct dnn_conversion *conv, const void *from, void *to,
                         int64_t n, int64_t *bad, struct dnn_err *err);

#endif
