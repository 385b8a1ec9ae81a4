/* values.c - operations on the values of an array.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/transform_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- standardise ---- */

/* Multiplies by the inverse, because divisions are slow; in double precision, the
 * result rounds to the same f32. */
struct scale {
    int64_t n; /* length of mean and inverse */
    double *mean, *inverse;
};

/* Minimum length of the inner loop; mean and inverse are repeated up to it. */
enum { MIN_LOOP = 256 };

static void scale_make(struct scale *s, int64_t channels, int n, const double *mean,
                       const double *std)
{
    s->n = channels < MIN_LOOP ? channels * (MIN_LOOP / channels) : channels;
    s->mean = dnn_alloc((size_t)s->n * sizeof *s->mean);
    s->inverse = dnn_alloc((size_t)s->n * sizeof *s->inverse);
    for (int64_t i = 0; i < s->n; i++) {
        int64_t c = n == 1 ? 0 : i % channels;

        s->mean[i] = mean[c];
        s->inverse[i] = 1 / std[c];
    }
}

static void scale_floats(const struct scale *s, float *x, int64_t n)
{
    for (int64_t at = 0; at < n; at += s->n) {
        int64_t m = n - at < s->n ? n - at : s->n;

#pragma omp simd
        for (int64_t i = 0; i < m; i++)
            x[at + i] = (float)(((double)x[at + i] - s->mean[i]) * s->inverse[i]);
    }
}

/* Other types are not converted to f32 first, which would lose precision. */
static int scale_others(const struct scale *s, const struct dnn_array *in, float *to,
                        struct dnn_err *err)
{
    int64_t count = dnn_array_count(in);
    size_t size = dnn_dtype_size(in->type);
    double x[DNN_TRANSFORM_BLOCK];

    for (int64_t at = 0, c = 0; at < count; at += DNN_TRANSFORM_BLOCK) {
        int64_t n = count - at < DNN_TRANSFORM_BLOCK ? count - at : DNN_TRANSFORM_BLOCK;

        DNN_TRY(dnn_convert((const char *)in->data + (size_t)at * size, in->type, x,
                            DNN_F64, n, false, err));
        for (int64_t i = 0; i < n; i++) {
            to[at + i] = (float)((x[i] - s->mean[c]) * s->inverse[c]);
            if (++c == s->n) c = 0;
        }
    }
    return 0;
}

/* Computes the 256 possible values of a byte once. */
static void scale_bytes(const struct scale *s, const unsigned char *in, int64_t count,
                        int64_t channels, float *to)
{
    float *table = dnn_alloc((size_t)channels * 256 * sizeof *table);

    for (int64_t c = 0; c < channels; c++)
        for (int v = 0; v < 256; v++)
            table[c * 256 + v] = (float)((v - s->mean[c]) * s->inverse[c]);
    for (int64_t at = 0; at < count; at += channels)
        for (int64_t c = 0; c < channels; c++)
            to[at + c] = table[c * 256 + in[at + c]];
    dnn_free(table);
}

static int check_scale(const struct dnn_array *array, int64_t channels, int n,
                       const double *mean, const double *std, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];

    if (n != 1 && n != channels)
        return dnn_fail(
            err, DNN_ECONFIG,
            "standardise: %d means given for an array of %s; give 1 or %" PRId64, n,
            dnn_shape_text(text, sizeof text, &array->shape), channels);
    for (int c = 0; c < n; c++)
        if (!isfinite(mean[c]) || !(std[c] > 0) || !isfinite(1 / std[c]))
            return dnn_fail(err, DNN_ECONFIG,
                            "standardise: mean %g and standard deviation %g of channel "
                            "%d: the mean must be finite, the deviation more than 0",
                            mean[c], std[c], c);
    return 0;
}

