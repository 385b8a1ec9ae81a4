/* transform_impl.h - functions shared by the operations on arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_IMPL_H
#define DNN_TRANSFORM_IMPL_H

#include "transform/transform.h"

/* An array as pixels (all channels of a point) with three spatial axes; missing axes
 * come first and have extent 1. */
struct dnn_grid {
    int nspace;
    int64_t n[DNN_MAX_SPACE];
    int64_t channels;
    size_t element, pixel; /* bytes */
};

enum { DNN_GRID_LIMIT = 1 << 30 }; /* points along an axis */

/* The grid of an array, which must have 1 to 3 spatial axes, none of them empty; what
 * is the prefix of error messages. */
int dnn_transform_grid(const struct dnn_array *in, const char *what,
                       struct dnn_grid *out, struct dnn_err *err);
/* Allocate out for the grid, with the type and spacing of in. */
int dnn_transform_make(const struct dnn_array *in, const struct dnn_grid *grid,
                       struct dnn_array *out, struct dnn_err *err);
/* The offset of point (z, y, x) in bytes. */
size_t dnn_transform_at(const struct dnn_grid *grid, int64_t z, int64_t y, int64_t x);
/* Copy n pixels; steps are distances between pixels in bytes, and may be negative. */
void dnn_transform_copy(void *out, ptrdiff_t out_step, const void *in,
                        ptrdiff_t in_step, int64_t n, size_t pixel);
/* Convert a fill value to a type, which must be able to represent it. */
int dnn_transform_value(double value, enum dnn_dtype type, const char *what, void *out,
                        struct dnn_err *err);
/* The type for linear interpolation of values of a type: f32, or f64 if f32 is not
 * precise enough. */
enum dnn_dtype dnn_transform_work(enum dnn_dtype type);
/* Whether a type is an integer type or bool. */
bool dnn_transform_is_integer(enum dnn_dtype type);
/* Convert elements at to at + n - 1 (n at most DNN_TRANSFORM_BLOCK) of an array to
 * class numbers below limit; errors name the first other element. */
enum { DNN_TRANSFORM_BLOCK = 512 };
int dnn_transform_classes(const struct dnn_array *in, int64_t at, int64_t n,
                          int64_t limit, const char *what, int64_t *out,
                          struct dnn_err *err);

/* Do not fuse multiplications and additions: files that include this header compute the
 * same bits on processors with and without FMA. */
#if defined __clang__
#pragma STDC FP_CONTRACT OFF
#elif defined __GNUC__
#pragma GCC optimize("fp-contract=off")
#endif

#endif
