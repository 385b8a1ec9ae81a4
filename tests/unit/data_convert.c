/* data_convert.c - conversion loops of the feed against the general conversion.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/mem.h"
#include "data/feed_impl.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 1000 };

static struct dnn_err err;

/* Random bytes; floats are finite and in the range of f32. */
static void fill(void *to, enum dnn_dtype type, int n)
{
    uint32_t s = 12345u + (uint32_t)type;

    for (int i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        double x = ((double)(s >> 4) - 0x1p27) / 999.0;
        uint64_t bits = (uint64_t)s << 29 ^ s;

        switch (type) {
        case DNN_F32:
            ((float *)to)[i] = (float)x;
            break;
        case DNN_F64:
            ((double *)to)[i] = x;
            break;
        case DNN_F16:
            ((uint16_t *)to)[i] = (uint16_t)(s >> 16 & 0xbbff);
            break;
        case DNN_BF16:
            ((uint16_t *)to)[i] = (uint16_t)(s >> 16 & 0xbfff);
            break;
        case DNN_BOOL:
            ((uint8_t *)to)[i] = s >> 31;
            break;
        default:
            memcpy((char *)to + (size_t)i * dnn_dtype_size(type), &bits,
                   dnn_dtype_size(type));
        }
    }
}

static void to_f32(enum dnn_dtype type)
{
    static const int counts[] = {1, 3, 17, 191, 192, 193, 999};
    uint64_t from[MOST];
    float got[MOST], plain[MOST];
    bool same = true, scaled = true;

    fill(from, type, MOST);
    if (dnn_convert(from, type, plain, DNN_F32, MOST, false, &err) < 0) same = false;
    for (int c = 0; c < 7; c++) {
        struct dnn_conversion conv = {.type = type, .check = true};
        int64_t bad;

        same &= dnn_conversion_apply(&conv, from, got, counts[c], &bad, &err) == 0 &&
                bad == -1 && memcmp(got, plain, (size_t)counts[c] * sizeof *got) == 0;
        for (int n = 1; n <= 64; n += n < 5 ? 1 : 59) {
            double scale[64], offset[64];

            for (int k = 0; k < n; k++) {
                scale[k] = 0.5 + k;
                offset[k] = k - 2.0;
            }
            dnn_conversion_scale(&conv, n, scale, offset);
            scaled &=
                !dnn_conversion_same(&conv) &&
                dnn_conversion_apply(&conv, from, got, counts[c], &bad, &err) == 0;
            for (int i = 0; i < counts[c]; i++) {
                double want = plain[i] * scale[i % n] + offset[i % n];

                scaled &= fabs(got[i] - want) <=
                          1e-6 * (fabs(plain[i] * scale[i % n]) + fabs(offset[i % n]));
            }
        }
    }
    ok(same, "%s -> f32", dnn_dtype_name(type));
    ok(scaled, "%s -> f32, scaled by 1 to 64 channels", dnn_dtype_name(type));
}

static void to_i32(enum dnn_dtype type)
{
    uint64_t from[MOST];
    int32_t got[MOST], want[MOST];
    struct dnn_conversion conv = {.type = type, .integer = true, .classes = -1};
    int64_t bad;

    fill(from, type, MOST);
    struct dnn_err one = {0}, two = {0};
    int rc = dnn_convert(from, type, want, DNN_I32, MOST, true, &one);
    int mine = dnn_conversion_apply(&conv, from, got, MOST, &bad, &two);
    ok(rc == mine && strcmp(one.text, two.text) == 0 &&
           (rc < 0 || memcmp(got, want, sizeof got) == 0),
       "%s -> i32%s", dnn_dtype_name(type), rc < 0 ? ": refused by both" : "");
}

static void is_bad(struct dnn_conversion conv, const void *from, int64_t want,
                   const char *what)
{
    int32_t to[8];
    int64_t bad = -2;

    dnn_conversion_apply(&conv, from, to, 5, &bad, &err);
    is_int(bad, want, what);
}

