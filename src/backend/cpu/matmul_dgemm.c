/* matmul_dgemm.c - matrix products in double precision by OpenBLAS.
 *
 * As in matmul_sgemm.c, each of our threads computes a block of rows. Steps with a
 * fused activation or the gradient of a bias are not supported: the loops run them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"

#include <cblas.h>
#include <string.h>

/* result(rows, cols) = a(rows, depth) b(depth, cols), either transposed */
struct product {
    int64_t rows, cols, depth;
    const double *a, *b, *bias; /* bias NULL: none */
    bool trans_a, trans_b;
    int64_t step_a, step_b; /* from row to row in memory */
    double *result;
};

static void multiply(const struct product *p, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) {
        int64_t first, last;

        dnn_cpu_share(p->rows, threads, i, &first, &last);
        if (first == last) continue;
        double *to = p->result + first * p->cols;
        for (int64_t r = 0; p->bias != NULL && r < last - first; r++)
            memcpy(to + r * p->cols, p->bias, (size_t)p->cols * sizeof *to);
        cblas_dgemm(CblasRowMajor, p->trans_a ? CblasTrans : CblasNoTrans,
                    p->trans_b ? CblasTrans : CblasNoTrans, (blasint)(last - first),
                    (blasint)p->cols, (blasint)p->depth, 1,
                    p->a + (p->trans_a ? first : first * p->step_a), (blasint)p->step_a,
                    p->b, (blasint)p->step_b, p->bias == NULL ? 0 : 1, to,
                    (blasint)p->cols);
    }
}

static void forward(const struct cpu_call *c)
{
    const struct cpu_array *x = &c->in[0], *w = &c->in[1];

    multiply(&(struct product){.rows = x->rows,
                               .cols = w->row,
                               .depth = w->rows,
                               .a = x->mem,
                               .b = w->mem,
                               .bias = c->op->nin > 2 ? c->in[2].mem : NULL,
                               .step_a = w->rows,
                               .step_b = w->row,
                               .result = c->out[0].mem},
             c->threads);
}

static void data(const struct cpu_call *c)
{
    const struct cpu_array *dy = &c->in[0], *w = &c->in[1];

    multiply(&(struct product){.rows = dy->rows,
                               .cols = w->rows,
                               .depth = w->row,
                               .a = dy->mem,
                               .b = w->mem,
                               .trans_b = true,
                               .step_a = w->row,
                               .step_b = w->row,
                               .result = c->out[0].mem},
             c->threads);
}

static void weights(const struct cpu_call *c)
{
    const struct cpu_array *x = &c->in[0], *dy = &c->in[1];

    multiply(&(struct product){.rows = x->row,
                               .cols = dy->row,
                               .depth = x->rows,
                               .a = x->mem,
                               .b = dy->mem,
                               .trans_a = true,
                               .step_a = x->row,
                               .step_b = dy->row,
                               .result = c->out[0].mem},
             c->threads);
}

static bool can(const struct dnn_step *step)
{
    return dnn_cpu_blas_fits(step->in[0]) && dnn_cpu_blas_fits(step->in[1]) &&
           dnn_cpu_blas_fits(step->out[0]) && step->op->post == NULL &&
           dnn_cpu_out(step, 1) == NULL;
}

const struct cpu_algo dnn_cpu_dgemm = {
    .name = "dgemm", .f64 = true, .can = can, .fn = forward};
const struct cpu_algo dnn_cpu_dgemm_data = {
    .name = "dgemm", .f64 = true, .can = can, .fn = data};
const struct cpu_algo dnn_cpu_dgemm_weights = {
    .name = "dgemm", .f64 = true, .can = can, .fn = weights};
