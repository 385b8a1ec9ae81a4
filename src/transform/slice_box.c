/* slice_box.c - cut boxes from a volume.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/slice.h"

#include "transform/transform_impl.h"

#include <inttypes.h>
#include <string.h>

/* The common points of a box and the volume, along three axes (those of the volume,
 * after missing ones): their number, first positions, and steps in bytes. */
struct common {
    int64_t n[DNN_MAX_SPACE], in_volume[DNN_MAX_SPACE], in_box[DNN_MAX_SPACE];
    int64_t volume_step[DNN_MAX_SPACE], box_step[DNN_MAX_SPACE];
    bool inside; /* no point of the box is outside */
};

static struct common common_of(const struct dnn_slices *slices, int64_t box,
                               int64_t pixel)
{
    int skip = DNN_MAX_SPACE - slices->nspace, axis[DNN_MAX_SPACE];
    struct common c = {
        .n = {1, 1, 1},
          .inside = true
    };
    int64_t start[DNN_MAX_SPACE], step = pixel;
    struct dnn_shape shape;

    dnn_slices_start(slices, box, start);
    for (int i = slices->nspace - 1; i >= 0; i--) {
        int64_t first = start[i] - slices->before[i];
        int64_t end = start[i] + slices->size[i] + slices->after[i];
        int64_t low = first < 0 ? 0 : first;
        int64_t high = end > slices->full[i] ? slices->full[i] : end;

        c.inside = c.inside && low == first && high == end;
        c.n[skip + i] = high - low;
        c.in_volume[skip + i] = low;
        c.in_box[skip + i] = low - first;
        c.volume_step[skip + i] = step;
        step *= slices->full[i];
    }
    dnn_slices_shape(slices, 1, &shape);
    step = pixel;
    for (int k = dnn_slices_axes(slices, axis) - 1; k >= 0; k--) {
        c.box_step[skip + axis[k]] = step;
        step *= shape.dim[k];
    }
    return c;
}

static int64_t volume_at(const struct common *c, int64_t z, int64_t y)
{
    return (c->in_volume[0] + z) * c->volume_step[0] +
           (c->in_volume[1] + y) * c->volume_step[1] +
           c->in_volume[2] * c->volume_step[2];
}

static int64_t box_at(const struct common *c, int64_t z, int64_t y)
{
    return (c->in_box[0] + z) * c->box_step[0] + (c->in_box[1] + y) * c->box_step[1] +
           c->in_box[2] * c->box_step[2];
}

static int check_volume(const struct dnn_slices *slices, const struct dnn_array *volume,
                        int64_t box, struct dnn_err *err)
{
    char is[DNN_SHAPE_TEXT], expected[DNN_SHAPE_TEXT];
    struct dnn_shape want = {.ndim = slices->nspace + 1};

    memcpy(want.dim, slices->full, sizeof slices->full);
    want.dim[slices->nspace] =
        volume->shape.ndim == want.ndim ? volume->shape.dim[slices->nspace] : -1;
    if (!dnn_shape_equal(&want, &volume->shape) || want.dim[slices->nspace] < 1)
        return dnn_fail(err, DNN_EDATA,
                        "slices: the volume is %s, but the boxes are for %s",
                        dnn_shape_text(is, sizeof is, &volume->shape),
                        dnn_shape_text(expected, sizeof expected, &want));
    if (box < 0 || box >= slices->total)
        return dnn_fail(err, DNN_EDATA,
                        "slices: box %" PRId64
                        " requested, but there are only %" PRId64,
                        box, slices->total);
    return 0;
}

int dnn_slices_cut(const struct dnn_slices *slices, const struct dnn_array *volume,
                   int64_t box, struct dnn_array *out, struct dnn_err *err)
{
    struct dnn_shape shape;
    int axis[DNN_MAX_SPACE];

    DNN_TRY(check_volume(slices, volume, box, err));
    int64_t channels = volume->shape.dim[slices->nspace];
    size_t pixel = dnn_dtype_size(volume->type) * (size_t)channels;
    dnn_slices_shape(slices, channels, &shape);
    DNN_TRY(dnn_array_make(out, volume->type, &shape, err));
    for (int k = dnn_slices_axes(slices, axis) - 1; k >= 0; k--)
        out->spacing[k] = volume->spacing[axis[k]];

    struct common c = common_of(slices, box, (int64_t)pixel);
    if (!c.inside) memset(out->data, 0, dnn_array_bytes(out));
    for (int64_t z = 0; z < c.n[0]; z++)
        for (int64_t y = 0; y < c.n[1]; y++)
            dnn_transform_copy((char *)out->data + box_at(&c, z, y), c.box_step[2],
                               (const char *)volume->data + volume_at(&c, z, y),
                               c.volume_step[2], c.n[2], pixel);
    return 0;
}
