/* init.c - the initializers of Keras.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "op/init.h"

#include "base/mem.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stddef.h>

/* The standard deviation of a normal distribution truncated at two: Keras divides by
 * it to get the requested variance. */
#define TRUNCATED_DEVIATION 0.87962566103423978

#define SCALING(scale, mode, dist)                                                     \
    {DNN_INIT_VARIANCE_SCALING, scale, 0, DNN_FAN_##mode, DNN_DIST_##dist, 0}

/* Names without underscores, in lower case; also the short ones of Keras 1. */
static const struct {
    const char *name;
    struct dnn_init init;
} table[] = {
    {"zeros", {.kind = DNN_INIT_ZEROS}},
    {"zero", {.kind = DNN_INIT_ZEROS}},
    {"ones", {.kind = DNN_INIT_ONES}},
    {"one", {.kind = DNN_INIT_ONES}},
    {"constant", {.kind = DNN_INIT_CONSTANT}},
    {"randomuniform", {.kind = DNN_INIT_UNIFORM, .a = -0.05, .b = 0.05}},
    {"uniform", {.kind = DNN_INIT_UNIFORM, .a = -0.05, .b = 0.05}},
    {"randomnormal", {.kind = DNN_INIT_NORMAL, .b = 0.05}},
    {"normal", {.kind = DNN_INIT_NORMAL, .b = 0.05}},
    {"truncatednormal", {.kind = DNN_INIT_TRUNCATED_NORMAL, .b = 0.05}},
    {"variancescaling", SCALING(1, IN, TRUNCATED_NORMAL)},
    {"glorotuniform", SCALING(1, AVG, UNIFORM)},
    {"glorotnormal", SCALING(1, AVG, TRUNCATED_NORMAL)},
    {"heuniform", SCALING(2, IN, UNIFORM)},
    {"henormal", SCALING(2, IN, TRUNCATED_NORMAL)},
    {"lecununiform", SCALING(1, IN, UNIFORM)},
    {"lecunnormal", SCALING(1, IN, TRUNCATED_NORMAL)},
    {"orthogonal", {.kind = DNN_INIT_ORTHOGONAL, .a = 1}},
    {"identity", {.kind = DNN_INIT_IDENTITY, .a = 1}},
    {"eye", {.kind = DNN_INIT_IDENTITY, .a = 1}},
};

static bool same(const char *given, const char *name)
{
    for (; *given != '\0'; given++) {
        if (*given == '_') continue;
        if (tolower((unsigned char)*given) != *name++) return false;
    }
    return *name == '\0';
}

bool dnn_init_find(const char *name, struct dnn_init *out)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (!same(name, table[i].name)) continue;
        *out = table[i].init;
        return true;
    }
    return false;
}

void dnn_init_fans(const struct dnn_shape *shape, double *in, double *out)
{
    int n = shape->ndim;

    *in = *out = n == 0 ? 1 : (double)shape->dim[n - 1];
    if (n < 2) return;
    *in = (double)shape->dim[n - 2];
    for (int i = 0; i < n - 2; i++) {
        *in *= (double)shape->dim[i];
        *out *= (double)shape->dim[i];
    }
}

static void put(enum dnn_dtype dtype, void *dst, int64_t i, double v)
{
    if (dtype == DNN_F64)
        ((double *)dst)[i] = v;
    else
        ((float *)dst)[i] = (float)v;
}

static double truncated(const struct dnn_rng *rng, int64_t i)
{
    struct dnn_rng_at at = {.index = (uint64_t)i};

    for (;;) {
        double v = dnn_rng_normal(rng, at);
        if (fabs(v) <= 2) return v;
        at.sample++; /* 1 of 22 is rejected: use the next number of this element */
    }
}

static double scaled(const struct dnn_init *init, const struct dnn_shape *shape,
                     const struct dnn_rng *rng, int64_t i)
{
    struct dnn_rng_at at = {.index = (uint64_t)i};
    double in, out, fan;

    dnn_init_fans(shape, &in, &out);
    fan = init->mode == DNN_FAN_IN    ? in
          : init->mode == DNN_FAN_OUT ? out
                                      : (in + out) / 2;
    double variance = init->a / fmax(1, fan);
    switch (init->dist) {
    case DNN_DIST_UNIFORM:
        return sqrt(3 * variance) * (2 * dnn_rng_uniform(rng, at) - 1);
    case DNN_DIST_UNTRUNCATED_NORMAL:
        return sqrt(variance) * dnn_rng_normal(rng, at);
    default:
        return sqrt(variance) / TRUNCATED_DEVIATION * truncated(rng, i);
    }
}

