/* softmax.c - softmax along an axis, and its logarithm.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

#include <math.h>

void dnn_ref_softmax(const struct ref_call *c)
{
    const struct dnn_op_softmax *s = &c->op->attr.softmax;
    const struct ref_array *x = &c->in[0], *y = &c->out[0];
    struct ref_axis a = dnn_ref_axis(&x->shape, s->axis);

    for (int64_t i = 0; i < a.outer * a.inner; i++) {
        int64_t first = i / a.inner * a.n * a.inner + i % a.inner;
        double max = -INFINITY, sum = 0;
        for (int64_t j = 0; j < a.n; j++)
            max = fmax(max, get(x, first + j * a.inner));
        for (int64_t j = 0; j < a.n; j++)
            sum += exp(get(x, first + j * a.inner) - max);
        for (int64_t j = 0; j < a.n; j++) {
            double v = get(x, first + j * a.inner) - max;
            set(y, first + j * a.inner, s->log ? v - log(sum) : exp(v) / sum);
        }
    }
}

void dnn_ref_softmax_data(const struct ref_call *c)
{
    const struct dnn_op_softmax *s = &c->op->attr.softmax;
    const struct ref_array *dy = &c->in[0], *y = &c->in[1], *dx = &c->out[0];
    struct ref_axis a = dnn_ref_axis(&y->shape, s->axis);

    for (int64_t i = 0; i < a.outer * a.inner; i++) {
        int64_t first = i / a.inner * a.n * a.inner + i % a.inner;
        double sum = 0;
        for (int64_t j = 0; j < a.n; j++) {
            int64_t at = first + j * a.inner;
            sum += s->log ? get(dy, at) : get(dy, at) * get(y, at);
        }
        for (int64_t j = 0; j < a.n; j++) {
            int64_t at = first + j * a.inner;
            double d = get(dy, at), v = get(y, at);
            set(dx, at, s->log ? d - exp(v) * sum : v * (d - sum));
        }
    }
}
