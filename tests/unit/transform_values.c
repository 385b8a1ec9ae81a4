/* transform_values.c - element-wise changes of values.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform_cases.h"

#include "transform/transform.h"

static struct dnn_err err;

#define REALS(...) ((const double[]){__VA_ARGS__})
#define TABLE(...) ((const int64_t[]){__VA_ARGS__})

/* The array, or the message; the array is freed. */
static void is_result(int rc, struct dnn_array *a, const char *want, const char *what)
{
    is_text(rc < 0 ? err.text : words(a), want, what);
    dnn_array_free(a);
}

/* ---- standardise ---- */

static void standardise_known(void)
{
    struct dnn_array a = counted(DNN_U8, "2x2x2");

    a.spacing[1] = 3;
    dnn_standardise(&a, 2, REALS(1, 2), REALS(0.5, 2), &err);
    ok(a.type == DNN_F32 && a.spacing[1] == 3, "it becomes f32, its spacing is kept");
    is_result(0, &a, "2x2x2: -2 -0.5 2 0.5 6 1.5 10 2.5", "a mean for each channel");
    a = counted(DNN_F32, "2x3");
    is_result(dnn_standardise(&a, 1, REALS(1), REALS(2), &err), &a,
              "2x3: -0.5 0 0.5 1 1.5 2", "one mean for all channels");
    a = counted(DNN_I16, "scalar");
    is_result(dnn_standardise(&a, 1, REALS(4), REALS(2), &err), &a, "scalar: -2",
              "a single number");
    a = counted(DNN_F32, "2x3");
    is_result(dnn_standardise(&a, 2, REALS(1, 1), REALS(2, 2), &err), &a,
              "standardise: 2 means given for an array of 2x3; give 1 or 3",
              "a wrong number of channels");
    a = counted(DNN_F32, "2x2");
    is_result(dnn_standardise(&a, 2, REALS(1, 1), REALS(2, 0), &err), &a,
              "standardise: mean 1 and standard deviation 0 of channel 1: the mean "
              "must be finite, the deviation more than 0",
              "a constant channel");
    a = counted(DNN_F32, "2x1");
    is_result(dnn_standardise(&a, 1, REALS(NAN), REALS(2), &err), &a,
              "standardise: mean nan and standard deviation 2 of channel 0: the mean "
              "must be finite, the deviation more than 0",
              "no mean");
    a = blank(DNN_U8, "0x2");
    is_result(dnn_standardise(&a, 1, REALS(0), REALS(2), &err), &a,
              "0x2:", "an empty array");
}

/* Every type, few and many channels, against division in long double. */
static void standardise_random(void)
{
    static const char *const shapes[] = {"700x1", "300x3", "2x1000", "257x5", "1x1"};
    double mean[1000], std[1000];

    for (enum dnn_dtype type = 0; type < DNN_NDTYPES; type++) {
        bool good = true;

        for (int k = 0; k < 1000; k++) {
            mean[k] = (double)draw(1000) / 7;
            std[k] = (double)(draw(1000) + 1) / 77;
        }
        for (int i = 0; i < 5; i++) {
            struct dnn_array a = drawn(type, shapes[i]), b = {0};
            int64_t channels = a.shape.dim[1];

            dnn_array_copy(&a, &b, &err);
            dnn_standardise(&b, (int)channels, mean, std, &err);
            for (int64_t k = 0; k < dnn_array_count(&a); k++) {
                int64_t c = k % channels;
                long double want = ((long double)value_of(&a, k) - mean[c]) / std[c];

                good = good && fabsl((long double)value_of(&b, k) - want) <=
                                   0x1p-24L * 1.0001L * fabsl(want);
            }
            dnn_array_free(&a);
            dnn_array_free(&b);
        }
        ok(good, "%s: rounded once", dnn_dtype_name(type));
    }
}

/* ---- clip ---- */

