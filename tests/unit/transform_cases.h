/* transform_cases.h - arrays for the tests of src/transform.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_TRANSFORM_CASES_H
#define DNN_TESTS_TRANSFORM_CASES_H

#include "tap.h"

#include "base/rng.h"
#include "sample/sample.h"

#include <math.h>
#include <stdlib.h>

/* Whole numbers below n, one after the other; the same in every run. */
static inline int64_t draw(int64_t n)
{
    static uint64_t index;
    struct dnn_rng rng = dnn_rng_make(7, 7);

    return (int64_t)dnn_rng_below(&rng, (struct dnn_rng_at){0, 0, index++},
                                  (uint64_t)n);
}

/* An array of a type and a shape ("4x5x1"); ends the test on failure. */
static inline struct dnn_array blank(enum dnn_dtype type, const char *text)
{
    struct dnn_array a = {0};
    struct dnn_shape shape;
    struct dnn_err err = {0};

    if (dnn_shape_parse(text, &shape, &err) < 0 ||
        dnn_array_make(&a, type, &shape, &err) < 0) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    memset(a.data, 0, dnn_array_bytes(&a));
    return a;
}

static inline double value_of(const struct dnn_array *a, int64_t i)
{
    double x = 0;
    size_t size = dnn_dtype_size(a->type);

    dnn_convert((const char *)a->data + (size_t)i * size, a->type, &x, DNN_F64, 1,
                false, NULL);
    return x;
}

static inline void set_value(struct dnn_array *a, int64_t i, double x)
{
    size_t size = dnn_dtype_size(a->type);

    dnn_convert(&x, DNN_F64, (char *)a->data + (size_t)i * size, a->type, 1, false,
                NULL);
}

/* 0, 1, 2... */
static inline struct dnn_array counted(enum dnn_dtype type, const char *shape)
{
    struct dnn_array a = blank(type, shape);

    for (int64_t i = 0; i < dnn_array_count(&a); i++)
        set_value(&a, i, (double)i);
    return a;
}

/* Any values: 0 or 1 for bool, 0 to 99 for other integers, thousandths for reals. */
static inline struct dnn_array drawn(enum dnn_dtype type, const char *shape)
{
    struct dnn_array a = blank(type, shape);
    bool real =
        type == DNN_F32 || type == DNN_F64 || type == DNN_F16 || type == DNN_BF16;

    for (int64_t i = 0; i < dnn_array_count(&a); i++)
        set_value(&a, i,
                  type == DNN_BOOL ? (double)draw(2)
                  : real           ? (double)draw(2000) / 1000 - 1
                                   : (double)draw(100));
    return a;
}

/* Shape and numbers in one line: "2x3: 0 1 2 3 4 5". */
static inline const char *words(const struct dnn_array *a)
{
    static char text[4096];
    size_t at;

    dnn_shape_text(text, sizeof text, &a->shape);
    at = strlen(text);
    at += (size_t)snprintf(text + at, sizeof text - at, ":");
    for (int64_t i = 0; i < dnn_array_count(a) && at < sizeof text - 40; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, " %.6g", value_of(a, i));
    return text;
}

static inline bool same_bytes(const struct dnn_array *a, const struct dnn_array *b)
{
    return a->type == b->type && dnn_shape_equal(&a->shape, &b->shape) &&
           memcmp(a->data, b->data, dnn_array_bytes(a)) == 0;
}

#endif
