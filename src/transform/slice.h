/* slice.h - a volume cut into equal boxes, and put together again.
 *
 * The words are rmldnn's slicers: sizes, strides (default: sizes), padding or
 * padded_sizes, remainders kept (and padded up) or discarded, transpose (2D).
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
    struct dnn_list sizes;        /* one number per spatial axis; 1 drops that axis  */
    struct dnn_list strides;      /* none: sizes                                     */
    struct dnn_list padding;      /* on both sides of each axis; none: 0             */
    struct dnn_list padded_sizes; /* instead of padding: total; the odd point goes
                                   * after                                           */
    bool discard_remainders, transpose;
};
extern const struct dnn_field dnn_slicer_fields[];

/* Where the boxes of one set are.  Boxes are numbered with the last axis fastest. */
struct dnn_slices {
    int nspace;
    int64_t full[DNN_MAX_SPACE]; /* the volume                                     */
    int64_t size[DNN_MAX_SPACE]; /* of a box, without padding                      */
    int64_t stride[DNN_MAX_SPACE];
    int64_t before[DNN_MAX_SPACE], after[DNN_MAX_SPACE]; /* padding                  */
    int64_t count[DNN_MAX_SPACE]; /* boxes along each axis                          */
    int64_t total;
    bool transpose;
};

/* Local, all.  Lay the boxes over a volume of these extents; sizes larger than the
 * volume, strides of 0 and the like are refused. */
int dnn_slices_make(const struct dnn_slicer *how, int nspace, const int64_t *full,
                    struct dnn_slices *out, struct dnn_err *err);
/* The first point of a box (without padding; a kept remainder reaches past the end). */
void dnn_slices_start(const struct dnn_slices *slices, int64_t box, int64_t *start);
/* The axes a box has, in its order: their numbers in the volume.  How many there are.
 */
int dnn_slices_axes(const struct dnn_slices *slices, int axis[DNN_MAX_SPACE]);
/* The shape a box has: padded, axes of size 1 dropped, transposed, channels last. */
void dnn_slices_shape(const struct dnn_slices *slices, int64_t channels,
                      struct dnn_shape *out);
/* Cut box number `box`; what lies outside the volume is zero. */
int dnn_slices_cut(const struct dnn_slices *slices, const struct dnn_array *volume,
                   int64_t box, struct dnn_array *out, struct dnn_err *err);
/* The reverse: add a box (padding removed) to a volume of sums (f32, as many channels
 * as the box) and to the count of boxes at each point (weight, u16, no channels); both
 * begin as zeros.  dnn_slices_finish() divides, so that overlaps are averaged; points
 * that no box has stay 0.  Sums depend on the order in their last bits: add in the
 * order of the boxes. */
int dnn_slices_add(const struct dnn_slices *slices, const struct dnn_array *box_array,
                   int64_t box, struct dnn_array *sum, struct dnn_array *weight,
                   struct dnn_err *err);
int dnn_slices_finish(struct dnn_array *sum, const struct dnn_array *weight,
                      struct dnn_err *err);

#endif
