/* steps_space.c - steps that change extents: resize, resample, crop, pad.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"
#include "transform/transform.h"

#include <math.h>
#include <string.h>

static const struct dnn_sub space_sub = {.min = 0, .max = DNN_MAX_SPACE};

static bool has_space(const struct dnn_column_state *state)
{
    return dnn_column_state_space(state) > 0;
}

static int check_given(const struct dnn_jobj *at, const struct dnn_list *list,
                       const char *key, struct dnn_err *err)
{
    if (list->count > 0) return 0;
    return dnn_json_fail(at, err, "%s is missing: one number per spatial axis", key);
}

/* Checks that there is one number per spatial axis. */
static int check_axes(const struct dnn_prepare_step *step,
                      const struct dnn_column_state *state, const struct dnn_list *list,
                      struct dnn_err *err)
{
    int space = dnn_column_state_space(state);

    if (list->count == space) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: %lld numbers given, but the column \"%s\" has %d spatial axes",
                    step->where, (long long)list->count, state->column.name, space);
}

static enum dnn_interp interp_of(const struct dnn_column_state *state)
{
    return state->column.kind == DNN_KIND_MASK ? DNN_INTERP_NEAREST : DNN_INTERP_LINEAR;
}

#define COLUMNS(at)                                                                    \
    {"columns", DNN_F_TEXTS,                                                           \
     at,        "[]",                                                                  \
     0,         0,                                                                     \
     NULL,      "columns to apply it to; empty: all with spatial axes",                \
     NULL}
#define END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}

/* An axis of n points in the same space; cell centres, as in dnn_resize(). */
static void set_extent(struct dnn_column_state *state, int d, int64_t n)
{
    struct dnn_position *at = &state->position;
    int64_t had = state->column.shape.dim[d];
    double ratio = had == DNN_UNKNOWN ? 0 : (double)had / (double)n;

    at->spacing[d] = at->spacing[d] * (double)had / (double)n;
    at->first[d] += at->step[d] * (ratio - 1) / 2;
    at->step[d] *= ratio;
    state->column.shape.dim[d] = n;
}

/* ---- resize ---- */

struct resize {
    struct dnn_list columns, size;
};
#define AT(f) offsetof(struct resize, f)
static const struct dnn_field resize_fields[] = {
    {"size", DNN_F_INTS, AT(size), "[]", 1, 1 << 20, NULL,
     "size, one number per spatial axis", &space_sub},
    COLUMNS(AT(columns)),
    END,
};
static const struct dnn_field resize_brief[] = {
    {"resize", DNN_F_INTS, AT(size), NULL, 1, 1 << 20, NULL, "size", &space_sub},
    END,
};
#undef AT

static int resize_read(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                       struct dnn_err *err)
{
    (void)arena;
    return check_given(at, &((struct resize *)cfg)->size, "size", err);
}

static int resize_state(const struct dnn_prepare_step *step, int k,
                        struct dnn_column_state *state, struct dnn_err *err)
{
    const struct resize *c = step->cfg;

    (void)k;
    DNN_TRY(check_axes(step, state, &c->size, err));
    for (int i = 0; i < c->size.count; i++)
        set_extent(state, i, c->size.ints[i]);
    return 0;
}

static int resize_apply(const struct dnn_prepare_step *step, int k,
                        struct dnn_array *array, struct dnn_array *other,
                        struct dnn_err *err)
{
    const struct resize *c = step->cfg;

    DNN_TRY(dnn_resize(array, c->size.ints, interp_of(&step->before->state[k]), other,
                       err));
    dnn_array_swap(array, other);
    return 0;
}

const struct dnn_prepare_step_type dnn_prepare_step_resize = {
    .name = "resize",
    .help = "resize: linear interpolation for images, nearest neighbor for masks",
    .size = sizeof(struct resize),
    .fields = resize_fields,
    .brief = resize_brief,
    .read = resize_read,
    .is_default = has_space,
    .is_allowed = has_space,
    .state = resize_state,
    .apply = resize_apply,
};

/* ---- resample ---- */

struct resample {
    struct dnn_list columns, spacing;
};
#define AT(f) offsetof(struct resample, f)
static const struct dnn_field resample_fields[] = {
    {"spacing", DNN_F_REALS, AT(spacing), "[]", 1e-6, 1e6, NULL,
     "voxel spacing, in the unit of the files (mm)", &space_sub},
    COLUMNS(AT(columns)),
    END,
};
static const struct dnn_field resample_brief[] = {
    {"resample", DNN_F_REALS, AT(spacing), NULL, 1e-6, 1e6, NULL, "spacing",
     &space_sub},
    END,
};
#undef AT

static int resample_read(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                         struct dnn_err *err)
{
    (void)arena;
    return check_given(at, &((struct resample *)cfg)->spacing, "spacing", err);
}

