/* conv_narrow_weights.c - the gradient of the weights of a convolution with few input
 * and output channels and a stride of 1 along the last axis.
 *
 * Vectors run along the positions of a row (direct_narrow_weights.h), as in
 * conv_narrow.c. A band of output rows and the input rows it reads are copied, channel
 * by channel and with zero padding, to memory that stays in the cache; from these
 * copies the gradients of all weights are computed.
 *
 * Results depend on the shape and on the number of threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct_impl.h"
#include "backend/cpu/onednn_impl.h"

#include <string.h>

enum {
    MAX_CHANNELS = 16,           /* maximum of input channels, of output channels */
    MAX_WEIGHTS = 4096,          /* maximum number of weights                     */
    BAND_FLOATS = 12 * 1024,     /* floats of a band of several rows              */
    MAX_BAND_FLOATS = 256 * 1024 /* maximum floats of a band                      */
};

struct bands {
    struct dnn_direct_conv v;
    const struct dnn_direct_isa *isa;
    int64_t rows, bands; /* output rows per band; bands per plane            */
    int64_t count;       /* positions of a row of outputs, in whole vectors  */
    int64_t span;        /* floats of a copied row of the input              */
    int64_t in_rows;     /* input rows that a band reads                     */
    int64_t size;        /* number of weights                                */
    int64_t x, y;        /* floats of the copies of the input and of dy      */
};

static int64_t input_rows(const struct dnn_direct_conv *v, int64_t rows)
{
    return (rows - 1) * v->stride[1] + (v->kernel[1] - 1) * v->dilation[1] + 1;
}

static struct bands plan(const struct dnn_direct_conv *v)
{
    struct bands b = {.v = *v, .isa = dnn_direct_find(), .rows = v->out[1]};

    b.count = dnn_round_up(v->out[2], b.isa->lanes);
    b.span = dnn_round_up(b.count + (v->kernel[2] - 1) * v->dilation[2], b.isa->lanes);
    while (b.rows > 1 &&
           input_rows(v, b.rows) * b.span * v->c + b.rows * b.count * v->m >
               BAND_FLOATS)
        b.rows = (b.rows + 1) / 2;
    b.bands = (v->out[1] + b.rows - 1) / b.rows;
    b.in_rows = input_rows(v, b.rows);
    b.size = v->kernel[0] * v->kernel[1] * v->kernel[2] * v->c * v->m;
    b.x = dnn_round_up(b.in_rows * b.span * v->c, 16);
    b.y = dnn_round_up(b.rows * b.count * v->m, 16);
    return b;
}

/* Other kernels are better for many channels, which fill vectors. */
static bool can(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);
    const struct dnn_direct_conv *v = &g.conv;

    if (g.groups != 1 || v->n < 1 || v->c > MAX_CHANNELS || v->m > MAX_CHANNELS ||
        v->stride[2] != 1 || v->out[0] < 1 || v->out[1] < 1 || v->out[2] < 1 ||
        v->kernel[0] * v->kernel[1] * v->kernel[2] * v->c * v->m > MAX_WEIGHTS)
        return false;
    struct bands b = plan(v);
    return b.x + b.y <= MAX_BAND_FLOATS;
}

static bool best(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);

    return g.conv.m % 8 != 0 && g.conv.c < 8 && g.conv.out[2] >= 8;
}

/* Floats of a thread: its sums, then the two copies. */
static int64_t thread_floats(const struct bands *b)
{
    return dnn_round_up(b->size, 16) + b->x + b->y;
}

static size_t work(const struct dnn_step *step, int threads)
{
    struct cpu_window g = dnn_cpu_window(step);
    const struct dnn_tensor *db = dnn_cpu_out(step, 1);
    struct bands b = plan(&g.conv);
    size_t own = (size_t)(threads * thread_floats(&b)) * sizeof(float);
    size_t sums = db == NULL ? 0 : dnn_cpu_sums_work(db->shape.dim[0], threads);

    return own > sums ? own : sums;
}

/* Copy a band of dy, from row first of the plane on; missing rows stay zero. */
static void copy_y(const struct bands *b, const float *dy, int64_t plane, int64_t first,
                   float *to)
{
    const struct dnn_direct_conv *v = &b->v;

    for (int64_t r = 0; r < b->rows && first + r < v->out[1]; r++)
        b->isa->deinterleave(dy + (plane * v->out[1] + first + r) * v->out[2] * v->m,
                             v->m, v->out[2], v->m, to + r * b->count,
                             b->rows * b->count);
}

