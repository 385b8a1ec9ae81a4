/* slice.c - the boxes into which a volume is cut.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/slice.h"

#include <inttypes.h>

#define AT(f) offsetof(struct dnn_slicer, f)
#define LIMIT (1 << 30)

static const struct dnn_sub some = {.min = 1, .max = DNN_MAX_SPACE};
static const struct dnn_sub any = {.max = DNN_MAX_SPACE};

#define INTS(key, at, def, min, help, sub)                                             \
    {key, DNN_F_INTS, at, def, min, LIMIT, NULL, help, sub}
#define BOOL(key, at, help) {key, DNN_F_BOOL, at, "false", 0, 0, NULL, help, NULL}

/* clang-format off */
const struct dnn_field dnn_slicer_fields[] = {
    {"name", DNN_F_TEXT, AT(name), "null", 0, 0, NULL, "name of the set", NULL},
    INTS("sizes", AT(sizes), NULL, 1, "size of a box along each axis; 1 drops the axis", &some),
    INTS("strides", AT(strides), "[]", 1, "step between boxes; empty: sizes", &any),
    INTS("padding", AT(padding), "[]", 0, "padding on both sides; empty: 0", &any),
    INTS("padded_sizes", AT(padded_sizes), "[]", 1, "box sizes including padding", &any),
    BOOL("discard_remainders", AT(discard_remainders), "drop the remainder that does not fill a box"),
    BOOL("transpose", AT(transpose), "swap the two axes of a box"),
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};
/* clang-format on */

static const char *name_of(const struct dnn_slicer *how)
{
    return how->name == NULL ? "slices" : how->name;
}

/* ---- positions of boxes ---- */

static int check_lists(const struct dnn_slicer *how, int nspace, struct dnn_err *err)
{
    const struct {
        const char *key;
        const struct dnn_list *list;
        bool needed;
    } lists[] = {
        {"sizes",        &how->sizes,        true },
        {"strides",      &how->strides,      false},
        {"padding",      &how->padding,      false},
        {"padded_sizes", &how->padded_sizes, false}
    };

    for (int i = 0; i < 4; i++)
        if ((lists[i].needed || lists[i].list->count > 0) &&
            lists[i].list->count != nspace)
            return dnn_fail(err, DNN_ECONFIG,
                            "%s: %" PRId64 " %s given for a volume of %d axes",
                            name_of(how), lists[i].list->count, lists[i].key, nspace);
    if (how->padding.count > 0 && how->padded_sizes.count > 0)
        return dnn_fail(err, DNN_ECONFIG, "%s: give either padding or padded_sizes",
                        name_of(how));
    return 0;
}

/* Set the padding of axis i; size and stride are set and valid. */
static int set_padding(const struct dnn_slicer *how, int i, struct dnn_slices *out,
                       struct dnn_err *err)
{
    int64_t size = out->size[i], all = size;

    if (how->padding.count > 0) {
        int64_t p = how->padding.ints[i];

        if (p < 0 || p > LIMIT)
            return dnn_fail(err, DNN_ECONFIG,
                            "%s: padding[%d] is %" PRId64 "; it must be 0 or more",
                            name_of(how), i, p);
        all = size + 2 * p;
    } else if (how->padded_sizes.count > 0) {
        all = how->padded_sizes.ints[i];
        if (all < size || all > LIMIT)
            return dnn_fail(err, DNN_ECONFIG,
                            "%s: padded_sizes[%d] is %" PRId64
                            "; it must be at least the size, %" PRId64,
                            name_of(how), i, all, size);
    }
    if (size == 1 && all > 1)
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: size 1 drops axis %d, so it cannot have padding",
                        name_of(how), i);
    out->before[i] = (all - size) / 2;
    out->after[i] = all - size - out->before[i];
    return 0;
}

/* Boxes begin at multiples of the stride.  A remainder gets one more box, unless that
 * box would begin past the end. */
static int set_axis(const struct dnn_slicer *how, int i, int64_t full,
                    struct dnn_slices *out, struct dnn_err *err)
{
    int64_t size = how->sizes.ints[i];
    int64_t stride = how->strides.count > 0 ? how->strides.ints[i] : size;

    if (full < 1 || full > LIMIT)
        return dnn_fail(err, DNN_EDATA,
                        "%s: axis %d of the volume has size %" PRId64
                        "; it must be 1 to %d",
                        name_of(how), i, full, LIMIT);
    if (size < 1 || size > full)
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: sizes[%d] is %" PRId64 "; it must be 1 to %" PRId64
                        ", the size of the volume",
                        name_of(how), i, size, full);
    if (stride < 1 || stride > LIMIT)
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: strides[%d] is %" PRId64 "; it must be at least 1",
                        name_of(how), i, stride);
    out->full[i] = full;
    out->size[i] = size;
    out->stride[i] = stride;
    out->count[i] = (full - size) / stride + 1;
    if (!how->discard_remainders && (full - size) % stride != 0 &&
        out->count[i] * stride < full)
        out->count[i]++;
    if (__builtin_mul_overflow(out->total, out->count[i], &out->total))
        return dnn_fail(err, DNN_ECONFIG, "%s: the number of boxes overflows",
                        name_of(how));
    return set_padding(how, i, out, err);
}

int dnn_slices_make(const struct dnn_slicer *how, int nspace, const int64_t *full,
                    struct dnn_slices *out, struct dnn_err *err)
{
    int axes = 0;

    *out =
        (struct dnn_slices){.nspace = nspace, .total = 1, .transpose = how->transpose};
    if (nspace < 1 || nspace > DNN_MAX_SPACE)
        return dnn_fail(err, DNN_EDATA,
                        "%s: the volume has %d axes; it must have 1 to %d",
                        name_of(how), nspace, DNN_MAX_SPACE);
    DNN_TRY(check_lists(how, nspace, err));
    for (int i = 0; i < nspace; i++) {
        DNN_TRY(set_axis(how, i, full[i], out, err));
        axes += out->size[i] > 1;
    }
    if (axes == 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: all sizes are 1, so no axis would be left", name_of(how));
    if (how->transpose && axes != 2)
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: only boxes of 2 axes can be transposed; these have %d",
                        name_of(how), axes);
    return 0;
}

void dnn_slices_start(const struct dnn_slices *slices, int64_t box, int64_t *start)
{
    for (int i = slices->nspace - 1; i >= 0; i--) {
        start[i] = box % slices->count[i] * slices->stride[i];
        box /= slices->count[i];
    }
}

int dnn_slices_axes(const struct dnn_slices *slices, int axis[DNN_MAX_SPACE])
{
    int n = 0;

    for (int i = 0; i < slices->nspace; i++)
        if (slices->size[i] > 1) axis[n++] = i;
    if (slices->transpose && n == 2) {
        int first = axis[0];

        axis[0] = axis[1];
        axis[1] = first;
    }
    return n;
}

void dnn_slices_shape(const struct dnn_slices *slices, int64_t channels,
                      struct dnn_shape *out)
{
    int axis[DNN_MAX_SPACE], n = dnn_slices_axes(slices, axis);

    *out = (struct dnn_shape){.ndim = n + 1};
    for (int k = 0; k < n; k++)
        out->dim[k] =
            slices->before[axis[k]] + slices->size[axis[k]] + slices->after[axis[k]];
    out->dim[n] = channels;
}
