/* loss_point.c - element-wise losses.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/loss_impl.h"

/* log(1 + exp(x)) = -log(1 - sigmoid(x)), without overflow. */
static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

/* Focal loss: with w = 1 - the probability of the target, w^gamma, w^(gamma - 1), and
 * the factor of alpha. */
struct focal {
    double power, power1, balance;
};

static struct focal focal(const struct dnn_op_loss *l, double x, double t)
{
    double p = ref_sigmoid(x), wrong = p + t - 2 * p * t;

    return (struct focal){
        .power = pow(wrong, l->gamma),
        .power1 = wrong == 0 ? 0 : pow(wrong, l->gamma - 1),
        .balance = l->alpha < 0 ? 1 : l->alpha * t + (1 - l->alpha) * (1 - t)};
}

static double value(const struct dnn_op_loss *l, double x, double t)
{
    double d = x - t;
    struct focal f;

    switch (l->fn) {
    case DNN_POINT_ABSOLUTE:
        return fabs(d);
    case DNN_POINT_HUBER:
        return fabs(d) <= l->delta ? d * d / 2 : l->delta * (fabs(d) - l->delta / 2);
    case DNN_POINT_HINGE:
        return fmax(0, t > 0 ? 1 - x : 1 + x);
    case DNN_POINT_BCE:
        return -(t * fmax(log(x), -100) + (1 - t) * fmax(log1p(-x), -100));
    case DNN_POINT_BCE_LOGITS:
        return softplus(x) - x * t;
    case DNN_POINT_FOCAL:
        f = focal(l, x, t);
        return (softplus(x) - x * t) * f.power * f.balance;
    case DNN_POINT_KL:
        return t > 0 ? t * (log(t) - x) : 0;
    case DNN_POINT_MAPE:
        return 100 * fabs(d) / fmax(fabs(t), l->delta);
    case DNN_POINT_POISSON:
        return l->raw ? exp(x) - t * x : x - t * log(x + l->delta);
    case DNN_POINT_HINGE_EMBEDDING:
        return t > 0 ? x : fmax(0, l->delta - x);
    case DNN_POINT_SOFT_MARGIN:
        return softplus(t > 0 ? -x : x);
    default:
        return d * d;
    }
}

static double slope(const struct dnn_op_loss *l, double x, double t)
{
    double d = x - t, p;
    struct focal f;

    switch (l->fn) {
    case DNN_POINT_ABSOLUTE:
        return (d > 0) - (d < 0);
    case DNN_POINT_HUBER:
        return fmin(fmax(d, -l->delta), l->delta);
    case DNN_POINT_HINGE:
        return t > 0 ? -(x < 1) : x > -1;
    case DNN_POINT_BCE:
        return d / fmax(x * (1 - x), 1e-12);
    case DNN_POINT_BCE_LOGITS:
        return ref_sigmoid(x) - t;
    case DNN_POINT_FOCAL:
        f = focal(l, x, t);
        p = ref_sigmoid(x);
        return f.balance *
               ((p - t) * f.power + (softplus(x) - x * t) * l->gamma * f.power1 *
                                        (1 - 2 * t) * p * (1 - p));
    case DNN_POINT_KL:
        return t > 0 ? -t : 0;
    case DNN_POINT_MAPE:
        return 100 * ((d > 0) - (d < 0)) / fmax(fabs(t), l->delta);
    case DNN_POINT_POISSON:
        return l->raw ? exp(x) - t : 1 - t / (x + l->delta);
    case DNN_POINT_HINGE_EMBEDDING:
        return t > 0 ? 1 : -(x < l->delta);
    case DNN_POINT_SOFT_MARGIN:
        return ref_sigmoid(x) - (t > 0);
    default:
        return 2 * d;
    }
}

void dnn_ref_point(const struct ref_call *c)
{
    const struct dnn_op_loss *l = &c->op->attr.loss;
    const struct ref_array *x = &c->in[0], *w = dnn_ref_in(c, 2);
    struct ref_targets k = ref_targets(x, &c->in[1], l->ignores, l->ignore);
    double sum = 0;

    for (int64_t row = 0; row < x->count / k.n; row++)
        for (int64_t j = 0; j < k.n && ref_is_valid(&k, row); j++)
            sum += ref_weight(w, j) *
                   value(l, get(x, row * k.n + j), ref_target(&k, row, j));
    set(&c->out[0], 0, sum * ref_scale(c, 3));
}

void dnn_ref_point_data(const struct ref_call *c)
{
    const struct dnn_op_loss *l = &c->op->attr.loss;
    const struct ref_array *x = &c->in[1], *dx = &c->out[0], *w = dnn_ref_in(c, 3);
    struct ref_targets k = ref_targets(x, &c->in[2], l->ignores, l->ignore);
    double factor = ref_scale(c, 4) * get(&c->in[0], 0);

    for (int64_t row = 0; row < x->count / k.n; row++) {
        bool valid = ref_is_valid(&k, row);

        for (int64_t j = 0; j < k.n; j++) {
            int64_t i = row * k.n + j;
            double d = valid ? slope(l, get(x, i), ref_target(&k, row, j)) : 0;

            set(dx, i, factor * ref_weight(w, j) * d);
        }
    }
}