int dnn_standardise(struct dnn_array *array, int nchannels, const double *mean,
                    const double *std, struct dnn_err *err)
{
    int ndim = array->shape.ndim;
    int64_t channels = ndim == 0 ? 1 : array->shape.dim[ndim - 1];
    int64_t count = dnn_array_count(array);
    struct dnn_array out = {0};
    struct scale s;
    int rc = 0;

    DNN_TRY(check_scale(array, channels, nchannels, mean, std, err));
    if (count == 0) return dnn_array_convert(array, DNN_F32, false, err);
    if (nchannels == 1) channels = 1;
    scale_make(&s, channels, nchannels, mean, std);
    if (array->type == DNN_F32) {
        scale_floats(&s, array->data, count);
    } else if ((rc = dnn_array_make(&out, DNN_F32, &array->shape, err)) == 0) {
        memcpy(out.spacing, array->spacing, sizeof out.spacing);
        if (array->type == DNN_U8 && count / channels >= 256)
            scale_bytes(&s, array->data, count, channels, out.data);
        else
            rc = scale_others(&s, array, out.data, err);
        if (rc == 0) dnn_array_swap(array, &out);
    }
    dnn_array_free(&out);
    dnn_free(s.mean);
    dnn_free(s.inverse);
    return rc;
}

/* ---- clip ---- */

#define CLIP(c_type, low, high)                                                        \
    do {                                                                               \
        c_type *x = array->data, l = (c_type)(low), h = (c_type)(high);                \
                                                                                       \
        /* NaN stays NaN */                                                            \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) x[i] = x[i] < l   ? l      \
                                                                   : x[i] > h ? h      \
                                                                              : x[i];  \
        return 0;                                                                      \
    } while (0)

/* Integers: the bounds are rounded inwards, and limited to the range of the type. */
#define CLIP_INTEGER(c_type, least, most)                                              \
    do {                                                                               \
        if (low > high || low > (double)(most) || high < (double)(least)) break;       \
        CLIP(c_type,                                                                   \
             low <= (double)(least)  ? (least)                                         \
             : low >= (double)(most) ? (most)                                          \
                                     : (c_type)low,                                    \
             high >= (double)(most) ? (most) : (c_type)high);                          \
    } while (0);                                                                       \
    break

static int clip_half(struct dnn_array *array, double low, double high,
                     struct dnn_err *err)
{
    int64_t count = dnn_array_count(array);
    float x[DNN_TRANSFORM_BLOCK], l = (float)low, h = (float)high;

    for (int64_t at = 0; at < count; at += DNN_TRANSFORM_BLOCK) {
        int64_t n = count - at < DNN_TRANSFORM_BLOCK ? count - at : DNN_TRANSFORM_BLOCK;
        uint16_t *from = (uint16_t *)array->data + at;

        DNN_TRY(dnn_convert(from, array->type, x, DNN_F32, n, false, err));
        for (int64_t i = 0; i < n; i++)
            x[i] = x[i] < l ? l : x[i] > h ? h : x[i];
        DNN_TRY(dnn_convert(x, DNN_F32, from, array->type, n, false, err));
    }
    return 0;
}

static int clip_integers(struct dnn_array *array, double from, double to,
                         struct dnn_err *err)
{
    int64_t n = dnn_array_count(array);
    double low = ceil(from), high = floor(to);

    switch (array->type) {
    case DNN_I8:
        CLIP_INTEGER(int8_t, INT8_MIN, INT8_MAX);
    case DNN_I16:
        CLIP_INTEGER(int16_t, INT16_MIN, INT16_MAX);
    case DNN_U16:
        CLIP_INTEGER(uint16_t, 0, UINT16_MAX);
    case DNN_I32:
        CLIP_INTEGER(int32_t, INT32_MIN, INT32_MAX);
    case DNN_U32:
        CLIP_INTEGER(uint32_t, 0, UINT32_MAX);
    case DNN_I64:
        CLIP_INTEGER(int64_t, INT64_MIN, INT64_MAX);
    case DNN_U64:
        CLIP_INTEGER(uint64_t, 0, UINT64_MAX);
    case DNN_BOOL:
        CLIP_INTEGER(uint8_t, 0, 1);
    default:
        CLIP_INTEGER(uint8_t, 0, UINT8_MAX);
    }
    return dnn_fail(err, DNN_ECONFIG, "clip: no value of type %s lies in [%g, %g]",
                    dnn_dtype_name(array->type), from, to);
}

