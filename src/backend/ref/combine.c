/* combine.c - ops that broadcast or reduce: combine, reduce, scale, penalties.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

#include <math.h>

/* Element i of array a broadcast to the shape big. */
static double get_broadcast(const struct ref_array *a, const struct dnn_shape *big,
                            int64_t i)
{
    if (dnn_shape_equal(&a->shape, big)) return get(a, i);
    struct ref_map map = dnn_ref_broadcast(big, &a->shape);
    return get(a, dnn_ref_at(&map, i));
}

void dnn_ref_combine(const struct ref_call *c)
{
    enum dnn_combine fn = c->op->attr.combine.fn;
    const struct ref_array *y = &c->out[0];

    for (int64_t i = 0; i < y->count; i++) {
        double v = get_broadcast(&c->in[0], &y->shape, i);
        for (int j = 1; j < c->op->nin; j++) {
            double x = get_broadcast(&c->in[j], &y->shape, i);
            if (fn == DNN_ADD || fn == DNN_AVERAGE) v += x;
            if (fn == DNN_SUBTRACT) v -= x;
            if (fn == DNN_MULTIPLY) v *= x;
            if (fn == DNN_MAXIMUM && (x > v || x != x)) v = x;
            if (fn == DNN_MINIMUM && (x < v || x != x)) v = x;
        }
        set(y, i, dnn_ref_post(c, fn == DNN_AVERAGE ? v / c->op->nin : v));
    }
}

/* The derivative of element i of the result with respect to the operand. */
static double slope(const struct ref_call *c, int64_t i)
{
    const struct dnn_op_combine *a = &c->op->attr.combine;
    const struct dnn_shape *big = &c->in[0].shape;
    double v = 1;

    switch (a->fn) {
    case DNN_ADD:
        return 1;
    case DNN_SUBTRACT:
        return a->part == 0 ? 1 : -1;
    case DNN_AVERAGE:
        return 1.0 / a->parts;
    case DNN_MULTIPLY: /* in: dy, the other operands */
        for (int j = 1; j < c->op->nin; j++)
            v *= get_broadcast(&c->in[j], big, i);
        return v;
    default: /* maximum, minimum. in: dy, y, the operands up to this one */
        v = get(&c->in[1], i);
        for (int j = 0; j < a->part; j++)
            if (get_broadcast(&c->in[2 + j], big, i) == v) return 0;
        return get_broadcast(&c->in[2 + a->part], big, i) == v;
    }
}

void dnn_ref_combine_data(const struct ref_call *c)
{
    const struct ref_array *dy = &c->in[0], *dx = &c->out[0];
    struct ref_map map = dnn_ref_broadcast(&dy->shape, &dx->shape);

    clear(c->work, dx->count);
    for (int64_t i = 0; i < dy->count; i++)
        c->work[dnn_ref_at(&map, i)] += get(dy, i) * slope(c, i);
    store(dx, c->work);
}

int64_t dnn_ref_work_reduce(const struct dnn_step *step)
{
    return dnn_ref_count(step->op->pass == DNN_FWD ? step->out[0] : step->in[0]);
}

void dnn_ref_reduce(const struct ref_call *c)
{
    const struct dnn_op_reduce *r = &c->op->attr.reduce;
    const struct ref_array *x = &c->in[0], *y = &c->out[0];
    struct ref_map map = dnn_ref_without(&x->shape, r->axes);

    for (int64_t i = 0; i < y->count; i++)
        c->work[i] = r->fn == DNN_REDUCE_MAX ? -INFINITY : 0;
    for (int64_t i = 0; i < x->count; i++) {
        double *sum = &c->work[dnn_ref_at(&map, i)], v = get(x, i);
        if (r->fn != DNN_REDUCE_MAX)
            *sum += v;
        else if (v > *sum || v != v)
            *sum = v;
    }
    for (int64_t i = 0; i < y->count; i++)
        set(y, i,
            r->fn == DNN_REDUCE_MEAN ? c->work[i] * (double)y->count / (double)x->count
                                     : c->work[i]);
}

void dnn_ref_reduce_data(const struct ref_call *c)
{
    const struct dnn_op_reduce *r = &c->op->attr.reduce;
    const struct ref_array *dy = &c->in[0], *dx = &c->out[0];
    struct ref_map map = dnn_ref_without(&dx->shape, r->axes);
    double factor =
        r->fn == DNN_REDUCE_MEAN ? (double)dy->count / (double)dx->count : 1;

    if (r->fn != DNN_REDUCE_MAX) {
        for (int64_t i = 0; i < dx->count; i++)
            set(dx, i, get(dy, dnn_ref_at(&map, i)) * factor);
        return;
    }
    /* Equal maxima share the gradient: count them first. */
    const struct ref_array *x = &c->in[1], *y = &c->in[2];
    clear(c->work, dy->count);
    for (int64_t i = 0; i < dx->count; i++) {
        int64_t at = dnn_ref_at(&map, i);
        if (get(x, i) == get(y, at)) c->work[at] += 1;
    }
    for (int64_t i = 0; i < dx->count; i++) {
        int64_t at = dnn_ref_at(&map, i);
        set(dx, i, get(x, i) == get(y, at) ? get(dy, at) / c->work[at] : 0);
    }
}

void dnn_ref_scale(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *b = &c->in[2], *y = &c->out[0];

    for (int64_t i = 0; i < y->count; i++) {
        double v = get(x, i) * get_broadcast(&c->in[1], &y->shape, i);
        set(y, i, b->mem == NULL ? v : v + get_broadcast(b, &y->shape, i));
    }
}

void dnn_ref_scale_data(const struct ref_call *c)
{
    const struct ref_array *dy = &c->in[0], *dx = &c->out[0];

    for (int64_t i = 0; i < dx->count; i++)
        set(dx, i, get(dy, i) * get_broadcast(&c->in[1], &dx->shape, i));
}

void dnn_ref_activity(const struct ref_call *c)
{
    const struct dnn_op_activity *a = &c->op->attr.activity;
    const struct ref_array *x = &c->in[0], *y = &c->out[0];
    double loss = 0;

    for (int64_t i = 0; i < x->count; i++) {
        double v = get(x, i);
        loss += a->l1 * fabs(v) + a->l2 * v * v;
        set(y, i, v);
    }
    set(&c->out[1], 0, loss);
}

void dnn_ref_activity_data(const struct ref_call *c)
{
    const struct dnn_op_activity *a = &c->op->attr.activity;
    const struct ref_array *dy = &c->in[0], *x = &c->in[1], *dx = &c->out[0];

    for (int64_t i = 0; i < dx->count; i++) {
        double v = get(x, i), sign = v > 0 ? 1 : v < 0 ? -1 : 0;
        set(dx, i, get(dy, i) + a->l1 * sign + 2 * a->l2 * v);
    }
}
