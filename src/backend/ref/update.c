/* update.c - ops on weights: an optimizer step with regularizer and constraint, the
 * regularization penalty, and folding of batch norm into the weights before it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"
#include "backend/update_impl.h"

#define TINY 1e-7 /* Keras adds it to a norm before dividing by it */

/* The number of norms a constraint uses. */
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

/* ---- rules that update each weight on its own ---- */

/* An update rule and the factors that are the same for all weights. */
struct rule {
    const struct ref_call *c;
    const struct dnn_op_update *u;
    struct update_now now;
};

static double slope(const struct rule *r, int64_t i, double decay)
{
    double w = get(&r->c->in[0], i), sign = w > 0 ? 1 : w < 0 ? -1 : 0;

    return get(&r->c->in[1], i) + r->u->l1 * sign + decay * w;
}

static void move(const struct rule *r, int64_t i, double step)
{
    const struct ref_array *w = &r->c->in[0];

    set(w, i, get(w, i) * r->now.w_factor - step);
}

/* Updates the moving average in a slot with x; returns its new value. */
static double update_mean(const struct rule *r, int slot, int64_t i, double beta,
                          double x)
{
    const struct ref_array *s = &r->c->in[slot];
    double v = beta * get(s, i) + (1 - beta) * x;

    set(s, i, v);
    return v;
}

static void sgd(const struct rule *r, int64_t i, double g)
{
    const struct ref_array *m = dnn_ref_in(r->c, 2);
    /* Keras's velocity includes the factor -rate, PyTorch's does not. */
    double before = r->u->torch ? 1 : -r->now.rate;
    double after = r->u->torch ? r->now.rate : -1;
    double step = g * before;

    if (m->mem != NULL) {
        double velocity = r->u->momentum * get(m, i) + r->now.grad_factor * step;
        set(m, i, velocity);
        step = r->u->nesterov ? r->u->momentum * velocity + step : velocity;
    }
    move(r, i, step * after);
}

/* Updates Adam's moving means; returns the square root of the second one, with amsgrad
 * of its maximum so far. */
static double means(const struct rule *r, int64_t i, double g)
{
    const struct ref_array *max_square = dnn_ref_in(r->c, 4);
    double square;

    update_mean(r, 2, i, r->u->beta1, g);
    square = update_mean(r, 3, i, r->u->beta2, g * g);
    if (r->u->amsgrad) {
        if (square < get(max_square, i)) square = get(max_square, i);
        set(max_square, i, square);
    }
    return sqrt(square);
}

static void adam(const struct rule *r, int64_t i, double g)
{
    double root = means(r, i, g);

    move(r, i, r->now.rate * get(&r->c->in[2], i) / (root + r->now.epsilon));
}

static void nadam(const struct rule *r, int64_t i, double g)
{
    double root = means(r, i, g), mean = get(&r->c->in[2], i);

    move(r, i, (r->now.grad_rate * g + r->now.rate * mean) / (root + r->now.epsilon));
}

static void adagrad(const struct rule *r, int64_t i, double g)
{
    const struct ref_array *m = &r->c->in[2];
    double sum = get(m, i) + g * g;

    set(m, i, sum);
    move(r, i, r->now.rate * g / (sqrt(sum) + r->now.epsilon));
}

static void adadelta(const struct rule *r, int64_t i, double g)
{
    double square = update_mean(r, 2, i, r->u->beta2, g * g);
    double step =
        sqrt(get(&r->c->in[3], i) + r->now.epsilon) / sqrt(square + r->now.epsilon) * g;

    update_mean(r, 3, i, r->u->beta2, step * step);
    move(r, i, r->now.rate * step);
}

static void rmsprop(const struct rule *r, int64_t i, double g)
{
    const struct ref_array *velocity = dnn_ref_in(r->c, 4);
    double square = update_mean(r, 2, i, r->u->beta2, g * g);

    if (r->u->centered) {
        double mean = update_mean(r, 3, i, r->u->beta2, g);
        square = fmax(square - mean * mean, 0); /* < 0 only by rounding */
    }
    double step = g / (sqrt(square) + r->now.epsilon);
    if (velocity->mem != NULL) {
        step += r->u->momentum * get(velocity, i);
        set(velocity, i, step);
    }
    move(r, i, r->now.rate * step);
}

/* ---- rules that need the norms of all weights first ---- */

static void lars(const struct rule *r)
{
    int64_t n = r->c->in[0].count;
    double weight = 0, grad = 0;

    for (int64_t i = 0; i < n; i++) {
        double w = get(&r->c->in[0], i), g = slope(r, i, 2 * r->u->l2);
        weight += w * w;
        grad += g * g;
    }
    double trust = update_trust(r->u, sqrt(weight), sqrt(grad));
    for (int64_t i = 0; i < n; i++)
        sgd(r, i, trust * slope(r, i, r->now.decay));
}

static double lamb_step(const struct rule *r, int64_t i)
{
    double square = get(&r->c->in[r->u->amsgrad ? 4 : 3], i);

    return r->now.rate * get(&r->c->in[2], i) / (sqrt(square) + r->now.epsilon) +
           r->u->weight_decay * get(&r->c->in[0], i);
}

static void lamb(const struct rule *r)
{
    int64_t n = r->c->in[0].count;
    double weight = 0, all = 0;

    for (int64_t i = 0; i < n; i++) {
        double w = get(&r->c->in[0], i);
        means(r, i, slope(r, i, r->now.decay));
        double step = lamb_step(r, i);
        weight += w * w;
        all += step * step;
    }
    double rate = r->c->now.rate * update_trust(r->u, sqrt(weight), sqrt(all));
    for (int64_t i = 0; i < n; i++)
        move(r, i, rate * lamb_step(r, i));
}

typedef void rule_fn(const struct rule *r, int64_t i, double g);

static void for_each_weight(const struct rule *r, rule_fn *fn)
{
    for (int64_t i = 0; i < r->c->in[0].count; i++)
        fn(r, i, slope(r, i, r->now.decay));
}

/* ---- constraints ---- */

/* The value that the constraint sets a norm to. */
static double target_norm(const struct dnn_constraint *k, double norm)
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
        c->work[j] = target_norm(k, norm) / (TINY + norm);
    }
    for (int64_t i = 0; i < w->count; i++)
        set(w, i, get(w, i) * c->work[dnn_ref_at(&map, i)]);
}

void dnn_ref_update(const struct ref_call *c)
{
    static rule_fn *const fns[DNN_UPDATES] = {
        [DNN_UPDATE_SGD] = sgd,         [DNN_UPDATE_ADAM] = adam,
        [DNN_UPDATE_ADAMW] = adam,      [DNN_UPDATE_NADAM] = nadam,
        [DNN_UPDATE_ADAGRAD] = adagrad, [DNN_UPDATE_ADADELTA] = adadelta,
        [DNN_UPDATE_RMSPROP] = rmsprop,
    };
    const struct dnn_op_update *u = &c->op->attr.update;
    const struct rule r = {c, u, update_now(u, &c->now)};

    if (u->rule == DNN_UPDATE_LARS)
        lars(&r);
    else if (u->rule == DNN_UPDATE_LAMB)
        lamb(&r);
    else
        for_each_weight(&r, fns[u->rule]);
    constrain(c);
}

/* ---- penalty and folding ---- */

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
