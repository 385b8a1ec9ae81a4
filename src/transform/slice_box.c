/* slice_box.c - cut boxes from a volume, and add them up again.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/slice.h"

#include "transform/transform_impl.h"

#include <inttypes.h>
#include <string.h>

/* The common points of a box and the volume, along three axes (those of the volume,
 * after missing ones): their number, first positions, and steps in bytes or values. */
struct common {
    int64_t n[DNN_MAX_SPACE], in_volume[DNN_MAX_SPACE], in_box[DNN_MAX_SPACE];
    int64_t volume_step[DNN_MAX_SPACE], box_step[DNN_MAX_SPACE];
    bool inside; /* no point of the box is outside */
};

/* with_padding: for cutting; without: for adding. */
static struct common common_of(const struct dnn_slices *slices, int64_t box,
                               int64_t pixel, bool with_padding)
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
        int64_t before = slices->before[i];
        int64_t first = with_padding ? start[i] - before : start[i];
        int64_t end =
            start[i] + slices->size[i] + (with_padding ? slices->after[i] : 0);
        int64_t low = first < 0 ? 0 : first;
        int64_t high = end > slices->full[i] ? slices->full[i] : end;

        c.inside = c.inside && low == first && high == end;
        c.n[skip + i] = high - low;
        c.in_volume[skip + i] = low;
        c.in_box[skip + i] = low - (start[i] - before);
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

    struct common c = common_of(slices, box, (int64_t)pixel, true);
    if (!c.inside) memset(out->data, 0, dnn_array_bytes(out));
    for (int64_t z = 0; z < c.n[0]; z++)
        for (int64_t y = 0; y < c.n[1]; y++)
            dnn_transform_copy((char *)out->data + box_at(&c, z, y), c.box_step[2],
                               (const char *)volume->data + volume_at(&c, z, y),
                               c.volume_step[2], c.n[2], pixel);
    return 0;
}

/* Check that the counts match the sums. */
static int check_pair(const struct dnn_array *sum, const struct dnn_array *weight,
                      struct dnn_err *err)
{
    char is[DNN_SHAPE_TEXT], expected[DNN_SHAPE_TEXT];
    struct dnn_shape points = sum->shape;

    if (points.ndim > 0) points.dim[--points.ndim] = 0;
    if (sum->shape.ndim < 1 || sum->type != DNN_F32 || weight->type != DNN_U16 ||
        !dnn_shape_equal(&points, &weight->shape))
        return dnn_fail(err, DNN_EDATA,
                        "slices: sums are %s %s and counts %s %s; they must be f32, "
                        "and u16 of the same shape without channels",
                        dnn_dtype_name(sum->type),
                        dnn_shape_text(is, sizeof is, &sum->shape),
                        dnn_dtype_name(weight->type),
                        dnn_shape_text(expected, sizeof expected, &weight->shape));
    return 0;
}

static int check_sums(const struct dnn_slices *slices,
                      const struct dnn_array *box_array, const struct dnn_array *sum,
                      const struct dnn_array *weight, struct dnn_err *err)
{
    char is[DNN_SHAPE_TEXT], expected[DNN_SHAPE_TEXT];
    struct dnn_shape shape;

    dnn_slices_shape(slices, sum->shape.dim[slices->nspace], &shape);
    if (!dnn_shape_equal(&shape, &box_array->shape))
        return dnn_fail(err, DNN_EDATA, "slices: a box is %s; it must be %s",
                        dnn_shape_text(is, sizeof is, &box_array->shape),
                        dnn_shape_text(expected, sizeof expected, &shape));
    return check_pair(sum, weight, err);
}

/* Add a row of a box; false if the count of a point overflows. */
static bool add_row(const struct common *c, int64_t channels, const float *from,
                    float *sum, uint16_t *weight)
{
    for (int64_t x = 0; x < c->n[2]; x++, from += c->box_step[2], sum += channels) {
        if (weight[x] == UINT16_MAX) return false;
        weight[x]++;
        for (int64_t k = 0; k < channels; k++)
            sum[k] += from[k];
    }
    return true;
}

int dnn_slices_add(const struct dnn_slices *slices, const struct dnn_array *box_array,
                   int64_t box, struct dnn_array *sum, struct dnn_array *weight,
                   struct dnn_err *err)
{
    struct dnn_array copy = {0};
    const float *from = box_array->data;
    bool counted = true;

    DNN_TRY(check_volume(slices, sum, box, err));
    DNN_TRY(check_sums(slices, box_array, sum, weight, err));
    if (box_array->type != DNN_F32) {
        int rc = dnn_array_make(&copy, DNN_F32, &box_array->shape, err);

        if (rc == 0)
            rc = dnn_convert(box_array->data, box_array->type, copy.data, DNN_F32,
                             dnn_array_count(box_array), false, err);
        if (rc < 0) {
            dnn_array_free(&copy);
            return rc;
        }
        from = copy.data;
    }
    int64_t channels = sum->shape.dim[slices->nspace];
    struct common c = common_of(slices, box, channels, false);
    for (int64_t z = 0; z < c.n[0] && counted; z++)
        for (int64_t y = 0; y < c.n[1] && counted; y++) {
            int64_t at = volume_at(&c, z, y);

            counted =
                add_row(&c, channels, from + box_at(&c, z, y), (float *)sum->data + at,
                        (uint16_t *)weight->data + at / channels);
        }
    dnn_array_free(&copy);
    if (counted) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "slices: more than %d boxes overlap at a voxel; use larger strides",
                    UINT16_MAX);
}

int dnn_slices_finish(struct dnn_array *sum, const struct dnn_array *weight,
                      struct dnn_err *err)
{
    float *x = sum->data;
    const uint16_t *n = weight->data;

    DNN_TRY(check_pair(sum, weight, err));
    int64_t points = dnn_array_count(weight);
    int64_t channels = sum->shape.dim[sum->shape.ndim - 1];
    for (int64_t i = 0; i < points; i++)
        if (n[i] > 1)
            for (int64_t k = 0; k < channels; k++)
                x[i * channels + k] /= n[i];
    return 0;
}
