/* softmax.c - softmax along the last axis, and its logarithm.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

static bool last_axis(const struct dnn_step *step)
{
    return step->op->attr.softmax.axis == step->in[0]->shape.ndim - 1;
}

static int64_t scratch(int64_t n)
{
    return 2 * ROWS_BLOCK * n;
}

static size_t work(const struct dnn_step *step, int threads)
{
    return (size_t)threads * (size_t)scratch(rows_row(step->in[0])) * sizeof(float);
}

/* Part p of the rows: x -> y, or y and dy -> dx. */
static struct rows_classes part_of(const struct cpu_call *c, const struct cpu_array *x,
                                   const struct cpu_array *dy, int parts, int p)
{
    const struct cpu_array *y = &c->out[0];
    struct rows_classes k = {.n = x->row, .log = c->op->attr.softmax.log};
    int64_t first, last;

    dnn_cpu_share(x->rows, parts, p, &first, &last);
    k.rows = last - first;
    k.x = (const float *)x->mem + first * x->pitch;
    k.x_pitch = x->pitch;
    k.y = (float *)y->mem + first * y->pitch;
    k.y_pitch = y->pitch;
    if (dy != NULL) {
        k.t = (const float *)dy->mem + first * dy->pitch;
        k.t_pitch = dy->pitch;
    }
    k.scratch = (float *)c->work + p * scratch(x->row);
    return k;
}

static void softmax(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    int parts = rows_parts(c->in[0].count, c->threads);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows_classes k = part_of(c, &c->in[0], NULL, parts, p);

        isa->softmax(&k);
    }
}

static void softmax_data(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    int parts = rows_parts(c->in[0].count, c->threads);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows_classes k = part_of(c, &c->in[1], &c->in[0], parts, p);

        isa->softmax_data(&k);
    }
}

const struct cpu_algo dnn_cpu_softmax = {.name = "rows",
                                         .can = last_axis,
                                         .in_pitch = 1,
                                         .out_pitch = 1,
                                         .fn = softmax,
                                         .work = work};
const struct cpu_algo dnn_cpu_softmax_data = {.name = "rows",
                                              .can = last_axis,
                                              .in_pitch = 3,
                                              .out_pitch = 1,
                                              .fn = softmax_data,
                                              .work = work};
