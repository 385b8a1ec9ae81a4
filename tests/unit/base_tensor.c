/* base_tensor.c - element types, sizes, and half precision bit by bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/tensor.h"
#include "base/rng.h"
#include "tap.h"

#include <float.h>
#include <math.h>

static const struct {
    enum dnn_dtype dtype;
    const char *name;
    size_t size;
} types[] = {
    {DNN_F32,  "f32",  4},
    {DNN_F64,  "f64",  8},
    {DNN_F16,  "f16",  2},
    {DNN_BF16, "bf16", 2},
    {DNN_I8,   "i8",   1},
    {DNN_U8,   "u8",   1},
    {DNN_I16,  "i16",  2},
    {DNN_U16,  "u16",  2},
    {DNN_I32,  "i32",  4},
    {DNN_U32,  "u32",  4},
    {DNN_I64,  "i64",  8},
    {DNN_U64,  "u64",  8},
    {DNN_BOOL, "bool", 1},
};

static void test_types(void)
{
    struct dnn_err err = {0};
    enum dnn_dtype got = DNN_NDTYPES;

    is_int(sizeof types / sizeof types[0], DNN_NDTYPES, "all types are in the table");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        is_text(dnn_dtype_name(types[i].dtype), types[i].name, types[i].name);
        is_int((long long)dnn_dtype_size(types[i].dtype), (long long)types[i].size,
               "its size");
        ok(dnn_dtype_find(types[i].name, &got, &err) == 0 && got == types[i].dtype,
           "found by name");
    }
    is_int(dnn_dtype_find("fp16", &got, &err), DNN_ECONFIG, "an unknown name");
    is_text(err.text,
            "dtype must be one of f32, f64, f16, bf16, i8, u8, i16, u16, i32, u32, "
            "i64, u64, bool, not \"fp16\"; did you mean \"f16\"?",
            "and the similar name");
}

static void test_descriptor(void)
{
    struct dnn_tensor image = {
        "image", DNN_F32, {4, {32, 64, 64, 3}}
    };
    struct dnn_err err = {0};
    size_t bytes = 0;

    ok(dnn_tensor_bytes(&image, &bytes, &err) == 0 && bytes == 1572864, "bytes");
    image.name = NULL;
    image.shape.dim[0] = DNN_UNKNOWN;
    is_int(dnn_tensor_bytes(&image, &bytes, &err), DNN_ECONFIG,
           "no bytes without a batch");
    is_text(
        err.text,
        "tensor: shape ?x64x64x3: the number of elements is unknown because an axis is",
        "and why");
    image = (struct dnn_tensor){
        "huge", DNN_F64, {2, {(int64_t)1 << 31, (int64_t)1 << 31}}
    };
    is_int(dnn_tensor_bytes(&image, &bytes, &err), DNN_ECONFIG, "too many bytes");
    is_text(err.text,
            "huge: shape 2147483648x2147483648 of type f64 exceeds the address space",
            "and how many");
    is_int((long long)bytes, 1572864, "nothing was written");
}

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The value of an f16, by the definition of the format. */
static double meaning(uint16_t h)
{
    int e = h >> 10 & 31, f = h & 1023;
    double abs = e == 31  ? (f ? NAN : INFINITY)
                 : e == 0 ? ldexp(f, -24)
                          : ldexp(1024 + f, e - 25);

    return h & 0x8000 ? -abs : abs;
}

static void test_f16(void)
{
    int wide = 0, back = 0, ties = 0, sides = 0;

    for (int i = 0; i < 65536; i++) {
        uint16_t h = (uint16_t)i;
        float x = dnn_f16_to_f32(h);
        double want = meaning(h);

        if (isnan(want)) {
            wide += !isnan(x) || (bits_of(x) & 0x400000) == 0 ||
                    bits_of(x) >> 31 != (uint32_t)h >> 15;
            back += dnn_f16_from_f32(x) != (h | 0x200);
            continue;
        }
        wide += x != want || !signbit(x) != !signbit(want);
        back += dnn_f16_from_f32(x) != h;
        if ((h & 0x7fff) >= 0x7c00) continue;
        /* A tie is rounded to even. */
        double next =
            (h & 0x7fff) == 0x7bff ? (h & 0x8000 ? -65536. : 65536.) : meaning(h + 1);
        float half = (float)((want + next) / 2);
        ties += dnn_f16_from_f32(half) != (uint16_t)(h + (h & 1));
        sides += dnn_f16_from_f32(nextafterf(half, (float)want)) != h;
        sides += dnn_f16_from_f32(nextafterf(half, (float)next)) != (uint16_t)(h + 1);
    }
    is_int(wide, 0, "f16: all 65536 widen exactly");
    is_int(back, 0, "and are rounded back");
    is_int(ties, 0, "ties are rounded to even");
    is_int(sides, 0, "values next to a tie are rounded to the nearer one");
    is_int(dnn_f16_from_f32(1e10f), 0x7c00, "too large is infinite");
    is_int(dnn_f16_from_f32(-1e-40f), 0x8000, "too small is zero, with its sign");
}

