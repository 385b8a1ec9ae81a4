/* sample_array.c - arrays with their own memory, and conversion of types.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "sample/source.h"

#include <math.h>
#include <stdlib.h>

static struct dnn_shape shape_of(const char *text)
{
    struct dnn_shape shape = {0};

    dnn_shape_parse(text, &shape, NULL);
    return shape;
}

static int make(struct dnn_array *a, enum dnn_dtype type, const char *shape,
                struct dnn_err *err)
{
    struct dnn_shape s = shape_of(shape);

    return dnn_array_make(a, type, &s, err);
}

static void memory(void)
{
    struct dnn_array a = {0}, b = {0};
    struct dnn_err err = {0};

    is_int(dnn_array_count(&a), 0, "an empty array is empty");
    is_int(make(&a, DNN_F32, "4x5", &err), 0, "an array is made");
    is_int(dnn_array_count(&a), 20, "its number of elements");
    is_int((long long)dnn_array_bytes(&a), 80, "and bytes");
    is_int((long long)((uintptr_t)a.data % 64), 0, "it is aligned");
    void *was = a.data;
    a.spacing[1] = 2;
    make(&a, DNN_U8, "80", &err);
    ok(a.data == was && a.capacity == 80, "memory is reused");
    ok(a.spacing[1] == 0, "and its spacing is unknown");
    make(&a, DNN_F64, "11", &err);
    ok(a.capacity == 88, "memory that is too small grows");
    make(&a, DNN_U8, "0x7", &err);
    ok(a.data != NULL && dnn_array_count(&a) == 0, "an array may be empty");
    make(&a, DNN_U8, "scalar", &err);
    is_int(dnn_array_count(&a), 1, "a scalar is one number");
    int rc = make(&a, DNN_F32, "?x3", &err);
    is_int(rc, DNN_ECONFIG, "an unknown dimension is refused");
    is_text(err.text,
            "array: shape ?x3: the number of elements is unknown because an axis is",
            "and its message");
#if !defined(__SANITIZE_ADDRESS__)
    rc = make(&a, DNN_U8, "1125899906842624", &err); /* 2^50 */
    is_int(rc, DNN_ENOMEM, "too much memory is refused");
    is_text(err.text, "not enough memory for an array of 1125899906842624 u8: 1.0 PiB",
            "its message");
#else
    skip("too much memory", "the sanitizer ends the program");
#endif
    is_int(dnn_array_count(&a), 1, "after an error the array is unchanged");
    a.spacing[0] = 3;
    *(unsigned char *)a.data = 7;
    ok(dnn_array_copy(&a, &b, &err) == 0 && b.spacing[0] == 3 && b.data != a.data &&
           *(unsigned char *)b.data == 7,
       "a copy is equal");
    make(&a, DNN_I16, "2", &err);
    dnn_array_swap(&a, &b);
    ok(a.type == DNN_U8 && b.type == DNN_I16 && a.spacing[0] == 3,
       "two arrays are swapped");
    dnn_array_free(&a);
    dnn_array_free(&a);
    ok(a.data == NULL, "it may be freed twice");
    is_int(dnn_array_copy(&a, &b, &err), 0, "of an empty one there is a copy");
    ok(b.data == NULL, "which is empty");
}

/* ---- conversions ---- */

/* One number from double to another type and back. */
static double through(enum dnn_dtype type, double x, bool strict, struct dnn_err *err)
{
    unsigned char mem[8];
    double back = NAN;

    if (dnn_convert(&x, DNN_F64, mem, type, 1, strict, err) < 0) return -12345;
    dnn_convert(mem, type, &back, DNN_F64, 1, false, NULL);
    return back;
}

/* All halves, also infinite ones, as f32 one by one; doubles in place, in many blocks.
 */
static void many(void)
{
    enum { HALVES = 1 << 16, DOUBLES = 3000 };
    static uint16_t half[HALVES];
    static float got[HALVES];
    static double x[DOUBLES];
    struct dnn_err err = {0};
    bool same = true;

    for (int i = 0; i < HALVES; i++)
        half[i] = (uint16_t)i;
    is_int(dnn_convert(half, DNN_F16, got, DNN_F32, HALVES, true, &err), 0, "halves");
    for (int i = 0; i < HALVES; i++) {
        float want = dnn_f16_to_f32(half[i]);

        same = same && (isnan(want) ? isnan(got[i]) : got[i] == want);
    }
    ok(same, "are the same numbers");
    for (int i = 0; i < DOUBLES; i++)
        x[i] = i / 3.0;
    is_int(dnn_convert(x, DNN_F64, x, DNN_F32, DOUBLES, false, &err), 0, "in place");
    same = true;
    for (int i = 0; i < DOUBLES; i++) {
        float to;

        memcpy(&to, (char *)x + (size_t)i * sizeof to, sizeof to);
        same = same && to == (float)(i / 3.0);
    }
    ok(same, "each is rounded once");
}

