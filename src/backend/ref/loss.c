/* loss.c - squared differences and cross-entropy, as one number.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

#include <math.h>

void dnn_ref_mse(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *t = &c->in[1];
    double sum = 0;

    for (int64_t i = 0; i < x->count; i++) {
        double d = get(x, i) - get(t, i);
        sum += d * d;
    }
    set(&c->out[0], 0, sum * c->op->attr.loss.scale);
}

void dnn_ref_mse_data(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[1], *t = &c->in[2], *dx = &c->out[0];
    double times = 2 * c->op->attr.loss.scale * get(&c->in[0], 0);

    for (int64_t i = 0; i < dx->count; i++)
        set(dx, i, times * (get(x, i) - get(t, i)));
}

/* The target for class j of a row of n: from labels or from a distribution. */
static double target(const struct ref_array *t, bool labels, int64_t row, int64_t n,
                     int64_t j)
{
    return labels ? get(t, row) == (double)j : get(t, row * n + j);
}

/* log sum exp of a row, which is what softmax divides by. */
static double log_sum(const struct ref_array *x, int64_t row, int64_t n)
{
    double most = -INFINITY, sum = 0;

    for (int64_t j = 0; j < n; j++)
        most = fmax(most, get(x, row * n + j));
    for (int64_t j = 0; j < n; j++)
        sum += exp(get(x, row * n + j) - most);
    return most + log(sum);
}

void dnn_ref_xent(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *t = &c->in[1];
    int64_t n = x->shape.dim[x->shape.ndim - 1];
    bool labels = t->shape.ndim < x->shape.ndim;
    double sum = 0;

    for (int64_t row = 0; row < x->count / n; row++) {
        double all = log_sum(x, row, n);
        for (int64_t j = 0; j < n; j++)
            sum += target(t, labels, row, n, j) * (all - get(x, row * n + j));
    }
    set(&c->out[0], 0, sum * c->op->attr.loss.scale);
}

void dnn_ref_xent_data(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[1], *t = &c->in[2], *dx = &c->out[0];
    int64_t n = x->shape.dim[x->shape.ndim - 1];
    bool labels = t->shape.ndim < x->shape.ndim;
    double times = c->op->attr.loss.scale * get(&c->in[0], 0);

    for (int64_t row = 0; row < x->count / n; row++) {
        double all = log_sum(x, row, n), mass = 0;
        for (int64_t j = 0; j < n; j++)
            mass += target(t, labels, row, n, j);
        for (int64_t j = 0; j < n; j++) {
            double p = exp(get(x, row * n + j) - all);
            set(dx, row * n + j, times * (mass * p - target(t, labels, row, n, j)));
        }
    }
}
