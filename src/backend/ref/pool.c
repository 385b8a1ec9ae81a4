/* pool.c - max and average pooling. Padding is ignored.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"
#include "backend/window_impl.h"

enum { D = DNN_MAX_SPATIAL };

/* The input element that output element e reads with a tap; false: padding. */
static bool find_input(const struct window3d *s, int64_t e, int64_t tap, int64_t *at)
{
    int64_t c = e % s->c, o = e / s->c, i[D];

    for (int j = D - 1; j >= 0; j--) {
        i[j] = o % s->out[j] * s->stride[j] - s->before[j] + tap % s->kernel[j];
        o /= s->out[j];
        tap /= s->kernel[j];
        if (i[j] < 0 || i[j] >= s->in[j]) return false;
    }
    *at = (((o * s->in[0] + i[0]) * s->in[1] + i[1]) * s->in[2] + i[2]) * s->c + c;
    return true;
}

static int64_t taps_inside(const struct window3d *s, int64_t e)
{
    int64_t n = 0, at;

    for (int64_t t = 0; t < s->taps; t++)
        n += find_input(s, e, t, &at);
    return n;
}

static void maximum(const struct window3d *s, const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *y = &c->out[0], *index = &c->out[1];

    for (int64_t e = 0; e < y->count; e++) {
        int64_t at, best = -1;
        double max = 0;
        for (int64_t t = 0; t < s->taps; t++) {
            if (!find_input(s, e, t, &at)) continue;
            double v = get(x, at);
            /* The first of equal maxima; the first NaN, if there is one. */
            if (best >= 0 && (v <= max || max != max)) continue;
            best = t;
            max = v;
        }
        set(y, e, max);
        if (index->mem != NULL) set(index, e, (double)best);
    }
}

void dnn_ref_pool(const struct ref_call *c)
{
    const struct dnn_op_pool *p = &c->op->attr.pool;
    const struct ref_array *x = &c->in[0], *y = &c->out[0];
    struct window3d s = window3d(&p->win, &x->shape, &y->shape);

    if (p->fn == DNN_POOL_MAX) {
        maximum(&s, c);
        return;
    }
    for (int64_t e = 0; e < y->count; e++) {
        double sum = 0;
        int64_t at;
        for (int64_t t = 0; t < s.taps; t++)
            if (find_input(&s, e, t, &at)) sum += get(x, at);
        set(y, e, sum / (double)taps_inside(&s, e));
    }
}

/* Each input element sums the gradients of the windows that contain it, in a fixed
 * order. */
void dnn_ref_pool_data(const struct ref_call *c)
{
    const struct dnn_op_pool *p = &c->op->attr.pool;
    const struct ref_array *dy = &c->in[0], *dx = &c->out[0];
    struct window3d s = window3d(&p->win, &dx->shape, &dy->shape);

    for (int64_t e = 0; e < dx->count; e++) {
        double sum = 0;
        for (int64_t tap = 0; tap < s.taps; tap++) {
            int64_t i = e / s.c, t = tap, o = 0, step = 1;
            bool inside = true;
            for (int j = D - 1; j >= 0 && inside; j--) {
                int64_t from = i % s.in[j] + s.before[j] - t % s.kernel[j];
                inside = from >= 0 && from % s.stride[j] == 0 &&
                         from / s.stride[j] < s.out[j];
                o += from / s.stride[j] * step;
                step *= s.out[j];
                i /= s.in[j];
                t /= s.kernel[j];
            }
            if (!inside) continue;
            o = (i * step + o) * s.c + e % s.c; /* here i is the sample */
            if (p->fn == DNN_POOL_AVERAGE)
                sum += get(dy, o) / (double)taps_inside(&s, o);
            else if ((int64_t)get(&c->in[1], o) == tap)
                sum += get(dy, o);
        }
        set(dx, e, sum);
    }
}
