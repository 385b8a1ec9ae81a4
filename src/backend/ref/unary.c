/* unary.c - element-wise functions (activations), and PReLU.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

#include <math.h>

/* Klambauer and others, "Self-normalizing neural networks", 2017 */
#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946
#define GELU_CUBIC 0.044715

static double sigmoid(double x)
{
    double e = exp(-fabs(x));

    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double clip01(double x)
{
    return fmin(1, fmax(0, x));
}

static double gelu_inner(double x)
{
    return sqrt(2 / M_PI) * (x + GELU_CUBIC * x * x * x);
}

static double relu(const struct dnn_op_unary *u, double x)
{
    double y = x < u->threshold ? u->alpha * (x - u->threshold) : x;

    return y > u->max_value ? u->max_value : y;
}

static double value(const struct dnn_op_unary *u, double x)
{
    switch (u->fn) {
    case DNN_RELU:
        return relu(u, x);
    case DNN_ELU:
        return x < 0 ? u->alpha * expm1(x) : x;
    case DNN_SELU:
        return SELU_SCALE * (x < 0 ? SELU_ALPHA * expm1(x) : x);
    case DNN_GELU:
        return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    case DNN_GELU_TANH:
        return 0.5 * x * (1 + tanh(gelu_inner(x)));
    case DNN_SIGMOID:
        return sigmoid(x);
    case DNN_TANH:
        return tanh(x);
    case DNN_SOFTPLUS:
        return softplus(x);
    case DNN_SOFTSIGN:
        return x / (1 + fabs(x));
    case DNN_HARD_SIGMOID:
        return clip01(u->alpha * x + 0.5);
    case DNN_HARD_SWISH:
        return x * clip01(x / 6 + 0.5);
    case DNN_SWISH:
        return x * sigmoid(x);
    case DNN_MISH:
        return x * tanh(softplus(x));
    case DNN_LOG_SIGMOID:
        return -softplus(-x);
    case DNN_EXP:
        return exp(x);
    case DNN_LOG:
        return log(x);
    case DNN_SQUARE:
        return x * x;
    case DNN_SQRT:
        return sqrt(x);
    case DNN_ABS:
        return fabs(x);
    case DNN_RECIPROCAL:
        return 1 / x;
    default:
        assert(u->fn == DNN_NEGATE);
        return -x;
    }
}

/* The derivative as a function of the result y, for those functions where
 * dnn_op_unary_by_result() is true. */
static double slope_by_result(const struct dnn_op_unary *u, double y)
{
    switch (u->fn) {
    case DNN_RELU:
        return y >= u->max_value ? 0 : y > 0 ? 1 : u->alpha;
    case DNN_ELU:
        return y > 0 ? 1 : y + u->alpha;
    case DNN_SELU:
        return y > 0 ? SELU_SCALE : y + SELU_SCALE * SELU_ALPHA;
    case DNN_SIGMOID:
        return y * (1 - y);
    case DNN_TANH:
        return 1 - y * y;
    case DNN_SOFTPLUS:
        return -expm1(-y);
    case DNN_SOFTSIGN:
        return (1 - fabs(y)) * (1 - fabs(y));
    case DNN_HARD_SIGMOID:
        return y > 0 && y < 1 ? u->alpha : 0;
    case DNN_LOG_SIGMOID:
        return -expm1(y);
    case DNN_EXP:
        return y;
    case DNN_RECIPROCAL:
        return -y * y;
    default:
        assert(u->fn == DNN_SQRT);
        return 0.5 / y;
    }
}

static double slope_by_argument(const struct dnn_op_unary *u, double x)
{
    double t, s;

    switch (u->fn) {
    case DNN_RELU:
        if (relu(u, x) >= u->max_value) return 0;
        return x > u->threshold ? 1 : u->alpha;
    case DNN_ELU: /* alpha <= 0: y does not determine the branch */
        return x > 0 ? 1 : u->alpha * exp(x);
    case DNN_HARD_SIGMOID:
        t = u->alpha * x + 0.5;
        return t > 0 && t < 1 ? u->alpha : 0;
    case DNN_GELU:
        return 0.5 * (1 + erf(x * M_SQRT1_2)) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
    case DNN_GELU_TANH:
        t = tanh(gelu_inner(x));
        return 0.5 * (1 + t) +
               0.5 * x * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * GELU_CUBIC * x * x);
    case DNN_HARD_SWISH:
        return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
    case DNN_SWISH:
        s = sigmoid(x);
        return s + x * s * (1 - s);
    case DNN_MISH:
        t = tanh(softplus(x));
        return t + x * sigmoid(x) * (1 - t * t);
    case DNN_LOG:
        return 1 / x;
    case DNN_SQUARE:
        return 2 * x;
    case DNN_ABS:
        return x > 0 ? 1 : x < 0 ? -1 : 0;
    default:
        assert(u->fn == DNN_NEGATE);
        return -1;
    }
}

