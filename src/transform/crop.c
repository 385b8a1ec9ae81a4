/* crop.c - crop and pad arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/transform_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

const struct dnn_choice dnn_pad_choices[] = {
    {"constant", DNN_PAD_CONSTANT},
    {"edge",     DNN_PAD_EDGE    },
    {"reflect",  DNN_PAD_REFLECT },
    {NULL,       0               },
};

int dnn_crop(const struct dnn_array *in, const int64_t *start, const int64_t *extent,
             struct dnn_array *out, struct dnn_err *err)
{
    int64_t first[DNN_MAX_SPACE + 1] = {0}, n[DNN_MAX_SPACE + 1];
    struct dnn_grid from;

    DNN_TRY(dnn_transform_grid(in, "crop", &from, err));
    for (int i = 0; i < from.nspace; i++) {
        int64_t full = from.n[DNN_MAX_SPACE - from.nspace + i];

        if (start[i] < 0 || extent[i] < 1 || start[i] > full - extent[i])
            return dnn_fail(err, DNN_ECONFIG,
                            "crop: size %" PRId64 " at offset %" PRId64
                            " exceeds axis %d of size %" PRId64,
                            extent[i], start[i], i, full);
        first[i] = start[i];
        n[i] = extent[i];
    }
    n[from.nspace] = from.channels;
    return dnn_array_box(in, first, n, out, err);
}

/* ---- padding ---- */

/* The source of position i of a padded axis of n points, or -1: the fill value.
 * Reflection does not repeat the border point, and may be repeated for long padding. */
static int64_t source_index(int64_t i, int64_t n, enum dnn_pad_mode mode)
{
    if (i >= 0 && i < n) return i;
    if (mode == DNN_PAD_CONSTANT) return -1;
    if (mode == DNN_PAD_EDGE || n == 1) return i < 0 ? 0 : n - 1;
    int64_t period = 2 * (n - 1), at = i % period;
    if (at < 0) at += period;
    return at < n ? at : period - at;
}

struct pad {
    const struct dnn_array *in;
    struct dnn_grid from, to;
    int64_t before[DNN_MAX_SPACE];
    enum dnn_pad_mode mode;
    char *value_row; /* a row of the fill value, or NULL */
};

static void row_fill(const struct pad *pad, int64_t z, int64_t y, char *to)
{
    int64_t n = pad->from.n[2], begin = pad->before[2], all = pad->to.n[2];
    size_t pixel = pad->from.pixel;

    if (z < 0 || y < 0) {
        memcpy(to, pad->value_row, (size_t)all * pixel);
        return;
    }
    const char *from =
        (const char *)pad->in->data + dnn_transform_at(&pad->from, z, y, 0);
    for (int64_t x = 0; x < all; x++) {
        if (x == begin) { /* copy the points of the array at once */
            memcpy(to + (size_t)x * pixel, from, (size_t)n * pixel);
            x += n;
            if (x == all) break;
        }
        int64_t source = source_index(x - begin, n, pad->mode);
        memcpy(to + (size_t)x * pixel,
               source < 0 ? pad->value_row : from + (size_t)source * pixel, pixel);
    }
}

static int pad_extents(struct pad *pad, const int64_t *before, const int64_t *after,
                       struct dnn_err *err)
{
    for (int i = 0; i < pad->from.nspace; i++) {
        int k = DNN_MAX_SPACE - pad->from.nspace + i;

        if (before[i] < 0 || after[i] < 0 || before[i] > DNN_GRID_LIMIT ||
            after[i] > DNN_GRID_LIMIT - before[i] ||
            pad->from.n[k] > DNN_GRID_LIMIT - before[i] - after[i])
            return dnn_fail(err, DNN_ECONFIG,
                            "pad: %" PRId64 " before and %" PRId64
                            " after axis %d: must be 0 or more, and the padded size at "
                            "most %d (the axis has %" PRId64 ")",
                            before[i], after[i], i, DNN_GRID_LIMIT, pad->from.n[k]);
        pad->before[k] = before[i];
        pad->to.n[k] += before[i] + after[i];
    }
    return 0;
}

int dnn_pad(const struct dnn_array *in, const int64_t *before, const int64_t *after,
            enum dnn_pad_mode mode, double value, struct dnn_array *out,
            struct dnn_err *err)
{
    struct pad pad = {.in = in, .mode = mode};
    char one[8];

    DNN_TRY(dnn_transform_grid(in, "pad", &pad.from, err));
    pad.to = pad.from;
    DNN_TRY(pad_extents(&pad, before, after, err));
    if (mode == DNN_PAD_CONSTANT)
        DNN_TRY(dnn_transform_value(value, in->type, "pad", one, err));
    DNN_TRY(dnn_transform_make(in, &pad.to, out, err));
    size_t row = (size_t)pad.to.n[2] * pad.to.pixel;
    if (mode == DNN_PAD_CONSTANT) {
        pad.value_row = dnn_alloc(row);
        dnn_transform_copy(pad.value_row, (ptrdiff_t)pad.to.element, one, 0,
                           pad.to.n[2] * pad.to.channels, pad.to.element);
    }
    char *to = out->data;
    for (int64_t z = 0; z < pad.to.n[0]; z++)
        for (int64_t y = 0; y < pad.to.n[1]; y++, to += row)
            row_fill(&pad, source_index(z - pad.before[0], pad.from.n[0], mode),
                     source_index(y - pad.before[1], pad.from.n[1], mode), to);
    dnn_free(pad.value_row);
    return 0;
}
