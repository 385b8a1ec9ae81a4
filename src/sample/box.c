/* box.c - parts of arrays and of samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "sample/source_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* ---- arrays ---- */

void dnn_box_strides(int ndim, const int64_t *dim, size_t size, int64_t *stride)
{
    int64_t step = (int64_t)size;

    for (int d = ndim - 1; d >= 0; d--) {
        stride[d] = step;
        step *= dim[d];
    }
}

static void copy_run(const char *from, int64_t from_step, char *to, int64_t to_step,
                     int64_t n, size_t size)
{
    if (from_step == (int64_t)size && to_step == (int64_t)size) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    for (; n > 0; n--, from += from_step, to += to_step)
        switch (size) { /* memcpy() of a known size is a move */
        case 1:
            *to = *from;
            break;
        case 2:
            memcpy(to, from, 2);
            break;
        case 4:
            memcpy(to, from, 4);
            break;
        case 8:
            memcpy(to, from, 8);
            break;
        default:
            memcpy(to, from, size);
        }
}

void dnn_box_copy(int ndim, const int64_t *extent, size_t size, const void *from,
                  const int64_t *from_stride, void *to, const int64_t *to_stride)
{
    int64_t at[DNN_MAX_DIMS] = {0}, a = 0, b = 0;

    /* Axes that are contiguous on both sides are one long element. */
    while (ndim > 0 && from_stride[ndim - 1] == (int64_t)size &&
           to_stride[ndim - 1] == (int64_t)size)
        size *= (size_t)extent[--ndim];
    if (ndim == 0) {
        memcpy(to, from, size);
        return;
    }
    int last = ndim - 1;
    for (int d = 0; d < ndim; d++)
        if (extent[d] <= 0) return;
    for (;;) {
        copy_run((const char *)from + a, from_stride[last], (char *)to + b,
                 to_stride[last], extent[last], size);
        int d = last - 1;
        for (; d >= 0; d--) {
            a += from_stride[d];
            b += to_stride[d];
            if (++at[d] < extent[d]) break;
            a -= from_stride[d] * at[d];
            b -= to_stride[d] * at[d];
            at[d] = 0;
        }
        if (d < 0) return;
    }
}

/* DNN_EDATA if a box is not within the shape or has no elements. */
static int check_box(const struct dnn_shape *shape, const int64_t *start,
                     const int64_t *extent, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];

    for (int d = 0; d < shape->ndim; d++)
        if (start[d] < 0 || extent[d] < 1 || start[d] > shape->dim[d] - extent[d])
            return dnn_fail(err, DNN_EDATA,
                            "a box of %" PRId64 " points from %" PRId64
                            " along axis %d is not within the shape %s",
                            extent[d], start[d], d,
                            dnn_shape_text(text, sizeof text, shape));
    return 0;
}

int dnn_array_box(const struct dnn_array *array, const int64_t *start,
                  const int64_t *extent, struct dnn_array *out, struct dnn_err *err)
{
    int64_t from[DNN_MAX_DIMS], to[DNN_MAX_DIMS];
    struct dnn_shape shape = array->shape;
    size_t size = dnn_dtype_size(array->type);
    const char *first = array->data;

    DNN_TRY(check_box(&array->shape, start, extent, err));
    for (int d = 0; d < shape.ndim; d++)
        shape.dim[d] = extent[d];
    DNN_TRY(dnn_array_make(out, array->type, &shape, err));
    memcpy(out->spacing, array->spacing, sizeof out->spacing);
    dnn_box_strides(shape.ndim, array->shape.dim, size, from);
    dnn_box_strides(shape.ndim, extent, size, to);
    for (int d = 0; d < shape.ndim; d++)
        first += start[d] * from[d];
    dnn_box_copy(shape.ndim, extent, size, first, from, out->data, to);
    return 0;
}

/* ---- the last complete sample ---- */

struct dnn_source_last {
    pthread_mutex_t lock;
    int64_t number; /* -1: none */
    struct dnn_sample sample;
};

void dnn_source_last_free(struct dnn_source_last *last)
{
    if (last == NULL) return;
    dnn_sample_free(&last->sample);
    pthread_mutex_destroy(&last->lock);
    dnn_free(last);
}

static struct dnn_source_last *last_of(const struct dnn_source *source)
{
    struct dnn_source *own = (struct dnn_source *)(uintptr_t)source;
    struct dnn_source_last *last = atomic_load(&own->last), *none = NULL;

