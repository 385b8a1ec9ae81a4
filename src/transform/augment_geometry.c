/* augment_geometry.c - transforms that move points: flips, rotations, zoom.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/augment_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- flips ---- */

static int flip(struct dnn_aug_run *run, int c, unsigned axes, struct dnn_err *err)
{
    if (axes == 0) return 0;
    DNN_TRY(dnn_flip(&run->sample->col[c], axes, &run->scratch->spare, err));
    dnn_array_swap(&run->sample->col[c], &run->scratch->spare);
    return 0;
}

struct flip_opts {
    double p;
    struct dnn_list axes;
};

#define AT(f) offsetof(struct flip_opts, f)
static const struct dnn_field flip_fields[] = {
    {"p",  DNN_F_REAL, AT(p), "0.5", 0, 1, NULL, "probability", NULL},
    {NULL, 0,          0,     NULL,  0, 0, NULL, NULL,          NULL},
};

static int horizontal_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                            struct dnn_err *err)
{
    const struct flip_opts *o = step->opts;

    if (dnn_draw_real(&run->draw, 0, 1) >= o->p) return 0;
    for (int c = 0; c < run->ncols; c++)
        if (dnn_aug_touches(step, &run->col[c]))
            DNN_TRY(flip(run, c, 1u << (dnn_aug_nspace(&run->col[c]) - 1), err));
    return 0;
}

const struct dnn_aug_kind dnn_aug_random_horizontal_flip = {
    .name = "random_horizontal_flip",
    .params = "p",
    .help = "flip left and right (the last spatial axis) with this probability",
    .main = "p",
    .random = true,
    .size = sizeof(struct flip_opts),
    .fields = flip_fields,
    .apply = horizontal_apply,
};

static int planes_columns(const struct dnn_aug_step *step, int ncols,
                          struct dnn_column *col, struct dnn_err *err)
{
    for (int c = 0; c < ncols; c++)
        if (dnn_aug_touches(step, &col[c]) && dnn_aug_nspace(&col[c]) < 2)
            return dnn_aug_fail(step, err,
                                "'%s' has one spatial axis; at least 2 are needed",
                                col[c].name);
    return 0;
}

static int vertical_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                          struct dnn_err *err)
{
    const struct flip_opts *o = step->opts;

    if (dnn_draw_real(&run->draw, 0, 1) >= o->p) return 0;
    for (int c = 0; c < run->ncols; c++)
        if (dnn_aug_touches(step, &run->col[c]))
            DNN_TRY(flip(run, c, 1u << (dnn_aug_nspace(&run->col[c]) - 2), err));
    return 0;
}

const struct dnn_aug_kind dnn_aug_random_vertical_flip = {
    .name = "random_vertical_flip",
    .params = "p",
    .help = "flip top and bottom (the last but one spatial axis) with this probability",
    .main = "p",
    .random = true,
    .size = sizeof(struct flip_opts),
    .fields = flip_fields,
    .columns = planes_columns,
    .apply = vertical_apply,
};

static const struct dnn_sub list = {.min = 1, .max = DNN_MAX_SPACE, .single = true};
static const struct dnn_field flips_fields[] = {
    {"p",    DNN_F_REAL, AT(p),    "0.5",  0, 1, NULL, "probability, for each axis", NULL },
    {"axes", DNN_F_INTS, AT(axes), "null", 0, 2, NULL,
     "spatial axes, the first is 0; null: all",                                      &list},
    {NULL,   0,          0,        NULL,   0, 0, NULL, NULL,                         NULL },
};
#undef AT

static int flips_columns(const struct dnn_aug_step *step, int ncols,
                         struct dnn_column *col, struct dnn_err *err)
{
    const struct flip_opts *o = step->opts;

    for (int c = 0; c < ncols; c++)
        for (int64_t k = 0; dnn_aug_touches(step, &col[c]) && k < o->axes.count; k++)
            if (o->axes.ints[k] >= dnn_aug_nspace(&col[c]))
                return dnn_aug_fail(
                    step, err, "'%s' has no spatial axis %" PRId64 ", only 0 to %d",
                    col[c].name, o->axes.ints[k], dnn_aug_nspace(&col[c]) - 1);
    return 0;
}

