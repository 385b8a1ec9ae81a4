/* batchnorm.c - batch normalization as separate passes, so that sums can be added over
 * all ranks in between.
 *
 * sums, f64: c sums of x, c sums of x^2, and the number of elements per channel.
 *
 * dsums, f64: c sums of dy, c sums of dy xhat.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

#include <math.h>

static double mean_of(const struct ref_array *sums, int64_t c)
{
    return get(sums, c) / get(sums, sums->count - 1);
}

static double variance_of(const struct ref_array *sums, int64_t c)
{
    double mean = mean_of(sums, c);
    double squares = get(sums, sums->count / 2 + c) / get(sums, sums->count - 1);

    return fmax(0, squares - mean * mean);
}

static double get_or_one(const struct ref_array *a, int64_t i)
{
    return a->mem == NULL ? 1 : get(a, i);
}

static double get_or_zero(const struct ref_array *a, int64_t i)
{
    return a->mem == NULL ? 0 : get(a, i);
}

/* The slope of the fused activation at the normalized value hat. */
static double post_slope(const struct ref_call *c, double hat,
                         const struct ref_array *gamma, const struct ref_array *beta,
                         int64_t ch)
{
    if (c->op->post == NULL) return 1;
    return dnn_ref_post_slope(c, hat * get_or_one(gamma, ch) + get_or_zero(beta, ch));
}

/* The channel of each element. */
static int64_t channel(const struct ref_axis *a, int64_t i)
{
    return i / a->inner % a->n;
}

void dnn_ref_bn_stats(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0];
    struct ref_axis a = dnn_ref_axis(&x->shape, c->op->attr.batchnorm.axis);
    double *sum = c->out[0].mem;

    clear(sum, 2 * a.n);
    for (int64_t i = 0; i < x->count; i++) {
        double v = get(x, i);
        sum[channel(&a, i)] += v;
        sum[a.n + channel(&a, i)] += v * v;
    }
    sum[2 * a.n] = (double)(a.outer * a.inner);
}

void dnn_ref_bn_update(const struct ref_call *c)
{
    const struct dnn_op_batchnorm *b = &c->op->attr.batchnorm;
    const struct ref_array *sums = &c->in[0], *mean = &c->in[1], *var = &c->in[2];
    double n = get(sums, sums->count - 1), keep = b->momentum;
    double correction = b->unbiased && n > 1 ? n / (n - 1) : 1;

    for (int64_t i = 0; i < mean->count; i++) {
        set(mean, i, keep * get(mean, i) + (1 - keep) * mean_of(sums, i));
        set(var, i,
            keep * get(var, i) + (1 - keep) * correction * variance_of(sums, i));
    }
}

void dnn_ref_bn_apply(const struct ref_call *c)
{
    const struct dnn_op_batchnorm *b = &c->op->attr.batchnorm;
    const struct ref_array *x = &c->in[0], *sums = &c->in[1], *y = &c->out[0];
    const struct ref_array *gamma = &c->in[2], *beta = &c->in[3];
    struct ref_axis a = dnn_ref_axis(&x->shape, b->axis);

    for (int64_t i = 0; i < y->count; i++) {
        int64_t ch = channel(&a, i);
        double inv = 1 / sqrt(variance_of(sums, ch) + b->epsilon);
        double v = (get(x, i) - mean_of(sums, ch)) * inv * get_or_one(gamma, ch);
        set(y, i, dnn_ref_post(c, v + get_or_zero(beta, ch)));
    }
}

void dnn_ref_bn_apply_stats(const struct ref_call *c)
{
    const struct dnn_op_batchnorm *b = &c->op->attr.batchnorm;
    const struct ref_array *dy = &c->in[0], *x = &c->in[1], *sums = &c->in[2];
    const struct ref_array *gamma = dnn_ref_in(c, 3), *beta = dnn_ref_in(c, 4);
    struct ref_axis a = dnn_ref_axis(&x->shape, b->axis);
    double *sum = c->out[0].mem;

    clear(sum, 2 * a.n);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t ch = channel(&a, i);
        double inv = 1 / sqrt(variance_of(sums, ch) + b->epsilon);
        double hat = (get(x, i) - mean_of(sums, ch)) * inv;
        double d = get(dy, i) * post_slope(c, hat, gamma, beta, ch);
        sum[ch] += d;
        sum[a.n + ch] += d * hat;
    }
}

