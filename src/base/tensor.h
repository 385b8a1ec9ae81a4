/* tensor.h - element types, and the descriptor of a named array.
 *
 * A descriptor has name, type and shape, but no pointer to the data.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_TENSOR_H
#define DNN_BASE_TENSOR_H

#include "base/err.h"
#include "base/shape.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum dnn_dtype {
    DNN_F32,
    DNN_F64,
    DNN_F16,  /* IEEE 754 binary16                     */
    DNN_BF16, /* the upper half of an f32              */
    DNN_I8,
    DNN_U8,
    DNN_I16,
    DNN_U16,
    DNN_I32,
    DNN_U32,
    DNN_I64,
    DNN_U64,
    DNN_BOOL, /* one byte, 0 or 1                      */
    DNN_NDTYPES
};

size_t dnn_dtype_size(enum dnn_dtype dtype);
/* "f32", "bf16", "bool"... */
const char *dnn_dtype_name(enum dnn_dtype dtype);
/* The type with this name; DNN_ECONFIG if there is none, with a list of the names. */
int dnn_dtype_find(const char *name, enum dnn_dtype *out, struct dnn_err *err);

struct dnn_tensor {
    const char *name; /* or NULL */
    enum dnn_dtype dtype;
    struct dnn_shape shape;
};

/* Bytes of the complete array.  Fails on an unknown extent and on overflow. */
int dnn_tensor_bytes(const struct dnn_tensor *tensor, size_t *out, struct dnn_err *err);

/* Index of the first NaN or infinity of n elements, f32 or f64; -1: none, or another
 * type. */
int64_t dnn_tensor_find_nan(enum dnn_dtype dtype, const void *data, int64_t n);

/* Exact widening, and rounding to nearest (ties to even), as in IEEE 754 and on all
 * CPUs and GPUs: too large values become infinite, tiny values become subnormal, a NaN
 * remains one (quiet, with the upper bits of its payload). */
float dnn_f16_to_f32(uint16_t bits);
uint16_t dnn_f16_from_f32(float value);
float dnn_bf16_to_f32(uint16_t bits);
uint16_t dnn_bf16_from_f32(float value);

#endif
