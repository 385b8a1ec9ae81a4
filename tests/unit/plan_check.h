/* plan_check.h - checks every plan must pass: values alive at the same time do not
 * overlap, and gradients have the offsets of their weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_UNIT_PLAN_CHECK_H
#define DNN_TESTS_UNIT_PLAN_CHECK_H

#include "base/mem.h"
#include "plan/plan.h"

#include <stdint.h>

/* The columns of a value in the rows of its base. */
static inline void plan_columns(const struct dnn_plan *plan, int v, size_t *from,
                                size_t *to)
{
    const struct dnn_spot *s = &plan->spot[v];
    const struct dnn_tensor *is = &plan->prog->value[v].is;
    size_t size = dnn_dtype_size(is->dtype);

    *from = 0;
    *to = SIZE_MAX;
    if (s->pitch == 0) return;
    *from = (s->offset - plan->spot[s->base].offset) % ((size_t)s->pitch * size);
    *to = *from + (size_t)is->shape.dim[is->shape.ndim - 1] * size;
}

static inline bool plan_touch(const struct dnn_plan *plan, int a, int b)
{
    size_t from[2], to[2];

    plan_columns(plan, a, &from[0], &to[0]);
    plan_columns(plan, b, &from[1], &to[1]);
    return from[0] < to[1] && from[1] < to[0];
}

static inline int plan_root(int *same, int v)
{
    while (same[v] != v)
        v = same[v];
    return v;
}

/* Views and parts share the memory of their base. */
static inline int *plan_relatives(const struct dnn_prog *prog)
{
    int *same = dnn_alloc((size_t)prog->nvalues * sizeof *same);

    for (int v = 0; v < prog->nvalues; v++)
        same[v] = v;
    for (int o = 0; o < prog->nops; o++) {
        const struct dnn_op *op = &prog->op[o];

        if (op->kind == DNN_OP_CONCAT || op->kind == DNN_OP_RESHAPE)
            for (int i = 0; i < op->nin; i++)
                same[plan_root(same, op->in[i])] = plan_root(same, op->out[0]);
    }
    return same;
}

/* Number of pairs of values that are alive at the same time and overlap. */
static inline int plan_overlaps(const struct dnn_plan *plan)
{
    const struct dnn_prog *prog = plan->prog;
    int *same = plan_relatives(prog), n = 0;

    for (int a = 0; a < prog->nvalues; a++)
        for (int b = 0; b < a; b++) {
            const struct dnn_spot *s = &plan->spot[a], *t = &plan->spot[b];
            bool fixed = s->block != DNN_BLOCK_TEMPS;
            bool alike = s->base == t->base;

            if (s->block != t->block) continue;
            /* An op may overwrite its input. */
            if (!fixed && (s->first + alike > t->last || t->first + alike > s->last))
                continue;
            if (alike)
                n += plan_touch(plan, a, b) && plan_root(same, a) != plan_root(same, b);
            else if (s->pitch == 0 && t->pitch == 0)
                n += s->offset < t->offset + t->bytes &&
                     t->offset < s->offset + s->bytes;
            else
                n += plan->spot[s->base].offset <
                         plan->spot[t->base].offset + plan->spot[t->base].bytes &&
                     plan->spot[t->base].offset <
                         plan->spot[s->base].offset + plan->spot[s->base].bytes;
        }
    dnn_free(same);
    return n;
}

static inline bool plan_sound(const struct dnn_plan *plan)
{
    const struct dnn_prog *prog = plan->prog;
    bool good = plan_overlaps(plan) == 0 && plan->bytes[DNN_BLOCK_TEMPS] >= plan->peak;

    for (int v = 0; v < prog->nvalues; v++) {
        const struct dnn_spot *s = &plan->spot[v];

        good &= s->offset + s->bytes <= plan->bytes[s->block];
        if (prog->value[v].role == DNN_WEIGHT && prog->value[v].grad != DNN_NONE)
            good &= plan->spot[prog->value[v].grad].offset == s->offset;
    }
    return good;
}

#endif
