/* transform_impl.h - what the changes of an array share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_IMPL_H
#define DNN_TRANSFORM_IMPL_H

#include "transform/transform.h"

/* An array as pixels (the channels of a point) in three spatial axes: those that an
 * array of fewer does not have come first and have extent 1. */
struct dnn_grid {
    int nspace;
    int64_t n[DNN_MAX_SPACE];
    int64_t channels;
    size_t element, pixel; /* bytes */
};

enum { DNN_GRID_LIMIT = 1 << 30 }; /* points along an axis */

/* The grid of an array with 1 to 3 spatial axes, none of them empty; else refused, with
 * what in front. */
int dnn_transform_grid(const struct dnn_array *in, const char *what,
                       struct dnn_grid *out, struct dnn_err *err);
/* Make out an array of that grid, of in's type and spacing. */
int dnn_transform_make(const struct dnn_array *in, const struct dnn_grid *grid,
                       struct dnn_array *out, struct dnn_err *err);
/* Where point (z, y, x) begins, in bytes. */
size_t dnn_transform_at(const struct dnn_grid *grid, int64_t z, int64_t y, int64_t x);
/* n pixels, each so many bytes after the one before it (which may be negative). */
void dnn_transform_copy(void *out, ptrdiff_t out_step, const void *in,
                        ptrdiff_t in_step, int64_t n, size_t pixel);
/* A number in a type that must be able to hold it, for filling. */
int dnn_transform_value(double value, enum dnn_dtype type, const char *what, void *out,
                        struct dnn_err *err);
/* The type that linear work on a type is done in: f32, or f64 where that has too few
 * digits. */
enum dnn_dtype dnn_transform_work(enum dnn_dtype type);
/* n numbers of a type as that, and back; what is stored must lie between numbers of the
 * type, to the nearest of which it is rounded. */
int dnn_transform_load(const void *from, enum dnn_dtype type, void *to,
                       enum dnn_dtype work, int64_t n, struct dnn_err *err);
int dnn_transform_store(const void *from, enum dnn_dtype work, void *to,
                        enum dnn_dtype type, int64_t n, struct dnn_err *err);
/* Whether a type holds whole numbers only. */
bool dnn_transform_whole(enum dnn_dtype type);
/* Numbers at to at + n - 1 (at most DNN_PORTION) of an array as class numbers below
 * limit; refuses others by their place. */
enum { DNN_PORTION = 512 };
int dnn_transform_classes(const struct dnn_array *in, int64_t at, int64_t n,
                          int64_t limit, const char *what, int64_t *out,
                          struct dnn_err *err);

/* A compiler that fuses a product and the sum it goes into changes last bits, and only
 * on processors that can.  What includes this file has the same bits on all. */
#if defined __clang__
#pragma STDC FP_CONTRACT OFF
#elif defined __GNUC__
#pragma GCC optimize("fp-contract=off")
#endif

#endif