static void reals(void)
{
    struct dnn_err err = {0};
    static const struct {
        enum dnn_dtype type;
        double x, want;
    } rows[] = {
        {DNN_U8,   2.5,                   2           },
        {DNN_U8,   3.5,                   4           },
        {DNN_U8,   -1,                    0           },
        {DNN_U8,   300,                   255         },
        {DNN_I8,   -129,                  -128        },
        {DNN_I8,   INFINITY,              127         },
        {DNN_I16,  -INFINITY,             -32768      },
        {DNN_U16,  65535.4,               65535       },
        {DNN_I32,  1e10,                  2147483647  },
        {DNN_U32,  4294967295.0,          4294967295.0},
        {DNN_U32,  5e9,                   4294967295.0},
        {DNN_I64,  1e19,                  0x1p63      },
        {DNN_I64,  -1e19,                 -0x1p63     },
        {DNN_U64,  1e20,                  0x1p64      },
        {DNN_U64,  0x1p63,                0x1p63      },
        {DNN_U64,  -5,                    0           },
        {DNN_BOOL, 0.4,                   0           },
        {DNN_BOOL, 7,                     1           },
        {DNN_U8,   NAN,                   0           },
        {DNN_F32,  0.1,                   (double)0.1f},
        {DNN_F32,  1e300,                 INFINITY    },
        {DNN_F16,  65519.999999,          65504       },
        {DNN_F16,  65520,                 INFINITY    },
        /* Just above the tie between 1 and its successor: rounding twice would give 1.
         */
        {DNN_F16,  1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10 },
        {DNN_F16,  1 + 0x1p-11 - 0x1p-40, 1           },
        {DNN_F16,  1 + 0x1p-11,           1           },
        {DNN_BF16, 1 + 0x1p-8 + 0x1p-40,  1 + 0x1p-7  },
        {DNN_BF16, -1 - 0x1p-8 - 0x1p-40, -1 - 0x1p-7 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double got = through(rows[i].type, rows[i].x, false, &err);

        if (!ok(got == rows[i].want, "%.17g as %s", rows[i].x,
                dnn_dtype_name(rows[i].type)))
            printf("#   got: %.17g\n#  want: %.17g\n", got, rows[i].want);
    }
    ok(isnan(through(DNN_F16, NAN, true, &err)), "a NaN stays a NaN in float types");
}

static void strict(void)
{
    static const struct {
        enum dnn_dtype type;
        double x;
        const char *want;
    } rows[] = {
        {DNN_U8,   255,      ""                                                },
        {DNN_U8,   256,      "element 0 is 256, out of range of u8"            },
        {DNN_U8,   2.5,      "element 0 is 2.5, out of range of u8"            },
        {DNN_U8,   -1,       "element 0 is -1, out of range of u8"             },
        {DNN_I32,  NAN,      "element 0 is nan, out of range of i32"           },
        {DNN_BOOL, 2,        "element 0 is 2, out of range of bool"            },
        {DNN_I64,  0x1p63,   "element 0 is 9.22337204e+18, out of range of i64"},
        {DNN_I64,  -0x1p63,  ""                                                },
        {DNN_F32,  0.1,      ""                                                },
        {DNN_F32,  1e300,    "element 0 is 1e+300, out of range of f32"        },
        {DNN_F16,  1e5,      "element 0 is 100000, out of range of f16"        },
        {DNN_F32,  INFINITY, ""                                                },
    };
    int64_t ints[600] = {0};
    unsigned char small[600];
    uint64_t large = UINT64_MAX;
    int64_t one;
    struct dnn_err err = {0};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        err.text[0] = '\0';
        through(rows[i].type, rows[i].x, true, &err);
        is_text(err.text, rows[i].want, "strictly");
    }
    ints[599] = 256;
    dnn_convert(ints, DNN_I64, small, DNN_U8, 600, true, &err);
    is_text(err.text, "element 599 is 256, out of range of u8",
            "the message has the index");
    is_int(err.code, DNN_EDATA, "as an error of the data");
    dnn_convert(ints, DNN_I64, small, DNN_U8, 600, false, &err);
    is_int(small[599], 255, "not strict: it is clipped");
    dnn_convert(&large, DNN_U64, &one, DNN_I64, 1, true, &err);
    is_text(err.text, "element 0 is more than 9223372036854775807, out of range of i64",
            "the largest of all");
    dnn_convert(&large, DNN_U64, &one, DNN_I64, 1, false, &err);
    ok(one == INT64_MAX, "clipped it is the largest i64");
}

