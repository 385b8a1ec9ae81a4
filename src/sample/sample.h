/* sample.h - one sample: a few named arrays.
 *
 * The axes are in the order of the rest of the toolkit: spatial axes first, channels
 * last.  A grey image of 28 x 28 pixels is 28x28x1, a volume DxHxWxC, its mask DxHxWx1;
 * a label is a scalar; a vector has one axis.
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

/* The meaning of a column's values; it determines the possible transformations. */
enum dnn_kind {
    DNN_KIND_IMAGE, /* measured values on 1 to 3 spatial axes, channels last          */
    DNN_KIND_MASK,  /* a class number per point: spatial axes and one channel; never
                     * interpolated                                                   */
    DNN_KIND_LABEL, /* one class number: a scalar                                     */
    DNN_KIND_VALUES /* a vector without spatial axes (regression, tables, one-hot)    */
};

/* The use of a column. */
enum dnn_column_role {
    DNN_ROLE_INPUT,  /* the network                                                  */
    DNN_ROLE_TARGET, /* the loss                                                     */
    DNN_ROLE_EXTRA   /* other programs: an affine matrix, an identifier              */
};

extern const struct dnn_choice dnn_kind_choices[]; /* image, mask, label, values */
extern const struct dnn_choice dnn_role_choices[]; /* input, target, extra       */

/* An array that owns its data.  All zero: empty. */
struct dnn_array {
    enum dnn_dtype type;
    struct dnn_shape shape;
    double spacing[DNN_MAX_SPACE]; /* of the spatial axes, in the file's unit (mm);
                                    * 0: unknown                                     */
    void *data;                    /* owned; dnn_array_free()                        */
    size_t capacity;               /* bytes allocated                                */
};

/* Where the points of an array are: its point i along axis d is point first[d] + i *
 * step[d] of the file. */
struct dnn_position {
    double spacing[DNN_MAX_SPACE]; /* of the array's points, in the file's unit; 0:
                                    * unknown                                        */
    double first[DNN_MAX_SPACE], step[DNN_MAX_SPACE]; /* step 0: unknown             */
};

/* Set type and shape; the content is then undefined and the spacing unknown.  Its
 * memory is reused if it is large enough.  DNN_ENOMEM with the size if there is not
 * enough memory. */
int dnn_array_make(struct dnn_array *array, enum dnn_dtype type,
                   const struct dnn_shape *shape, struct dnn_err *err);
void dnn_array_free(struct dnn_array *array); /* it is then empty */
int64_t dnn_array_count(const struct dnn_array *array);
size_t dnn_array_bytes(const struct dnn_array *array);
/* Copy to out, which must not be array. */
int dnn_array_copy(const struct dnn_array *array, struct dnn_array *out,
                   struct dnn_err *err);
/* Exchange the contents. */
void dnn_array_swap(struct dnn_array *a, struct dnn_array *b);

/* Convert count elements to another type.  To integers: values out of range, and reals
 * that are not integers, are an error if strict; else they are rounded to nearest (ties
 * to even) and clipped, and NaN becomes 0.  To reals: rounded to nearest; values that
 * would become infinite are an error if strict.  The message has the index of the first
 * such element.  to may be equal to from if its elements are not larger. */
int dnn_convert(const void *from, enum dnn_dtype type, void *to, enum dnn_dtype as,
                int64_t count, bool strict, struct dnn_err *err);
/* Convert an array in place; its data may be reallocated.  On failure it is
 * unchanged. */
int dnn_array_convert(struct dnn_array *array, enum dnn_dtype as, bool strict,
                      struct dnn_err *err);

/* Move the channels from the first to the last of 2 or more axes, in place. */
int dnn_array_channels_last(struct dnn_array *array, struct dnn_err *err);

/* ---- boxes: extent[d] elements from start[d] along each axis ---- */

/* Copy a box of elements of size bytes between arrays with these strides, in bytes. */
void dnn_box_copy(int ndim, const int64_t *extent, size_t size, const void *from,
                  const int64_t *from_stride, void *to, const int64_t *to_stride);
/* The strides of a dense array, in bytes. */
void dnn_box_strides(int ndim, const int64_t *dim, size_t size, int64_t *stride);
/* Copy a box, which must be within the array, to out, which must not be array. */
int dnn_array_box(const struct dnn_array *array, const int64_t *start,
                  const int64_t *extent, struct dnn_array *out, struct dnn_err *err);

/* Properties of a column, the same in all samples. */
struct dnn_column {
    char name[64]; /* "input", "target", "age"...: [A-Za-z0-9_.-], unique            */
    enum dnn_column_role role;
    enum dnn_kind kind;
    enum dnn_dtype type;
    struct dnn_shape shape; /* of one sample; DNN_UNKNOWN for extents that differ or
                             * are not known yet                                     */
    int64_t classes;        /* labels and masks; 0: unknown                          */
    const char *const *class_name; /* for each class, or NULL; borrowed from the owner
                                    * of the column                                  */
};

struct dnn_sample {
    int ncols;
    struct dnn_array col[DNN_MAX_COLUMNS]; /* in the order of the columns            */
};

void dnn_sample_free(struct dnn_sample *sample); /* it is then empty */

#endif
