/* augment.h - changes made to a sample each time it is read, masks kept in step.
 *
 * rmldnn's transforms by their names and parameters, in 3D too, and more.  What is
 * random is a pure function of (seed, epoch, sample): neither ranks nor threads nor
 * the order of reading matter.
 *
 * Extents are given in the array's order: [H, W] or [D, H, W].  Transforms of geometry
 * change images and masks, masks by their nearest point; normalize and convert_color
 * change images, never masks; gamma, brightness, contrast, noise and cutout change
 * images of inputs (and of targets only if listed for these alone).  mixup makes
 * vectors of labels, and one channel per class of masks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRANSFORM_AUGMENT_H
#define DNN_TRANSFORM_AUGMENT_H

#include "base/field.h"
#include "sample/sample.h"

struct dnn_augment; /* a list of transforms, ready to be applied */

/* Local.  From lists as in rmldnn: [{"resize": [64, 64]}, {"random_rotate": 15}], also
 * with words in place of an object for those without parameters.  Each of the three
 * may be absent (dnn_jobj of type DNN_J_ABSENT): transforms of both sides together,
 * of inputs only, of targets only; together come first.  The caller owns *out. */
int dnn_augment_read(const struct dnn_jobj *both, const struct dnn_jobj *inputs,
                     const struct dnn_jobj *targets, struct dnn_augment **out,
                     struct dnn_err *err);
void dnn_augment_free(struct dnn_augment *augment); /* NULL is fine */

/* The columns after the transforms (shapes change by resize and crop, types become
 * f32 where values change).  Refuses what cannot work, with the transform named. */
int dnn_augment_columns(const struct dnn_augment *augment, int ncols,
                        const struct dnn_column *in, struct dnn_column *out,
                        struct dnn_err *err);

/* Whether anything depends on (epoch, sample), and whether a second sample is mixed
 * in (mixup), which is then sample number dnn_augment_partner(). */
bool dnn_augment_random(const struct dnn_augment *augment);
/* Remove all random transforms, for validation and test data. */
void dnn_augment_drop_random(struct dnn_augment *augment);
bool dnn_augment_mixes(const struct dnn_augment *augment);
int64_t dnn_augment_partner(const struct dnn_augment *augment, uint64_t seed,
                            int64_t epoch, int64_t index, int64_t count);

/* Apply to a sample, in place.  partner: the second sample, unchanged as it was read
 * (its own transforms are applied inside), or NULL if nothing is mixed.  Safe from
 * several threads; scratch is one per thread. */
struct dnn_augment_scratch;
struct dnn_augment_scratch *dnn_augment_scratch_make(void);
void dnn_augment_scratch_free(struct dnn_augment_scratch *scratch);
int dnn_augment_apply(const struct dnn_augment *augment, int ncols,
                      const struct dnn_column *cols, uint64_t seed, int64_t epoch,
                      int64_t index, struct dnn_sample *sample,
                      struct dnn_sample *partner, struct dnn_augment_scratch *scratch,
                      struct dnn_err *err);

/* Names, parameters and a line about each, for the manual; NULL past the end. */
const char *dnn_augment_info(int index, const char **params, const char **help);
/* The keys of the object that may stand for the parameters; NULL past the end. */
const struct dnn_field *dnn_augment_fields(int index);

#endif
