/* norm_batch_channel.c - the per-channel steps of batch norm, and its gradient if it
 * uses the moving averages.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

#include <math.h>
#include <omp.h>

/* sums mean var -> : updates the moving averages in place. */
static void update(const struct cpu_call *c)
{
    const struct dnn_op_batchnorm *b = &c->op->attr.batchnorm;
    const double *sums = c->in[0].mem;
    float *mean = c->in[1].mem, *var = c->in[2].mem;
    int64_t channels = c->in[1].count;
    double n = sums[2 * channels], keep = b->momentum;
    double fix = b->unbiased && n > 1 ? n / (n - 1) : 1;

    for (int64_t i = 0; i < channels; i++) {
        double m = sums[i] / n, v = fmax(0, sums[channels + i] / n - m * m);

        mean[i] = (float)(keep * mean[i] + (1 - keep) * m);
        var[i] = (float)(keep * var[i] + (1 - keep) * fix * v);
    }
}

/* dsums -> [dgamma] [dbeta] */
static void weights(const struct cpu_call *c)
{
    const double *dsums = c->in[0].mem;
    int64_t channels = c->in[0].count / 2;
    float *dgamma = c->out[0].mem, *dbeta = c->out[1].mem;

    for (int64_t i = 0; i < channels; i++) {
        if (dgamma != NULL) dgamma[i] = (float)dsums[channels + i];
        if (dbeta != NULL) dbeta[i] = (float)dsums[i];
    }
}

static bool last_axis(const struct dnn_step *step)
{
    return step->op->attr.batchnorm.axis == step->in[0]->shape.ndim - 1;
}

static size_t factors(const struct dnn_step *step, int threads)
{
    (void)threads;
    return (size_t)step->in[0]->shape.dim[step->in[0]->shape.ndim - 1] * sizeof(float);
}

/* dy var [gamma] -> dx = dy gamma / deviation */
static void infer_data(const struct cpu_call *c)
{
    const struct cpu_array *dy = &c->in[0], *dx = &c->out[0];
    const float *var = c->in[1].mem, *gamma = c->in[2].mem;
    double epsilon = c->op->attr.batchnorm.epsilon;
    float *factor = c->work;

    for (int64_t i = 0; i < dy->row; i++)
        factor[i] =
            (float)((gamma == NULL ? 1 : gamma[i]) / sqrt((double)var[i] + epsilon));
    int parts = rows_parts(dy->count, c->threads);
#pragma omp parallel num_threads(parts)
    {
        int64_t first, last;

        dnn_cpu_share(dy->rows, omp_get_num_threads(), omp_get_thread_num(), &first,
                      &last);
        struct rows_combine box = {
            .rows = last - first,
            .n = dy->row,
            .terms = 2,
            .x = {(const float *)dy->mem + first * dy->pitch, factor},
            .pitch = {dy->pitch,                                  0     },
            .y = (float *)dx->mem + first * dx->pitch,
            .y_pitch = dx->pitch,
            .fn = DNN_MULTIPLY,
            .factor = 1
        };
        if (first < last) dnn_rows_find()->combine(&box);
    }
}

const struct cpu_algo dnn_cpu_bn_update = {.name = "rows", .fn = update};
const struct cpu_algo dnn_cpu_bn_apply_weights = {.name = "rows", .fn = weights};
const struct cpu_algo dnn_cpu_bn_infer_data = {.name = "rows",
                                               .can = last_axis,
                                               .in_pitch = 1,
                                               .out_pitch = 1,
                                               .fn = infer_data,
                                               .work = factors};
