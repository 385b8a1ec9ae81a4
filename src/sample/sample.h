/* sample.h - one sample: a few named arrays, as files hold them and networks take them.
 *
 * Everything here is in the order the rest of the toolkit computes in: spatial axes
 * first, channels last.  An image of 28 x 28 grey pixels is 28x28x1, a volume
 * DxHxWxC, its mask DxHxWx1; a label is a scalar; a vector of numbers has one axis.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SAMPLE_SAMPLE_H
#define DNN_SAMPLE_SAMPLE_H

#include "base/choice.h"
#include "base/err.h"
#include "base/shape.h"
#include "base/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNN_MAX_COLUMNS = 16, DNN_MAX_SPACE = 3 };

/* What the numbers of a column mean, hence what may be done with them. */
enum dnn_kind {
    DNN_KIND_IMAGE, /* measured values on 1 to 3 spatial axes, channels last          */
    DNN_KIND_MASK,  /* a class number per point: spatial axes and one channel; is never
                     * interpolated                                                   */
    DNN_KIND_LABEL, /* one class number: a scalar                                     */
    DNN_KIND_VALUES /* a vector of numbers without space (regression, tables, one-hot)
                     */
};

/* Who uses it. */
enum dnn_column_role {
    DNN_ROLE_INPUT,  /* the network                                                  */
    DNN_ROLE_TARGET, /* the loss                                                     */
    DNN_ROLE_EXTRA   /* whoever comes after: an affine matrix, an identifier         */
};

extern const struct dnn_choice dnn_kind_choices[]; /* image, mask, label, values */
extern const struct dnn_choice dnn_role_choices[]; /* input, target, extra       */

/* An array that owns its numbers.  All zero is an empty one. */
struct dnn_array {
    enum dnn_dtype type;
    struct dnn_shape shape;
    double spacing[DNN_MAX_SPACE]; /* of the spatial axes, in the file's unit (mm);
                                    * 0: not known                                   */
    void *data;                    /* owned; dnn_array_free()                        */
    size_t room;                   /* bytes there are                                */
};

/* Make it hold an array of this type and shape, whose content is then undefined;
 * memory it has is used again.  DNN_ENOMEM with numbers if there is not enough.
 * Spacing becomes unknown. */
int dnn_array_make(struct dnn_array *array, enum dnn_dtype type,
                   const struct dnn_shape *shape, struct dnn_err *err);
void dnn_array_free(struct dnn_array *array); /* leaves an empty one */
int64_t dnn_array_count(const struct dnn_array *array);
size_t dnn_array_bytes(const struct dnn_array *array);
/* out becomes a copy; out must not be array. */
int dnn_array_copy(const struct dnn_array *array, struct dnn_array *out,
                   struct dnn_err *err);
/* Give a's content to b and b's to a. */
void dnn_array_swap(struct dnn_array *a, struct dnn_array *b);

/* count numbers of one type as another.  Integers that do not fit, and reals that are
 * no such integer, are refused if strict, else rounded to nearest (ties to even) and
 * clipped; NaN becomes 0 then.  Reals are rounded to nearest; strict refuses those that
 * would become infinite.  The first that does not fit is named by its index.  to may be
 * from if its numbers are not larger. */
int dnn_convert(const void *from, enum dnn_dtype type, void *to, enum dnn_dtype as,
                int64_t count, bool strict, struct dnn_err *err);
/* The array itself, in place (memory is exchanged where sizes differ). */
int dnn_array_convert(struct dnn_array *array, enum dnn_dtype as, bool strict,
                      struct dnn_err *err);

/* Channels first -> last for an array with ndim axes (ndim >= 2), in place. */
int dnn_array_channels_last(struct dnn_array *array, struct dnn_err *err);

/* What is true of a column in every sample. */
struct dnn_column {
    char name[64]; /* "input", "target", "age"...: [A-Za-z0-9_.-], unique            */
    enum dnn_column_role role;
    enum dnn_kind kind;
    enum dnn_dtype type;
    struct dnn_shape shape; /* of one sample; DNN_UNKNOWN where samples differ or where
                             * nobody has looked yet                                 */
    int64_t classes;        /* labels and masks; 0: not known                        */
    const char *const *class_name; /* one for each class, or NULL; lives as long as
                                    * whoever made the column                        */
};

struct dnn_sample {
    int ncols;
    struct dnn_array col[DNN_MAX_COLUMNS]; /* in the order of the columns            */
};

void dnn_sample_free(struct dnn_sample *sample); /* leaves an empty one */

#endif
