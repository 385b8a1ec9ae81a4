/* augment_impl.h - interface of the transforms of augment.h.
 *
 * Each family has a file (augment_extent.c, augment_geometry.c ...); augment_kinds.c
 * lists all transforms.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_AUGMENT_IMPL_H
#define DNN_TRANSFORM_AUGMENT_IMPL_H

#include "base/draw.h"
#include "base/mem.h"
#include "transform/augment.h"
#include "transform/transform.h"
#include "transform/transform_impl.h"

enum dnn_aug_side { DNN_AUG_BOTH, DNN_AUG_INPUTS, DNN_AUG_TARGETS };

/* Which columns of its side a transform changes. */
enum dnn_aug_scope {
    DNN_AUG_SPACE,        /* images and masks: geometry                             */
    DNN_AUG_IMAGES,       /* images: units of values                                */
    DNN_AUG_INPUT_IMAGES, /* input images, or target images if listed for targets   */
    DNN_AUG_ALL           /* all columns                                            */
};

/* A transform of the configuration. */
struct dnn_aug_step {
    const struct dnn_aug_kind *kind;
    enum dnn_aug_side side;
    const void *opts;  /* as defined by the table of the kind                         */
    const char *where; /* "train.json:4: transforms[2].rotate: ", for messages        */
    uint64_t stream;   /* stream of random numbers                                    */
};

/* A sample that is being transformed. */
struct dnn_aug_run {
    int ncols;
    struct dnn_column col[DNN_MAX_COLUMNS]; /* with the sample's types and shapes */
    struct dnn_sample *sample, *partner;
    struct dnn_draw draw;
    struct dnn_augment_scratch *scratch;
};

struct dnn_augment_scratch {
    struct dnn_array spare; /* result of a transform, then swapped with the sample    */
    struct dnn_array field[2];
};

struct dnn_aug_kind {
    const char *name, *params, *help;
    const char *main; /* key for a value that is not an object, or NULL               */
    enum dnn_aug_scope scope;
    bool random;
    size_t size; /* of its options                                                    */
    const struct dnn_field *fields;
    /* Check the columns and change them, in place, to those after the transform.
     * Extents may be unknown.  NULL: columns do not change. */
    int (*columns)(const struct dnn_aug_step *step, int ncols, struct dnn_column *col,
                   struct dnn_err *err);
    /* Transform a sample whose columns were accepted by columns(). */
    int (*apply)(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                 struct dnn_err *err);
};

/* All transforms, in the order of the documentation; ends with NULL. */
extern const struct dnn_aug_kind *const dnn_aug_kinds[];

extern const struct dnn_aug_kind dnn_aug_resize, dnn_aug_center_crop,
    dnn_aug_jitter_crop, dnn_aug_random_crop, dnn_aug_random_horizontal_flip,
    dnn_aug_random_vertical_flip, dnn_aug_random_flip, dnn_aug_random_zoom,
    dnn_aug_rotate, dnn_aug_random_rotate, dnn_aug_elastic, dnn_aug_convert_color,
    dnn_aug_normalize, dnn_aug_gamma, dnn_aug_brightness, dnn_aug_contrast,
    dnn_aug_noise, dnn_aug_cutout, dnn_aug_random_patches, dnn_aug_mixup;

/* Whether a step changes this column. */
bool dnn_aug_touches(const struct dnn_aug_step *step, const struct dnn_column *col);
/* The first column that a step changes; there must be one. */
int dnn_aug_first(const struct dnn_aug_step *step, const struct dnn_aug_run *run);
/* The number of spatial axes of an image or a mask. */
int dnn_aug_nspace(const struct dnn_column *col);
enum dnn_interp dnn_aug_interp(const struct dnn_column *col);

/* Fail with the location of the step in front of the message. */
int dnn_aug_fail(const struct dnn_aug_step *step, struct dnn_err *err, const char *fmt,
                 ...) DNN_PRINTF(3, 4);

/* Set extents from a list of one number for all axes of a column, or one per axis. */
int dnn_aug_extents(const struct dnn_aug_step *step, const struct dnn_list *list,
                    const struct dnn_column *col, int64_t *extent, struct dnn_err *err);
/* Check that the known extents are equal in all columns that the step changes. */
int dnn_aug_alike(const struct dnn_aug_step *step, int ncols,
                  const struct dnn_column *col, struct dnn_err *err);
/* columns() of transforms that only change the type, to f32. */
int dnn_aug_become_f32(const struct dnn_aug_step *step, int ncols,
                       struct dnn_column *col, struct dnn_err *err);
/* Convert the array of a column to f32. */
int dnn_aug_floats(struct dnn_aug_run *run, int c, float **out, int64_t *count,
                   struct dnn_err *err);

#endif
