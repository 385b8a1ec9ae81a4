/* loss_lovasz.c - the Lovasz extension of the Jaccard loss: errors sorted by size,
 * each times what it adds to 1 - IoU.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/loss_impl.h"

#include <stdlib.h>

/* One position of a sample. */
struct place {
    double error, at; /* at: which row; doubles, as the workspace is */
    double right;     /* its target is this class                    */
    double sign;      /* the error's slope in p                      */
};

enum { PLACE = sizeof(struct place) / sizeof(double) };

int64_t dnn_ref_work_lovasz(const struct dnn_step *step)
{
    const struct dnn_shape *x = &step->in[0]->shape;

    return dnn_ref_count(step->in[0]) / x->dim[0] / x->dim[x->ndim - 1] * PLACE;
}

/* Largest first; stable. */
static int by_error(const void *a, const void *b)
{
    const struct place *p = a, *q = b;

    if (p->error != q->error) return p->error > q->error ? -1 : 1;
    return p->at < q->at ? -1 : p->at > q->at;
}

/* The loss of n positions of a class; errors become gradients. */
static double lovasz(struct place *place, int64_t n, bool hinge)
{
    double all = 0, right = 0, before = 0, loss = 0;

    qsort(place, (size_t)n, sizeof *place, by_error);
    for (int64_t i = 0; i < n; i++)
        all += place[i].right;
    for (int64_t i = 0; i < n; i++) {
        right += place[i].right;
        double here = 1 - (all - right) / (all + (double)(i + 1) - right);
        double step = here - before;

        before = here;
        bool on = !hinge || place[i].error > 0;
        if (on) loss += place[i].error * step;
        place[i].error = on ? step * place[i].sign : 0;
    }
    return loss;
}

/* The valid rows from first on, as positions of class j. */
static int64_t gather(const struct ref_call *c, const struct ref_targets *k,
                      int64_t first, int64_t end, int64_t j, struct place *place)
{
    enum dnn_head source = c->op->attr.overlap.source;
    const struct ref_array *x = &c->in[0];
    int64_t n = 0;

    for (int64_t row = first; row < end; row++) {
        if (!ref_counts(k, row)) continue;
        double all = source == DNN_HEAD_SOFTMAX ? ref_log_sum(x, row, k->n) : 0;
        double p = ref_p(source, x, row, k->n, j, all);
        bool right = ref_target(k, row, j) > 0.5;
        struct place *to = &place[n++];

        to->at = (double)row;
        to->right = right;
        if (source == DNN_HEAD_HINGE) {
            to->sign = right ? -1 : 1;
            to->error = 1 + to->sign * p;
        } else {
            to->sign = right ? (p > 1 ? 1 : -1) : (p < 0 ? -1 : 1);
            to->error = fabs((double)right - p);
        }
    }
    return n;
}

static bool present(const struct ref_targets *k, int64_t first, int64_t end, int64_t j)
{
    for (int64_t row = first; row < end; row++)
        if (ref_counts(k, row) && ref_target(k, row, j) > 0.5) return true;
    return false;
}

/* One sample: the mean over the classes it has; of one channel, of that. */
static double sample(const struct ref_call *c, const struct ref_targets *k,
                     int64_t first, int64_t end)
{
    struct place *place = (struct place *)(void *)c->work;
    bool hinge = c->op->attr.overlap.source == DNN_HEAD_HINGE;
    double scale = c->op->attr.overlap.scale, sum = 0, classes = 0;

    for (int64_t j = 0; j < k->n; j++)
        classes += k->n == 1 || present(k, first, end, j);
    for (int64_t j = 0; j < k->n; j++) {
        if (k->n > 1 && !present(k, first, end, j)) continue;
        int64_t n = gather(c, k, first, end, j, place);

        sum += lovasz(place, n, hinge) / classes;
        for (int64_t i = 0; i < n; i++)
            set(&c->out[1], (int64_t)place[i].at * k->n + j,
                place[i].error * scale / classes);
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
    double times = get(&c->in[0], 0);

    for (int64_t i = 0; i < x->count; i++)
        set(dx, i, times * get(slope, i));
    for (int64_t row = 0; row < x->count / n; row++)
        ref_p_data(source, x, row, n, dx);
}
