/* convert_impl.h - loops of convert_fast.c for one type.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SAMPLE_CONVERT_IMPL_H
#define DNN_SAMPLE_CONVERT_IMPL_H

#include "sample/convert.h"

/* Convert n elements of a type, which must not overlap to.  Returns 0 if all results
 * are finite. */
uint32_t dnn_convert_f32(enum dnn_dtype type, const struct dnn_scale *scale,
                         const void *from, float *to, int64_t n);
/* The same for types that always fit into an i32; false for others.  *beyond: 0 if all
 * elements are from 0 to below limit. */
bool dnn_convert_i32(enum dnn_dtype type, const void *from, int32_t *to, int64_t n,
                     uint32_t limit, uint32_t *beyond);

/* Convert n elements of f32, which must not overlap to, to a small integer type as
 * dnn_convert() does if not strict; false for other types. */
bool dnn_convert_round(const float *from, enum dnn_dtype as, void *to, int64_t n);

#endif
