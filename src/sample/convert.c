/* convert.c - convert elements from one type to another.
 *
 * Conversions to f32, of small integers to i32, and of f32 to small integers have a
 * loop for each type (convert_fast.c).  For all others each block is widened to int64_t
 * or double, then narrowed, so there is one loop per type and direction, not one per
 * pair of types.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "sample/convert_impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 512 };

static bool is_real(enum dnn_dtype type)
{
    return type == DNN_F32 || type == DNN_F64 || type == DNN_F16 || type == DNN_BF16;
}

/* Round to odd: an inexact result gets an odd last bit, so that a second rounding to 16
 * bits gives the same result as a single rounding (Boldo and Melquiond, 2005). */
static float round_odd(double x)
{
    float f = (float)x;
    uint32_t bits;

    if (isnan(x) || isinf(f) || (double)f == x) return f;
    memcpy(&bits, &f, sizeof bits);
    if (fabs((double)f) > fabs(x)) bits--;
    bits |= 1;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* ---- widening ---- */

#define WIDEN(c_type, make)                                                            \
    for (int64_t i = 0; i < n; i++) {                                                  \
        c_type x;                                                                      \
        memcpy(&x, (const char *)from + (size_t)i * sizeof x, sizeof x);               \
        to[i] = make;                                                                  \
    }                                                                                  \
    break

static void to_doubles(const void *from, enum dnn_dtype type, double *to, int64_t n)
{
    switch (type) {
    case DNN_F32:
        WIDEN(float, (double)x);
    case DNN_F64:
        WIDEN(double, x);
    case DNN_F16:
        WIDEN(uint16_t, (double)dnn_f16_to_f32(x));
    case DNN_BF16:
        WIDEN(uint16_t, (double)dnn_bf16_to_f32(x));
    case DNN_I8:
        WIDEN(int8_t, (double)x);
    case DNN_I16:
        WIDEN(int16_t, (double)x);
    case DNN_U16:
        WIDEN(uint16_t, (double)x);
    case DNN_I32:
        WIDEN(int32_t, (double)x);
    case DNN_U32:
        WIDEN(uint32_t, (double)x);
    case DNN_I64:
        WIDEN(int64_t, (double)x);
    case DNN_U64:
        WIDEN(uint64_t, (double)x);
    default:
        WIDEN(uint8_t, (double)x);
    }
}

/* Values larger than INT64_MAX become INT64_MAX: they do not fit into another type. */
static void to_ints(const void *from, enum dnn_dtype type, int64_t *to, int64_t n)
{
    switch (type) {
    case DNN_I8:
        WIDEN(int8_t, x);
    case DNN_I16:
        WIDEN(int16_t, x);
    case DNN_U16:
        WIDEN(uint16_t, x);
    case DNN_I32:
        WIDEN(int32_t, x);
    case DNN_U32:
        WIDEN(uint32_t, x);
    case DNN_I64:
        WIDEN(int64_t, x);
    case DNN_U64:
        WIDEN(uint64_t, x > INT64_MAX ? INT64_MAX : (int64_t)x);
    default:
        WIDEN(uint8_t, x);
    }
}

/* ---- narrowing ---- */

#define NARROW(c_type, make)                                                           \
    for (int64_t i = 0; i < n; i++) {                                                  \
        c_type y = (c_type)(make);                                                     \
        memcpy((char *)to + (size_t)i * sizeof y, &y, sizeof y);                       \
    }                                                                                  \
    break

static void from_doubles(const double *from, void *to, enum dnn_dtype as, int64_t n)
{
    switch (as) {
    case DNN_F16:
        NARROW(uint16_t, dnn_f16_from_f32(round_odd(from[i])));
    case DNN_BF16:
        NARROW(uint16_t, dnn_bf16_from_f32(round_odd(from[i])));
    default:
        NARROW(double, from[i]);
    }
}

static void from_ints(const int64_t *from, void *to, enum dnn_dtype as, int64_t n)
{
    switch (as) {
    case DNN_I8:
        NARROW(int8_t, from[i]);
    case DNN_I16:
        NARROW(int16_t, from[i]);
    case DNN_U16:
        NARROW(uint16_t, from[i]);
    case DNN_I32:
        NARROW(int32_t, from[i]);
    case DNN_U32:
        NARROW(uint32_t, from[i]);
    case DNN_I64:
        NARROW(int64_t, from[i]);
    case DNN_U64:
        NARROW(uint64_t, from[i]);
    default:
        NARROW(uint8_t, from[i]);
    }
}

/* The range of an integer type: low to high, and as doubles: least <= x < end. */
struct range {
    int64_t low, high;
    double least, end;
};

static struct range range_of(enum dnn_dtype type)
{
    int bits = (int)dnn_dtype_size(type) * 8;

    switch (type) {
    case DNN_BOOL:
        return (struct range){0, 1, 0, 2};
    case DNN_U64:
        return (struct range){0, INT64_MAX, 0, 0x1p64};
    case DNN_I8:
    case DNN_I16:
    case DNN_I32:
    case DNN_I64:
        return (struct range){-(INT64_MAX >> (64 - bits)) - 1, INT64_MAX >> (64 - bits),
                              -ldexp(1, bits - 1), ldexp(1, bits - 1)};
    default:
        return (struct range){0, ((int64_t)1 << bits) - 1, 0, ldexp(1, bits)};
    }
}

static int fail_int(int64_t index, int64_t x, bool larger, enum dnn_dtype as,
                    struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA,
                    "element %" PRId64 " is %s%" PRId64 ", out of range of %s", index,
                    larger ? "more than " : "", x, dnn_dtype_name(as));
}

