/* shape.c - the extents of an array along its axes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/shape.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int dnn_shape_make(int ndim, const int64_t *dim, struct dnn_shape *out,
                   struct dnn_err *err)
{
    if (ndim < 0 || ndim > DNN_MAX_DIMS)
        return dnn_fail(err, DNN_ECONFIG, "a shape must have 0 to %d axes, not %d",
                        DNN_MAX_DIMS, ndim);
    struct dnn_shape shape = {.ndim = ndim};
    for (int i = 0; i < ndim; i++) {
        if (dim[i] < DNN_UNKNOWN)
            return dnn_fail(err, DNN_ECONFIG,
                            "axis %d of a shape must be 0 or more, not %" PRId64, i,
                            dim[i]);
        shape.dim[i] = dim[i];
    }
    *out = shape;
    return 0;
}

bool dnn_shape_equal(const struct dnn_shape *a, const struct dnn_shape *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->dim, b->dim, (size_t)a->ndim * sizeof a->dim[0]) == 0;
}

bool dnn_shape_known(const struct dnn_shape *shape)
{
    for (int i = 0; i < shape->ndim; i++)
        if (shape->dim[i] < 0) return false;
    return true;
}

int dnn_shape_count(const struct dnn_shape *shape, int64_t *out, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];
    int64_t count = 1;

    if (!dnn_shape_known(shape))
        return dnn_fail(
            err, DNN_ECONFIG,
            "shape %s: the number of elements is unknown because an axis is",
            dnn_shape_text(text, sizeof text, shape));
    for (int i = 0; i < shape->ndim; i++) {
        /* With an empty axis the product is 0, even if the others overflow. */
        if (shape->dim[i] == 0) {
            *out = 0;
            return 0;
        }
    }
    for (int i = 0; i < shape->ndim; i++)
        if (__builtin_mul_overflow(count, shape->dim[i], &count))
            return dnn_fail(err, DNN_ECONFIG,
                            "shape %s: the number of elements overflows",
                            dnn_shape_text(text, sizeof text, shape));
    *out = count;
    return 0;
}

const char *dnn_shape_text(char *out, size_t size, const struct dnn_shape *shape)
{
    char all[DNN_SHAPE_TEXT] = "scalar";
    size_t len = 0;

    for (int i = 0; i < shape->ndim; i++) {
        const char *sep = i == 0 ? "" : "x";
        int n;

        if (shape->dim[i] < 0)
            n = snprintf(all + len, sizeof all - len, "%s?", sep);
        else
            n = snprintf(all + len, sizeof all - len, "%s%" PRId64, sep, shape->dim[i]);
        len += (size_t)n;
    }
    snprintf(out, size, "%s", all);
    return out;
}

/* Parse one extent at *at, and advance *at. */
static bool extent(const char **at, int64_t *out)
{
    char *end;

    if (**at == '?') {
        *out = DNN_UNKNOWN;
        ++*at;
        return true;
    }
    if (!isdigit((unsigned char)**at)) return false;
    errno = 0;
    long long value = strtoll(*at, &end, 10);
    *at = end;
    *out = value;
    return errno == 0;
}

int dnn_shape_parse(const char *text, struct dnn_shape *out, struct dnn_err *err)
{
    struct dnn_shape shape = {0};
    const char *at = text;

    if (strcmp(text, "scalar") == 0) {
        *out = shape;
        return 0;
    }
    for (;;) {
        if (shape.ndim == DNN_MAX_DIMS)
            return dnn_fail(err, DNN_ECONFIG, "shape \"%.100s\": more than %d axes",
                            text, DNN_MAX_DIMS);
        if (!extent(&at, &shape.dim[shape.ndim])) break;
        shape.ndim++;
        if (*at == '\0') {
            *out = shape;
            return 0;
        }
        if (*at++ != 'x') break;
    }
    return dnn_fail(err, DNN_ECONFIG,
                    "\"%.100s\" is not a shape; write 64x64x3 (? for an unknown axis)",
                    text);
}
