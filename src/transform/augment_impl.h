/* augment_impl.h - what the transforms of augment.h share.
 *
 * One file per family (augment_extent.c, augment_geometry.c ...), one table of kinds
 * in augment_kinds.c.
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

/* Which columns of its side a kind changes. */
enum dnn_aug_reach {
    DNN_AUG_SPACE,    /* images and masks: where things are                           */
    DNN_AUG_IMAGES,   /* images: in which units they are                              */
    DNN_AUG_MEASURED, /* images, but of both sides only the inputs: how well they were
                       * measured                                                     */
    DNN_AUG_ALL       /* whatever there is                                            */
};

/* A transform as the user wrote it. */
struct dnn_aug_step {
    const struct dnn_aug_kind *kind;
    enum dnn_aug_side side;
    const void *opts;  /* as the kind's table says                                    */
    const char *where; /* "job.json:4: transforms[2].rotate: ", for messages          */
    uint64_t stream;   /* its own random numbers                                      */
};

/* A sample under way. */
struct dnn_aug_run {
    int ncols;
    struct dnn_column col[DNN_MAX_COLUMNS]; /* with the sample's own types and shapes */
    struct dnn_sample *sample, *partner;
    struct dnn_draw draw;
    struct dnn_augment_scratch *scratch;
};

struct dnn_augment_scratch {
    struct dnn_array spare; /* what a change is made in, before it is exchanged       */
    struct dnn_array field[2];
};

struct dnn_aug_kind {
    const char *name, *params, *help;
    const char *main; /* the key that a value without an object is for, or NULL       */
    enum dnn_aug_reach reach;
    bool random;
    size_t size; /* of its options                                                    */
    const struct dnn_field *fields;
    /* The columns afterwards, in place; refuses what cannot work.  Extents may be
     * unknown.  NULL: nothing about them changes. */
    int (*columns)(const struct dnn_aug_step *step, int ncols, struct dnn_column *col,
                   struct dnn_err *err);
    /* With columns that columns() accepted. */
    int (*apply)(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                 struct dnn_err *err);
};

/* The table, in the manual's order; ends with a NULL name. */
extern const struct dnn_aug_kind *const dnn_aug_kinds[];

extern const struct dnn_aug_kind dnn_aug_resize, dnn_aug_center_crop,
    dnn_aug_jitter_crop, dnn_aug_random_crop, dnn_aug_random_horizontal_flip,
    dnn_aug_random_vertical_flip, dnn_aug_random_flip, dnn_aug_random_zoom,
    dnn_aug_rotate, dnn_aug_random_rotate, dnn_aug_elastic, dnn_aug_convert_color,
    dnn_aug_normalize, dnn_aug_gamma, dnn_aug_brightness, dnn_aug_contrast,
    dnn_aug_noise, dnn_aug_cutout, dnn_aug_random_patches, dnn_aug_mixup;

/* Whether a step changes this column. */
bool dnn_aug_touches(const struct dnn_aug_step *step, const struct dnn_column *col);
/* The first column it changes; there is one. */
int dnn_aug_first(const struct dnn_aug_step *step, const struct dnn_aug_run *run);
/* Spatial axes of an image or a mask. */
int dnn_aug_nspace(const struct dnn_column *col);
enum dnn_interp dnn_aug_interp(const struct dnn_column *col);

/* Fail with the step's place in front. */
int dnn_aug_fail(const struct dnn_aug_step *step, struct dnn_err *err, const char *fmt,
                 ...) DNN_PRINTF(3, 4);

/* One number for all axes of a column, or one for each. */
int dnn_aug_extents(const struct dnn_aug_step *step, const struct dnn_list *list,
                    const struct dnn_column *col, int64_t *extent, struct dnn_err *err);
/* All columns the step changes have the same extents, as far as they are known. */
int dnn_aug_alike(const struct dnn_aug_step *step, int ncols,
                  const struct dnn_column *col, struct dnn_err *err);
/* columns() of kinds that make f32 of what they change, and nothing else. */
int dnn_aug_become_f32(const struct dnn_aug_step *step, int ncols,
                       struct dnn_column *col, struct dnn_err *err);
/* The array of a column, as f32. */
int dnn_aug_floats(struct dnn_aug_run *run, int c, float **out, int64_t *count,
                   struct dnn_err *err);

#endif
