/* loss_overlap.c - overlap of probabilities and masks: the sums, and the ratio of sums
 * (Dice, Jaccard).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/loss_impl.h"

static struct ref_targets targets(const struct ref_call *c, int x)
{
    const struct dnn_op_overlap *o = &c->op->attr.overlap;

    return ref_targets(&c->in[x], &c->in[x + 1], o->ignores, o->ignore);
}

void dnn_ref_overlap(const struct ref_call *c)
{
    const struct dnn_op_overlap *o = &c->op->attr.overlap;
    const struct ref_array *x = &c->in[0], *sums = &c->out[0];
    struct ref_targets k = targets(c, 0);
    int64_t rows = x->count / k.n, each = rows / x->shape.dim[0];

    for (int64_t i = 0; i < sums->count; i++)
        set(sums, i, 0);
    for (int64_t row = 0; row < rows; row++) {
        double log_sum = o->source == DNN_HEAD_SOFTMAX ? ref_log_sum(x, row, k.n) : 0;
        int64_t at = o->whole ? 0 : row / each * k.n * 3;

        for (int64_t j = 0; j < k.n && ref_is_valid(&k, row); j++, at += 3) {
            double p = ref_p(o->source, x, row, k.n, j, log_sum);
            double t = ref_target(&k, row, j);

            set(sums, at, get(sums, at) + p * t);
            set(sums, at + 1, get(sums, at + 1) + p);
            set(sums, at + 2, get(sums, at + 2) + t);
        }
    }
    if (o->whole) set(sums, k.n * 3, (double)x->shape.dim[0]);
}

void dnn_ref_overlap_data(const struct ref_call *c)
{
    const struct dnn_op_overlap *o = &c->op->attr.overlap;
    const struct ref_array *d = &c->in[0], *x = &c->in[1], *dx = &c->out[0];
    struct ref_targets k = targets(c, 1);
    int64_t rows = x->count / k.n, each = rows / x->shape.dim[0];

    for (int64_t row = 0; row < rows; row++) {
        bool valid = ref_is_valid(&k, row);
        int64_t at = o->whole ? 0 : row / each * k.n * 3;

        for (int64_t j = 0; j < k.n; j++, at += 3)
            set(dx, row * k.n + j,
                valid ? get(d, at) * ref_target(&k, row, j) + get(d, at + 1) : 0);
        ref_p_data(o->source, x, row, k.n, dx);
    }
}

/* ---- the ratio ---- */

struct fraction {
    double num, den;
};

static struct fraction fraction(const struct dnn_op_ratio *r, const struct ref_array *s,
                                int64_t at)
{
    double i = get(s, at), p = get(s, at + 1), t = get(s, at + 2);

    return (struct fraction){r->a * i + r->eps,
                             r->b * i + r->u * p + r->v * t + r->eps};
}

static double weights(const struct ref_array *w, int64_t n)
{
    double sum = 0;

    for (int64_t j = 0; j < n; j++)
        sum += ref_weight(w, j);
    return sum;
}

void dnn_ref_ratio(const struct ref_call *c)
{
    const struct dnn_op_ratio *r = &c->op->attr.ratio;
    const struct ref_array *s = &c->in[1], *w = &c->in[2];
    int64_t n = s->shape.dim[1] - r->whole;
    double total = weights(w, n), loss = 0;

    for (int64_t g = 0; g < s->shape.dim[0]; g++) {
        double mean = 0;

        for (int64_t j = 0; j < n; j++) {
            struct fraction q = fraction(r, s, (g * n + j) * 3);

            if (ref_weight(w, j) != 0) mean += ref_weight(w, j) / total * q.num / q.den;
        }
        loss += 1 - mean;
    }
    set(&c->out[0], 0, loss * r->scale);
}

void dnn_ref_ratio_data(const struct ref_call *c)
{
    const struct dnn_op_ratio *r = &c->op->attr.ratio;
    const struct ref_array *s = &c->in[1], *w = &c->in[2], *ds = &c->out[0];
    int64_t n = s->shape.dim[1] - r->whole;
    double factor = r->slope * get(&c->in[0], 0) / weights(w, n);

    if (r->whole) factor *= get(s, n * 3);
    for (int64_t i = s->shape.dim[0] * n * 3; i < ds->count; i++)
        set(ds, i, 0);
    for (int64_t g = 0; g < s->shape.dim[0]; g++)
        for (int64_t j = 0; j < n; j++) {
            int64_t at = (g * n + j) * 3;
            struct fraction q = fraction(r, s, at);
            double f = ref_weight(w, j) == 0 ? 0 : -factor * ref_weight(w, j) / q.den;
            double ratio = ref_weight(w, j) == 0 ? 0 : q.num / q.den;

            set(ds, at, f * (r->a - ratio * r->b));
            set(ds, at + 1, -f * ratio * r->u);
            set(ds, at + 2, -f * ratio * r->v);
        }
}
