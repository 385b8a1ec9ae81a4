/* augment_extent.c - transforms that change extents: resize and crops.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/augment_impl.h"

#include <inttypes.h>
#include <stddef.h>

struct size_opts {
    struct dnn_list size;
};

static const struct dnn_sub axes = {.min = 1, .max = DNN_MAX_SPACE, .single = true};
#define AT(f) offsetof(struct size_opts, f)
static const struct dnn_field size_fields[] = {
    {"size", DNN_F_INTS, AT(size), NULL, 1, DNN_GRID_LIMIT, NULL,
     "size of each axis in the array's order (H, W or D, H, W), or one for all", &axes},
    {NULL,   0,          0,        NULL, 0, 0,              NULL, NULL,          NULL },
};
#undef AT

/* ---- resize ---- */

static int resize_columns(const struct dnn_aug_step *step, int ncols,
                          struct dnn_column *col, struct dnn_err *err)
{
    const struct size_opts *o = step->opts;

    for (int c = 0; c < ncols; c++)
        if (dnn_aug_touches(step, &col[c]))
            DNN_TRY(dnn_aug_extents(step, &o->size, &col[c], col[c].shape.dim, err));
    return 0;
}

static int resize_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                        struct dnn_err *err)
{
    const struct size_opts *o = step->opts;
    int64_t extent[DNN_MAX_SPACE];

    for (int c = 0; c < run->ncols; c++) {
        struct dnn_array *array = &run->sample->col[c];

        if (!dnn_aug_touches(step, &run->col[c])) continue;
        DNN_TRY(dnn_aug_extents(step, &o->size, &run->col[c], extent, err));
        DNN_TRY(dnn_resize(array, extent, dnn_aug_interp(&run->col[c]),
                           &run->scratch->spare, err));
        dnn_array_swap(array, &run->scratch->spare);
    }
    return 0;
}

const struct dnn_aug_kind dnn_aug_resize = {
    .name = "resize",
    .params = "[H, W] or [D, H, W]",
    .help = "resize to this size",
    .main = "size",
    .size = sizeof(struct size_opts),
    .fields = size_fields,
    .columns = resize_columns,
    .apply = resize_apply,
};

/* ---- functions shared by the crops ---- */

/* Crop column c. */
static int crop(struct dnn_aug_run *run, int c, const int64_t *start,
                const int64_t *extent, struct dnn_err *err)
{
    DNN_TRY(dnn_crop(&run->sample->col[c], start, extent, &run->scratch->spare, err));
    dnn_array_swap(&run->sample->col[c], &run->scratch->spare);
    return 0;
}

static int fits(const struct dnn_aug_step *step, const struct dnn_column *col,
                const int64_t *extent, const char *hint, struct dnn_err *err)
{
    for (int k = 0; k < dnn_aug_nspace(col); k++)
        if (col->shape.dim[k] != DNN_UNKNOWN && col->shape.dim[k] < extent[k])
            return dnn_aug_fail(step, err,
                                "'%s' has size %" PRId64
                                " along axis %d, smaller than the crop size %" PRId64
                                "%s",
                                col->name, col->shape.dim[k], k, extent[k], hint);
    return 0;
}

/* ---- center_crop ---- */

static int center_columns(const struct dnn_aug_step *step, int ncols,
                          struct dnn_column *col, struct dnn_err *err)
{
    const struct size_opts *o = step->opts;
    int64_t extent[DNN_MAX_SPACE];

    for (int c = 0; c < ncols; c++) {
        if (!dnn_aug_touches(step, &col[c])) continue;
        DNN_TRY(dnn_aug_extents(step, &o->size, &col[c], extent, err));
        DNN_TRY(fits(step, &col[c], extent, "", err));
        for (int k = 0; k < dnn_aug_nspace(&col[c]); k++)
            col[c].shape.dim[k] = extent[k];
    }
    return 0;
}

static int center_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                        struct dnn_err *err)
{
    const struct size_opts *o = step->opts;
    int64_t extent[DNN_MAX_SPACE], start[DNN_MAX_SPACE];

    for (int c = 0; c < run->ncols; c++) {
        if (!dnn_aug_touches(step, &run->col[c])) continue;
        DNN_TRY(dnn_aug_extents(step, &o->size, &run->col[c], extent, err));
        for (int k = 0; k < dnn_aug_nspace(&run->col[c]); k++)
            start[k] = (run->col[c].shape.dim[k] - extent[k]) / 2;
        DNN_TRY(crop(run, c, start, extent, err));
    }
    return 0;
}

const struct dnn_aug_kind dnn_aug_center_crop = {
    .name = "center_crop",
    .params = "[H, W] or [D, H, W]",
    .help = "crop the center to this size",
    .main = "size",
    .size = sizeof(struct size_opts),
    .fields = size_fields,
    .columns = center_columns,
    .apply = center_apply,
};