static int resample_state(const struct dnn_prepare_step *step, int k,
                          struct dnn_column_state *state, struct dnn_err *err)
{
    const struct resample *c = step->cfg;

    (void)k;
    DNN_TRY(check_axes(step, state, &c->spacing, err));
    for (int i = 0; i < c->spacing.count; i++) {
        double spacing = state->position.spacing[i];
        int64_t n = state->column.shape.dim[i];

        if (n != DNN_UNKNOWN && spacing > 0)
            set_extent(state, i,
                       (int64_t)dnn_resample_extent(n, spacing, c->spacing.reals[i]));
        else
            state->column.shape.dim[i] = DNN_UNKNOWN;
    }
    return 0;
}

static int resample_apply(const struct dnn_prepare_step *step, int k,
                          struct dnn_array *array, struct dnn_array *other,
                          struct dnn_err *err)
{
    const struct resample *c = step->cfg;

    DNN_TRY(dnn_resample(array, c->spacing.reals, interp_of(&step->before->state[k]),
                         other, err));
    dnn_array_swap(array, other);
    return 0;
}

const struct dnn_prepare_step_type dnn_prepare_step_resample = {
    .name = "resample",
    .help = "resample to this voxel spacing; the files must contain their own",
    .size = sizeof(struct resample),
    .fields = resample_fields,
    .brief = resample_brief,
    .read = resample_read,
    .is_default = has_space,
    .is_allowed = has_space,
    .state = resample_state,
    .apply = resample_apply,
};

/* ---- crop ---- */

struct crop {
    struct dnn_list columns, size, start;
};
#define AT(f) offsetof(struct crop, f)
static const struct dnn_field crop_fields[] = {
    {"size",  DNN_F_INTS, AT(size),  "[]", 1, 1 << 20, NULL, "size of the crop",
     &space_sub                                                                            },
    {"start", DNN_F_INTS, AT(start), "[]", 0, 1 << 20, NULL,
     "offset of the crop; empty: centered",                                      &space_sub},
    COLUMNS(AT(columns)),
    END,
};
static const struct dnn_field crop_brief[] = {
    {"crop", DNN_F_INTS, AT(size), NULL, 1, 1 << 20, NULL, "size", &space_sub},
    END,
};
#undef AT

static int crop_read(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                     struct dnn_err *err)
{
    const struct crop *c = cfg;

    (void)arena;
    DNN_TRY(check_given(at, &c->size, "size", err));
    if (c->start.count > 0 && c->start.count != c->size.count)
        return dnn_json_fail(at, err, "start and size must have the same length");
    return 0;
}

static int crop_state(const struct dnn_prepare_step *step, int k,
                      struct dnn_column_state *state, struct dnn_err *err)
{
    const struct crop *c = step->cfg;

    (void)k;
    DNN_TRY(check_axes(step, state, &c->size, err));
    for (int i = 0; i < c->size.count; i++) {
        int64_t more = state->column.shape.dim[i] - c->size.ints[i];

        state->position.first[i] +=
            state->position.step[i] *
            (double)(c->start.count > 0 ? c->start.ints[i] : more / 2);
        state->column.shape.dim[i] = c->size.ints[i];
    }
    return 0;
}

static int crop_apply(const struct dnn_prepare_step *step, int k,
                      struct dnn_array *array, struct dnn_array *other,
                      struct dnn_err *err)
{
    const struct crop *c = step->cfg;
    int64_t start[DNN_MAX_SPACE];

    (void)k;
    for (int64_t i = 0; i < c->size.count; i++) {
        int64_t more = array->shape.dim[i] - c->size.ints[i];

        if (more < 0)
            return dnn_fail(
                err, DNN_EDATA,
                "axis %lld has size %lld, smaller than the crop size %lld; pad first",
                (long long)i, (long long)array->shape.dim[i],
                (long long)c->size.ints[i]);
        start[i] = c->start.count > 0 ? c->start.ints[i] : more / 2;
    }
    DNN_TRY(dnn_crop(array, start, c->size.ints, other, err));
    dnn_array_swap(array, other);
    return 0;
}

const struct dnn_prepare_step_type dnn_prepare_step_crop = {
    .name = "crop",
    .help = "crop; centered by default",
    .size = sizeof(struct crop),
    .fields = crop_fields,
    .brief = crop_brief,
    .read = crop_read,
    .is_default = has_space,
    .is_allowed = has_space,
    .state = crop_state,
    .apply = crop_apply,
};

/* ---- pad ---- */