static void test_bf16(void)
{
    int wide = 0, back = 0, ties = 0, sides = 0;

    for (int i = 0; i < 65536; i++) {
        uint16_t h = (uint16_t)i;
        bool nan = (h & 0x7fff) > 0x7f80;
        uint32_t bits = (uint32_t)h << 16;

        wide += bits_of(dnn_bf16_to_f32(h)) != (nan ? bits | 0x400000 : bits);
        back += dnn_bf16_from_f32(dnn_bf16_to_f32(h)) != (nan ? h | 0x40 : h);
        if ((h & 0x7fff) >= 0x7f80) continue;
        ties += dnn_bf16_from_f32(float_of(bits | 0x8000)) != (uint16_t)(h + (h & 1));
        sides += dnn_bf16_from_f32(float_of(bits | 0x7fff)) != h;
        sides += dnn_bf16_from_f32(float_of(bits | 0x8001)) != (uint16_t)(h + 1);
    }
    is_int(wide, 0, "bf16: all 65536 widen exactly");
    is_int(back, 0, "and are rounded back");
    is_int(ties, 0, "ties are rounded to even");
    is_int(sides, 0, "values next to a tie are rounded to the nearer one");
    is_int(dnn_bf16_from_f32(float_of(0x7f800001)), 0x7fc0,
           "a NaN with only low bits stays a NaN");
}

/* The compiler's own half precision, if it has one, on values of every size. */
static void test_against_compiler(void)
{
#ifdef __FLT16_MAX__
    struct dnn_rng rng = dnn_rng_make(1, 1);
    int differ = 0;

    for (uint64_t i = 0; i < 500000; i++) {
        uint32_t w[4];

        dnn_rng_words(&rng, (struct dnn_rng_at){0, 0, i}, w);
        /* Half of them with an exponent that an f16 can have. */
        if (i % 2) w[0] = (w[0] & 0x807fffff) | (100 + w[1] % 45) << 23;
        float x = float_of(w[0]);
        _Float16 half = (_Float16)x;
        uint16_t h;

        memcpy(&h, &half, sizeof h);
        differ += dnn_f16_from_f32(x) != h;
        h = (uint16_t)w[2];
        memcpy(&half, &h, sizeof half);
        differ += bits_of((float)half) != bits_of(dnn_f16_to_f32(h));
    }
    is_int(differ, 0, "f16 as the compiler's _Float16, in both directions");
#else
    skip("f16 as the compiler's own", "this compiler has no _Float16");
#endif
}

static void test_nan(void)
{
    static float f[9000];
    static double d[9000];
    static const int32_t i[1] = {0x7fc00000};

    f[1] = FLT_MAX, d[1] = DBL_MAX, d[2] = 1e300;
    ok(dnn_tensor_find_nan(DNN_F32, f, 9000) == -1 &&
           dnn_tensor_find_nan(DNN_F64, d, 9000) == -1 &&
           dnn_tensor_find_nan(DNN_I32, i, 1) == -1,
       "no NaN");
    f[8999] = NAN, d[5000] = -INFINITY, d[5001] = NAN;
    is_int(dnn_tensor_find_nan(DNN_F32, f, 9000), 8999, "a NaN in f32");
    is_int(dnn_tensor_find_nan(DNN_F64, d, 9000), 5000, "an infinity in f64");
}

int main(void)
{
    test_types();
    test_descriptor();
    test_f16();
    test_bf16();
    test_nan();
    test_against_compiler();
    return done();
}
