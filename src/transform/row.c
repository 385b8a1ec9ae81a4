/* row.c - rows of numbers as what is worked in, and back.
 *
 * dnn_convert() does it for all types; here are those that images have, faster.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/transform_impl.h"

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

/* One after the other: what is wider comes out in vectors of its own length. */
#define WIDEN(c_type, real)                                                            \
    do {                                                                               \
        const c_type *x = from;                                                        \
        real *y = to;                                                                  \
                                                                                       \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = (real)x[i];         \
        return 0;                                                                      \
    } while (0)

int dnn_transform_load(const void *from, enum dnn_dtype type, void *to,
                       enum dnn_dtype work, int64_t n, struct dnn_err *err)
{
    if (work == DNN_F32 && type == DNN_U8) WIDEN(uint8_t, float);
    if (work == DNN_F32 && type == DNN_I16) WIDEN(int16_t, float);
    if (work == DNN_F32 && type == DNN_U16) WIDEN(uint16_t, float);
    if (work == DNN_F64 && type == DNN_F32) WIDEN(float, double);
    if (work == DNN_F64 && type == DNN_I16) WIDEN(int16_t, double);
    if (work == DNN_F64 && type == DNN_U16) WIDEN(uint16_t, double);
    return dnn_convert(from, type, to, work, n, false, err);
}

/* Of what this is added to no bits are left for a fraction: it is rounded to nearest,
 * ties to even, as everything is. */
#define NO_FRACTION 0x1.8p23f

#define NARROW(c_type)                                                                 \
    do {                                                                               \
        const float *x = from;                                                         \
        c_type *y = to;                                                                \
                                                                                       \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] =                     \
            (c_type)(int)((x[i] + NO_FRACTION) - NO_FRACTION);                         \
        return 0;                                                                      \
    } while (0)

int dnn_transform_store(const void *from, enum dnn_dtype work, void *to,
                        enum dnn_dtype type, int64_t n, struct dnn_err *err)
{
    if (work == DNN_F32 && type == DNN_U8) NARROW(uint8_t);
    if (work == DNN_F32 && type == DNN_I16) NARROW(int16_t);
    if (work == DNN_F32 && type == DNN_U16) NARROW(uint16_t);
    return dnn_convert(from, work, to, type, n, false, err);
}
