/* loss.c - squared differences and cross-entropy, as scalars.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/loss_impl.h"

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
    double factor = 2 * c->op->attr.loss.scale * get(&c->in[0], 0);

    for (int64_t i = 0; i < dx->count; i++)
        set(dx, i, factor * (get(x, i) - get(t, i)));
}

static struct ref_targets targets(const struct ref_call *c, int x)
{
    const struct dnn_op_loss *l = &c->op->attr.loss;

    return ref_targets(&c->in[x], &c->in[x + 1], l->ignores, l->ignore);
}

/* The factor of -log p of class j: its weight times its smoothed target. */
static double coefficient(const struct ref_call *c, const struct ref_targets *k,
                          const struct ref_array *w, int64_t row, int64_t j)
{
    double s = c->op->attr.loss.smoothing;

    return ref_weight(w, j) * ((1 - s) * ref_target(k, row, j) + s / (double)k->n);
}

void dnn_ref_xent(const struct ref_call *c)
{
    const struct dnn_op_loss *l = &c->op->attr.loss;
    const struct ref_array *x = &c->in[0], *w = dnn_ref_in(c, 2);
    struct ref_targets k = targets(c, 0);
    double sum = 0;

    for (int64_t row = 0; row < x->count / k.n; row++) {
        if (!ref_is_valid(&k, row)) continue;
        double log_sum = l->raw ? 0 : ref_log_sum(x, row, k.n);
        for (int64_t j = 0; j < k.n; j++) {
            double g = coefficient(c, &k, w, row, j),
                   log_p = get(x, row * k.n + j) - log_sum;

            if (g == 0) continue;
            if (l->gamma != 0) g *= pow(1 - exp(log_p), l->gamma);
            sum -= g * log_p;
        }
    }
    set(&c->out[0], 0, sum * ref_scale(c, 3));
}

/* p times the derivative of -(1 - p)^gamma log p. */
static double slope(double log_p, double gamma)
{
    double p = exp(log_p);

    if (gamma == 0) return -1;
    if (p >= 1) return 0;
    return gamma * pow(1 - p, gamma - 1) * p * log_p - pow(1 - p, gamma);
}

void dnn_ref_xent_data(const struct ref_call *c)
{
    const struct dnn_op_loss *l = &c->op->attr.loss;
    const struct ref_array *x = &c->in[1], *dx = &c->out[0], *w = dnn_ref_in(c, 3);
    struct ref_targets k = targets(c, 1);
    double factor = ref_scale(c, 4) * get(&c->in[0], 0);

    for (int64_t row = 0; row < x->count / k.n; row++) {
        bool valid = ref_is_valid(&k, row);
        double log_sum = l->raw ? 0 : ref_log_sum(x, row, k.n), sum = 0;

        for (int64_t j = 0; j < k.n && valid && !l->raw; j++)
            sum += coefficient(c, &k, w, row, j) *
                   slope(get(x, row * k.n + j) - log_sum, l->gamma);
        for (int64_t j = 0; j < k.n; j++) {
            double log_p = get(x, row * k.n + j) - log_sum;
            double d =
                valid ? coefficient(c, &k, w, row, j) * slope(log_p, l->gamma) : 0;

            if (!l->raw) d -= exp(log_p) * sum;
            set(dx, row * k.n + j, factor * d);
        }
    }
}

void dnn_ref_weigh(const struct ref_call *c)
{
    const struct dnn_op_loss *l = &c->op->attr.loss;
    const struct ref_array *t = &c->in[0], *w = &c->in[1];
    double sum = 0;

    for (int64_t i = 0; i < t->count; i++) {
        double label = get(t, i);

        if (ref_label_is_valid(label, l->classes, l->ignores, l->ignore))
            sum += l->classes == 1 ? 1 : ref_weight(w, (int64_t)label);
    }
    set(&c->out[0], 0, sum);
    set(&c->out[0], 1, (double)t->shape.dim[0]);
}
