/* augment_patches.c - erase boxes of inputs: cutout, and random_patches, whose target
 * is the content of the boxes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/augment_impl.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

struct opts {
    int64_t number;
    struct dnn_list size;
    double value;
};

static const struct dnn_sub axes = {.min = 1, .max = DNN_MAX_SPACE, .single = true};
#define AT(f) offsetof(struct opts, f)
#define SIZE                                                                           \
    {                                                                                  \
        "size",   DNN_F_INTS,                                                          \
        AT(size), NULL,                                                                \
        1,        DNN_GRID_LIMIT,                                                      \
        NULL,     "size of a box along all axes, or one per axis",                     \
        &axes}
static const struct dnn_field cutout_fields[] = {
    {"number", DNN_F_INT,  AT(number), "1",  0, 1 << 20, NULL, "boxes",      NULL},
    SIZE,
    {"value",  DNN_F_REAL, AT(value),  "0",  0, 0,       NULL, "fill value", NULL},
    {NULL,     0,          0,          NULL, 0, 0,       NULL, NULL,         NULL},
};
static const struct dnn_field patches_fields[] = {
    {"number", DNN_F_INT, AT(number), NULL, 0, 1 << 20, NULL, "boxes", NULL},
    SIZE,
    {NULL,     0,         0,          NULL, 0, 0,       NULL, NULL,    NULL},
};

static int check_size(const struct dnn_aug_step *step, const struct dnn_column *col,
                      int64_t *size, struct dnn_err *err)
{
    const struct opts *o = step->opts;

    DNN_TRY(dnn_aug_extents(step, &o->size, col, size, err));
    for (int k = 0; k < dnn_aug_nspace(col); k++)
        if (col->shape.dim[k] != DNN_UNKNOWN && col->shape.dim[k] < size[k])
            return dnn_aug_fail(step, err,
                                "'%s' has size %" PRId64
                                " along axis %d, smaller than the box size %" PRId64,
                                col->name, col->shape.dim[k], k, size[k]);
    return 0;
}

/* A random position of a box, as a fraction of the extents, equal in all columns. */
static void draw_box(struct dnn_aug_run *run, double part[DNN_MAX_SPACE])
{
    for (int k = 0; k < DNN_MAX_SPACE; k++)
        part[k] = dnn_draw_real(&run->draw, 0, 1);
}

/* How boxes are erased. */
struct box {
    float *data, *copy; /* the content of boxes is saved in copy, unless NULL */
    float value;
};

static void erase_row(const struct box *box, int64_t at, int64_t n)
{
    if (box->copy != NULL)
        for (int64_t k = at; k < at + n; k++)
            if (box->copy[k] == 0) box->copy[k] = box->data[k];
    for (int64_t k = at; k < at + n; k++)
        box->data[k] = box->value;
}

static void erase_box(const struct box *box, const struct dnn_shape *shape,
                      const int64_t *size, const double *part)
{
    const int nspace = shape->ndim - 1, skip = DNN_MAX_SPACE - nspace;
    int64_t n[DNN_MAX_SPACE] = {1, 1, 1}, start[DNN_MAX_SPACE] = {0};
    int64_t extent[DNN_MAX_SPACE] = {1, 1, 1};
    const int64_t channels = shape->dim[nspace];

    for (int k = 0; k < nspace; k++) {
        n[skip + k] = shape->dim[k];
        extent[skip + k] = size[k];
        start[skip + k] = (int64_t)(part[k] * (double)(shape->dim[k] - size[k] + 1));
    }
    for (int64_t z = start[0]; z < start[0] + extent[0]; z++)
        for (int64_t y = start[1]; y < start[1] + extent[1]; y++)
            erase_row(box, ((z * n[1] + y) * n[2] + start[2]) * channels,
                      extent[2] * channels);
}

/* ---- cutout ---- */

static int cutout_columns(const struct dnn_aug_step *step, int ncols,
                          struct dnn_column *col, struct dnn_err *err)
{
    int64_t size[DNN_MAX_SPACE];

    for (int c = 0; c < ncols; c++)
        if (dnn_aug_touches(step, &col[c]))
            DNN_TRY(check_size(step, &col[c], size, err));
    return dnn_aug_become_f32(step, ncols, col, err);
}