static void clips(void)
{
    struct dnn_array a;

    for (enum dnn_dtype type = 0; type < DNN_NDTYPES; type++) {
        if (type == DNN_BOOL) continue;
        a = counted(type, "6x1");
        int rc = dnn_clip(&a, 1.5, 3.5, &err);
        bool real =
            type == DNN_F32 || type == DNN_F64 || type == DNN_F16 || type == DNN_BF16;
        ok(a.type == type, "%s stays %s", dnn_dtype_name(type), dnn_dtype_name(type));
        is_result(rc, &a, real ? "6x1: 1.5 1.5 2 3 3.5 3.5" : "6x1: 2 2 2 3 3 3",
                  "bounds are rounded inwards for integers");
    }
    a = counted(DNN_BOOL, "2x1");
    is_result(dnn_clip(&a, 0.5, 9, &err), &a, "2x1: 1 1", "bool");
    a = counted(DNN_F32, "3x1");
    set_value(&a, 1, NAN);
    is_result(dnn_clip(&a, 1, INFINITY, &err), &a, "3x1: 1 nan 2", "a NaN stays a NaN");
    static const double big[] = {-0x1p63, 0x1p63};
    a = blank(DNN_I64, "2x1");
    ((int64_t *)a.data)[0] = INT64_MIN;
    ((int64_t *)a.data)[1] = INT64_MAX;
    dnn_clip(&a, big[0], big[1], &err);
    ok(((int64_t *)a.data)[0] == INT64_MIN && ((int64_t *)a.data)[1] == INT64_MAX,
       "the ends of i64");
    dnn_clip(&a, big[1], INFINITY, &err);
    ok(((int64_t *)a.data)[0] == INT64_MAX, "its very end");
    dnn_array_free(&a);
    a = counted(DNN_U8, "3x1");
    is_result(dnn_clip(&a, -5, 1, &err), &a, "3x1: 0 1 1", "below all bytes");
    a = counted(DNN_U8, "3x1");
    is_result(dnn_clip(&a, 256, 300, &err), &a,
              "clip: no value of type u8 lies in [256, 300]", "beyond all bytes");
    a = counted(DNN_U8, "3x1");
    is_result(dnn_clip(&a, 1.2, 1.8, &err), &a,
              "clip: no value of type u8 lies in [1.2, 1.8]", "between two");
    a = counted(DNN_F32, "3x1");
    is_result(dnn_clip(&a, 2, 1, &err), &a, "clip: [2, 1] is not a range", "no range");
    a = counted(DNN_F32, "3x1");
    is_result(dnn_clip(&a, NAN, 1, &err), &a, "clip: [nan, 1] is not a range", "a NaN");
}

/* ---- classes ---- */

static void classes(void)
{
    struct dnn_array a = counted(DNN_U8, "2x2x1"), b = {0};

    is_result(dnn_remap(&a, TABLE(3, 3, 0, 7), 4, &err), &a, "2x2x1: 3 3 0 7", "remap");
    a = counted(DNN_F32, "1000x1");
    int64_t table[1000];
    bool good = true;
    for (int i = 0; i < 1000; i++)
        table[i] = 999 - i;
    dnn_remap(&a, table, 1000, &err);
    for (int i = 0; i < 1000; i++)
        good = good && value_of(&a, i) == 999 - i;
    ok(good, "more than one block");
    set_value(&a, 777, 0.5);
    is_result(dnn_remap(&a, table, 1000, &err), &a,
              "remap: element 777 is 0.5; classes are 0 to 999", "not a class number");
    a = counted(DNN_U8, "4x1");
    is_result(dnn_remap(&a, TABLE(0, 1, 2), 3, &err), &a,
              "remap: element 3 is 3; classes are 0 to 2", "outside the table");
    a = counted(DNN_U8, "4x1");
    is_result(dnn_remap(&a, TABLE(0, 1, -1, 2), 4, &err), &a,
              "remap: element 2 is 2, which is not a class", "not a class");
    a = counted(DNN_U8, "4x1");
    is_result(dnn_remap(&a, TABLE(0, 1, 300, 2), 4, &err), &a,
              "remap: from element 0 on: element 2 is 300, out of range of u8",
              "a class out of range of u8");
    a = counted(DNN_I64, "2x1");
    dnn_one_hot(&a, 3, &b, &err);
    is_result(0, &b, "2x3: 1 0 0 0 1 0", "one-hot of a mask");
    dnn_array_free(&a);
    a = blank(DNN_I32, "scalar");
    set_value(&a, 0, 2);
    dnn_one_hot(&a, 4, &b, &err);
    is_result(0, &b, "4: 0 0 1 0", "one-hot of a label");
    is_result(dnn_one_hot(&a, 2, &b, &err), &b,
              "one_hot: element 0 is 2; classes are 0 to 1", "too large a label");
    set_value(&a, 0, -1);
    is_result(dnn_one_hot(&a, 2, &b, &err), &b,
              "one_hot: element 0 is -1; classes are 0 to 1", "a negative label");
    is_result(dnn_one_hot(&a, 0, &b, &err), &b,
              "one_hot: 0 classes; must be at least 1", "no classes");
    dnn_array_free(&a);
    a = counted(DNN_U8, "2x2");
    is_result(dnn_one_hot(&a, 4, &b, &err), &b,
              "one_hot: the array is 2x2; a class number must be a scalar or the only "
              "channel",
              "channels");
    dnn_array_free(&a);
}

int main(void)
{
    standardise_known();
    standardise_random();
    clips();
    classes();
    return done();
}