static int fail_real(int64_t index, double x, enum dnn_dtype as, struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA, "element %" PRId64 " is %.9g, out of range of %s",
                    index, x, dnn_dtype_name(as));
}

/* ---- one block ---- */

struct conversion {
    const char *from;
    char *to;
    enum dnn_dtype type, as;
    bool strict;
};

static int ints_to_ints(const struct conversion *conv, int64_t at, int64_t n,
                        struct dnn_err *err)
{
    const char *from = conv->from + (size_t)at * dnn_dtype_size(conv->type);
    struct range r = range_of(conv->as);
    int64_t x[BLOCK];

    to_ints(from, conv->type, x, n);
    for (int64_t i = 0; i < n; i++) {
        bool larger = false;

        if (conv->type == DNN_U64 && x[i] == INT64_MAX) {
            uint64_t all;

            memcpy(&all, from + (size_t)i * sizeof all, sizeof all);
            larger = all > INT64_MAX;
        }
        if (x[i] >= r.low && x[i] <= r.high && !larger) continue;
        if (conv->strict) return fail_int(at + i, x[i], larger, conv->as, err);
        x[i] = x[i] < r.low ? r.low : r.high;
    }
    from_ints(x, conv->to + (size_t)at * dnn_dtype_size(conv->as), conv->as, n);
    return 0;
}

static int reals_to_ints(const struct conversion *conv, int64_t at, int64_t n,
                         struct dnn_err *err)
{
    struct range r = range_of(conv->as);
    double x[BLOCK];
    int64_t ints[BLOCK];

    to_doubles(conv->from + (size_t)at * dnn_dtype_size(conv->type), conv->type, x, n);
    for (int64_t i = 0; i < n; i++) {
        double y = nearbyint(x[i]);

        if (conv->strict && !(y == x[i] && y >= r.least && y < r.end))
            return fail_real(at + i, x[i], conv->as, err);
        if (isnan(y))
            ints[i] = 0;
        else if (y < r.least)
            ints[i] = r.low;
        else if (y >= r.end) /* -1: all bits set, the largest uint64_t */
            ints[i] = conv->as == DNN_U64 ? -1 : r.high;
        else
            ints[i] = conv->as == DNN_U64 ? (int64_t)(uint64_t)y : (int64_t)y;
    }
    from_ints(ints, conv->to + (size_t)at * dnn_dtype_size(conv->as), conv->as, n);
    return 0;
}

static int any_to_reals(const struct conversion *conv, int64_t at, int64_t n,
                        struct dnn_err *err)
{
    static const struct dnn_scale none;
    size_t size = dnn_dtype_size(conv->type);
    const char *from = conv->from + (size_t)at * size;
    char *to = conv->to + (size_t)at * dnn_dtype_size(conv->as);
    double copy[BLOCK], x[BLOCK], back[BLOCK];

    if (conv->as == DNN_F32) {
        if (conv->from == conv->to) from = memcpy(copy, from, (size_t)n * size);
        if (dnn_convert_f32(conv->type, &none, from, (float *)(void *)to, n) == 0 ||
            !conv->strict)
            return 0;
        to_doubles(from, conv->type, x, n);
    } else if (conv->as == DNN_F64 && conv->from != conv->to) {
        to_doubles(from, conv->type, (double *)(void *)to, n);
        return 0;
    } else {
        to_doubles(from, conv->type, x, n);
        from_doubles(x, to, conv->as, n);
        if (!conv->strict || conv->as == DNN_F64) return 0;
    }
    to_doubles(to, conv->as, back, n);
    for (int64_t i = 0; i < n; i++)
        if (isinf(back[i]) && !isinf(x[i]))
            return fail_real(at + i, x[i], conv->as, err);
    return 0;
}

int dnn_convert(const void *from, enum dnn_dtype type, void *to, enum dnn_dtype as,
                int64_t count, bool strict, struct dnn_err *err)
{
    struct conversion conv = {from, to, type, as, strict};
    uint32_t beyond;

    if (type == as) {
        if (count > 0) memmove(to, from, (size_t)count * dnn_dtype_size(type));
        return 0;
    }
    if (as == DNN_I32 && dnn_convert_i32(type, from, to, count, 0, &beyond)) return 0;
    if (type == DNN_F32 && !strict && from != to &&
        dnn_convert_round(from, as, to, count))
        return 0;
    for (int64_t at = 0; at < count; at += BLOCK) {
        int64_t n = count - at < BLOCK ? count - at : BLOCK;

        if (is_real(as))
            DNN_TRY(any_to_reals(&conv, at, n, err));
        else if (is_real(type))
            DNN_TRY(reals_to_ints(&conv, at, n, err));
        else
            DNN_TRY(ints_to_ints(&conv, at, n, err));
    }
    return 0;
}