static double element(const struct dnn_init *init, const struct dnn_shape *shape,
                      const struct dnn_rng *rng, int64_t i)
{
    struct dnn_rng_at at = {.index = (uint64_t)i};
    int64_t cols = shape->ndim == 0 ? 1 : shape->dim[shape->ndim - 1];

    switch (init->kind) {
    case DNN_INIT_ONES:
        return 1;
    case DNN_INIT_CONSTANT:
        return init->a;
    case DNN_INIT_UNIFORM:
        return init->a + (init->b - init->a) * dnn_rng_uniform(rng, at);
    case DNN_INIT_NORMAL:
        return init->a + init->b * dnn_rng_normal(rng, at);
    case DNN_INIT_TRUNCATED_NORMAL:
        return init->a + init->b * truncated(rng, i);
    case DNN_INIT_VARIANCE_SCALING:
        return scaled(init, shape, rng, i);
    case DNN_INIT_IDENTITY:
        return i / cols == i % cols ? init->a : 0;
    default:
        assert(init->kind == DNN_INIT_ZEROS);
        return 0;
    }
}

/* Make row r of q(rows, n) orthogonal to those before it, and of length 1. */
static void orthonormalize(double *q, int64_t r, int64_t n)
{
    double norm = 0;

    /* Twice: once leaves errors that grow with the number of rows. */
    for (int again = 0; again < 2; again++) {
        for (int64_t p = 0; p < r; p++) {
            double dot = 0;
            for (int64_t i = 0; i < n; i++)
                dot += q[r * n + i] * q[p * n + i];
            for (int64_t i = 0; i < n; i++)
                q[r * n + i] -= dot * q[p * n + i];
        }
    }
    for (int64_t i = 0; i < n; i++)
        norm += q[r * n + i] * q[r * n + i];
    for (int64_t i = 0; i < n; i++)
        q[r * n + i] /= sqrt(norm);
}

/* A matrix (all but the last axis, last axis) with orthonormal rows or columns,
 * whichever are fewer. */
static void orthogonal(const struct dnn_init *init, int64_t rows, int64_t cols,
                       const struct dnn_rng *rng, enum dnn_dtype dtype, void *dst)
{
    int64_t few = rows < cols ? rows : cols, many = rows < cols ? cols : rows;
    double *q = dnn_alloc((size_t)(few * many) * sizeof *q);

    for (int64_t i = 0; i < few * many; i++)
        q[i] = dnn_rng_normal(rng, (struct dnn_rng_at){.index = (uint64_t)i});
    for (int64_t r = 0; r < few; r++)
        orthonormalize(q, r, many);
    for (int64_t i = 0; i < rows * cols; i++) {
        int64_t r = i / cols, c = i % cols;
        put(dtype, dst, i, init->a * (rows < cols ? q[r * many + c] : q[c * many + r]));
    }
    dnn_free(q);
}

int dnn_init_fill(const struct dnn_init *init, const struct dnn_shape *shape,
                  const struct dnn_rng *rng, enum dnn_dtype dtype, void *dst,
                  struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];
    int64_t count;

    DNN_TRY(dnn_shape_count(shape, &count, err));
    if (dtype != DNN_F32 && dtype != DNN_F64)
        return dnn_fail(err, DNN_ECONFIG, "initializers support f32 and f64, not %s",
                        dnn_dtype_name(dtype));
    if (init->kind == DNN_INIT_IDENTITY && shape->ndim != 2)
        return dnn_fail(err, DNN_ECONFIG,
                        "initializer identity: needs 2 axes, but the shape is %s",
                        dnn_shape_text(text, sizeof text, shape));
    if (init->kind == DNN_INIT_ORTHOGONAL && shape->ndim < 2)
        return dnn_fail(err, DNN_ECONFIG,
                        "initializer orthogonal: needs at least 2 axes, but the shape "
                        "is %s",
                        dnn_shape_text(text, sizeof text, shape));
    if (init->kind == DNN_INIT_ORTHOGONAL && count > 0) {
        int64_t cols = shape->dim[shape->ndim - 1];
        orthogonal(init, count / cols, cols, rng, dtype, dst);
        return 0;
    }
    for (int64_t i = 0; i < count; i++)
        put(dtype, dst, i, element(init, shape, rng, i));
    return 0;
}
