/* matmul.c - matrix product and bias.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

/* x(rows, k) w(k, n) [b(n)] -> y(rows, n) */
void dnn_ref_matmul(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *w = &c->in[1], *b = dnn_ref_in(c, 2);
    const struct ref_array *y = &c->out[0];
    int64_t k = w->shape.dim[0], n = w->shape.dim[1];

    for (int64_t i = 0; i < y->count; i++) {
        int64_t row = i / n, col = i % n;
        double sum = 0;
        for (int64_t j = 0; j < k; j++)
            sum += get(x, row * k + j) * get(w, j * n + col);
        if (b->mem != NULL) sum += get(b, col);
        set(y, i, dnn_ref_post(c, sum));
    }
}

void dnn_ref_matmul_data(const struct ref_call *c)
{
    const struct ref_array *dy = &c->in[0], *w = &c->in[1], *dx = &c->out[0];
    int64_t k = w->shape.dim[0], n = w->shape.dim[1];

    for (int64_t i = 0; i < dx->count; i++) {
        int64_t row = i / k, j = i % k;
        double sum = 0;
        for (int64_t col = 0; col < n; col++)
            sum += get(dy, row * n + col) * get(w, j * n + col);
        set(dx, i, sum);
    }
}

void dnn_ref_matmul_weights(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *dy = &c->in[1], *dw = &c->out[0];
    int64_t k = x->shape.dim[x->shape.ndim - 1], n = dy->shape.dim[dy->shape.ndim - 1];

    for (int64_t i = 0; i < dw->count; i++) {
        int64_t j = i / n, col = i % n;
        double sum = 0;
        for (int64_t row = 0; row < x->count / k; row++)
            sum += get(x, row * k + j) * get(dy, row * n + col);
        set(dw, i, sum);
    }
    dnn_ref_bias_sum(dy, &c->out[1]);
}

void dnn_ref_bias(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *b = &c->in[1], *y = &c->out[0];

    for (int64_t i = 0; i < y->count; i++)
        set(y, i, get(x, i) + get(b, i % b->count));
}

void dnn_ref_bias_sum(const struct ref_array *dy, const struct ref_array *db)
{
    for (int64_t j = 0; j < db->count; j++) {
        double sum = 0;
        for (int64_t i = j; i < dy->count; i += db->count)
            sum += get(dy, i);
        set(db, j, sum);
    }
}

void dnn_ref_bias_weights(const struct ref_call *c)
{
    dnn_ref_bias_sum(&c->in[0], &c->out[0]);
}
