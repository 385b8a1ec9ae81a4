/* row.c - convert rows of values to the work type and back.
 *
 * Faster than dnn_convert() for the common types of images.
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

/* A simple loop, which the compiler vectorizes. */
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

/* Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, ties to even. */
#define ROUNDING 0x1.8p23f

#define NARROW(c_type)                                                                 \
    do {                                                                               \
        const float *x = from;                                                         \
        c_type *y = to;                                                                \
                                                                                       \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] =                     \
            (c_type)(int)((x[i] + ROUNDING) - ROUNDING);                               \
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