struct pad {
    struct dnn_list columns, size, before, after;
    int mode;
    double value;
    int64_t mask_value;
};
#define AT(f) offsetof(struct pad, f)
static const struct dnn_field pad_fields[] = {
    {"size",       DNN_F_INTS, AT(size),       "[]",       1, 1 << 20, NULL,
     "size to pad to; larger axes are not changed",                                                     &space_sub},
    {"before",     DNN_F_INTS, AT(before),     "[]",       0, 1 << 20, NULL,
     "instead of size: number of voxels added before",                                                  &space_sub},
    {"after",      DNN_F_INTS, AT(after),      "[]",       0, 1 << 20, NULL,
     "number of voxels added after",                                                                    &space_sub},
    {"mode",       DNN_F_ENUM, AT(mode),       "constant", 0, 0,       dnn_pad_choices, "padding mode",
     NULL                                                                                                         },
    {"value",      DNN_F_REAL, AT(value),      "0",        0, 0,       NULL,
     "constant mode: fill value of images",                                                             NULL      },
    {"mask_value", DNN_F_INT,  AT(mask_value), "0",        0, 4095,    NULL,
     "constant mode: class of masks",                                                                   NULL      },
    COLUMNS(AT(columns)),
    END,
};
static const struct dnn_field pad_brief[] = {
    {"pad", DNN_F_INTS, AT(size), NULL, 1, 1 << 20, NULL, "size", &space_sub},
    END,
};
#undef AT

static int pad_read(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                    struct dnn_err *err)
{
    const struct pad *c = cfg;

    (void)arena;
    if (c->size.count > 0 && c->before.count + c->after.count > 0)
        return dnn_json_fail(at, err, "give either size, or before and after");
    if (c->size.count > 0) return 0;
    DNN_TRY(check_given(at, &c->before, "size, or before and after", err));
    if (c->before.count != c->after.count)
        return dnn_json_fail(at, err, "before and after must have the same length");
    return 0;
}

/* Whether padding works on stored elements.  With a scale the constant must be stored
 * as 0; otherwise the column is converted to values first. */
static bool pads_stored(const struct pad *c, const struct dnn_column_state *state)
{
    if (state->nscale == 0 || c->mode != DNN_PAD_CONSTANT) return true;
    for (int i = 0; i < state->nscale; i++)
        if (c->value - state->offset[i] != 0) return false;
    return true;
}

static void pad_amounts(const struct pad *c, const struct dnn_shape *shape,
                        int64_t *before, int64_t *after)
{
    int64_t n = c->size.count > 0 ? c->size.count : c->before.count;

    for (int64_t i = 0; i < n; i++) {
        int64_t more = c->size.count > 0 ? c->size.ints[i] - shape->dim[i] : 0;

        before[i] = c->size.count > 0 ? (more > 0 ? more / 2 : 0) : c->before.ints[i];
        after[i] =
            c->size.count > 0 ? (more > 0 ? more - more / 2 : 0) : c->after.ints[i];
    }
}

static int pad_state(const struct dnn_prepare_step *step, int k,
                     struct dnn_column_state *state, struct dnn_err *err)
{
    const struct pad *c = step->cfg;
    const struct dnn_list *list = c->size.count > 0 ? &c->size : &c->before;
    int64_t before[DNN_MAX_SPACE], after[DNN_MAX_SPACE];

    (void)k;
    DNN_TRY(check_axes(step, state, list, err));
    pad_amounts(c, &state->column.shape, before, after);
    for (int64_t i = 0; i < list->count; i++) {
        if (state->column.shape.dim[i] == DNN_UNKNOWN) continue;
        state->column.shape.dim[i] += before[i] + after[i];
        state->position.first[i] -= state->position.step[i] * (double)before[i];
    }
    if (!pads_stored(c, state)) dnn_column_state_become_values(state);
    return 0;
}

static int pad_apply(const struct dnn_prepare_step *step, int k,
                     struct dnn_array *array, struct dnn_array *other,
                     struct dnn_err *err)
{
    const struct pad *c = step->cfg;
    const struct dnn_column_state *state = &step->before->state[k];
    int64_t before[DNN_MAX_SPACE], after[DNN_MAX_SPACE];
    double value =
        state->column.kind == DNN_KIND_MASK ? (double)c->mask_value : c->value;

    if (!pads_stored(c, state))
        DNN_TRY(dnn_column_state_values(state, array, err));
    else if (state->nscale > 0)
        value = 0;
    pad_amounts(c, &array->shape, before, after);
    DNN_TRY(
        dnn_pad(array, before, after, (enum dnn_pad_mode)c->mode, value, other, err));
    dnn_array_swap(array, other);
    return 0;
}

const struct dnn_prepare_step_type dnn_prepare_step_pad = {
    .name = "pad",
    .help = "pad on both sides up to a size (an odd voxel goes to the end), or by a "
            "number of voxels",
    .size = sizeof(struct pad),
    .fields = pad_fields,
    .brief = pad_brief,
    .read = pad_read,
    .is_default = has_space,
    .is_allowed = has_space,
    .state = pad_state,
    .apply = pad_apply,
};