static int flips_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                       struct dnn_err *err)
{
    const struct flip_opts *o = step->opts;
    unsigned allowed = o->axes.count == 0 ? ~0u : 0, drawn = 0;

    for (int64_t k = 0; k < o->axes.count; k++)
        allowed |= 1u << o->axes.ints[k];
    for (int k = 0; k < DNN_MAX_SPACE; k++)
        if (dnn_draw_real(&run->draw, 0, 1) < o->p) drawn |= 1u << k;
    for (int c = 0; c < run->ncols; c++)
        if (dnn_aug_touches(step, &run->col[c]))
            DNN_TRY(flip(run, c,
                         drawn & allowed & ((1u << dnn_aug_nspace(&run->col[c])) - 1),
                         err));
    return 0;
}

const struct dnn_aug_kind dnn_aug_random_flip = {
    .name = "random_flip",
    .params = "{\"axes\": [0, 1, 2], \"p\": 0.5}",
    .help = "flip along each of the axes with this probability",
    .main = "p",
    .random = true,
    .size = sizeof(struct flip_opts),
    .fields = flips_fields,
    .columns = flips_columns,
    .apply = flips_apply,
};

/* ---- rotations ---- */

struct rotate_opts {
    struct dnn_list angle;
    double fill, p;
};

#define AT(f) offsetof(struct rotate_opts, f)
#define ANGLE                                                                          \
    {"angle",                                                                          \
     DNN_F_REALS,                                                                      \
     AT(angle),                                                                        \
     NULL,                                                                             \
     -360,                                                                             \
     360,                                                                              \
     NULL,                                                                             \
     "degrees, clockwise in the plane of the last two axes; or three, one for each "   \
     "axis of a volume, applied in turn",                                              \
     &list}
#define FILL                                                                           \
    {"fill", DNN_F_REAL, AT(fill), "0",                                                \
     0,      0,          NULL,     "images: fill value outside; masks get 0",          \
     NULL}
static const struct dnn_field rotate_fields[] = {
    ANGLE,
    FILL,
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};
static const struct dnn_field random_rotate_fields[] = {
    ANGLE,
    FILL,
    {"p",  DNN_F_REAL, AT(p), "1",  0, 1, NULL, "probability", NULL},
    {NULL, 0,          0,     NULL, 0, 0, NULL, NULL,          NULL},
};
#undef AT

static int rotate_columns(const struct dnn_aug_step *step, int ncols,
                          struct dnn_column *col, struct dnn_err *err)
{
    const struct rotate_opts *o = step->opts;

    DNN_TRY(planes_columns(step, ncols, col, err));
    for (int c = 0; c < ncols; c++)
        if (dnn_aug_touches(step, &col[c]) && o->angle.count != 1 &&
            (o->angle.count != 3 || dnn_aug_nspace(&col[c]) != 3))
            return dnn_aug_fail(
                step, err, "'%s' has %d spatial axes; give one angle%s, not %" PRId64,
                col[c].name, dnn_aug_nspace(&col[c]),
                dnn_aug_nspace(&col[c]) == 3 ? " or three" : "", o->angle.count);
    return 0;
}

/* Exact for multiples of 90 degrees, which map points to points. */
static void cos_sin(double degrees, double *cosine, double *sine)
{
    static const double quarter[4][2] = {
        {1,  0 },
        {0,  1 },
        {-1, 0 },
        {0,  -1}
    };
    const double turns = degrees / 90;

    if (turns == floor(turns)) {
        int k = (int)(((int64_t)turns % 4 + 4) % 4);

        *cosine = quarter[k][0];
        *sine = quarter[k][1];
    } else {
        *cosine = cos(degrees * (3.14159265358979323846 / 180));
        *sine = sin(degrees * (3.14159265358979323846 / 180));
    }
}

/* matrix = matrix * R, where R maps points of the result to the source: the inverse of
 * a rotation in the plane of axes i (down) and j (right), which is clockwise. */
static void inverse_rotate(double m[3][3], int i, int j, double degrees)
{
    double c, s;

    cos_sin(degrees, &c, &s);
    for (int r = 0; r < 3; r++) {
        double a = m[r][i], b = m[r][j];

        m[r][i] = a * c + b * s;
        m[r][j] = b * c - a * s;
    }
}

/* If the spacing is known, rotate in physical space instead of in voxel coordinates. */
static void use_spacing(const struct dnn_array *array, int nspace, double m[3][3])
{
    for (int k = 0; k < nspace; k++)
        if (!(array->spacing[k] > 0)) return;
    for (int r = 0; r < nspace; r++)
        for (int c = 0; c < nspace; c++)
            if (r != c) m[r][c] *= array->spacing[c] / array->spacing[r];
}