double dnn_ref_post(const struct ref_call *c, double x)
{
    return c->op->post == NULL ? x : value(c->op->post, x);
}

double dnn_ref_post_slope(const struct ref_call *c, double x)
{
    const struct dnn_op_unary *u = c->op->post;

    if (u == NULL) return 1;
    return dnn_op_unary_by_result(u) ? slope_by_result(u, value(u, x))
                                     : slope_by_argument(u, x);
}

void dnn_ref_unary(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *y = &c->out[0], *mask = &c->out[1];
    unsigned bits = 0;

    for (int64_t i = 0; i < y->count; i++) {
        double v = get(x, i);
        set(y, i, value(&c->op->attr.unary, v));
        if (mask->mem == NULL) continue;
        bits = i % 8 == 0 ? v > 0 : bits | (unsigned)(v > 0) << i % 8;
        set(mask, i / 8, bits);
    }
}

void dnn_ref_unary_data(const struct ref_call *c)
{
    struct dnn_op_unary own = c->op->attr.unary, *u = &own;
    const struct ref_array *dy = &c->in[0], *xy = &c->in[1], *dx = &c->out[0];
    bool result = dnn_op_unary_by_result(u);

    /* f32 results that were clipped to max_value have been rounded. */
    if (xy->dtype == DNN_F32) own.max_value = (float)own.max_value;

    for (int64_t i = 0; i < dx->count && u->mask; i++) {
        unsigned bits = (unsigned)get(xy, i / 8);
        set(dx, i, get(dy, i) * (bits >> i % 8 & 1 ? 1 : u->alpha));
    }
    for (int64_t i = 0; i < dx->count && !u->mask; i++) {
        double v = get(xy, i);
        set(dx, i,
            get(dy, i) * (result ? slope_by_result(u, v) : slope_by_argument(u, v)));
    }
}

void dnn_ref_prelu(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *a = &c->in[1], *y = &c->out[0];
    struct ref_map map = dnn_ref_broadcast(&x->shape, &a->shape);

    for (int64_t i = 0; i < y->count; i++) {
        double v = get(x, i);
        set(y, i, v > 0 ? v : v * get(a, dnn_ref_at(&map, i)));
    }
}

void dnn_ref_prelu_data(const struct ref_call *c)
{
    const struct ref_array *dy = &c->in[0], *x = &c->in[1], *a = &c->in[2];
    const struct ref_array *dx = &c->out[0];
    struct ref_map map = dnn_ref_broadcast(&x->shape, &a->shape);

    for (int64_t i = 0; i < dx->count; i++)
        set(dx, i, get(dy, i) * (get(x, i) > 0 ? 1 : get(a, dnn_ref_at(&map, i))));
}

void dnn_ref_prelu_weights(const struct ref_call *c)
{
    const struct ref_array *dy = &c->in[0], *x = &c->in[1], *da = &c->out[0];
    struct ref_map map = dnn_ref_broadcast(&x->shape, &da->shape);

    clear(c->work, da->count);
    for (int64_t i = 0; i < x->count; i++)
        if (get(x, i) < 0) c->work[dnn_ref_at(&map, i)] += get(dy, i) * get(x, i);
    store(da, c->work);
}
