/* loss_lovasz.c - the Lovasz extension of the Jaccard loss: errors sorted in descending
 * order, each times the increase of 1 - IoU it causes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/loss_impl.h"

#include <stdlib.h>

/* One position of a sample. All members are doubles, like the workspace. */
struct entry {
    double error, at; /* at: its row                    */
    double positive;  /* 1: its target is this class    */
    double sign;      /* derivative of the error in p   */
};

enum { ENTRY_DOUBLES = sizeof(struct entry) / sizeof(double) };

int64_t dnn_ref_work_lovasz(const struct dnn_step *step)
{
    const struct dnn_shape *x = &step->in[0]->shape;

    return dnn_ref_count(step->in[0]) / x->dim[0] / x->dim[x->ndim - 1] * ENTRY_DOUBLES;
}

/* Descending; equal errors in the order of their rows. */
static int by_error(const void *a, const void *b)
{
    const struct entry *p = a, *q = b;

    if (p->error != q->error) return p->error > q->error ? -1 : 1;
    return p->at < q->at ? -1 : p->at > q->at;
}

/* The loss of n positions of a class; replaces the errors by the gradients. */
static double lovasz(struct entry *entry, int64_t n, bool hinge)
{
    double total = 0, positive = 0, previous = 0, loss = 0;

    qsort(entry, (size_t)n, sizeof *entry, by_error);
    for (int64_t i = 0; i < n; i++)
        total += entry[i].positive;
    for (int64_t i = 0; i < n; i++) {
        positive += entry[i].positive;
        double jaccard = 1 - (total - positive) / (total + (double)(i + 1) - positive);
        double increase = jaccard - previous;

        previous = jaccard;
        bool active = !hinge || entry[i].error > 0;
        if (active) loss += entry[i].error * increase;
        entry[i].error = active ? increase * entry[i].sign : 0;
    }
    return loss;
}

/* Stores the valid rows first ... end - 1 as positions of class j; returns how many. */
static int64_t gather(const struct ref_call *c, const struct ref_targets *k,
                      int64_t first, int64_t end, int64_t j, struct entry *entry)
{
    enum dnn_head source = c->op->attr.overlap.source;
    const struct ref_array *x = &c->in[0];
    int64_t n = 0;

    for (int64_t row = first; row < end; row++) {
        if (!ref_is_valid(k, row)) continue;
        double log_sum = source == DNN_HEAD_SOFTMAX ? ref_log_sum(x, row, k->n) : 0;
        double p = ref_p(source, x, row, k->n, j, log_sum);
        bool positive = ref_target(k, row, j) > 0.5;
        struct entry *to = &entry[n++];

        to->at = (double)row;
        to->positive = positive;
        if (source == DNN_HEAD_HINGE) {
            to->sign = positive ? -1 : 1;
            to->error = 1 + to->sign * p;
        } else {
            to->sign = positive ? (p > 1 ? 1 : -1) : (p < 0 ? -1 : 1);
            to->error = fabs((double)positive - p);
        }
    }
    return n;
}

static bool present(const struct ref_targets *k, int64_t first, int64_t end, int64_t j)
{
    for (int64_t row = first; row < end; row++)
        if (ref_is_valid(k, row) && ref_target(k, row, j) > 0.5) return true;
    return false;
}

/* The loss of one sample: the mean over the classes present in it, or the loss of the
 * only channel. */
static double sample(const struct ref_call *c, const struct ref_targets *k,
                     int64_t first, int64_t end)
{
    struct entry *entry = (struct entry *)(void *)c->work;
    bool hinge = c->op->attr.overlap.source == DNN_HEAD_HINGE;
    double scale = c->op->attr.overlap.scale, sum = 0, classes = 0;

    for (int64_t j = 0; j < k->n; j++)
        classes += k->n == 1 || present(k, first, end, j);
    for (int64_t j = 0; j < k->n; j++) {
        if (k->n > 1 && !present(k, first, end, j)) continue;
        int64_t n = gather(c, k, first, end, j, entry);

        sum += lovasz(entry, n, hinge) / classes;
        for (int64_t i = 0; i < n; i++)
            set(&c->out[1], (int64_t)entry[i].at * k->n + j,
                entry[i].error * scale / classes);
    }
    return sum * scale;
}

void dnn_ref_lovasz(const struct ref_call *c)
{
    const struct dnn_op_overlap *o = &c->op->attr.overlap;
    const struct ref_array *x = &c->in[0];
    struct ref_targets k = ref_targets(x, &c->in[1], o->ignores, o->ignore);
    int64_t samples = x->shape.dim[0], each = x->count / k.n / samples;
    double sum = 0;

    for (int64_t i = 0; i < x->count; i++)
        set(&c->out[1], i, 0);
    for (int64_t s = 0; s < samples; s++)
        sum += sample(c, &k, s * each, (s + 1) * each);
    set(&c->out[0], 0, sum);
}

void dnn_ref_lovasz_data(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[1], *slope = &c->in[3], *dx = &c->out[0];
    enum dnn_head source = c->op->attr.overlap.source;
    int64_t n = x->shape.dim[x->shape.ndim - 1];
    double factor = get(&c->in[0], 0);

    for (int64_t i = 0; i < x->count; i++)
        set(dx, i, factor * get(slope, i));
    for (int64_t row = 0; row < x->count / n; row++)
        ref_p_data(source, x, row, n, dx);
}