static int rotate(const struct dnn_aug_step *step, struct dnn_aug_run *run, int n,
                  const double *angle, double fill, struct dnn_err *err)
{
    for (int c = 0; c < run->ncols; c++) {
        struct dnn_array *array = &run->sample->col[c];
        const int nspace = dnn_aug_nspace(&run->col[c]);
        struct dnn_warp warp = {
            .matrix = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
            .how = dnn_aug_interp(&run->col[c]),
            .fill = run->col[c].kind == DNN_KIND_MASK ? 0 : fill
        };

        if (!dnn_aug_touches(step, &run->col[c])) continue;
        if (n == 1) {
            inverse_rotate(warp.matrix, nspace - 2, nspace - 1, angle[0]);
        } else {
            inverse_rotate(warp.matrix, 1, 2, angle[0]);
            inverse_rotate(warp.matrix, 0, 2, angle[1]);
            inverse_rotate(warp.matrix, 0, 1, angle[2]);
        }
        use_spacing(array, nspace, warp.matrix);
        DNN_TRY(dnn_warp(array, &warp, &run->scratch->spare, err));
        dnn_array_swap(array, &run->scratch->spare);
    }
    return 0;
}

static int rotate_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                        struct dnn_err *err)
{
    const struct rotate_opts *o = step->opts;

    return rotate(step, run, (int)o->angle.count, o->angle.reals, o->fill, err);
}

const struct dnn_aug_kind dnn_aug_rotate = {
    .name = "rotate",
    .params = "angle, or three of them for volumes",
    .help = "rotate clockwise by this angle in degrees",
    .main = "angle",
    .size = sizeof(struct rotate_opts),
    .fields = rotate_fields,
    .columns = rotate_columns,
    .apply = rotate_apply,
};

static int random_rotate_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                               struct dnn_err *err)
{
    const struct rotate_opts *o = step->opts;
    double angle[DNN_MAX_SPACE];

    if (dnn_draw_real(&run->draw, 0, 1) >= o->p) return 0;
    for (int64_t k = 0; k < o->angle.count; k++)
        angle[k] = dnn_draw_real(&run->draw, -o->angle.reals[k], o->angle.reals[k]);
    return rotate(step, run, (int)o->angle.count, angle, o->fill, err);
}

const struct dnn_aug_kind dnn_aug_random_rotate = {
    .name = "random_rotate",
    .params = "angle, or three of them for volumes",
    .help = "rotate by a random angle of at most this many degrees in either direction",
    .main = "angle",
    .random = true,
    .size = sizeof(struct rotate_opts),
    .fields = random_rotate_fields,
    .columns = rotate_columns,
    .apply = random_rotate_apply,
};

/* ---- random_zoom ---- */

struct zoom_opts {
    double amount;
};

static const struct dnn_field zoom_fields[] = {
    {"amount", DNN_F_REAL, offsetof(struct zoom_opts, amount), NULL, 0, 1, NULL,
     "maximum c; all sides lose c times half the size", NULL},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

/* The middle 1 - c of every extent is resized to the complete extent. */
static int zoom_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                      struct dnn_err *err)
{
    const struct zoom_opts *o = step->opts;
    const double keep = 1 - dnn_draw_real(&run->draw, 0, o->amount);

    for (int c = 0; c < run->ncols; c++) {
        struct dnn_warp warp = {
            .matrix = {{keep, 0, 0}, {0, keep, 0}, {0, 0, keep}},
            .how = dnn_aug_interp(&run->col[c])
        };

        if (!dnn_aug_touches(step, &run->col[c])) continue;
        DNN_TRY(dnn_warp(&run->sample->col[c], &warp, &run->scratch->spare, err));
        dnn_array_swap(&run->sample->col[c], &run->scratch->spare);
    }
    return 0;
}

const struct dnn_aug_kind dnn_aug_random_zoom = {
    .name = "random_zoom",
    .params = "Cmax",
    .help = "zoom into the center: cut c times half the size from all sides, c random "
            "below Cmax, and resize back",
    .main = "amount",
    .random = true,
    .size = sizeof(struct zoom_opts),
    .fields = zoom_fields,
    .apply = zoom_apply,
};