static int cutout_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                        struct dnn_err *err)
{
    const struct opts *o = step->opts;
    const struct dnn_draw start = run->draw;

    for (int c = 0; c < run->ncols; c++) {
        struct box box = {.value = (float)o->value};
        int64_t size[DNN_MAX_SPACE], count;

        if (!dnn_aug_touches(step, &run->col[c])) continue;
        DNN_TRY(check_size(step, &run->col[c], size, err));
        DNN_TRY(dnn_aug_floats(run, c, &box.data, &count, err));
        run->draw = start;
        for (int64_t b = 0; b < o->number; b++) {
            double part[DNN_MAX_SPACE];

            draw_box(run, part);
            erase_box(&box, &run->col[c].shape, size, part);
        }
    }
    return 0;
}

const struct dnn_aug_kind dnn_aug_cutout = {
    .name = "cutout",
    .params = "{\"number\": 4, \"size\": 8, \"value\": 0}",
    .help = "erase random boxes of the inputs",
    .scope = DNN_AUG_INPUT_IMAGES,
    .random = true,
    .size = sizeof(struct opts),
    .fields = cutout_fields,
    .columns = cutout_columns,
    .apply = cutout_apply,
};

/* ---- random_patches ---- */

static int find_column(int ncols, const struct dnn_column *col,
                       enum dnn_column_role role, bool image)
{
    for (int c = 0; c < ncols; c++)
        if (col[c].role == role && (!image || col[c].kind == DNN_KIND_IMAGE)) return c;
    return -1;
}

static int patches_columns(const struct dnn_aug_step *step, int ncols,
                           struct dnn_column *col, struct dnn_err *err)
{
    const int from = find_column(ncols, col, DNN_ROLE_INPUT, true);
    const int to = find_column(ncols, col, DNN_ROLE_TARGET, false);
    int64_t size[DNN_MAX_SPACE];

    if (step->side != DNN_AUG_BOTH)
        return dnn_aug_fail(step, err,
                            "list it under \"transforms\", for inputs and targets "
                            "together: it makes targets of inputs");
    if (from < 0) return dnn_aug_fail(step, err, "there is no image to cut from");
    if (to < 0) return dnn_aug_fail(step, err, "there is no target for the patches");
    DNN_TRY(check_size(step, &col[from], size, err));
    col[from].type = col[to].type = DNN_F32;
    col[to].kind = DNN_KIND_IMAGE;
    col[to].shape = col[from].shape;
    col[to].classes = 0;
    col[to].class_name = NULL;
    return 0;
}

static int patches_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                         struct dnn_err *err)
{
    const struct opts *o = step->opts;
    const int from = find_column(run->ncols, run->col, DNN_ROLE_INPUT, true);
    const int to = find_column(run->ncols, run->col, DNN_ROLE_TARGET, false);
    struct dnn_array *in = &run->sample->col[from], *out = &run->sample->col[to];
    struct box box = {0};
    int64_t size[DNN_MAX_SPACE], count;

    DNN_TRY(check_size(step, &run->col[from], size, err));
    DNN_TRY(dnn_aug_floats(run, from, &box.data, &count, err));
    DNN_TRY(dnn_array_make(out, DNN_F32, &in->shape, err));
    memcpy(out->spacing, in->spacing, sizeof out->spacing);
    memset(out->data, 0, dnn_array_bytes(out));
    box.copy = out->data;
    for (int64_t b = 0; b < o->number; b++) {
        double part[DNN_MAX_SPACE];

        draw_box(run, part);
        erase_box(&box, &in->shape, size, part);
    }
    return 0;
}

const struct dnn_aug_kind dnn_aug_random_patches = {
    .name = "random_patches",
    .params = "{\"number\": 16, \"size\": 16}",
    .help =
        "erase random boxes of the input; the target is their content, and 0 elsewhere",
    .scope = DNN_AUG_INPUT_IMAGES,
    .random = true,
    .size = sizeof(struct opts),
    .fields = patches_fields,
    .columns = patches_columns,
    .apply = patches_apply,
};
