/* base_shape.c - shapes: compared, counted, printed, parsed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/shape.h"
#include "tap.h"

#define BIG 9223372036854775807

/* Text, shape, number of elements, or the error message. */
static const struct {
    const char *text;
    struct dnn_shape shape;
    int64_t count;
    const char *message;
} shapes[] = {
    {"scalar",                  {0, {0}},                      1,      NULL},
    {"7",                       {1, {7}},                      7,      NULL},
    {"32x64x64x1",              {4, {32, 64, 64, 1}},          131072, NULL},
    {"3x0x5",                   {3, {3, 0, 5}},                0,      NULL},
    {"1x2x3x4x5x6x7x8",         {8, {1, 2, 3, 4, 5, 6, 7, 8}}, 40320,  NULL},
    {"9223372036854775807",     {1, {BIG}},                    BIG,    NULL},
    {"9223372036854775807x0x9", {3, {BIG, 0, 9}},              0,      NULL},
    {"4294967296x2147483648",
     {2, {4294967296, 2147483648}},
     -1,
     "shape 4294967296x2147483648: the number of elements overflows"       },
    {"?x64x3",
     {3, {-1, 64, 3}},
     -1,
     "shape ?x64x3: the number of elements is unknown because an axis is"  },
};

static const struct {
    const char *text, *message;
} wrong[] = {
    {"",                     "\"\" is not a shape; write 64x64x3 (? for an unknown axis)"    },
    {"x",                    "\"x\" is not a shape; write 64x64x3 (? for an unknown axis)"   },
    {"3x",                   "\"3x\" is not a shape; write 64x64x3 (? for an unknown axis)"  },
    {"3 x4",                 "\"3 x4\" is not a shape; write 64x64x3 (? for an unknown axis)"},
    {"-3",                   "\"-3\" is not a shape; write 64x64x3 (? for an unknown axis)"  },
    {"3,4",                  "\"3,4\" is not a shape; write 64x64x3 (? for an unknown axis)" },
    {"99999999999999999999",
     "\"99999999999999999999\" is not a shape; write 64x64x3 (? for an unknown axis)"        },
    {"1x1x1x1x1x1x1x1x1",    "shape \"1x1x1x1x1x1x1x1x1\": more than 8 axes"                 },
};

int main(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const char *name = shapes[i].text;
        struct dnn_shape got, made;
        struct dnn_err err = {0};
        char text[DNN_SHAPE_TEXT];
        int64_t count = -1;

        ok(dnn_shape_parse(name, &got, &err) == 0 &&
               dnn_shape_equal(&got, &shapes[i].shape),
           "%s is parsed", name);
        is_text(dnn_shape_text(text, sizeof text, &shapes[i].shape), name,
                "and printed");
        ok(dnn_shape_make(got.ndim, got.dim, &made, &err) == 0 &&
               dnn_shape_equal(&made, &got),
           "and made");
        int rc = dnn_shape_count(&shapes[i].shape, &count, &err);
        if (shapes[i].message == NULL)
            ok(rc == 0 && count == shapes[i].count, "and counted");
        else {
            is_text(err.text, shapes[i].message, "and not counted");
            ok(rc == DNN_ECONFIG && count == -1,
               "with the right code, nothing written");
        }
        for (size_t j = 0; j < i; j++)
            if (dnn_shape_equal(&shapes[i].shape, &shapes[j].shape))
                ok(false, "%s differs from %s", name, shapes[j].text);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct dnn_shape got = {.ndim = 77};
        struct dnn_err err = {0};

        ok(dnn_shape_parse(wrong[i].text, &got, &err) == DNN_ECONFIG && got.ndim == 77,
           "\"%s\" is no shape", wrong[i].text);
        is_text(err.text, wrong[i].message, "and its message");
    }

    struct dnn_err err = {0};
    struct dnn_shape got;
    const int64_t dim[9] = {1, -2, 3};
    dnn_shape_make(3, dim, &got, &err);
    is_text(err.text, "axis 1 of a shape must be 0 or more, not -2",
            "a negative extent");
    dnn_shape_make(9, dim, &got, &err);
    is_text(err.text, "a shape must have 0 to 8 axes, not 9", "too many axes");
    ok(dnn_shape_known(&shapes[2].shape) && !dnn_shape_known(&shapes[8].shape),
       "known and unknown shapes");
    char small[6];
    is_text(dnn_shape_text(small, sizeof small, &shapes[2].shape), "32x64",
            "output fits a small buffer");
    return done();
}
