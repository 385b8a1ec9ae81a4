/* loss_margin.c - margin losses of rows of channels: of classes, and of pairs and
 * triplets of vectors.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/loss_impl.h"

/* One row. Its gradient, times factor, is added to dx, unless dx is NULL. */
struct row {
    const struct dnn_op_loss *l;
    const struct ref_array *x, *w, *dx;
    const struct ref_targets *t;
    int64_t at, first; /* index of the row and of its first element */
    double factor;
};

static double x_of(const struct row *r, int64_t j)
{
    return get(r->x, r->first + j);
}

static double t_of(const struct row *r, int64_t j)
{
    return ref_target(r->t, r->at, j);
}

static void slope(const struct row *r, int64_t j, double d)
{
    if (r->dx != NULL)
        set(r->dx, r->first + j, get(r->dx, r->first + j) + r->factor * d);
}

/* The target of a pair: +1 or -1. */
static double sign_of(const struct row *r)
{
    return get(r->t->t, r->at) > 0 ? 1 : -1;
}

static double categorical(const struct row *r)
{
    double pos = 0, neg = -INFINITY;
    int64_t n = r->t->n, argmax = 0;

    for (int64_t j = 0; j < n; j++) {
        double other = (1 - t_of(r, j)) * x_of(r, j);

        pos += t_of(r, j) * x_of(r, j);
        if (other > neg) neg = other, argmax = j;
    }
    double loss = neg - pos + r->l->delta;
    if (!(loss > 0)) return 0;
    slope(r, argmax, 1 - t_of(r, argmax));
    for (int64_t j = 0; j < n; j++)
        slope(r, j, -t_of(r, j));
    return loss;
}

static double multi(const struct row *r)
{
    int64_t n = r->t->n, y = 0;
    double sum = 0;

    for (int64_t j = 1; j < n; j++)
        if (t_of(r, j) > t_of(r, y)) y = j;
    if (!(t_of(r, y) > 0)) return 0;
    double w = ref_weight(r->w, y) / (double)n, p = r->l->power;
    for (int64_t j = 0; j < n; j++) {
        double gap = r->l->delta - x_of(r, y) + x_of(r, j);

        if (j == y || !(gap > 0)) continue;
        sum += w * pow(gap, p);
        double d = w * p * pow(gap, p - 1);
        slope(r, j, d);
        slope(r, y, -d);
    }
    return sum;
}

static double multilabel(const struct row *r)
{
    int64_t n = r->t->n;
    double sum = 0, each = 1 / (double)n;

    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n && t_of(r, j) > 0; i++) {
            double gap = r->l->delta - x_of(r, j) + x_of(r, i);

            if (t_of(r, i) > 0 || !(gap > 0)) continue;
            sum += each * gap;
            slope(r, i, each);
            slope(r, j, -each);
        }
    return sum;
}

static double ranking(const struct row *r)
{
    int64_t n = r->t->n / 2;
    double sum = 0, t = sign_of(r), each = 1 / (double)n;

    for (int64_t j = 0; j < n; j++) {
        double gap = r->l->delta - t * (x_of(r, j) - x_of(r, n + j));

        if (!(gap > 0)) continue;
        sum += each * gap;
        slope(r, j, -each * t);
        slope(r, n + j, each * t);
    }
    return sum;
}

static double cosine(const struct row *r)
{
    int64_t n = r->t->n / 2;
    double dot = 0, a = 1e-12, b = 1e-12, t = sign_of(r);

    for (int64_t j = 0; j < n; j++) {
        dot += x_of(r, j) * x_of(r, n + j);
        a += x_of(r, j) * x_of(r, j);
        b += x_of(r, n + j) * x_of(r, n + j);
    }
    double root = sqrt(a * b), cosine = dot / root;
    if (t < 0 && !(cosine > r->l->delta)) return 0;
    for (int64_t j = 0; j < n; j++) {
        slope(r, j, -t * (x_of(r, n + j) / root - cosine * x_of(r, j) / a));
        slope(r, n + j, -t * (x_of(r, j) / root - cosine * x_of(r, n + j) / b));
    }
    return t > 0 ? 1 - cosine : cosine - r->l->delta;
}

/* Vector a minus vector b of a triplet, plus PyTorch's 1e-6 to avoid a root of 0. */
static double difference(const struct row *r, int a, int b, int64_t j)
{
    int64_t n = r->t->n / 3;

    return x_of(r, a * n + j) - x_of(r, b * n + j) + 1e-6;
}

static double distance(const struct row *r, int a, int b)
{
    double sum = 0;

    for (int64_t j = 0; j < r->t->n / 3; j++)
        sum += pow(fabs(difference(r, a, b, j)), r->l->power);
    return pow(sum, 1 / r->l->power);
}

/* Adds the gradient of s times distance(r, a, b), which is length. */
static void distance_slope(const struct row *r, int a, int b, double length, double s)
{
    int64_t n = r->t->n / 3;

    for (int64_t j = 0; j < n && length > 0; j++) {
        double d = difference(r, a, b, j);

        d = s * copysign(pow(fabs(d) / length, r->l->power - 1), d);
        slope(r, a * n + j, d);
        slope(r, b * n + j, -d);
    }
}

static double triplet(const struct row *r)
{
    double d_pos = distance(r, 0, 1), d_neg = distance(r, 0, 2);
    int from = 0;

    if (r->l->swap && distance(r, 1, 2) < d_neg) d_neg = distance(r, from = 1, 2);
    double loss = d_pos - d_neg + r->l->delta;
    if (!(loss > 0)) return 0;
    distance_slope(r, 0, 1, d_pos, 1);
    distance_slope(r, from, 2, d_neg, -1);
    return loss;
}

static double (*const functions[DNN_MARGINS])(const struct row *r) = {
    [DNN_MARGIN_CATEGORICAL] = categorical, [DNN_MARGIN_MULTI] = multi,
    [DNN_MARGIN_MULTILABEL] = multilabel,   [DNN_MARGIN_RANKING] = ranking,
    [DNN_MARGIN_COSINE] = cosine,           [DNN_MARGIN_TRIPLET] = triplet};

/* The sum over all rows. Operand `at` is x; target, weights and sums follow. */
static double rows(const struct ref_call *c, int at, const struct ref_array *dx,
                   double factor)
{
    const struct dnn_op_loss *l = &c->op->attr.loss;
    struct ref_targets k =
        ref_targets(&c->in[at], &c->in[at + 1], l->ignores, l->ignore);
    struct row r = {.l = l,
                    .x = &c->in[at],
                    .w = dnn_ref_in(c, at + 2),
                    .dx = dx,
                    .t = &k,
                    .factor = factor};
    bool vectors = l->margin >= DNN_MARGIN_RANKING;
    double sum = 0;

    for (r.at = 0; r.at < r.x->count / k.n; r.at++) {
        r.first = r.at * k.n;
        if (vectors || ref_is_valid(&k, r.at)) sum += functions[l->margin](&r);
    }
    return sum;
}

void dnn_ref_margin(const struct ref_call *c)
{
    set(&c->out[0], 0, rows(c, 0, NULL, 0) * ref_scale(c, 3));
}

void dnn_ref_margin_data(const struct ref_call *c)
{
    const struct ref_array *dx = &c->out[0];

    for (int64_t i = 0; i < dx->count; i++)
        set(dx, i, 0);
    rows(c, 1, dx, ref_scale(c, 4) * get(&c->in[0], 0));
}
