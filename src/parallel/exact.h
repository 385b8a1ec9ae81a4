/* exact.h - sums of f32 vectors that do not depend on the order of summation.
 *
 * Each number is cut into whole multiples of 2^-20 and of 2^-60, that are kept in
 * doubles.  Multiples of less than 2^53 add without rounding, so any order, and any
 * grouping over ranks, gives the same bits; numbers below 2^-61 in size count as zero.
 * The vector of sums has two doubles per number: n units of 2^-20, then n of 2^-60.
 *
 * Local, all of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PARALLEL_EXACT_H
#define DNN_PARALLEL_EXACT_H

#include <stdbool.h>
#include <stdint.h>

/* At most so many vectors may be added, of numbers below DNN_EXACT_LARGEST. */
enum { DNN_EXACT_PARTS = 8192 };
#define DNN_EXACT_LARGEST 262144.0f /* 2^18 */

/* Add each of m vectors, at least one, of n numbers to sums, whose finer units are at
 * sums + stride; fresh: to zero in their place.  false: some number is too large,
 * infinite or NaN, and the sums are invalid.  All vectors are added in one pass over
 * the sums, so more at once are faster. */
bool dnn_exact_add(double *sums, int64_t stride, const float *const *x, int m,
                   int64_t n, bool fresh);

/* The sums, rounded once. */
void dnn_exact_read(const double *sums, int64_t stride, float *x, int64_t n);

/* The sums with the vectors added, without storing them; sums NULL: of the vectors
 * only.  out may be one of the vectors. */
bool dnn_exact_sum(const double *sums, int64_t stride, const float *const *x, int m,
                   float *out, int64_t n);

#endif
