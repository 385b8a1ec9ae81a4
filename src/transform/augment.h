/* augment.h - transforms applied to a sample each time it is read (data augmentation).
 *
 * Includes the transforms of rmldnn, with the same names and parameters, also in 3D.
 * Random numbers depend only on (seed, epoch, sample), not on the number of ranks or
 * threads, nor on the order in which samples are read.
 *
 * Extents are in the order of the array: [H, W] or [D, H, W].  Geometric transforms
 * change images and masks, masks with nearest-neighbor interpolation; normalize and
 * convert_color change images, never masks; gamma, brightness, contrast, noise and
 * cutout change input images (and target images only if listed for targets).  mixup
 * converts labels to vectors, and masks to one channel per class.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_AUGMENT_H
#define DNN_TRANSFORM_AUGMENT_H

#include "base/field.h"
#include "sample/sample.h"

struct dnn_augment; /* a list of transforms, ready to be applied */

/* Local.  Read lists as in rmldnn: [{"resize": [64, 64]}, {"random_rotate": 15}]; the
 * name alone stands for a transform without parameters.  The lists are for inputs and
 * targets together (applied first), for inputs, and for targets; each may be absent
 * (dnn_jobj of type DNN_J_ABSENT).  The caller owns *out. */
int dnn_augment_read(const struct dnn_jobj *both, const struct dnn_jobj *inputs,
                     const struct dnn_jobj *targets, struct dnn_augment **out,
                     struct dnn_err *err);
void dnn_augment_free(struct dnn_augment *augment); /* NULL is fine */

/* The columns after the transforms (resize and crop change shapes; types become f32
 * where values change).  Errors name the transform. */
int dnn_augment_columns(const struct dnn_augment *augment, int ncols,
                        const struct dnn_column *in, struct dnn_column *out,
                        struct dnn_err *err);

/* Whether any transform is random; whether there is mixup, which mixes in the sample
 * with index dnn_augment_partner(). */
bool dnn_augment_random(const struct dnn_augment *augment);
/* Remove all random transforms, for validation and test data. */
void dnn_augment_drop_random(struct dnn_augment *augment);
bool dnn_augment_mixes(const struct dnn_augment *augment);
int64_t dnn_augment_partner(const struct dnn_augment *augment, uint64_t seed,
                            int64_t epoch, int64_t index, int64_t count);

/* Apply to a sample, in place.  partner: the second sample as it was read (its
 * transforms are applied by this function), or NULL without mixup.  Thread-safe with
 * one scratch per thread. */
struct dnn_augment_scratch;
struct dnn_augment_scratch *dnn_augment_scratch_make(void);
void dnn_augment_scratch_free(struct dnn_augment_scratch *scratch);
int dnn_augment_apply(const struct dnn_augment *augment, int ncols,
                      const struct dnn_column *cols, uint64_t seed, int64_t epoch,
                      int64_t index, struct dnn_sample *sample,
                      struct dnn_sample *partner, struct dnn_augment_scratch *scratch,
                      struct dnn_err *err);

/* Name, parameters and a one-line description of transform number index, for the
 * documentation; NULL past the end. */
const char *dnn_augment_info(int index, const char **params, const char **help);
/* The keys of its parameters given as an object; NULL past the end. */
const struct dnn_field *dnn_augment_fields(int index);

#endif
