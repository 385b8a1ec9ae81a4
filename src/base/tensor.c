/* tensor.c - element types, and the descriptor of a named array.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/tensor.h"

#include "base/choice.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

static const struct dnn_choice names[] = {
    {"f32",  DNN_F32 },
    {"f64",  DNN_F64 },
    {"f16",  DNN_F16 },
    {"bf16", DNN_BF16},
    {"i8",   DNN_I8  },
    {"u8",   DNN_U8  },
    {"i16",  DNN_I16 },
    {"u16",  DNN_U16 },
    {"i32",  DNN_I32 },
    {"u32",  DNN_U32 },
    {"i64",  DNN_I64 },
    {"u64",  DNN_U64 },
    {"bool", DNN_BOOL},
    {NULL,   0       },
};

static const unsigned char sizes[DNN_NDTYPES] = {
    [DNN_F32] = 4, [DNN_F64] = 8, [DNN_F16] = 2,  [DNN_BF16] = 2, [DNN_I8] = 1,
    [DNN_U8] = 1,  [DNN_I16] = 2, [DNN_U16] = 2,  [DNN_I32] = 4,  [DNN_U32] = 4,
    [DNN_I64] = 8, [DNN_U64] = 8, [DNN_BOOL] = 1,
};

size_t dnn_dtype_size(enum dnn_dtype dtype)
{
    assert((unsigned)dtype < DNN_NDTYPES);
    return sizes[dtype];
}

const char *dnn_dtype_name(enum dnn_dtype dtype)
{
    return dnn_choice_name(names, (int)dtype);
}

int dnn_dtype_find(const char *name, enum dnn_dtype *out, struct dnn_err *err)
{
    struct dnn_err why;
    int value;

    if (dnn_choice_find(names, name, &value, &why) < 0)
        return dnn_fail(err, DNN_ECONFIG, "dtype %s", why.text);
    *out = (enum dnn_dtype)value;
    return 0;
}

int dnn_tensor_bytes(const struct dnn_tensor *tensor, size_t *out, struct dnn_err *err)
{
    const char *name = tensor->name == NULL ? "tensor" : tensor->name;
    char text[DNN_SHAPE_TEXT];
    int64_t count;
    size_t bytes;

    if (dnn_shape_count(&tensor->shape, &count, err) < 0)
        return dnn_prefix(err, "%s: ", name);
    /* No object in memory is larger than half the address space. */
    if (__builtin_mul_overflow(count, dnn_dtype_size(tensor->dtype), &bytes) ||
        bytes > PTRDIFF_MAX)
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: shape %s of type %s exceeds the address space", name,
                        dnn_shape_text(text, sizeof text, &tensor->shape),
                        dnn_dtype_name(tensor->dtype));
    *out = bytes;
    return 0;
}

static float from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* In blocks, without a branch for each element. */
int64_t dnn_tensor_find_nan(enum dnn_dtype dtype, const void *data, int64_t n)
{
    enum { BLOCK = 4096 };
    const float *f32 = data;
    const double *f64 = data;

    if (dtype != DNN_F32 && dtype != DNN_F64) return -1;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t end = n - at < BLOCK ? n : at + BLOCK;
        int bad = 0;

        if (dtype == DNN_F32)
            for (int64_t k = at; k < end; k++)
                bad |= !(fabsf(f32[k]) <= FLT_MAX);
        else
            for (int64_t k = at; k < end; k++)
                bad |= !(fabs(f64[k]) <= DBL_MAX);
        for (int64_t k = at; k < end && bad; k++)
            if (!isfinite(dtype == DNN_F32 ? f32[k] : f64[k])) return k;
    }
    return -1;
}

/* x >> n, rounded to nearest, ties to even.  A carry into the exponent gives the next
 * power of two, as it should. */
static uint32_t round_off(uint32_t x, int n)
{
    uint32_t half = (uint32_t)1 << (n - 1), rest = x & (2 * half - 1);

    x >>= n;
    return x + (rest > half || (rest == half && (x & 1)));
}

float dnn_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;

    if (exponent == 31)
        return from_bits(sign | 0x7f800000 | fraction << 13 |
                         (fraction ? 0x400000 : 0));
    if (exponent == 0) {
        /* 2^-24 times a ten-bit number: exact, and normal in an f32. */
        float value = (float)fraction * 0x1p-24f;

        return from_bits(sign | to_bits(value));
    }
    return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t dnn_f16_from_f32(float value)
{
    uint32_t bits = to_bits(value), sign = bits >> 16 & 0x8000, abs = bits & 0x7fffffff;

    if (abs > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (abs >> 13 & 0x3ff));
    /* 65520 is half way between the largest f16 and the next power of two. */
    if (abs >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (abs >= 0x38800000) return (uint16_t)(sign | round_off(abs - (112u << 23), 13));
    /* Subnormal: in units of 2^-24; below half a unit the result is zero. */
    int shift = 126 - (int)(abs >> 23);
    if (shift > 24) return (uint16_t)sign;
    return (uint16_t)(sign | round_off((abs & 0x7fffff) | 0x800000, shift));
}

float dnn_bf16_to_f32(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;

    if ((wide & 0x7fffffff) > 0x7f800000) wide |= 0x400000;
    return from_bits(wide);
}

uint16_t dnn_bf16_from_f32(float value)
{
    uint32_t bits = to_bits(value);

    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)round_off(bits, 16);
}