/* Integers are converted exactly between all types that can represent them. */
static void all_pairs(void)
{
    static const double numbers[] = {0, 1};
    int bad = 0;

    for (int from = 0; from < DNN_NDTYPES; from++)
        for (int to = 0; to < DNN_NDTYPES; to++)
            for (int i = 0; i < 2; i++) {
                unsigned char a[8], b[8];
                double back = -1;

                dnn_convert(&numbers[i], DNN_F64, a, (enum dnn_dtype)from, 1, true,
                            NULL);
                bad += dnn_convert(a, (enum dnn_dtype)from, b, (enum dnn_dtype)to, 1,
                                   true, NULL) < 0;
                dnn_convert(b, (enum dnn_dtype)to, &back, DNN_F64, 1, true, NULL);
                bad += back != numbers[i];
            }
    is_int(bad, 0, "0 and 1 are converted from every type to every other");
}

static void in_place(void)
{
    struct dnn_array a = {0};
    struct dnn_err err = {0};

    make(&a, DNN_F32, "3", &err);
    memcpy(a.data, (float[]){1, 2.5f, 300}, 12);
    a.spacing[0] = 9;
    is_int(dnn_array_convert(&a, DNN_U8, true, &err), DNN_EDATA, "refused");
    ok(a.type == DNN_F32 && ((float *)a.data)[2] == 300, "the array is unchanged");
    is_int(dnn_array_convert(&a, DNN_U8, false, &err), 0, "to smaller numbers");
    ok(memcmp(a.data, (unsigned char[]){1, 2, 255}, 3) == 0, "in place");
    is_int(dnn_array_convert(&a, DNN_F64, true, &err), 0, "to larger ones");
    ok(((double *)a.data)[2] == 255 && a.type == DNN_F64 && a.spacing[0] == 9,
       "its spacing is kept");
    dnn_array_free(&a);
}

static void channels(void)
{
    struct dnn_array a = {0};
    struct dnn_err err = {0};
    char text[DNN_SHAPE_TEXT];

    make(&a, DNN_I16, "2x1x3", &err);
    memcpy(a.data, (int16_t[]){1, 2, 3, 4, 5, 6}, 12);
    is_int(dnn_array_channels_last(&a, &err), 0, "channels become the last axis");
    is_text(dnn_shape_text(text, sizeof text, &a.shape), "1x3x2", "its shape");
    ok(memcmp(a.data, (int16_t[]){1, 4, 2, 5, 3, 6}, 12) == 0, "its numbers");
    make(&a, DNN_F64, "1x4", &err);
    void *was = a.data;
    dnn_array_channels_last(&a, &err);
    ok(a.data == was && a.shape.dim[0] == 4, "one channel needs no copy");
    make(&a, DNN_U8, "4", &err);
    is_int(dnn_array_channels_last(&a, &err), DNN_EDATA, "one axis has no channels");
    is_text(err.text, "an array with channels must have 2 axes or more, not 1",
            "its message");
    make(&a, DNN_U8, "3x700", &err);
    for (int i = 0; i < 2100; i++)
        ((unsigned char *)a.data)[i] = (unsigned char)(i % 251);
    dnn_array_channels_last(&a, &err);
    int bad = 0;
    for (int i = 0; i < 2100; i++)
        bad += ((unsigned char *)a.data)[i] != (i % 3 * 700 + i / 3) % 251;
    is_int(bad, 0, "more points than a tile has");
    dnn_array_free(&a);
}

/* ---- sources ---- */

static int read_number(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    (void)source;
    out->ncols = 1;
    DNN_TRY(dnn_array_make(&out->col[0], DNN_I64, &(struct dnn_shape){0}, err));
    *(int64_t *)out->col[0].data = i;
    return 0;
}

static int closed;
static void count_close(struct dnn_source *source)
{
    (void)source;
    closed++;
}

static void sources(void)
{
    static const struct dnn_source_type type = {
        .name = "numbers", .read = read_number, .close = count_close};
    struct dnn_source source = {.type = &type, .count = 3};
    struct dnn_sample sample = {0};
    char name[DNN_SAMPLE_NAME];
    struct dnn_err err = {0};

    ok(dnn_source_read(&source, 2, &sample, &err) == 0 &&
           *(int64_t *)sample.col[0].data == 2,
       "a sample is read");
    dnn_source_read(&source, 3, &sample, &err);
    is_text(err.text, "numbers: sample 3 requested, but there are only 0 to 2",
            "a sample out of range");
    dnn_source_label(&source, 1, name);
    is_text(name, "1", "without a name, it is the number");
    dnn_source_close(&source);
    dnn_source_close(NULL);
    is_int(closed, 1, "closed once");
    dnn_sample_free(&sample);
    ok(sample.ncols == 0 && sample.col[0].data == NULL, "a sample is freed");
}

int main(void)
{
    memory();
    reals();
    many();
    strict();
    all_pairs();
    in_place();
    channels();
    sources();
    return done();
}
