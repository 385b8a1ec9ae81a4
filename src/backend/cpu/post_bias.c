/* post_bias.c - the fused activation and the gradient of the bias, for our own
 * matrix kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"
#include "backend/cpu/rows_impl.h"

#include <omp.h>
#include <string.h>

static struct dnn_op unary(const struct dnn_op_unary *post)
{
    static const int none[] = {DNN_NONE};

    return (struct dnn_op){
        .kind = DNN_OP_UNARY, .attr.unary = *post, .nin = 1, .nout = 1, .in = none};
}

bool dnn_cpu_post_can(const struct dnn_step *step)
{
    if (step->op->post == NULL) return true;
    struct dnn_op op = unary(step->op->post);
    struct dnn_step s = {.op = &op,
                         .in = step->out,
                         .out = step->out,
                         .in_pitch = step->out_pitch,
                         .out_pitch = step->out_pitch};
    return dnn_cpu_unary.fn != NULL && dnn_cpu_unary.work == NULL &&
           dnn_cpu_can(&dnn_cpu_unary, &s);
}

void dnn_cpu_post(const struct cpu_call *c)
{
    if (c->op->post == NULL) return;
    struct dnn_op op = unary(c->op->post);
    struct cpu_array y = c->out[0];
    struct cpu_call call = {
        .op = &op, .in = &y, .out = {y}, .threads = c->threads, .now = c->now};
    dnn_cpu_unary.fn(&call);
}

static int64_t padded(int64_t columns)
{
    return (columns + 15) / 16 * 16;
}

size_t dnn_cpu_sums_work(int64_t columns, int threads)
{
    return (size_t)(threads * padded(columns)) * sizeof(float);
}

void dnn_cpu_sums(const struct cpu_array *a, float *sum, void *work, int threads)
{
    float *parts = work;
    int64_t size = padded(a->row);

    /* Split by `threads`, not by the size of the team: a smaller team gives the same
     * result. */
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) {
        int64_t first, last;

        dnn_cpu_share(a->rows, threads, i, &first, &last);
        dnn_direct_columns((const float *)a->mem + first * a->pitch, last - first,
                           a->row, a->pitch, parts + i * size);
    }
    memcpy(sum, parts, (size_t)a->row * sizeof *sum);
    for (int i = 1; i < threads; i++)
        for (int64_t c = 0; c < a->row; c++)
            sum[c] += parts[i * size + c];
}
