/* matmul_sgemm.c - matrix products by OpenBLAS.
 *
 * OpenBLAS's own threads keep spinning after a call, on cores that the next step needs.
 * Therefore each of our threads calls OpenBLAS for one block of the result.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"

#include <cblas.h>
#include <limits.h>
#include <string.h>

/* result(rows, cols) = a(rows, depth) b(depth, cols), either transposed */
struct product {
    int64_t rows, cols, depth;
    const float *a, *b, *bias; /* bias NULL: none */
    bool trans_a, trans_b;
    int64_t step_a, step_b; /* from row to row in memory */
    float *result;
};

enum { COLUMN_STEP = 16 }; /* columns are split at multiples of it: whole vectors */

static void block(const struct product *p, int64_t row, int64_t rows, int64_t col,
                  int64_t cols)
{
    float *to = p->result + row * p->cols + col;

    if (rows == 0 || cols == 0) return;
    if (p->bias != NULL)
        for (int64_t r = 0; r < rows; r++)
            memcpy(to + r * p->cols, p->bias + col, (size_t)cols * sizeof *to);
    cblas_sgemm(CblasRowMajor, p->trans_a ? CblasTrans : CblasNoTrans,
                p->trans_b ? CblasTrans : CblasNoTrans, (blasint)rows, (blasint)cols,
                (blasint)p->depth, 1, p->a + (p->trans_a ? row : row * p->step_a),
                (blasint)p->step_a, p->b + (p->trans_b ? col * p->step_b : col),
                (blasint)p->step_b, p->bias == NULL ? 0 : 1, to, (blasint)p->cols);
}

static void multiply(const struct product *p, int threads)
{
    /* Split the rows if there are enough of them, else the columns. */
    bool rows = p->rows >= p->cols || p->rows >= 64 * (int64_t)threads;

#pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) {
        int64_t first, last;

        if (rows) {
            dnn_cpu_share(p->rows, threads, i, &first, &last);
            block(p, first, last - first, 0, p->cols);
        } else {
            dnn_cpu_share((p->cols + COLUMN_STEP - 1) / COLUMN_STEP, threads, i, &first,
                          &last);
            first *= COLUMN_STEP;
            last = last * COLUMN_STEP < p->cols ? last * COLUMN_STEP : p->cols;
            block(p, 0, p->rows, first, last - first);
        }
    }
}

static void extents(const struct cpu_array *w, int64_t *k, int64_t *n)
{
    *k = w->shape.dim[w->shape.ndim - 2];
    *n = w->shape.dim[w->shape.ndim - 1];
}

static void forward(const struct cpu_call *c)
{
    const struct cpu_array *x = &c->in[0], *w = &c->in[1];
    struct product p = {.a = x->mem, .b = w->mem, .result = c->out[0].mem};

    extents(w, &p.depth, &p.cols);
    p.rows = x->rows;
    p.step_a = p.depth;
    p.step_b = p.cols;
    p.bias = c->op->nin > 2 ? c->in[2].mem : NULL;
    multiply(&p, c->threads);
    dnn_cpu_post(c);
}

static void data(const struct cpu_call *c)
{
    const struct cpu_array *dy = &c->in[0], *w = &c->in[1];
    struct product p = {
        .a = dy->mem, .b = w->mem, .trans_b = true, .result = c->out[0].mem};

    extents(w, &p.cols, &p.depth);
    p.rows = dy->rows;
    p.step_a = p.step_b = p.depth;
    multiply(&p, c->threads);
}

static void weights(const struct cpu_call *c)
{
    const struct cpu_array *x = &c->in[0], *dy = &c->in[1];
    struct product p = {
        .a = x->mem, .b = dy->mem, .trans_a = true, .result = c->out[0].mem};

    extents(&c->out[0], &p.rows, &p.cols);
    p.depth = x->rows;
    p.step_a = p.rows;
    p.step_b = p.cols;
    multiply(&p, c->threads);
    if (c->op->nout > 1 && c->out[1].mem != NULL)
        dnn_cpu_sums(dy, c->out[1].mem, c->work, c->threads);
}

static size_t work(const struct dnn_step *step, int threads)
{
    const struct dnn_tensor *db = dnn_cpu_out(step, 1);

    return db == NULL ? 0 : dnn_cpu_sums_work(db->shape.dim[0], threads);
}

bool dnn_cpu_blas_fits(const struct dnn_tensor *tensor)
{
    struct cpu_array a = dnn_cpu_array(tensor, NULL, 0);

    return a.rows > 0 && a.row > 0 && a.rows <= INT_MAX && a.row <= INT_MAX;
}

static bool can(const struct dnn_step *step)
{
    return dnn_cpu_blas_fits(step->in[0]) && dnn_cpu_blas_fits(step->in[1]) &&
           dnn_cpu_blas_fits(step->out[0]) && dnn_cpu_post_can(step);
}

const struct cpu_algo dnn_cpu_sgemm = {.name = "sgemm", .can = can, .fn = forward};
const struct cpu_algo dnn_cpu_sgemm_data = {.name = "sgemm", .can = can, .fn = data};
const struct cpu_algo dnn_cpu_sgemm_weights = {
    .name = "sgemm", .can = can, .fn = weights, .work = work};
