/* augment_kinds.c - the table of transforms, and functions shared by them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/augment_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const struct dnn_aug_kind *const dnn_aug_kinds[] = {
    &dnn_aug_resize,
    &dnn_aug_center_crop,
    &dnn_aug_jitter_crop,
    &dnn_aug_random_crop,
    &dnn_aug_random_horizontal_flip,
    &dnn_aug_random_vertical_flip,
    &dnn_aug_random_flip,
    &dnn_aug_random_zoom,
    &dnn_aug_rotate,
    &dnn_aug_random_rotate,
    &dnn_aug_elastic,
    &dnn_aug_convert_color,
    &dnn_aug_normalize,
    &dnn_aug_gamma,
    &dnn_aug_brightness,
    &dnn_aug_contrast,
    &dnn_aug_noise,
    &dnn_aug_cutout,
    &dnn_aug_random_patches,
    &dnn_aug_mixup,
    NULL,
};

bool dnn_aug_touches(const struct dnn_aug_step *step, const struct dnn_column *col)
{
    const bool input = col->role == DNN_ROLE_INPUT, image = col->kind == DNN_KIND_IMAGE;

    if (col->role == DNN_ROLE_EXTRA) return false;
    if (step->side != DNN_AUG_BOTH && input != (step->side == DNN_AUG_INPUTS))
        return false;
    switch (step->kind->scope) {
    case DNN_AUG_SPACE:
        return image || col->kind == DNN_KIND_MASK;
    case DNN_AUG_IMAGES:
        return image;
    case DNN_AUG_INPUT_IMAGES:
        return image && (input || step->side == DNN_AUG_TARGETS);
    default:
        return true;
    }
}

int dnn_aug_first(const struct dnn_aug_step *step, const struct dnn_aug_run *run)
{
    int c = 0;

    while (c + 1 < run->ncols && !dnn_aug_touches(step, &run->col[c]))
        c++;
    return c;
}

int dnn_aug_nspace(const struct dnn_column *col)
{
    return col->shape.ndim - 1;
}

enum dnn_interp dnn_aug_interp(const struct dnn_column *col)
{
    return col->kind == DNN_KIND_MASK ? DNN_INTERP_NEAREST : DNN_INTERP_LINEAR;
}

int dnn_aug_fail(const struct dnn_aug_step *step, struct dnn_err *err, const char *fmt,
                 ...)
{
    char text[sizeof err->text];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return dnn_fail(err, DNN_ECONFIG, "%s%s", step->where, text);
}

int dnn_aug_extents(const struct dnn_aug_step *step, const struct dnn_list *list,
                    const struct dnn_column *col, int64_t *extent, struct dnn_err *err)
{
    const int nspace = dnn_aug_nspace(col);

    if (list->count != 1 && list->count != nspace)
        return dnn_aug_fail(step, err,
                            "'%s' has %d spatial axes; give one number for all or one "
                            "per axis, not %" PRId64,
                            col->name, nspace, list->count);
    for (int k = 0; k < nspace; k++)
        extent[k] = list->ints[list->count == 1 ? 0 : k];
    return 0;
}

int dnn_aug_alike(const struct dnn_aug_step *step, int ncols,
                  const struct dnn_column *col, struct dnn_err *err)
{
    const struct dnn_column *first = NULL;

    for (int c = 0; c < ncols; c++) {
        char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];

        if (!dnn_aug_touches(step, &col[c])) continue;
        if (first == NULL) first = &col[c];
        bool same = first->shape.ndim == col[c].shape.ndim;
        for (int k = 0; same && k < dnn_aug_nspace(first); k++) {
            int64_t x = first->shape.dim[k], y = col[c].shape.dim[k];

            same = x == y || x == DNN_UNKNOWN || y == DNN_UNKNOWN;
        }
        if (!same)
            return dnn_aug_fail(
                step, err,
                "'%s' is %s and '%s' is %s; their spatial sizes must be equal",
                first->name, dnn_shape_text(a, sizeof a, &first->shape), col[c].name,
                dnn_shape_text(b, sizeof b, &col[c].shape));
    }
    return 0;
}

int dnn_aug_become_f32(const struct dnn_aug_step *step, int ncols,
                       struct dnn_column *col, struct dnn_err *err)
{
    (void)err;
    for (int c = 0; c < ncols; c++)
        if (dnn_aug_touches(step, &col[c])) col[c].type = DNN_F32;
    return 0;
}

int dnn_aug_floats(struct dnn_aug_run *run, int c, float **out, int64_t *count,
                   struct dnn_err *err)
{
    struct dnn_array *array = &run->sample->col[c];

    DNN_TRY(dnn_array_convert(array, DNN_F32, false, err));
    *out = array->data;
    *count = dnn_array_count(array);
    return 0;
}