    if (last != NULL) return last;
    last = dnn_alloc(sizeof *last);
    last->number = -1;
    pthread_mutex_init(&last->lock, NULL);
    if (atomic_compare_exchange_strong(&own->last, &none, last)) return last;
    dnn_source_last_free(last); /* another thread was faster */
    return none;
}

/* Read sample i unless it was the last one; the caller holds the lock. */
static int read_whole(const struct dnn_source *source, int64_t i,
                      struct dnn_source_last *last, struct dnn_err *err)
{
    if (last->number == i) return 0;
    last->number = -1;
    DNN_TRY(dnn_source_read(source, i, &last->sample, err));
    last->number = i;
    return 0;
}

/* ---- samples ---- */

static int check(const struct dnn_source *source, int64_t i, int c, struct dnn_err *err)
{
    if (i < 0 || i >= source->count)
        return dnn_fail(err, DNN_EDATA,
                        "%s: sample %" PRId64
                        " requested, but there are only 0 to %" PRId64,
                        source->type->name, i, source->count - 1);
    if (c < 0 || c >= source->ncols)
        return dnn_fail(err, DNN_EDATA,
                        "%s: column %d requested, but there are only 0 to %d",
                        source->type->name, c, source->ncols - 1);
    return 0;
}

int dnn_source_try_shape(const struct dnn_source *source, int64_t i, int c,
                         struct dnn_shape *out, struct dnn_err *err)
{
    DNN_TRY(check(source, i, c, err));
    *out = source->col[c].shape;
    if (dnn_shape_known(out)) return 0;
    if (source->type->shape == NULL) return DNN_SOURCE_WHOLE;
    return source->type->shape(source, i, c, out, err);
}

int dnn_source_shape(const struct dnn_source *source, int64_t i, int c,
                     struct dnn_shape *out, struct dnn_err *err)
{
    int rc = dnn_source_try_shape(source, i, c, out, err);

    if (rc != DNN_SOURCE_WHOLE) return rc;
    struct dnn_source_last *last = last_of(source);
    pthread_mutex_lock(&last->lock);
    rc = read_whole(source, i, last, err);
    if (rc == 0) *out = last->sample.col[c].shape;
    pthread_mutex_unlock(&last->lock);
    return rc;
}

int dnn_source_try_box(const struct dnn_source *source, int64_t i, int c,
                       const int64_t *start, const int64_t *extent,
                       struct dnn_array *out, struct dnn_err *err)
{
    if (source->type->read_box == NULL) return DNN_SOURCE_WHOLE;
    DNN_TRY(check(source, i, c, err));
    return source->type->read_box(source, i, c, start, extent, out, err);
}

int dnn_source_read_box(const struct dnn_source *source, int64_t i, int c,
                        const int64_t *start, const int64_t *extent,
                        struct dnn_array *out, struct dnn_err *err)
{
    char name[DNN_SAMPLE_NAME];
    struct dnn_shape shape;

    DNN_TRY(dnn_source_shape(source, i, c, &shape, err));
    if (check_box(&shape, start, extent, err) < 0) {
        dnn_source_label(source, i, name);
        return dnn_prefix(err, "%s: %s: ", name, source->col[c].name);
    }
    int rc = dnn_source_try_box(source, i, c, start, extent, out, err);
    if (rc != DNN_SOURCE_WHOLE) return rc;
    struct dnn_source_last *last = last_of(source);
    pthread_mutex_lock(&last->lock);
    rc = read_whole(source, i, last, err);
    if (rc == 0) rc = dnn_array_box(&last->sample.col[c], start, extent, out, err);
    pthread_mutex_unlock(&last->lock);
    return rc;
}

int dnn_source_position(const struct dnn_source *source, int64_t i, int c,
                        struct dnn_position *out, struct dnn_err *err)
{
    static const int64_t start[DNN_MAX_DIMS],
        one[DNN_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct dnn_array point = {0};

    if (source->type->position != NULL)
        return source->type->position(source, i, c, out, err);
    int rc = dnn_source_try_box(source, i, c, start, one, &point, err);
    *out = (struct dnn_position){
        .step = {1, 1, 1}
    };
    memcpy(out->spacing, point.spacing, sizeof out->spacing);
    dnn_array_free(&point);
    return rc < 0 ? rc : 0;
}
