/* update.c - what is done to weights alone: an optimizer's step with regularizer and
 * constraint, the penalty, and batch norm folded into the weights before it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

#include <math.h>

#define TINY 1e-7 /* what Keras adds to a norm it divides by */

/* How many norms a constraint looks at. */
static int64_t norms(const struct dnn_constraint *k, const struct dnn_shape *w)
{
    int64_t n = 1;

    if (k->kind == DNN_CONSTRAIN_NONE || k->kind == DNN_NON_NEG) return 0;
    for (int i = 0; i < w->ndim; i++)
        if ((k->axes >> i & 1) == 0) n *= w->dim[i];
    return n;
}

int64_t dnn_ref_work_update(const struct dnn_step *step)
{
    return norms(&step->op->attr.update.constraint, &step->in[0]->shape);
}

static void sgd(const struct ref_call *c, int64_t i, double g)
{
    const struct dnn_op_update *u = &c->op->attr.update;
    const struct ref_array *w = &c->in[0], *m = dnn_ref_in(c, 2);
    double step = -c->now.rate * g;

    if (m->mem != NULL) {
        double speed = u->momentum * get(m, i) + step;
        set(m, i, speed);
        step = u->nesterov ? u->momentum * speed + step : speed;
    }
    set(w, i, get(w, i) + step);
}

static void adam(const struct ref_call *c, int64_t i, double g, double rate)
{
    const struct dnn_op_update *u = &c->op->attr.update;
    const struct ref_array *w = &c->in[0], *m = &c->in[2], *v = &c->in[3];
    double mean = u->beta1 * get(m, i) + (1 - u->beta1) * g;
    double square = u->beta2 * get(v, i) + (1 - u->beta2) * g * g;

    set(m, i, mean);
    set(v, i, square);
    set(w, i, get(w, i) - rate * mean / (sqrt(square) + u->epsilon));
}

/* What a norm is to become. */
static double wanted(const struct dnn_constraint *k, double norm)
{
    switch (k->kind) {
    case DNN_MAX_NORM:
        return fmin(norm, k->max);
    case DNN_UNIT_NORM:
        return 1;
    default:
        assert(k->kind == DNN_MIN_MAX_NORM);
        return k->rate * fmin(fmax(norm, k->min), k->max) + (1 - k->rate) * norm;
    }
}

static void constrain(const struct ref_call *c)
{
    const struct dnn_constraint *k = &c->op->attr.update.constraint;
    const struct ref_array *w = &c->in[0];
    int64_t n = norms(k, &w->shape);

    if (k->kind == DNN_NON_NEG)
        for (int64_t i = 0; i < w->count; i++)
            set(w, i, get(w, i) < 0 ? 0 : get(w, i));
    if (n == 0) return;
    struct ref_map map = dnn_ref_without(&w->shape, k->axes);
    clear(c->work, n);
    for (int64_t i = 0; i < w->count; i++)
        c->work[dnn_ref_at(&map, i)] += get(w, i) * get(w, i);
    for (int64_t j = 0; j < n; j++) {
        double norm = sqrt(c->work[j]);
        c->work[j] = wanted(k, norm) / (TINY + norm);
    }
    for (int64_t i = 0; i < w->count; i++)
        set(w, i, get(w, i) * c->work[dnn_ref_at(&map, i)]);
}

void dnn_ref_update(const struct ref_call *c)
{
    const struct dnn_op_update *u = &c->op->attr.update;
    const struct ref_array *w = &c->in[0], *grad = &c->in[1];
    double t = (double)c->now.updates, rate = c->now.rate;

    if (u->rule == DNN_UPDATE_ADAM)
        rate *= sqrt(1 - pow(u->beta2, t)) / (1 - pow(u->beta1, t));
    for (int64_t i = 0; i < w->count; i++) {
        double v = get(w, i), sign = v > 0 ? 1 : v < 0 ? -1 : 0;
        double g = get(grad, i) + u->l1 * sign + 2 * u->l2 * v;
        if (u->rule == DNN_UPDATE_ADAM)
            adam(c, i, g, rate);
        else
            sgd(c, i, g);
    }
    constrain(c);
}

void dnn_ref_penalty(const struct ref_call *c)
{
    const struct dnn_op_penalty *p = &c->op->attr.penalty;
    const struct ref_array *w = &c->in[0];
    double sum = 0;

    for (int64_t i = 0; i < w->count; i++)
        sum += p->l1 * fabs(get(w, i)) + p->l2 * get(w, i) * get(w, i);
    set(&c->out[0], 0, sum);
}

/* w b mean var gamma beta -> v c */
void dnn_ref_fold(const struct ref_call *c)
{
    const struct dnn_op_fold *f = &c->op->attr.fold;
    const struct ref_array *w = &c->in[0], *b = &c->in[1], *mean = &c->in[2];
    const struct ref_array *var = &c->in[3], *gamma = &c->in[4], *beta = &c->in[5];
    struct ref_axis a = dnn_ref_axis(&w->shape, f->axis);

    if (f->depthwise) a = (struct ref_axis){w->count / mean->count, mean->count, 1};
    for (int64_t i = 0; i < w->count; i++) {
        int64_t ch = i / a.inner % a.n;
        double scale = 1 / sqrt(get(var, ch) + f->epsilon);
        if (gamma->mem != NULL) scale *= get(gamma, ch);
        set(&c->out[0], i, get(w, i) * scale);
    }
    for (int64_t ch = 0; ch < mean->count; ch++) {
        double scale = 1 / sqrt(get(var, ch) + f->epsilon), v = -get(mean, ch);
        if (gamma->mem != NULL) scale *= get(gamma, ch);
        if (b->mem != NULL) v += get(b, ch);
        set(&c->out[1], ch, v * scale + (beta->mem == NULL ? 0 : get(beta, ch)));
    }
}
