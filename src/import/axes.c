/* axes.c - the meaning of the axes of a sample in an array file.
 *
 * Array files do not specify it.  A sample with one axis is a vector, one with two axes
 * an image without channel axis; with three or four axes, channels are last if the last
 * extent is at most 4.  Everything else is ambiguous, and an error unless the layout is
 * given.
 *
 * Of targets, a single integer is a label, and integers with spatial axes are a mask.
 * The last axis of a mask is the channel axis if its extent is 1.  Otherwise, a mask of
 * up to 3 axes has no channel axis, but it is ambiguous if the first extent is 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

#include "import/image_impl.h"

enum { MAX_GUESSED = 4 }; /* a last axis of at most this extent is the channel axis */

static bool is_real(enum dnn_dtype type)
{
    return type == DNN_F16 || type == DNN_BF16 || type == DNN_F32 || type == DNN_F64;
}

static bool is_scalar(const struct dnn_shape *s)
{
    return s->ndim == 0 || (s->ndim == 1 && s->dim[0] == 1);
}

static enum dnn_kind suggest(const struct dnn_import_side *side, bool target,
                             enum dnn_dtype type, const struct dnn_shape *s)
{
    if (side->kind >= 0) return (enum dnn_kind)side->kind;
    if (target && !is_real(type) && is_scalar(s)) return DNN_KIND_LABEL;
    if (s->ndim == 0 || (s->ndim == 1 && side->layout == DNN_LAYOUT_AUTO))
        return DNN_KIND_VALUES;
    return target && !is_real(type) ? DNN_KIND_MASK : DNN_KIND_IMAGE;
}

/* The layout if it is not specified; DNN_LAYOUT_AUTO: ambiguous. */
static enum dnn_layout guess(enum dnn_kind kind, const struct dnn_shape *s)
{
    int64_t first = s->dim[0], last = s->dim[s->ndim - 1];

    if (s->ndim <= 2) return DNN_LAYOUT_NONE;
    if (kind == DNN_KIND_MASK) {
        if (last == 1) return DNN_LAYOUT_LAST;
        return s->ndim <= DNN_MAX_SPACE && first != 1 ? DNN_LAYOUT_NONE
                                                      : DNN_LAYOUT_AUTO;
    }
    return last <= MAX_GUESSED ? DNN_LAYOUT_LAST : DNN_LAYOUT_AUTO;
}

/* Spatial and channel axes of an image or a mask. */
static int find_space(const char *what, const struct dnn_import_side *side,
                      const struct dnn_shape *s, struct dnn_axes *out,
                      struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];
    enum dnn_layout layout = (enum dnn_layout)side->layout;

    dnn_shape_text(text, sizeof text, s);
    if (s->ndim == 0 || s->ndim > DNN_MAX_SPACE + 1)
        return dnn_fail(err, DNN_EDATA,
                        "%s: sample shape %s: an image or mask must have 1 to %d "
                        "spatial axes and one channel axis",
                        what, text, DNN_MAX_SPACE);
    if (layout == DNN_LAYOUT_AUTO) layout = guess(out->kind, s);
    if (layout == DNN_LAYOUT_AUTO)
        return dnn_fail(err, DNN_EDATA,
                        "%s: sample shape %s: the position of the channel axis is "
                        "unclear; set \"layout\" to first, last or none",
                        what, text);
    int space = layout == DNN_LAYOUT_NONE ? s->ndim : s->ndim - 1;
    if (space < 1 || space > DNN_MAX_SPACE)
        return dnn_fail(err, DNN_EDATA,
                        "%s: sample shape %s: with layout \"%s\" it has %d spatial "
                        "axes; 1 to %d are supported",
                        what, text, dnn_choice_name(dnn_layout_choices, (int)layout),
                        space, DNN_MAX_SPACE);
    out->first = layout == DNN_LAYOUT_FIRST;
    out->shape = (struct dnn_shape){.ndim = space + 1};
    for (int i = 0; i < space; i++)
        out->shape.dim[i] = s->dim[i + (out->first ? 1 : 0)];
    out->shape.dim[space] = layout == DNN_LAYOUT_NONE ? 1
                            : out->first              ? s->dim[0]
                                                      : s->dim[space];
    if (out->kind == DNN_KIND_MASK && out->shape.dim[space] != 1)
        return dnn_fail(err, DNN_EDATA,
                        "%s: sample shape %s: a mask must have one channel, not %lld",
                        what, text, (long long)out->shape.dim[space]);
    if (side->gray && out->shape.dim[space] > 1) {
        out->colours = out->shape.dim[space];
        out->shape.dim[space] = 1;
    }
    return 0;
}

