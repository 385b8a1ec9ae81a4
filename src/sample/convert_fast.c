/* convert_fast.c - converts stored elements to f32 or i32, and f32 to small integers.
 *
 * One loop per type, over blocks in which the factors of all channels are repeated, so
 * that the compiler can vectorise it for any number of channels.  The loops only detect
 * invalid values; the first one is searched for afterwards.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "sample/convert_impl.h"

#include <string.h>

void dnn_conversion_scale(struct dnn_conversion *conv, int n, const double *scale,
                          const double *offset)
{
    struct dnn_scale *s = &conv->scale;

    s->period = 0;
    for (int c = 0; c < n; c++)
        if (scale[c] != 1 || offset[c] != 0) s->period = DNN_SCALE_PERIOD / n * n;
    for (int i = 0; i < s->period; i++) {
        s->wide_factor[i] = scale[i % n];
        s->wide_term[i] = offset[i % n];
        s->factor[i] = (float)scale[i % n];
        s->term[i] = (float)offset[i % n];
    }
}

static bool is_real(enum dnn_dtype type)
{
    return type == DNN_F32 || type == DNN_F64 || type == DNN_F16 || type == DNN_BF16;
}

static bool is_integer(const struct dnn_column *c)
{
    if (c->kind == DNN_KIND_LABEL || c->kind == DNN_KIND_MASK)
        return c->role != DNN_ROLE_INPUT; /* inputs of a network are real numbers */
    return c->role == DNN_ROLE_EXTRA && c->kind == DNN_KIND_VALUES && !is_real(c->type);
}

void dnn_conversion_column(const struct dnn_column *column, double image_scale,
                           struct dnn_conversion *out)
{
    const struct dnn_column *c = column;
    bool classes = c->kind == DNN_KIND_LABEL || c->kind == DNN_KIND_MASK;
    double one = image_scale, none = 0;

    *out = (struct dnn_conversion){.type = c->type,
                                   .integer = is_integer(c),
                                   .check = c->role != DNN_ROLE_EXTRA,
                                   .classes = classes ? c->classes : -1};
    if (one == 0) one = c->type == DNN_U8 ? 1.0 / 255 : 1;
    if (!out->integer && c->kind == DNN_KIND_IMAGE && !is_real(c->type))
        dnn_conversion_scale(out, 1, &one, &none);
}

bool dnn_conversion_same(const struct dnn_conversion *conv)
{
    return conv->type == (conv->integer ? DNN_I32 : DNN_F32) && conv->scale.period == 0;
}

/* ---- to f32 ---- */

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Not 0 for NaN and infinities. */
static uint32_t not_finite(float x)
{
    return (bits_of(x) & 0x7f800000u) == 0x7f800000u;
}

/* IEEE half to float: after the shift the exponent is 112 too small, which the product
 * corrects, also for subnormal numbers; those of NaN and infinities are all set. */