/* Copy the input rows of a band, from row h of the plane on; rows outside are zeros. */
static void copy_x(const struct bands *b, const struct cpu_array *x, int64_t plane,
                   int64_t h, float *to)
{
    const struct dnn_direct_conv *v = &b->v;
    int64_t skip = v->before[2] > 0 ? v->before[2] : 0, from = skip - v->before[2];
    int64_t n = v->in[2] - from < b->span - skip ? v->in[2] - from : b->span - skip;

    for (int64_t r = 0; r < b->in_rows; r++, h++) {
        const float *row = (const float *)x->mem +
                           ((plane * v->in[1] + h) * v->in[2] + from) * x->pitch;

        if (h >= 0 && h < v->in[1]) {
            if (n > 0)
                b->isa->deinterleave(row, x->pitch, n, v->c, to + r * b->span + skip,
                                     b->in_rows * b->span);
            continue;
        }
        for (int64_t k = 0; k < v->c; k++)
            memset(to + (k * b->in_rows + r) * b->span, 0,
                   (size_t)b->span * sizeof *to);
    }
}

/* Add to the gradients of all weights of one plane of taps. */
static void add_plane(const struct bands *b, const float *x, const float *y,
                      int64_t rows, float *sum)
{
    const struct dnn_direct_conv *v = &b->v;
    struct dnn_direct_narrow_weights t = {.rows = rows,
                                          .count = b->count,
                                          .x_row = v->stride[1] * b->span,
                                          .x_step = v->dilation[2],
                                          .y_row = b->count,
                                          .y_step = b->rows * b->count,
                                          .sum_step = v->c * v->m};

    for (int64_t kh = 0; kh < v->kernel[1]; kh++)
        for (int64_t kw = 0; kw < v->kernel[2]; kw += DNN_DIRECT_TAPS)
            for (int64_t c = 0; c < v->c; c++)
                for (int64_t m = 0; m < v->m; m += DNN_DIRECT_TAPS_M) {
                    int64_t taps = v->kernel[2] - kw, left = v->m - m;

                    t.taps = (int)(taps < DNN_DIRECT_TAPS ? taps : DNN_DIRECT_TAPS);
                    t.m = (int)(left < DNN_DIRECT_TAPS_M ? left : DNN_DIRECT_TAPS_M);
                    t.x = x + (c * b->in_rows + kh * v->dilation[1]) * b->span +
                          kw * v->dilation[2];
                    t.y = y + m * t.y_step;
                    t.sum = sum + ((kh * v->kernel[2] + kw) * v->c + c) * v->m + m;
                    b->isa->taps(&t);
                }
}

/* Compute share number share of all bands. */
static void run_share(const struct bands *b, const struct cpu_call *c, int share)
{
    const struct dnn_direct_conv *v = &b->v;
    float *sum = (float *)c->work + share * thread_floats(b),
          *x = sum + dnn_round_up(b->size, 16);
    float *y = x + b->x;
    int64_t part = b->size / v->kernel[0], i, last;

    memset(sum, 0, (size_t)thread_floats(b) * sizeof *sum);
    dnn_cpu_share(v->n * v->out[0] * b->bands, c->threads, share, &i, &last);
    for (; i < last; i++) {
        int64_t plane = i / b->bands, first = i % b->bands * b->rows;
        int64_t rows = v->out[1] - first < b->rows ? v->out[1] - first : b->rows;

        copy_y(b, c->in[1].mem, plane, first, y);
        for (int64_t kd = 0; kd < v->kernel[0]; kd++) {
            int64_t d =
                plane % v->out[0] * v->stride[0] + kd * v->dilation[0] - v->before[0];

            if (d < 0 || d >= v->in[0]) continue;
            copy_x(b, &c->in[0], plane / v->out[0] * v->in[0] + d,
                   first * v->stride[1] - v->before[1], x);
            add_plane(b, x, y, rows, sum + kd * part);
        }
    }
}

static void conv_weights(const struct cpu_call *c)
{
    struct cpu_window g = dnn_cpu_window_weights(c);
    struct bands b = plan(&g.conv);
    float *dw = c->out[0].mem;

#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int i = 0; i < c->threads; i++)
        run_share(&b, c, i);
    memcpy(dw, c->work, (size_t)b.size * sizeof *dw);
    for (int t = 1; t < c->threads; t++)
        for (int64_t i = 0; i < b.size; i++)
            dw[i] += ((const float *)c->work)[t * thread_floats(&b) + i];
    if (c->op->nout > 1 && c->out[1].mem != NULL)
        dnn_cpu_sums(&c->in[1], c->out[1].mem, c->work, c->threads);
}

const struct cpu_algo dnn_cpu_narrow_weights = {.name = "narrow",
                                                .can = can,
                                                .best = best,
                                                .in_pitch = 1,
                                                .fn = conv_weights,
                                                .work = work,
                                                .by_isa = true};
