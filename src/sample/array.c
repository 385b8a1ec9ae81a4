/* array.c - arrays that own their data, and samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "sample/sample.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

const struct dnn_choice dnn_kind_choices[] = {
    {"image",  DNN_KIND_IMAGE },
    {"mask",   DNN_KIND_MASK  },
    {"label",  DNN_KIND_LABEL },
    {"values", DNN_KIND_VALUES},
    {NULL,     0              },
};

const struct dnn_choice dnn_role_choices[] = {
    {"input",  DNN_ROLE_INPUT },
    {"target", DNN_ROLE_TARGET},
    {"extra",  DNN_ROLE_EXTRA },
    {NULL,     0              },
};

/* A cache line: the alignment for vector instructions. */
enum { ALIGN = 64 };

/* Make sure that the capacity is at least that many bytes; the content is undefined. */
static int reserve(struct dnn_array *array, size_t bytes, const struct dnn_shape *shape,
                   enum dnn_dtype type, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT], size[32];
    void *mem = NULL;

    if (bytes == 0) bytes = 1; /* so that data is never NULL */
    if (array->data != NULL && array->capacity >= bytes) return 0;
    if (posix_memalign(&mem, ALIGN, bytes) != 0)
        return dnn_fail(err, DNN_ENOMEM, "not enough memory for an array of %s %s: %s",
                        dnn_shape_text(text, sizeof text, shape), dnn_dtype_name(type),
                        dnn_text_bytes(size, sizeof size, (double)bytes));
    free(array->data);
    array->data = mem;
    array->capacity = bytes;
    return 0;
}

int dnn_array_make(struct dnn_array *array, enum dnn_dtype type,
                   const struct dnn_shape *shape, struct dnn_err *err)
{
    struct dnn_tensor tensor = {.name = "array", .dtype = type, .shape = *shape};
    size_t bytes;

    DNN_TRY(dnn_tensor_bytes(&tensor, &bytes, err));
    DNN_TRY(reserve(array, bytes, &tensor.shape, type, err));
    array->type = type;
    array->shape = tensor.shape;
    memset(array->spacing, 0, sizeof array->spacing);
    return 0;
}

void dnn_array_free(struct dnn_array *array)
{
    free(array->data);
    *array = (struct dnn_array){0};
}

/* dnn_shape_count() cannot fail: the shape was checked by dnn_array_make(). */
int64_t dnn_array_count(const struct dnn_array *array)
{
    int64_t count = 0;

    if (array->data == NULL || dnn_shape_count(&array->shape, &count, NULL) < 0)
        return 0;
    return count;
}

size_t dnn_array_bytes(const struct dnn_array *array)
{
    return (size_t)dnn_array_count(array) * dnn_dtype_size(array->type);
}

int dnn_array_copy(const struct dnn_array *array, struct dnn_array *out,
                   struct dnn_err *err)
{
    if (array->data == NULL) {
        dnn_array_free(out);
        return 0;
    }
    DNN_TRY(dnn_array_make(out, array->type, &array->shape, err));
    memcpy(out->data, array->data, dnn_array_bytes(array));
    memcpy(out->spacing, array->spacing, sizeof out->spacing);
    return 0;
}

void dnn_array_swap(struct dnn_array *a, struct dnn_array *b)
{
    struct dnn_array other = *a;

    *a = *b;
    *b = other;
}

int dnn_array_convert(struct dnn_array *array, enum dnn_dtype as, bool strict,
                      struct dnn_err *err)
{
    size_t from = dnn_dtype_size(array->type), to = dnn_dtype_size(as);
    int64_t count = dnn_array_count(array);
    struct dnn_array out = {0};
    int rc;

    if (array->type == as || array->data == NULL) {
        array->type = as;
        return 0;
    }
    /* If elements do not become larger, convert in place; not if strict, because on
     * failure the array must be unchanged. */
    if (to <= from && !strict) {
        DNN_TRY(
            dnn_convert(array->data, array->type, array->data, as, count, false, err));
        array->type = as;
        return 0;
    }
    rc = dnn_array_make(&out, as, &array->shape, err);
    if (rc == 0)
        rc = dnn_convert(array->data, array->type, out.data, as, count, strict, err);
    if (rc == 0) {
        memcpy(out.spacing, array->spacing, sizeof out.spacing);
        dnn_array_swap(array, &out);
    }
    dnn_array_free(&out);
    return rc;
}

/* ---- channels ---- */

#define TRANSPOSE(type)                                                                \
    static void transpose_##type(const type *from, type *to, int64_t c, int64_t n)     \
    {                                                                                  \
        for (int64_t at = 0; at < n; at += TILE) {                                     \
            int64_t end = at + TILE < n ? at + TILE : n;                               \
                                                                                       \
            for (int64_t k = 0; k < c; k++)                                            \
                for (int64_t i = at; i < end; i++)                                     \
                    to[i * c + k] = from[k * n + i];                                   \
        }                                                                              \
    }

enum { TILE = 256 }; /* points; their channels fit into the cache */
TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)
TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)

int dnn_array_channels_last(struct dnn_array *array, struct dnn_err *err)
{
    struct dnn_shape shape = array->shape;
    struct dnn_array out = {0};
    int64_t c = shape.dim[0], n;

    if (shape.ndim < 2)
        return dnn_fail(err, DNN_EDATA,
                        "an array with channels must have 2 axes or more, not %d",
                        shape.ndim);
    memmove(shape.dim, shape.dim + 1, (size_t)(shape.ndim - 1) * sizeof shape.dim[0]);
    shape.dim[shape.ndim - 1] = c;
    n = c == 0 ? 0 : dnn_array_count(array) / c;
    if (c <= 1 || n <= 1) { /* the order of the elements does not change */
        array->shape = shape;
        return 0;
    }
    DNN_TRY(dnn_array_make(&out, array->type, &shape, err));
    switch (dnn_dtype_size(array->type)) {
    case 1:
        transpose_uint8_t(array->data, out.data, c, n);
        break;
    case 2:
        transpose_uint16_t(array->data, out.data, c, n);
        break;
    case 4:
        transpose_uint32_t(array->data, out.data, c, n);
        break;
    default:
        transpose_uint64_t(array->data, out.data, c, n);
        break;
    }
    memcpy(out.spacing, array->spacing, sizeof out.spacing);
    dnn_array_swap(array, &out);
    dnn_array_free(&out);
    return 0;
}

/* ---- samples ---- */

void dnn_sample_free(struct dnn_sample *sample)
{
    /* Also columns beyond ncols, which may have memory for later use. */
    for (int k = 0; k < DNN_MAX_COLUMNS; k++)
        dnn_array_free(&sample->col[k]);
    sample->ncols = 0;
}
