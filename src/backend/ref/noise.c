/* noise.c - dropout and other noise layers. No mask is stored: the backward pass draws
 * the same random numbers again.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

#include "base/rng.h"

#include <math.h>

/* Alpha dropout: the value of dropped elements, -scale * alpha of SELU. */
#define ALPHA_DROPPED                                                                  \
    (-1.0507009873554804934193349852946 * 1.6732632423543772848170429916717)

struct source {
    const struct dnn_op_noise *noise;
    struct dnn_rng rng;
    struct ref_map map; /* element -> index of its random number in the sample */
    int64_t sample;     /* elements per sample                                 */
    const struct dnn_now *now;
};

static struct source source(const struct ref_call *c)
{
    const struct dnn_op_noise *n = &c->op->attr.noise;
    const struct ref_array *x = &c->in[0];
    struct source s = {.noise = n, .now = &c->now};

    s.rng = dnn_rng_make(c->now.seed ^ n->seed, DNN_STREAM_NOISE + n->stream);
    s.map = dnn_ref_without(&x->shape, n->shared | 1);
    s.sample = x->shape.dim[0] == 0 ? 0 : x->count / x->shape.dim[0];
    return s;
}

/* Element i: y = x * *factor + *offset. */
static void draw(const struct source *s, int64_t i, double *factor, double *offset)
{
    const struct dnn_op_noise *n = s->noise;
    bool shared = n->shared & 1;
    struct dnn_rng_at at = {
        .step = s->now->step,
        .sample = shared ? 0 : s->now->sample + (uint32_t)(i / s->sample),
        .index = (uint64_t)dnn_ref_at(&s->map, i),
    };

    *factor = 1;
    *offset = 0;
    if (n->fn == DNN_GAUSSIAN_NOISE) {
        *offset = n->rate * dnn_rng_normal(&s->rng, at);
        return;
    }
    if (n->fn == DNN_GAUSSIAN_DROPOUT) {
        *factor = 1 + sqrt(n->rate / (1 - n->rate)) * dnn_rng_normal(&s->rng, at);
        return;
    }
    bool keep = dnn_rng_uniform(&s->rng, at) >= n->rate;
    if (n->fn == DNN_DROPOUT) {
        *factor = keep ? 1 / (1 - n->rate) : 0;
        return;
    }
    double a = 1 / sqrt((1 - n->rate) * (1 + n->rate * ALPHA_DROPPED * ALPHA_DROPPED));
    double b = -a * ALPHA_DROPPED * n->rate;
    *factor = keep ? a : 0;
    *offset = keep ? b : a * ALPHA_DROPPED + b;
}

void dnn_ref_noise(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *y = &c->out[0];
    struct source s = source(c);
    double factor, offset;

    for (int64_t i = 0; i < y->count; i++) {
        draw(&s, i, &factor, &offset);
        set(y, i, get(x, i) * factor + offset);
    }
}

void dnn_ref_noise_data(const struct ref_call *c)
{
    const struct ref_array *dy = &c->in[0], *dx = &c->out[0];
    struct source s = source(c);
    double factor, offset;

    for (int64_t i = 0; i < dx->count; i++) {
        draw(&s, i, &factor, &offset);
        set(dx, i, get(dy, i) * factor);
    }
}
