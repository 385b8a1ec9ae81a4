/* groupnorm.c - group, layer and instance normalization: statistics of each sample.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

#include <math.h>

struct groups {
    struct ref_map map, params;
    int64_t c, per; /* channels, and channels per group; per == c: one group */
    int64_t n;      /* number of statistics: means, inverse deviations       */
    double each;    /* elements that each statistic is computed from         */
    bool split;     /* the last axis is split into groups                    */
};

static struct groups groups(const struct dnn_op_groupnorm *a,
                            const struct dnn_shape *shape)
{
    struct groups g = {.map = dnn_ref_without(shape, a->axes),
                       .params = dnn_ref_without(shape, ~a->params),
                       .c = shape->dim[shape->ndim - 1],
                       .n = a->groups,
                       .split = a->axes >> (shape->ndim - 1) & 1};
    double count = 1;

    g.per = g.c / a->groups;
    for (int i = 0; i < shape->ndim; i++) {
        count *= (double)shape->dim[i];
        if ((a->axes >> i & 1) == 0) g.n *= shape->dim[i];
    }
    g.each = count / (double)g.n;
    return g;
}

/* Index of the statistic that element i belongs to. */
static int64_t statistic_of(const struct groups *g, int64_t i)
{
    int64_t at = dnn_ref_at(&g->map, i);

    return g->split ? at * (g->c / g->per) + i % g->c / g->per : at;
}

static double param(const struct groups *g, const struct ref_array *a, int64_t i,
                    double absent)
{
    return a->mem == NULL ? absent : get(a, dnn_ref_at(&g->params, i));
}

/* The gradient of element i before the fused activation; hat: the normalized x. */
static double gradient(const struct ref_call *c, const struct groups *g, int64_t i,
                       double hat)
{
    double dy = get(&c->in[0], i);

    if (c->op->post == NULL) return dy;
    return dy * dnn_ref_post_slope(c, hat * param(g, dnn_ref_in(c, 3), i, 1) +
                                          param(g, dnn_ref_in(c, 4), i, 0));
}

int64_t dnn_ref_work_stats(const struct dnn_step *step)
{
    /* The output is y or dx; both have the shape of x. */
    return 2 * groups(&step->op->attr.groupnorm, &step->out[0]->shape).n;
}

void dnn_ref_groupnorm(const struct ref_call *c)
{
    const struct dnn_op_groupnorm *a = &c->op->attr.groupnorm;
    const struct ref_array *x = &c->in[0], *y = &c->out[0];
    struct groups g = groups(a, &x->shape);
    double *mean = c->work, *inv = c->work + g.n;

    clear(c->work, 2 * g.n);
    for (int64_t i = 0; i < x->count; i++)
        mean[statistic_of(&g, i)] += get(x, i) / g.each;
    for (int64_t i = 0; i < x->count; i++) {
        double d = get(x, i) - mean[statistic_of(&g, i)];
        inv[statistic_of(&g, i)] += d * d / g.each;
    }
    for (int64_t j = 0; j < g.n; j++)
        inv[j] = 1 / sqrt(inv[j] + a->epsilon);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t j = statistic_of(&g, i);
        double hat = (get(x, i) - mean[j]) * inv[j];
        double v = hat * param(&g, &c->in[1], i, 1) + param(&g, &c->in[2], i, 0);
        set(y, i, dnn_ref_post(c, v));
    }
    if (c->out[1].mem != NULL) store(&c->out[1], c->work);
}

void dnn_ref_groupnorm_data(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[1], *stats = &c->in[2];
    const struct ref_array *gamma = &c->in[3], *dx = &c->out[0];
    struct groups g = groups(&c->op->attr.groupnorm, &x->shape);
    double *sum = c->work, *product = c->work + g.n;

    clear(c->work, 2 * g.n);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t j = statistic_of(&g, i);
        double hat = (get(x, i) - get(stats, j)) * get(stats, g.n + j);
        double d = gradient(c, &g, i, hat) * param(&g, gamma, i, 1);
        sum[j] += d;
        product[j] += d * hat;
    }
    for (int64_t i = 0; i < x->count; i++) {
        int64_t j = statistic_of(&g, i);
        double inv = get(stats, g.n + j), hat = (get(x, i) - get(stats, j)) * inv;
        double d = gradient(c, &g, i, hat) * param(&g, gamma, i, 1);
        set(dx, i, inv * (d - (sum[j] + hat * product[j]) / g.each));
    }
}

void dnn_ref_groupnorm_weights(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[1], *stats = &c->in[2];
    const struct ref_array *dgamma = &c->out[0], *dbeta = &c->out[1];
    struct groups g = groups(&c->op->attr.groupnorm, &x->shape);
    double *product = c->work, *sum = c->work + dgamma->count;

    clear(c->work, dgamma->count + dbeta->count);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t j = statistic_of(&g, i), p = dnn_ref_at(&g.params, i);
        double hat = (get(x, i) - get(stats, j)) * get(stats, g.n + j);
        double d = gradient(c, &g, i, hat);
        if (dgamma->mem != NULL) product[p] += d * hat;
        if (dbeta->mem != NULL) sum[p] += d;
    }
    store(dgamma, product);
    store(dbeta, sum);
}
