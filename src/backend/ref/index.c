/* index.c - indices of multi-dimensional arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

int64_t dnn_ref_count(const struct dnn_tensor *tensor)
{
    int64_t count = 0;

    if (tensor == NULL || dnn_shape_count(&tensor->shape, &count, NULL) < 0) return 0;
    return count;
}

struct ref_map dnn_ref_broadcast(const struct dnn_shape *big,
                                 const struct dnn_shape *small)
{
    struct ref_map map = {.big = *big};
    int shift = big->ndim - small->ndim;
    int64_t step = 1;

    assert(shift >= 0);
    for (int i = small->ndim - 1; i >= 0; i--) {
        map.step[i + shift] = small->dim[i] == 1 ? 0 : step;
        step *= small->dim[i];
    }
    return map;
}

struct ref_map dnn_ref_without(const struct dnn_shape *big, unsigned axes)
{
    struct ref_map map = {.big = *big};
    int64_t step = 1;

    for (int i = big->ndim - 1; i >= 0; i--) {
        if (axes >> i & 1) continue;
        map.step[i] = step;
        step *= big->dim[i];
    }
    return map;
}

int64_t dnn_ref_at(const struct ref_map *map, int64_t i)
{
    int64_t at = 0;

    for (int j = map->big.ndim - 1; j >= 0; j--) {
        at += i % map->big.dim[j] * map->step[j];
        i /= map->big.dim[j];
    }
    return at;
}

struct ref_axis dnn_ref_axis(const struct dnn_shape *shape, int axis)
{
    struct ref_axis a = {1, shape->dim[axis], 1};

    for (int i = 0; i < axis; i++)
        a.outer *= shape->dim[i];
    for (int i = axis + 1; i < shape->ndim; i++)
        a.inner *= shape->dim[i];
    return a;
}

int64_t dnn_ref_work_outputs(const struct dnn_step *step)
{
    int64_t n = 0;

    for (int i = 0; i < step->op->nout; i++)
        n += dnn_ref_count(step->out[i]);
    return n;
}