int dnn_axes_find(const char *what, const struct dnn_import_side *side, bool target,
                  enum dnn_dtype type, const struct dnn_shape *sample,
                  struct dnn_axes *out, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];
    int64_t count;

    *out = (struct dnn_axes){.type = type};
    dnn_shape_text(text, sizeof text, sample);
    if (dnn_shape_count(sample, &count, NULL) < 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: sample shape %s: the number of elements overflows", what,
                        text);
    if (count == 0)
        return dnn_fail(err, DNN_EDATA, "%s: sample shape %s: the sample is empty",
                        what, text);
    out->kind = suggest(side, target, type, sample);
    switch (out->kind) {
    case DNN_KIND_LABEL:
        if (count != 1)
            return dnn_fail(err, DNN_EDATA,
                            "%s: sample shape %s: a label must be a single number",
                            what, text);
        if (is_real(type)) out->type = DNN_I64;
        return 0;
    case DNN_KIND_VALUES:
        out->shape = (struct dnn_shape){.ndim = 1, .dim = {count}};
        return 0;
    case DNN_KIND_MASK:
        if (is_real(type)) out->type = DNN_I32;
        break;
    case DNN_KIND_IMAGE:
        break;
    }
    return find_space(what, side, sample, out, err);
}

/* A bool other than 0 or 1 would be undefined behaviour later. */
static int check_bools(const char *what, const struct dnn_array *array,
                       struct dnn_err *err)
{
    const unsigned char *at = array->data;
    int64_t n = dnn_array_count(array);

    for (int64_t i = 0; i < n; i++)
        if (at[i] > 1)
            return dnn_fail(err, DNN_EDATA,
                            "%s: element %lld is %d; a bool must be 0 or 1", what,
                            (long long)i, at[i]);
    return 0;
}

/* Convert colours and the type. */
static int apply_values(const struct dnn_axes *axes, const char *what,
                        struct dnn_array *array, struct dnn_err *err)
{
    if (axes->colours > 0) {
        array->shape.dim[array->shape.ndim - 1] = axes->colours;
        DNN_TRY(dnn_image_gray(what, array, err));
    }
    if (array->type != axes->type &&
        dnn_array_convert(array, axes->type, true, err) < 0)
        return dnn_prefix(err, "%s: ", what);
    return 0;
}

int dnn_axes_apply(const struct dnn_axes *axes, const char *what,
                   struct dnn_array *array, struct dnn_err *err)
{
    if (array->type == DNN_BOOL) DNN_TRY(check_bools(what, array, err));
    if (axes->first && dnn_array_channels_last(array, err) < 0)
        return dnn_prefix(err, "%s: ", what);
    array->shape = axes->shape;
    return apply_values(axes, what, array, err);
}

int dnn_axes_apply_box(const struct dnn_axes *axes, const char *what,
                       struct dnn_array *array, struct dnn_err *err)
{
    if (array->type == DNN_BOOL) DNN_TRY(check_bools(what, array, err));
    if (axes->first && dnn_array_channels_last(array, err) < 0)
        return dnn_prefix(err, "%s: ", what);
    if (array->shape.ndim < axes->shape.ndim) array->shape.dim[array->shape.ndim++] = 1;
    return apply_values(axes, what, array, err);
}

void dnn_axes_box(const struct dnn_axes *axes, int ndim, const int64_t *start,
                  const int64_t *extent, int64_t *file_start, int64_t *file_extent)
{
    int space = axes->shape.ndim - 1, skip = axes->first ? 1 : 0;

    for (int d = 0; d < space; d++) {
        file_start[skip + d] = start[d];
        file_extent[skip + d] = extent[d];
    }
    if (ndim == space) return; /* without a channel axis */
    int at = axes->first ? 0 : space;
    file_start[at] = axes->colours > 0 ? 0 : start[space];
    file_extent[at] = axes->colours > 0 ? axes->colours : extent[space];
}

void dnn_axes_column(const struct dnn_axes *axes, bool target, struct dnn_column *out)
{
    *out = (struct dnn_column){
        .role = target ? DNN_ROLE_TARGET : DNN_ROLE_INPUT,
        .kind = axes->kind,
        .type = axes->type,
        .shape = axes->shape,
    };
    snprintf(out->name, sizeof out->name, "%s", target ? "target" : "input");
}
