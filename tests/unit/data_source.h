/* data_source.h - a source with known samples, some of them wrong if requested.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_UNIT_DATA_SOURCE_H
#define DNN_TESTS_UNIT_DATA_SOURCE_H

#include "sample/source.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SOURCE_POINTS = 3 * 4 * 2 };

/* Numbers of the samples that are wrong; -1: none. */
struct test_source {
    struct dnn_source source;
    int64_t nan_at, inf_at, class_at, mask_at, fail_at, odd_at;
    void (*look)(void); /* called by the thread that reads; or NULL */
};

static inline uint8_t source_pixel(int64_t i, int k)
{
    return (uint8_t)(i * 37 + k * 11);
}

static inline int32_t source_label(int64_t i)
{
    return (int32_t)(i * 7 % 10);
}

static inline int32_t source_mask(int64_t i, int k)
{
    return (int32_t)((i + k) % 3);
}

static inline double source_value(int64_t i, int k)
{
    return (double)i / 4 - k;
}

static inline int fill_test(const struct test_source *t, int64_t i,
                            struct dnn_sample *out, struct dnn_err *err)
{
    struct dnn_shape shape[4];

    for (int k = 0; k < 4; k++)
        shape[k] = t->source.col[k].shape;
    shape[0].dim[1] = i == t->odd_at ? 3 : 4;
    out->ncols = 4;
    for (int k = 0; k < 4; k++)
        DNN_TRY(dnn_array_make(&out->col[k], t->source.col[k].type, &shape[k], err));
    uint8_t *image = out->col[0].data;
    int64_t *label = out->col[1].data;
    int16_t *mask = out->col[2].data;
    double *values = out->col[3].data;
    for (int k = 0; k < dnn_array_count(&out->col[0]); k++)
        image[k] = source_pixel(i, k);
    *label = i == t->class_at ? 10 : source_label(i);
    for (int k = 0; k < 4; k++)
        mask[k] = (int16_t)source_mask(i, k);
    if (i == t->mask_at) mask[2] = -1;
    for (int k = 0; k < 3; k++)
        values[k] = source_value(i, k);
    if (i == t->nan_at) values[1] = NAN;
    if (i == t->inf_at) values[2] = INFINITY;
    return 0;
}

static int read_test(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                     struct dnn_err *err)
{
    const struct test_source *t = (const struct test_source *)source;

    if (t->look != NULL) t->look();
    if (i == t->fail_at)
        return dnn_fail(err, DNN_EIO, "test: sample %" PRId64 " cannot be read", i);
    return fill_test(t, i, out, err);
}

static void label_test(const struct dnn_source *source, int64_t i,
                       char out[DNN_SAMPLE_NAME])
{
    (void)source;
    snprintf(out, DNN_SAMPLE_NAME, "number %" PRId64, i);
}

static void close_test(struct dnn_source *source)
{
    (void)source;
}

static inline void test_column(struct dnn_column *c, const char *name,
                               enum dnn_column_role role, enum dnn_kind kind,
                               enum dnn_dtype type, const char *shape, int64_t classes)
{
    snprintf(c->name, sizeof c->name, "%s", name);
    c->role = role;
    c->kind = kind;
    c->type = type;
    c->classes = classes;
    if (strcmp(shape, "scalar") != 0) dnn_shape_parse(shape, &c->shape, NULL);
}

static inline struct test_source test_source_make(int64_t count)
{
    static const struct dnn_source_type type = {
        .name = "test", .read = read_test, .label = label_test, .close = close_test};
    struct test_source t = {
        .source = {.type = &type, .count = count, .ncols = 4},
        .nan_at = -1,
        .inf_at = -1,
        .class_at = -1,
        .mask_at = -1,
        .fail_at = -1,
        .odd_at = -1
    };
    struct dnn_column *c = t.source.col;

    test_column(&c[0], "image", DNN_ROLE_INPUT, DNN_KIND_IMAGE, DNN_U8, "3x4x2", 0);
    test_column(&c[1], "label", DNN_ROLE_TARGET, DNN_KIND_LABEL, DNN_I64, "scalar", 10);
    test_column(&c[2], "mask", DNN_ROLE_TARGET, DNN_KIND_MASK, DNN_I16, "2x2x1", 3);
    test_column(&c[3], "values", DNN_ROLE_INPUT, DNN_KIND_VALUES, DNN_F64, "3", 0);
    return t;
}

#endif
