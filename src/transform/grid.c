/* grid.c - arrays as grids of pixels.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/transform_impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int dnn_transform_grid(const struct dnn_array *in, const char *what,
                       struct dnn_grid *out, struct dnn_err *err)
{
    int nspace = in->shape.ndim - 1;
    char text[DNN_SHAPE_TEXT];

    if (nspace < 1 || nspace > DNN_MAX_SPACE)
        return dnn_fail(err, DNN_EDATA,
                        "%s: the array is %s; it must have 1 to %d spatial axes and "
                        "channels last",
                        what, dnn_shape_text(text, sizeof text, &in->shape),
                        DNN_MAX_SPACE);
    for (int i = 0; i <= nspace; i++)
        if (in->shape.dim[i] < 1 || in->shape.dim[i] > DNN_GRID_LIMIT)
            return dnn_fail(
                err, DNN_EDATA, "%s: the array is %s; every dimension must be 1 to %d",
                what, dnn_shape_text(text, sizeof text, &in->shape), DNN_GRID_LIMIT);
    *out = (struct dnn_grid){
        .nspace = nspace, .n = {1, 1, 1}
    };
    for (int i = 0; i < nspace; i++)
        out->n[DNN_MAX_SPACE - nspace + i] = in->shape.dim[i];
    out->channels = in->shape.dim[nspace];
    out->element = dnn_dtype_size(in->type);
    out->pixel = out->element * (size_t)out->channels;
    return 0;
}

int dnn_transform_make(const struct dnn_array *in, const struct dnn_grid *grid,
                       struct dnn_array *out, struct dnn_err *err)
{
    struct dnn_shape shape = {.ndim = grid->nspace + 1};

    for (int i = 0; i < grid->nspace; i++)
        shape.dim[i] = grid->n[DNN_MAX_SPACE - grid->nspace + i];
    shape.dim[grid->nspace] = grid->channels;
    DNN_TRY(dnn_array_make(out, in->type, &shape, err));
    memcpy(out->spacing, in->spacing, sizeof out->spacing);
    return 0;
}

size_t dnn_transform_at(const struct dnn_grid *grid, int64_t z, int64_t y, int64_t x)
{
    return (size_t)((z * grid->n[1] + y) * grid->n[2] + x) * grid->pixel;
}

/* With a constant size, the compiler copies a pixel in one or two instructions. */
#define COPY(bytes)                                                                    \
    case bytes:                                                                        \
        for (int64_t i = 0; i < n; i++, to += out_step, from += in_step)               \
            memcpy(to, from, bytes);                                                   \
        break

void dnn_transform_copy(void *out, ptrdiff_t out_step, const void *in,
                        ptrdiff_t in_step, int64_t n, size_t pixel)
{
    unsigned char *to = out;
    const unsigned char *from = in;

    if (out_step == (ptrdiff_t)pixel && in_step == out_step) {
        memcpy(to, from, (size_t)n * pixel);
        return;
    }
    switch (pixel) {
        COPY(1);
        COPY(2);
        COPY(3);
        COPY(4);
        COPY(8);
        COPY(12);
        COPY(16);
    default:
        for (int64_t i = 0; i < n; i++, to += out_step, from += in_step)
            memcpy(to, from, pixel);
    }
}

enum dnn_dtype dnn_transform_work(enum dnn_dtype type)
{
    switch (type) {
    case DNN_F64:
    case DNN_I32:
    case DNN_U32:
    case DNN_I64:
    case DNN_U64:
        return DNN_F64;
    default:
        return DNN_F32;
    }
}

bool dnn_transform_is_integer(enum dnn_dtype type)
{
    return type != DNN_F32 && type != DNN_F64 && type != DNN_F16 && type != DNN_BF16;
}

int dnn_transform_value(double value, enum dnn_dtype type, const char *what, void *out,
                        struct dnn_err *err)
{
    struct dnn_err why;

    if (dnn_convert(&value, DNN_F64, out, type, 1, true, &why) == 0) return 0;
    return dnn_fail(err, DNN_ECONFIG, "%s: the value %.17g is out of range of %s", what,
                    value, dnn_dtype_name(type));
}

int dnn_transform_classes(const struct dnn_array *in, int64_t at, int64_t n,
                          int64_t limit, const char *what, int64_t *out,
                          struct dnn_err *err)
{
    double x[DNN_TRANSFORM_BLOCK];

    DNN_TRY(dnn_convert((const char *)in->data + (size_t)at * dnn_dtype_size(in->type),
                        in->type, x, DNN_F64, n, false, err));
    for (int64_t i = 0; i < n; i++) {
        if (!(x[i] >= 0 && x[i] < (double)limit && x[i] == floor(x[i])))
            return dnn_fail(err, DNN_EDATA,
                            "%s: element %" PRId64
                            " is %.17g; classes are 0 to %" PRId64,
                            what, at + i, x[i], limit - 1);
        out[i] = (int64_t)x[i];
    }
    return 0;
}
