/* slice.h - cut a volume into equal boxes.
 *
 * The keys are those of rmldnn's slicers: sizes, strides (default: sizes), padding or
 * padded_sizes, discard_remainders (default: kept and padded), transpose (2D).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_SLICE_H
#define DNN_TRANSFORM_SLICE_H

#include "base/field.h"
#include "sample/sample.h"

struct dnn_slicer {
    const char *name;             /* of the set; NULL: "slices"                      */
    struct dnn_list sizes;        /* one per spatial axis; 1 drops that axis         */
    struct dnn_list strides;      /* empty: sizes                                    */
    struct dnn_list padding;      /* on both sides of each axis; empty: 0            */
    struct dnn_list padded_sizes; /* instead of padding: total size; if the padding is
                                   * odd, there is one more point after the box      */
    bool discard_remainders, transpose;
};
extern const struct dnn_field dnn_slicer_fields[];

/* The boxes of one set, numbered with the last axis fastest. */
struct dnn_slices {
    int nspace;
    int64_t full[DNN_MAX_SPACE]; /* extents of the volume                          */
    int64_t size[DNN_MAX_SPACE]; /* of a box, without padding                      */
    int64_t stride[DNN_MAX_SPACE];
    int64_t before[DNN_MAX_SPACE], after[DNN_MAX_SPACE]; /* padding                  */
    int64_t count[DNN_MAX_SPACE]; /* boxes along each axis                          */
    int64_t total;
    bool transpose;
};

/* All functions are Local.  Compute the boxes of a volume of these extents; invalid
 * sizes or strides are an error. */
int dnn_slices_make(const struct dnn_slicer *how, int nspace, const int64_t *full,
                    struct dnn_slices *out, struct dnn_err *err);
/* The first point of a box without padding; a kept remainder may exceed the volume. */
void dnn_slices_start(const struct dnn_slices *slices, int64_t box, int64_t *start);
/* The axes of the volume that a box has, in the order of the box; returns how many. */
int dnn_slices_axes(const struct dnn_slices *slices, int axis[DNN_MAX_SPACE]);
/* The shape of a box: padded, without axes of size 1, transposed, channels last. */
void dnn_slices_shape(const struct dnn_slices *slices, int64_t channels,
                      struct dnn_shape *out);
/* Copy box number `box`; points outside the volume are 0. */
int dnn_slices_cut(const struct dnn_slices *slices, const struct dnn_array *volume,
                   int64_t box, struct dnn_array *out, struct dnn_err *err);

#endif
