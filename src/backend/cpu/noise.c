/* noise.c - dropout and its kin.  The numbers are base/rng's, those of dropout drawn
 * several at a time; the backward pass draws the same again.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

#include "base/rng.h"

/* What dropped elements of a SELU network become: minus scale times alpha. */
#define ALPHA_DROPPED                                                                  \
    (-1.0507009873554804934193349852946 * 1.6732632423543772848170429916717)

enum { FEW = 512 }; /* factors made before they are used */

/* Each element has its number, or (spatial dropout) each channel of a sample. */
static bool per_channel(const struct dnn_op_noise *n, const struct dnn_shape *x)
{
    return x->ndim > 2 && (n->shared | 1) == (1u << (x->ndim - 1)) - 1;
}

static bool can(const struct dnn_step *step)
{
    const struct dnn_op_noise *n = &step->op->attr.noise;
    const struct dnn_shape *x = &step->in[0]->shape;

    return x->ndim >= 1 && ((n->shared & ~1u) == 0 || per_channel(n, x));
}

/* A factor and a summand per channel, for each thread. */
static int64_t room(int64_t c)
{
    return (c + 15) & ~(int64_t)15;
}

static size_t work(const struct dnn_step *step, int threads)
{
    return (size_t)threads * 3 * (size_t)room(rows_row(step->in[0])) * sizeof(float);
}

/* What is done with the numbers. */
struct source {
    const struct dnn_op_noise *noise;
    const struct dnn_now *now;
    struct dnn_rng rng;
    struct rows_draw draw; /* dropout: without place and memory */
    bool plus;             /* forward only                      */
};

static struct source source_of(const struct cpu_call *c)
{
    const struct dnn_op_noise *n = &c->op->attr.noise;
    struct source s = {.noise = n, .now = &c->now, .plus = c->op->pass == DNN_FWD};
    double times = 1 / (1 - n->rate), plus = 0, dropped = 0;

    s.rng = dnn_rng_make(c->now.seed ^ n->seed, DNN_STREAM_NOISE + n->stream);
    if (n->fn == DNN_ALPHA_DROPOUT) {
        times = 1 / sqrt((1 - n->rate) * (1 + n->rate * ALPHA_DROPPED * ALPHA_DROPPED));
        plus = -times * ALPHA_DROPPED * n->rate;
        dropped = times * ALPHA_DROPPED + plus;
    }
    s.draw = (struct rows_draw){
        .key = {s.rng.key[0], s.rng.key[1]},
        .step = c->now.step,
        .times = (float)times,
        .plus = s.plus ? (float)plus : 0,
        .dropped = s.plus ? (float)dropped : 0
    };
    /* k 2^-53 >= rate for the 53 first bits k */
    if (n->fn == DNN_DROPOUT || n->fn == DNN_ALPHA_DROPOUT)
        s.draw.least = (uint64_t)ceil(n->rate * 0x1p53) << 11;
    return s;
}

static bool is_dropout(const struct source *s)
{
    return s->noise->fn == DNN_DROPOUT || s->noise->fn == DNN_ALPHA_DROPOUT;
}

static uint32_t sample_of(const struct source *s, int64_t sample)
{
    return s->noise->shared & 1 ? 0 : s->now->sample + (uint32_t)sample;
}

/* Factors and summands of n numbers of a sample from index on; ones: room for n. */
static void factors(const struct source *s, int64_t sample, int64_t index, int64_t n,
                    float *times, float *plus, float *ones)
{
    struct dnn_rng_at at = {.step = s->now->step, .sample = sample_of(s, sample)};
    struct rows_draw d = s->draw;
    double rate = s->noise->rate, size = sqrt(rate / (1 - rate));

    if (is_dropout(s)) {
        for (int64_t i = 0; i < n; i++)
            ones[i] = 1;
        d.n = n;
        d.index = (uint64_t)index;
        d.sample = at.sample;
        d.x = ones;
        d.y = times;
        d.plus = d.dropped = 0;
        d.times = 1;
        dnn_rows_find()->dropout(&d);
    }
    for (int64_t i = 0; i < n; i++) {
        at.index = (uint64_t)(index + i);
        if (is_dropout(s)) {
            plus[i] = times[i] > 0 ? s->draw.plus : s->draw.dropped;
            times[i] *= s->draw.times;
            continue;
        }
        double normal = dnn_rng_normal(&s->rng, at);
        bool add = s->noise->fn == DNN_GAUSSIAN_NOISE;
        times[i] = add ? 1 : (float)(1 + size * normal);
        plus[i] = add && s->plus ? (float)(rate * normal) : 0;
    }
}

/* n elements of a sample from index on, side by side, each with its own number. */
static void each_element(const struct source *s, int64_t sample, int64_t index,
                         int64_t n, const float *x, float *y)
{
    float times[FEW], plus[FEW], ones[FEW];

    if (is_dropout(s)) {
        struct rows_draw d = s->draw;
        d.n = n;
        d.index = (uint64_t)index;
        d.sample = sample_of(s, sample);
        d.x = x;
        d.y = y;
        dnn_rows_find()->dropout(&d);
        return;
    }
    for (int64_t i = 0; i < n; i += FEW) {
        int64_t few = n - i < FEW ? n - i : FEW;

        factors(s, sample, index + i, few, times, plus, ones);
        dnn_rows_find()->scale(&(struct rows_scale){
            .n = few, .x = x + i, .a = times, .b = plus, .y = y + i});
    }
}

static void elements(const struct cpu_call *c, const struct source *s)
{
    const float *x = c->in[0].mem;
    float *y = c->out[0].mem;
    int64_t all = c->in[0].count, samples = c->in[0].shape.dim[0];
    int64_t each = samples == 0 ? 1 : all / samples;
    int parts = rows_parts(all, c->threads);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;

        rows_line_share(all, parts, p, &first, &last);
        while (first < last) {
            int64_t index = first % each, n = each - index;

            if (n > last - first) n = last - first;
            each_element(s, first / each, index, n, x + first, y + first);
            first += n;
        }
    }
}

static void channels(const struct cpu_call *c, const struct source *s)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    int64_t rows = c->in[0].rows, n = c->in[0].row, samples = c->in[0].shape.dim[0];
    int64_t each = samples == 0 ? 1 : rows / samples;
    int parts = rows_parts(c->in[0].count, c->threads);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        float *times = (float *)c->work + p * 3 * room(n), *plus = times + room(n);
        int64_t first, last;

        dnn_cpu_share(rows, parts, p, &first, &last);
        for (int64_t r = first; r < last; r++) {
            if (r == first || r % each == 0)
                factors(s, r / each, 0, n, times, plus, plus + room(n));
            isa->scale(&(struct rows_scale){.n = n,
                                            .x = (const float *)c->in[0].mem + r * n,
                                            .a = times,
                                            .b = plus,
                                            .y = (float *)c->out[0].mem + r * n});
        }
    }
}

static void noise(const struct cpu_call *c)
{
    struct source s = source_of(c);

    if (per_channel(s.noise, &c->in[0].shape))
        channels(c, &s);
    else
        elements(c, &s);
}

const struct cpu_algo dnn_cpu_noise = {
    .name = "rows", .can = can, .fn = noise, .work = work};
const struct cpu_algo dnn_cpu_noise_data = {
    .name = "rows", .can = can, .fn = noise, .work = work};
