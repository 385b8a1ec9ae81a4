/* bias.c - adding a bias to every row, and sums of columns (the gradient of a bias).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

static size_t bias_work(const struct dnn_step *step, int threads)
{
    const struct dnn_shape *x = &step->in[0]->shape;

    (void)threads;
    return (size_t)rows_long(x->dim[x->ndim - 1], 64) * sizeof(float);
}

static void bias(const struct cpu_call *c)
{
    const struct cpu_array *x = &c->in[0], *b = &c->in[1], *y = &c->out[0];
    const struct dnn_rows_isa *isa = dnn_rows_find();
    struct rows_fold f = rows_fold(x->rows, x->row, rows_dense(x) && rows_dense(y), 64);
    int64_t x_pitch = f.n == f.c ? x->pitch : f.n,
            y_pitch = f.n == f.c ? y->pitch : f.n;
    int parts = rows_parts(x->count, c->threads);
    float *add = c->work;

    memcpy(add, b->mem, (size_t)x->row * sizeof(float));
    rows_repeat(add, f.c, f.n);
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows_combine d = {
            .n = f.n,
            .terms = 2,
            .y_pitch = y_pitch,
            .pitch = {x_pitch, 0},
            .fn = DNN_ADD,
            .factor = 1
        };
        int64_t first, last;

        dnn_cpu_share(f.rows, parts, p, &first, &last);
        d.rows = last - first;
        d.x[0] = (const float *)x->mem + first * x_pitch;
        d.x[1] = add;
        d.y = (float *)y->mem + first * y_pitch;
        isa->combine(&d);
        if (p < parts - 1 || f.left == 0) continue;
        d.rows = 1;
        d.n = f.left;
        d.x[0] = (const float *)x->mem + f.rows * f.n;
        d.y = (float *)y->mem + f.rows * f.n;
        isa->combine(&d);
    }
}

size_t dnn_cpu_columns_work(int64_t row, int threads)
{
    return (size_t)threads * (size_t)rows_long(row, 16) * sizeof(double);
}

void dnn_cpu_columns(const struct cpu_array *a, int threads, void *work, float factor,
                     float *out)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    struct rows_fold f = rows_fold(a->rows, a->row, rows_dense(a), 16);
    int64_t pitch = f.n == f.c ? a->pitch : f.n;
    int parts = rows_parts(a->count, threads);
    double *sums = work;

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows_norm d = {.n = f.n, .x_pitch = pitch, .sum = sums + p * f.n};
        int64_t first, last;

        memset(d.sum, 0, (size_t)f.n * sizeof(double));
        dnn_cpu_share(f.rows, parts, p, &first, &last);
        d.rows = last - first;
        d.x = (const float *)a->mem + first * pitch;
        isa->norm_stats(&d);
        if (p < parts - 1 || f.left == 0) continue;
        d.rows = 1;
        d.n = f.left;
        d.x = (const float *)a->mem + f.rows * f.n;
        isa->norm_stats(&d);
    }
    for (int64_t i = 0; i < f.c; i++) {
        double sum = 0;

        for (int p = 0; p < parts; p++)
            for (int64_t j = i; j < f.n; j += f.c)
                sum += sums[p * f.n + j];
        out[i] = (float)(sum * factor);
    }
}

static size_t weights_work(const struct dnn_step *step, int threads)
{
    const struct dnn_shape *dy = &step->in[0]->shape;

    return dnn_cpu_columns_work(dy->dim[dy->ndim - 1], threads);
}

static void bias_weights(const struct cpu_call *c)
{
    dnn_cpu_columns(&c->in[0], c->threads, c->work, 1, c->out[0].mem);
}

const struct cpu_algo dnn_cpu_bias = {
    .name = "rows", .in_pitch = 1, .out_pitch = 1, .fn = bias, .work = bias_work};
const struct cpu_algo dnn_cpu_bias_weights = {
    .name = "rows", .in_pitch = 1, .fn = bias_weights, .work = weights_work};