static void bad_ones(void)
{
    const float nan[] = {1, 2, NAN, INFINITY, 3}, inf[] = {1, 2, 3, 4, -INFINITY};
    const uint16_t half[] = {0x3c00, 0xfc00, 0x7c01, 0, 0};
    const uint16_t upper[] = {0x3c00, 0, 0, 0x7f80, 0};
    const double huge[] = {1, 2, 3, 1e300, 4};
    const uint8_t u8[] = {0, 3, 4, 5, 3};
    const int8_t i8[] = {0, 3, -1, 5, 3};
    const int64_t i64[] = {0, 3, 3, 9, 3};

    is_bad((struct dnn_conversion){.type = DNN_F32, .check = true}, nan, 2, "NaN");
    is_bad((struct dnn_conversion){.type = DNN_F32, .check = true}, inf, 4,
           "-infinity");
    is_bad((struct dnn_conversion){.type = DNN_F32}, nan, -1, "NaN, not checked");
    is_bad((struct dnn_conversion){.type = DNN_F16, .check = true}, half, 1,
           "infinite f16");
    is_bad((struct dnn_conversion){.type = DNN_BF16, .check = true}, upper, 3,
           "infinite bf16");
    is_bad((struct dnn_conversion){.type = DNN_F64, .check = true}, huge, 3,
           "f64 beyond f32");
    is_bad((struct dnn_conversion){.type = DNN_U8, .integer = true, .classes = 5}, u8,
           3, "u8 class beyond");
    is_bad((struct dnn_conversion){.type = DNN_I8, .integer = true, .classes = 5}, i8,
           2, "i8 class below");
    is_bad((struct dnn_conversion){.type = DNN_I8, .integer = true, .classes = 0}, i8,
           2, "i8 class below, classes not known");
    is_bad((struct dnn_conversion){.type = DNN_I8, .integer = true, .classes = -1}, i8,
           -1, "no classes");
    is_bad((struct dnn_conversion){.type = DNN_I64, .integer = true, .classes = 9}, i64,
           3, "i64 class beyond");
    /* In place: only looked at. */
    struct dnn_conversion conv = {.type = DNN_F32, .check = true};
    float here[] = {1, 2, 3, INFINITY};
    int64_t bad;
    ok(dnn_conversion_same(&conv) &&
           dnn_conversion_apply(&conv, here, here, 4, &bad, &err) == 0 && bad == 3,
       "in place");
    dnn_conversion_scale(&conv, 1, (const double[]){1}, (const double[]){0});
    ok(dnn_conversion_same(&conv), "scale 1 and offset 0 are ignored");
}

/* f32 to a small integer: rounded to even, clipped, NaN is 0; the same for each element
 * as if it was converted from f64. */
static void rounds(enum dnn_dtype type)
{
    static const float at[] = {0.5f,     1.5f,     2.5f,   -0.5f,    -1.5f,
                               254.5f,   255.5f,   256,    -1,       -128.75f,
                               32767.5f, 40000,    -40000, 65535.5f, 1e30f,
                               -1e30f,   INFINITY, NAN,    127.5f,   0x1p23f};
    enum { N = sizeof at / sizeof *at };
    double wide[N];
    char fast[N * 2] = {0}, slow[N * 2] = {0};

    for (int i = 0; i < N; i++)
        wide[i] = at[i];
    bool good = dnn_convert(at, DNN_F32, fast, type, N, false, &err) == 0 &&
                dnn_convert(wide, DNN_F64, slow, type, N, false, &err) == 0;
    ok(good && memcmp(fast, slow, sizeof fast) == 0, "f32 to %s", dnn_dtype_name(type));
}

int main(void)
{
    for (int t = 0; t < DNN_NDTYPES; t++) {
        to_f32((enum dnn_dtype)t);
        to_i32((enum dnn_dtype)t);
    }
    bad_ones();
    rounds(DNN_I8);
    rounds(DNN_U8);
    rounds(DNN_I16);
    rounds(DNN_U16);
    return done();
}