/* ---- jitter_crop ---- */

struct jitter_opts {
    double amount;
};

static const struct dnn_field jitter_fields[] = {
    {"amount", DNN_F_REAL, offsetof(struct jitter_opts, amount), NULL, 0, 1, NULL,
     "maximum c; each side loses c times half the size", NULL},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static int jitter_columns(const struct dnn_aug_step *step, int ncols,
                          struct dnn_column *col, struct dnn_err *err)
{
    (void)err;
    for (int c = 0; c < ncols; c++)
        for (int k = 0; dnn_aug_touches(step, &col[c]) && k < dnn_aug_nspace(&col[c]);
             k++)
            col[c].shape.dim[k] = DNN_UNKNOWN;
    return 0;
}

/* Each side has its own random amount, so that objects are also shifted. */
static int jitter_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                        struct dnn_err *err)
{
    const struct jitter_opts *o = step->opts;
    double part[DNN_MAX_SPACE][2];

    for (int k = 0; k < DNN_MAX_SPACE; k++)
        for (int s = 0; s < 2; s++)
            part[k][s] = dnn_draw_real(&run->draw, 0, o->amount);
    for (int c = 0; c < run->ncols; c++) {
        int64_t start[DNN_MAX_SPACE], extent[DNN_MAX_SPACE];

        if (!dnn_aug_touches(step, &run->col[c])) continue;
        for (int k = 0; k < dnn_aug_nspace(&run->col[c]); k++) {
            int64_t n = run->col[c].shape.dim[k];

            start[k] = (int64_t)(part[k][0] * 0.5 * (double)n);
            extent[k] = n - start[k] - (int64_t)(part[k][1] * 0.5 * (double)n);
        }
        DNN_TRY(crop(run, c, start, extent, err));
    }
    return 0;
}

const struct dnn_aug_kind dnn_aug_jitter_crop = {
    .name = "jitter_crop",
    .params = "Cmax",
    .help = "crop each side by c times half the size, c random below Cmax; sizes then "
            "differ between samples until a resize or crop",
    .main = "amount",
    .random = true,
    .size = sizeof(struct jitter_opts),
    .fields = jitter_fields,
    .columns = jitter_columns,
    .apply = jitter_apply,
};

/* ---- random_crop ---- */

struct random_opts {
    struct dnn_list size;
    double foreground;
    int64_t class;
    bool pad;
};

#define AT(f) offsetof(struct random_opts, f)
static const struct dnn_field random_fields[] = {
    {"size",       DNN_F_INTS, AT(size),       NULL,    1,  DNN_GRID_LIMIT, NULL,
     "size of each axis in the array's order (H, W or D, H, W), or one for all",        &axes},
    {"foreground", DNN_F_REAL, AT(foreground), "0",     0,  1,              NULL,
     "probability that the crop is centered, as far as the borders allow, on a "
     "foreground voxel of the mask; samples without foreground are cropped anywhere",   NULL },
    {"class",      DNN_F_INT,  AT(class),      "-1",    -1, INT32_MAX,      NULL,
     "class of that voxel; -1: any but 0",                                              NULL },
    {"pad",        DNN_F_BOOL, AT(pad),        "false", 0,  0,              NULL,
     "pad samples that are too small with zeros",                                       NULL },
    {NULL,         0,          0,              NULL,    0,  0,              NULL, NULL, NULL },
};
#undef AT

static int mask_of(int ncols, const struct dnn_column *col)
{
    for (int c = 0; c < ncols; c++)
        if (col[c].kind == DNN_KIND_MASK && col[c].role != DNN_ROLE_EXTRA) return c;
    return -1;
}

static int random_columns(const struct dnn_aug_step *step, int ncols,
                          struct dnn_column *col, struct dnn_err *err)
{
    const struct random_opts *o = step->opts;
    int64_t extent[DNN_MAX_SPACE];

    if (o->foreground > 0 && step->side != DNN_AUG_BOTH)
        return dnn_aug_fail(step, err,
                            "with \"foreground\", list it under \"transforms\", for "
                            "inputs and targets together");
    if (o->foreground > 0 && mask_of(ncols, col) < 0)
        return dnn_aug_fail(step, err, "\"foreground\" needs a mask target");
    DNN_TRY(dnn_aug_alike(step, ncols, col, err));
    for (int c = 0; c < ncols; c++) {
        if (!dnn_aug_touches(step, &col[c])) continue;
        DNN_TRY(dnn_aug_extents(step, &o->size, &col[c], extent, err));
        if (!o->pad)
            DNN_TRY(
                fits(step, &col[c], extent, "; \"pad\": true pads with zeros", err));
        for (int k = 0; k < dnn_aug_nspace(&col[c]); k++)
            col[c].shape.dim[k] = extent[k];
    }
    return 0;
}