static float half(uint16_t h)
{
    float size = from_bits((uint32_t)(h & 0x7fff) << 13) * 0x1p112f;
    uint32_t bad = (h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;

    return from_bits(bits_of(size) | bad | (uint32_t)(h & 0x8000) << 16);
}

static float upper_half(uint16_t h)
{
    return from_bits((uint32_t)h << 16);
}

#define AS_IS(x) (x)

/* wide: the type of the computation and its factors. */
#define TO_F32(name, type, wide, as, factors, terms)                                   \
    static uint32_t name(const struct dnn_scale *s, const void *from,                  \
                         float *restrict to, int64_t n)                                \
    {                                                                                  \
        const type *restrict x = from;                                                 \
        const wide *factor = s->factors, *term = s->terms;                             \
        uint32_t bad = 0;                                                              \
                                                                                       \
        if (s->period == 0) {                                                          \
            _Pragma("omp simd reduction(| : bad)") for (int64_t i = 0; i < n; i++)     \
            {                                                                          \
                to[i] = (float)as(x[i]);                                               \
                bad |= not_finite(to[i]);                                              \
            }                                                                          \
            return bad;                                                                \
        }                                                                              \
        for (int64_t at = 0; at < n; at += s->period) {                                \
            int m = n - at < s->period ? (int)(n - at) : s->period;                    \
                                                                                       \
            _Pragma("omp simd reduction(| : bad)") for (int j = 0; j < m; j++)         \
            {                                                                          \
                to[at + j] = (float)((wide)as(x[at + j]) * factor[j] + term[j]);       \
                bad |= not_finite(to[at + j]);                                         \
            }                                                                          \
        }                                                                              \
        return bad;                                                                    \
    }

TO_F32(f32_f32, float, float, AS_IS, factor, term)
TO_F32(f64_f32, double, double, AS_IS, wide_factor, wide_term)
TO_F32(f16_f32, uint16_t, float, half, factor, term)
TO_F32(bf16_f32, uint16_t, float, upper_half, factor, term)
TO_F32(i8_f32, int8_t, float, AS_IS, factor, term)
TO_F32(u8_f32, uint8_t, float, AS_IS, factor, term)
TO_F32(i16_f32, int16_t, float, AS_IS, factor, term)
TO_F32(u16_f32, uint16_t, float, AS_IS, factor, term)
TO_F32(i32_f32, int32_t, double, AS_IS, wide_factor, wide_term)
TO_F32(u32_f32, uint32_t, double, AS_IS, wide_factor, wide_term)
TO_F32(i64_f32, int64_t, double, AS_IS, wide_factor, wide_term)
TO_F32(u64_f32, uint64_t, double, AS_IS, wide_factor, wide_term)

uint32_t dnn_convert_f32(enum dnn_dtype type, const struct dnn_scale *scale,
                         const void *from, float *to, int64_t n)
{
    switch (type) {
    case DNN_F64:
        return f64_f32(scale, from, to, n);
    case DNN_F16:
        return f16_f32(scale, from, to, n);
    case DNN_BF16:
        return bf16_f32(scale, from, to, n);
    case DNN_I8:
        return i8_f32(scale, from, to, n);
    case DNN_U8:
    case DNN_BOOL:
        return u8_f32(scale, from, to, n);
    case DNN_I16:
        return i16_f32(scale, from, to, n);
    case DNN_U16:
        return u16_f32(scale, from, to, n);
    case DNN_I32:
        return i32_f32(scale, from, to, n);
    case DNN_U32:
        return u32_f32(scale, from, to, n);
    case DNN_I64:
        return i64_f32(scale, from, to, n);
    case DNN_U64:
        return u64_f32(scale, from, to, n);
    default:
        return f32_f32(scale, from, to, n);
    }
}

static uint32_t any_not_finite(const float *x, int64_t n)
{
    uint32_t bad = 0;

#pragma omp simd reduction(| : bad)
    for (int64_t i = 0; i < n; i++)
        bad |= not_finite(x[i]);
    return bad;
}

static void reals(const struct dnn_conversion *conv, const void *from, float *to,
                  int64_t n, int64_t *bad)
{
    uint32_t found = 0;

    if (from != to)
        found = dnn_convert_f32(conv->type, &conv->scale, from, to, n);
    else if (conv->check)
        found = any_not_finite(to, n);
    if (found == 0 || !conv->check) return;
    for (*bad = 0; !not_finite(to[*bad]);)
        ++*bad;
}

/* ---- to i32 ---- */

/* Not 0 if an element is negative or not below limit. */
#define TO_I32(name, type)                                                             \
    static uint32_t name(const void *from, int32_t *restrict to, int64_t n,            \
                         uint32_t limit)                                               \
    {                                                                                  \
        const type *restrict x = from;                                                 \
        uint32_t beyond = 0;                                                           \
                                                                                       \
        _Pragma("omp simd reduction(| : beyond)") for (int64_t i = 0; i < n; i++)      \
        {                                                                              \
            to[i] = (int32_t)x[i];                                                     \
            beyond |= (uint32_t)to[i] >= limit;                                        \
        }                                                                              \
        return beyond;                                                                 \
    }

TO_I32(i8_i32, int8_t)
TO_I32(u8_i32, uint8_t)
TO_I32(i16_i32, int16_t)
TO_I32(u16_i32, uint16_t)

static uint32_t any_beyond(const int32_t *x, int64_t n, uint32_t limit)
{
    uint32_t beyond = 0;

#pragma omp simd reduction(| : beyond)
    for (int64_t i = 0; i < n; i++)
        beyond |= (uint32_t)x[i] >= limit;
    return beyond;
}

bool dnn_convert_i32(enum dnn_dtype type, const void *from, int32_t *to, int64_t n,
                     uint32_t limit, uint32_t *beyond)
{
    switch (type) {
    case DNN_I8:
        *beyond = i8_i32(from, to, n, limit);
        return true;
    case DNN_U8:
    case DNN_BOOL:
        *beyond = u8_i32(from, to, n, limit);
        return true;
    case DNN_I16:
        *beyond = i16_i32(from, to, n, limit);
        return true;
    case DNN_U16:
        *beyond = u16_i32(from, to, n, limit);
        return true;
    default:
        return false;
    }
}

/* ---- from f32 ---- */

/* Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, ties to even. */
#define ROUNDING 0x1.8p23f

#define FROM_F32(name, type, low, high)                                                \
    static void name(const float *restrict from, void *to, int64_t n)                  \
    {                                                                                  \
        type *restrict y = to;                                                         \
                                                                                       \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                            \
        {                                                                              \
            float x = from[i] != from[i] ? 0 : from[i]; /* NaN */                      \
                                                                                       \
            x = x < low ? low : x > high ? high : x;                                   \
            y[i] = (type)(int)((x + ROUNDING) - ROUNDING);                             \
        }                                                                              \
    }

FROM_F32(f32_i8, int8_t, INT8_MIN, INT8_MAX)
FROM_F32(f32_u8, uint8_t, 0, UINT8_MAX)
FROM_F32(f32_i16, int16_t, INT16_MIN, INT16_MAX)
FROM_F32(f32_u16, uint16_t, 0, UINT16_MAX)

bool dnn_convert_round(const float *from, enum dnn_dtype as, void *to, int64_t n)
{
    switch (as) {
    case DNN_I8:
        f32_i8(from, to, n);
        return true;
    case DNN_U8:
        f32_u8(from, to, n);
        return true;
    case DNN_I16:
        f32_i16(from, to, n);
        return true;
    case DNN_U16:
        f32_u16(from, to, n);
        return true;
    default:
        return false;
    }
}

int dnn_conversion_apply(const struct dnn_conversion *conv, const void *from, void *to,
                         int64_t n, int64_t *bad, struct dnn_err *err)
{
    uint32_t beyond = 0, limit = conv->classes > 0 && conv->classes <= INT32_MAX
                                     ? (uint32_t)conv->classes
                                     : (uint32_t)INT32_MAX + 1;

    *bad = -1;
    if (!conv->integer) {
        reals(conv, from, to, n, bad);
        return 0;
    }
    if (!dnn_convert_i32(conv->type, from, to, n, limit, &beyond)) {
        if (from != to)
            DNN_TRY(dnn_convert(from, conv->type, to, DNN_I32, n, true, err));
        if (conv->classes >= 0) beyond = any_beyond(to, n, limit);
    }
    if (beyond == 0 || conv->classes < 0) return 0;
    for (*bad = 0; ((const uint32_t *)to)[*bad] < limit;)
        ++*bad;
    return 0;
}
