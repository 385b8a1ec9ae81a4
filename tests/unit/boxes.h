/* boxes.h - compare boxes of a source's samples with the same parts of complete reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_UNIT_BOXES_H
#define DNN_TESTS_UNIT_BOXES_H

#include "tap.h"

#include "base/draw.h"
#include "sample/source.h"

#include <inttypes.h>

/* Element by element, unlike dnn_array_box(). */
static inline bool is_part(const struct dnn_array *box, const struct dnn_array *all,
                           const int64_t *start, const int64_t *extent)
{
    size_t size = dnn_dtype_size(all->type);
    int ndim = all->shape.ndim;
    int64_t count = dnn_array_count(box), want = 1;

    for (int d = 0; d < ndim; d++)
        want *= extent[d];
    if (box->type != all->type || box->shape.ndim != ndim || count != want ||
        memcmp(box->shape.dim, extent, (size_t)ndim * sizeof *extent) != 0 ||
        memcmp(box->spacing, all->spacing, sizeof box->spacing) != 0)
        return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, at = 0, step = 1;

        for (int d = ndim - 1; d >= 0; d--) {
            at += (start[d] + rest % extent[d]) * step;
            rest /= extent[d];
            step *= all->shape.dim[d];
        }
        if (memcmp((const char *)box->data + (size_t)i * size,
                   (const char *)all->data + (size_t)at * size, size) != 0)
            return false;
    }
    return true;
}

/* Random boxes of one column, some of them of full length along some axes. */
static inline bool same_boxes(const struct dnn_source *source, int64_t i, int c,
                              const struct dnn_array *all, int n)
{
    struct dnn_draw draw = dnn_draw_make(7, (uint64_t)c, (uint64_t)i, 0);
    int64_t start[DNN_MAX_DIMS], extent[DNN_MAX_DIMS];
    struct dnn_array box = {0};
    struct dnn_shape shape;
    struct dnn_err err = {0};
    bool same = dnn_source_shape(source, i, c, &shape, &err) == 0 &&
                dnn_shape_equal(&shape, &all->shape);

    for (int k = 0; same && k < n; k++) {
        for (int d = 0; d < shape.ndim; d++) {
            bool full = dnn_draw_below(&draw, 3) == 0;

            start[d] = full ? 0 : dnn_draw_below(&draw, shape.dim[d]);
            extent[d] = full ? shape.dim[d]
                             : 1 + dnn_draw_below(&draw, shape.dim[d] - start[d]);
        }
        same = dnn_source_read_box(source, i, c, start, extent, &box, &err) == 0 &&
               is_part(&box, all, start, extent);
    }
    if (!same)
        printf("# sample %" PRId64 ", column %d: %s\n", i, c,
               err.code != 0 ? err.text : "the box differs");
    dnn_array_free(&box);
    return same;
}

/* Whether boxes of the first sample are read without the rest of their arrays. */
static inline bool reads_parts(const struct dnn_source *source)
{
    int64_t start[DNN_MAX_DIMS];
    const int64_t extent[DNN_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct dnn_array array = {0};
    struct dnn_shape shape;
    bool parts = source->count > 0;

    for (int c = 0; parts && c < source->ncols; c++) {
        parts = dnn_source_try_shape(source, 0, c, &shape, NULL) == 0;
        for (int d = 0; parts && d < shape.ndim; d++)
            start[d] = shape.dim[d] - 1;
        parts =
            parts && dnn_source_try_box(source, 0, c, start, extent, &array, NULL) == 0;
    }
    dnn_array_free(&array);
    return parts;
}

/* All columns of all samples; parts: whether their format can read parts. */
static inline void boxes_equal(const struct dnn_source *source, bool parts,
                               const char *what)
{
    struct dnn_sample sample = {0};
    struct dnn_err err = {0};
    bool same = true;

    ok(reads_parts(source) == parts, "%s: parts are %s", what,
       parts ? "read alone" : "cut from complete reads");
    for (int64_t i = 0; same && i < source->count; i++) {
        same = dnn_source_read(source, i, &sample, &err) == 0;
        for (int c = 0; same && c < source->ncols; c++)
            same = same_boxes(source, i, c, &sample.col[c], 30);
    }
    if (!ok(same, "%s: boxes are parts of the samples", what) && err.code != 0)
        printf("# %s\n", err.text);
    dnn_sample_free(&sample);
}

#endif