/* Pad up to the extents, equally before and after; an odd point goes after. */
static int pad_to(struct dnn_aug_run *run, int c, const int64_t *extent,
                  struct dnn_err *err)
{
    struct dnn_array *array = &run->sample->col[c];
    int64_t before[DNN_MAX_SPACE], after[DNN_MAX_SPACE], most = 0;

    for (int k = 0; k < dnn_aug_nspace(&run->col[c]); k++) {
        int64_t missing = extent[k] - array->shape.dim[k];

        if (missing < 0) missing = 0;
        if (missing > most) most = missing;
        before[k] = missing / 2;
        after[k] = missing - missing / 2;
    }
    if (most == 0) return 0;
    DNN_TRY(
        dnn_pad(array, before, after, DNN_PAD_CONSTANT, 0, &run->scratch->spare, err));
    dnn_array_swap(array, &run->scratch->spare);
    return 0;
}

static bool is_foreground(const struct random_opts *o, int64_t class)
{
    return o->class < 0 ? class != 0 : class == o->class;
}

/* With *pick -1: sets it to the number of foreground points.  Else: replaces foreground
 * point number *pick by its index in the mask. */
static int find_foreground(const struct random_opts *o, const struct dnn_array *mask,
                           int64_t *pick, struct dnn_err *err)
{
    const int64_t count = dnn_array_count(mask);
    int64_t class_of[DNN_TRANSFORM_BLOCK], seen = 0;

    for (int64_t at = 0; at < count; at += DNN_TRANSFORM_BLOCK) {
        int64_t n = count - at < DNN_TRANSFORM_BLOCK ? count - at : DNN_TRANSFORM_BLOCK;

        DNN_TRY(dnn_transform_classes(mask, at, n, INT64_MAX, "random_crop", class_of,
                                      err));
        for (int64_t k = 0; k < n; k++) {
            if (!is_foreground(o, class_of[k])) continue;
            if (seen++ == *pick) {
                *pick = at + k;
                return 0;
            }
        }
    }
    *pick = seen;
    return 0;
}

/* Center the crop on a random foreground point, if there is one. */
static int centre(const struct random_opts *o, struct dnn_aug_run *run, int mask,
                  const int64_t *extent, int64_t *start, struct dnn_err *err)
{
    const struct dnn_array *array = &run->sample->col[mask];
    const int nspace = dnn_aug_nspace(&run->col[mask]);
    int64_t found = -1;

    DNN_TRY(find_foreground(o, array, &found, err));
    if (found == 0) return 0;
    found = dnn_draw_below(&run->draw, found);
    DNN_TRY(find_foreground(o, array, &found, err));
    for (int k = nspace - 1; k >= 0; k--) {
        int64_t n = array->shape.dim[k], at = found % n - extent[k] / 2;

        found /= n;
        start[k] = at < 0 ? 0 : at > n - extent[k] ? n - extent[k] : at;
    }
    return 0;
}

static int random_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                        struct dnn_err *err)
{
    const struct random_opts *o = step->opts;
    const int first = dnn_aug_first(step, run);
    int64_t extent[DNN_MAX_SPACE], start[DNN_MAX_SPACE] = {0};

    DNN_TRY(dnn_aug_extents(step, &o->size, &run->col[first], extent, err));
    for (int c = 0; c < run->ncols; c++)
        if (dnn_aug_touches(step, &run->col[c])) DNN_TRY(pad_to(run, c, extent, err));
    const double chance = dnn_draw_real(&run->draw, 0, 1);
    for (int k = 0; k < dnn_aug_nspace(&run->col[first]); k++)
        start[k] = dnn_draw_below(&run->draw,
                                  run->sample->col[first].shape.dim[k] - extent[k] + 1);
    if (chance < o->foreground)
        DNN_TRY(centre(o, run, mask_of(run->ncols, run->col), extent, start, err));
    for (int c = 0; c < run->ncols; c++)
        if (dnn_aug_touches(step, &run->col[c]))
            DNN_TRY(crop(run, c, start, extent, err));
    return 0;
}

const struct dnn_aug_kind dnn_aug_random_crop = {
    .name = "random_crop",
    .params = "{\"size\": [D, H, W], \"foreground\": 0.5, \"class\": 2, \"pad\": true}",
    .help = "crop a random part of this size, anywhere or around a foreground voxel",
    .main = "size",
    .random = true,
    .size = sizeof(struct random_opts),
    .fields = random_fields,
    .columns = random_columns,
    .apply = random_apply,
};