int dnn_clip(struct dnn_array *array, double low, double high, struct dnn_err *err)
{
    int64_t n = dnn_array_count(array);

    if (!(low <= high))
        return dnn_fail(err, DNN_ECONFIG, "clip: [%g, %g] is not a range", low, high);
    switch (array->type) {
    case DNN_F32:
        CLIP(float, low, high);
    case DNN_F64:
        CLIP(double, low, high);
    case DNN_F16:
    case DNN_BF16:
        return clip_half(array, low, high, err);
    default:
        return clip_integers(array, low, high, err);
    }
}

/* ---- classes ---- */

int dnn_remap(struct dnn_array *array, const int64_t *table, int64_t n,
              struct dnn_err *err)
{
    int64_t count = dnn_array_count(array), is[DNN_TRANSFORM_BLOCK];
    size_t size = dnn_dtype_size(array->type);

    for (int64_t at = 0; at < count; at += DNN_TRANSFORM_BLOCK) {
        int64_t m = count - at < DNN_TRANSFORM_BLOCK ? count - at : DNN_TRANSFORM_BLOCK;

        DNN_TRY(dnn_transform_classes(array, at, m, n, "remap", is, err));
        for (int64_t i = 0; i < m; i++) {
            if (table[is[i]] < 0)
                return dnn_fail(err, DNN_EDATA,
                                "remap: element %" PRId64 " is %" PRId64
                                ", which is not a class",
                                at + i, is[i]);
            is[i] = table[is[i]];
        }
        struct dnn_err why;
        if (dnn_convert(is, DNN_I64, (char *)array->data + (size_t)at * size,
                        array->type, m, true, &why) < 0)
            return dnn_fail(err, DNN_ECONFIG, "remap: from element %" PRId64 " on: %s",
                            at, why.text);
    }
    return 0;
}

int dnn_one_hot(const struct dnn_array *in, int64_t classes, struct dnn_array *out,
                struct dnn_err *err)
{
    struct dnn_shape shape = in->shape;
    int64_t count = dnn_array_count(in), is[DNN_TRANSFORM_BLOCK];
    char text[DNN_SHAPE_TEXT];

    if (classes < 1)
        return dnn_fail(err, DNN_ECONFIG,
                        "one_hot: %" PRId64 " classes; must be at least 1", classes);
    if (shape.ndim == 0) shape.ndim = 1;
    if (in->shape.ndim > 0 && shape.dim[shape.ndim - 1] != 1)
        return dnn_fail(err, DNN_EDATA,
                        "one_hot: the array is %s; a class number must be a scalar or "
                        "the only channel",
                        dnn_shape_text(text, sizeof text, &in->shape));
    shape.dim[shape.ndim - 1] = classes;
    DNN_TRY(dnn_array_make(out, DNN_F32, &shape, err));
    memcpy(out->spacing, in->spacing, sizeof out->spacing);
    memset(out->data, 0, dnn_array_bytes(out));
    float *to = out->data;
    for (int64_t at = 0; at < count; at += DNN_TRANSFORM_BLOCK) {
        int64_t n = count - at < DNN_TRANSFORM_BLOCK ? count - at : DNN_TRANSFORM_BLOCK;

        DNN_TRY(dnn_transform_classes(in, at, n, classes, "one_hot", is, err));
        for (int64_t i = 0; i < n; i++, to += classes)
            to[is[i]] = 1;
    }
    return 0;
}
