/* exact.h - sums of f32 vectors that do not depend on the order of summation.
 *
 * Each element is split into an integer multiple of 2^-20 and an integer multiple of
 * 2^-60, which are stored as doubles.  As long as the multiples are below 2^53, they
 * are added without rounding, so any order, and any grouping over ranks, gives bitwise
 * the same result.  Elements below 2^-61 in absolute value count as zero.  The vector
 * of sums has two doubles per element: first n multiples of 2^-20, then n multiples of
 * 2^-60.
 *
 * All functions are Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PARALLEL_EXACT_H
#define DNN_PARALLEL_EXACT_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of vectors that may be added, and limit of the absolute value of their
 * elements. */
enum { DNN_EXACT_VECTORS = 8192 };
#define DNN_EXACT_LARGEST 262144.0f /* 2^18 */

/* Add m vectors (m > 0) of n elements to sums; the multiples of 2^-60 are at sums +
 * stride.  fresh: start with zero and overwrite sums.  false: an element is too large,
 * infinite or NaN, and the sums are invalid.  All vectors are added in one pass over
 * the sums, so it is faster to add many in one call. */
bool dnn_exact_add(double *sums, int64_t stride, const float *const *x, int m,
                   int64_t n, bool fresh);

/* Convert the sums to f32, rounded once. */
void dnn_exact_read(const double *sums, int64_t stride, float *x, int64_t n);

/* Add the vectors to the sums and convert the result to f32, without changing sums;
 * sums NULL: sum of the vectors only.  out may be one of the vectors. */
bool dnn_exact_sum(const double *sums, int64_t stride, const float *const *x, int m,
                   float *out, int64_t n);

#endif