void dnn_ref_bn_apply_data(const struct ref_call *c)
{
    const struct dnn_op_batchnorm *b = &c->op->attr.batchnorm;
    const struct ref_array *dy = &c->in[0], *x = &c->in[1], *sums = &c->in[2];
    const struct ref_array *dsums = &c->in[3], *gamma = &c->in[4];
    const struct ref_array *beta = dnn_ref_in(c, 5), *dx = &c->out[0];
    struct ref_axis a = dnn_ref_axis(&x->shape, b->axis);
    double n = get(sums, sums->count - 1);

    for (int64_t i = 0; i < dx->count; i++) {
        int64_t ch = channel(&a, i);
        double inv = 1 / sqrt(variance_of(sums, ch) + b->epsilon);
        double hat = (get(x, i) - mean_of(sums, ch)) * inv;
        double rest = (get(dsums, ch) + hat * get(dsums, a.n + ch)) / n;
        double d = get(dy, i) * post_slope(c, hat, gamma, beta, ch);
        set(dx, i, get_or_one(gamma, ch) * inv * (d - rest));
    }
}

void dnn_ref_bn_apply_weights(const struct ref_call *c)
{
    const struct ref_array *dsums = &c->in[0];
    const struct ref_array *dgamma = &c->out[0], *dbeta = &c->out[1];

    for (int64_t i = 0; i < dgamma->count; i++)
        set(dgamma, i, get(dsums, dsums->count / 2 + i));
    for (int64_t i = 0; i < dbeta->count; i++)
        set(dbeta, i, get(dsums, i));
}

void dnn_ref_bn_infer(const struct ref_call *c)
{
    const struct dnn_op_batchnorm *b = &c->op->attr.batchnorm;
    const struct ref_array *x = &c->in[0], *mean = &c->in[1], *var = &c->in[2];
    const struct ref_array *gamma = &c->in[3], *beta = &c->in[4], *y = &c->out[0];
    struct ref_axis a = dnn_ref_axis(&x->shape, b->axis);

    for (int64_t i = 0; i < y->count; i++) {
        int64_t ch = channel(&a, i);
        double inv = 1 / sqrt(get(var, ch) + b->epsilon);
        double v = (get(x, i) - get(mean, ch)) * inv * get_or_one(gamma, ch);
        set(y, i, dnn_ref_post(c, v + get_or_zero(beta, ch)));
    }
}

void dnn_ref_bn_infer_data(const struct ref_call *c)
{
    const struct dnn_op_batchnorm *b = &c->op->attr.batchnorm;
    const struct ref_array *dy = &c->in[0], *var = &c->in[1], *gamma = &c->in[2];
    const struct ref_array *dx = &c->out[0];
    struct ref_axis a = dnn_ref_axis(&dx->shape, b->axis);

    for (int64_t i = 0; i < dx->count; i++) {
        int64_t ch = channel(&a, i);
        double inv = 1 / sqrt(get(var, ch) + b->epsilon);
        set(dx, i, get(dy, i) * inv * get_or_one(gamma, ch));
    }
}

void dnn_ref_bn_infer_weights(const struct ref_call *c)
{
    const struct dnn_op_batchnorm *b = &c->op->attr.batchnorm;
    const struct ref_array *dy = &c->in[0], *x = &c->in[1], *mean = &c->in[2];
    const struct ref_array *var = &c->in[3];
    const struct ref_array *dgamma = &c->out[0], *dbeta = &c->out[1];
    struct ref_axis a = dnn_ref_axis(&x->shape, b->axis);

    for (int64_t ch = 0; ch < a.n; ch++) {
        double inv = 1 / sqrt(get(var, ch) + b->epsilon), sum = 0, product = 0;
        for (int64_t j = 0; j < a.outer * a.inner; j++) {
            int64_t i = (j / a.inner * a.n + ch) * a.inner + j % a.inner;
            sum += get(dy, i);
            product += get(dy, i) * (get(x, i) - get(mean, ch)) * inv;
        }
        if (dgamma->mem != NULL) set(dgamma, ch, product);
        if (dbeta->mem != NULL) set(dbeta, ch, sum);
    }
}
