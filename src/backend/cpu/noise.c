/* noise.c - dropout and other noise layers. Random numbers are those of base/rng, for
 * dropout several at a time; the backward pass draws the same numbers again.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

#include "base/rng.h"

/* Alpha dropout: the value of dropped elements, -scale * alpha of SELU. */
#define ALPHA_DROPPED                                                                  \
    (-1.0507009873554804934193349852946 * 1.6732632423543772848170429916717)

enum { CHUNK = 512 }; /* factors computed at a time */

/* Whether there is one random number per channel of a sample (spatial dropout) instead
 * of one per element. */
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

/* Channels rounded up to whole cache lines. */
static int64_t padded_channels(int64_t c)
{
    return (c + 15) & ~(int64_t)15;
}

/* Per thread: a factor, a summand and a temporary value per channel. */
static size_t work(const struct dnn_step *step, int threads)
{
    return (size_t)threads * 3 * (size_t)padded_channels(rows_row(step->in[0])) *
           sizeof(float);
}

/* The source of the factors and summands of elements. */
struct source {
    const struct dnn_op_noise *noise;
    const struct dnn_now *now;
    struct dnn_rng rng;
    struct rows_draw draw; /* dropout: all but position and arrays */
    bool use_offset;       /* use summands: forward only           */
};

static struct source source_of(const struct cpu_call *c)
{
    const struct dnn_op_noise *n = &c->op->attr.noise;
    struct source s = {
        .noise = n, .now = &c->now, .use_offset = c->op->pass == DNN_FWD};
    double factor = 1 / (1 - n->rate), offset = 0, dropped = 0;

    s.rng = dnn_rng_make(c->now.seed ^ n->seed, DNN_STREAM_NOISE + n->stream);
    if (n->fn == DNN_ALPHA_DROPOUT) {
        factor =
            1 / sqrt((1 - n->rate) * (1 + n->rate * ALPHA_DROPPED * ALPHA_DROPPED));
        offset = -factor * ALPHA_DROPPED * n->rate;
        dropped = factor * ALPHA_DROPPED + offset;
    }
    s.draw = (struct rows_draw){
        .key = {s.rng.key[0], s.rng.key[1]},
        .step = c->now.step,
        .factor = (float)factor,
        .offset = s.use_offset ? (float)offset : 0,
        .dropped = s.use_offset ? (float)dropped : 0
    };
    /* With k the first 53 random bits: k * 2^-53 >= rate */
    if (n->fn == DNN_DROPOUT || n->fn == DNN_ALPHA_DROPOUT)
        s.draw.threshold = (uint64_t)ceil(n->rate * 0x1p53) << 11;
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

/* Factors and summands of n elements of a sample from index on; ones: a buffer for n
 * floats. */
static void factors(const struct source *s, int64_t sample, int64_t index, int64_t n,
                    float *factor, float *offset, float *ones)
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
        d.y = factor;
        d.offset = d.dropped = 0;
        d.factor = 1;
        dnn_rows_find()->dropout(&d);
    }
    for (int64_t i = 0; i < n; i++) {
        at.index = (uint64_t)(index + i);
        if (is_dropout(s)) {
            offset[i] = factor[i] > 0 ? s->draw.offset : s->draw.dropped;
            factor[i] *= s->draw.factor;
            continue;
        }
        double normal = dnn_rng_normal(&s->rng, at);
        bool add = s->noise->fn == DNN_GAUSSIAN_NOISE;
        factor[i] = add ? 1 : (float)(1 + size * normal);
        offset[i] = add && s->use_offset ? (float)(rate * normal) : 0;
    }
}

/* n contiguous elements of a sample from index on, each with its own random number. */
static void each_element(const struct source *s, int64_t sample, int64_t index,
                         int64_t n, const float *x, float *y)
{
    float factor[CHUNK], offset[CHUNK], ones[CHUNK];

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
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t count = n - i < CHUNK ? n - i : CHUNK;

        factors(s, sample, index + i, count, factor, offset, ones);
        dnn_rows_find()->scale(&(struct rows_scale){
            .n = count, .x = x + i, .a = factor, .b = offset, .y = y + i});
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
        float *factor = (float *)c->work + p * 3 * padded_channels(n),
              *offset = factor + padded_channels(n);
        int64_t first, last;

        dnn_cpu_share(rows, parts, p, &first, &last);
        for (int64_t r = first; r < last; r++) {
            if (r == first || r % each == 0)
                factors(s, r / each, 0, n, factor, offset, offset + padded_channels(n));
            isa->scale(&(struct rows_scale){.n = n,
                                            .x = (const float *)c->in[0].mem + r * n,
                                            .a = factor,
                                            .b = offset,
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
