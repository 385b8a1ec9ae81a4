/* unary.c - element-wise functions, and the masks of a ReLU.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

/* Rows first ... last - 1 of a box; mask NULL: none. */
static void run_rows(const struct dnn_rows_isa *isa, struct rows_unary u, int64_t first,
                     int64_t last, uint8_t *mask)
{
    void (*kernel)(const struct rows_unary *) =
        u.dy == NULL ? isa->unary : isa->unary_data;

    u.rows = last - first;
    u.x += first * u.x_pitch;
    u.y += first * u.y_pitch;
    if (u.dy != NULL) u.dy += first * u.dy_pitch;
    if (mask == NULL) {
        kernel(&u);
        return;
    }
    /* Row by row, the mask first: y may be x. */
    struct rows_unary one = u;
    one.rows = 1;
    for (int64_t r = 0; r < u.rows; r++) {
        one.x = u.x + r * u.x_pitch;
        one.y = u.y + r * u.y_pitch;
        isa->mask(one.x, one.n, mask + (first + r) * u.n / 8);
        kernel(&one);
    }
}

static void run_all(const struct cpu_call *c, struct rows_unary u,
                    const struct rows_fold *f, uint8_t *mask)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    int parts = rows_parts(c->out[0].count, c->threads);

    u.n = f->n;
    if (f->n != f->c) u.x_pitch = u.dy_pitch = u.y_pitch = f->n;
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows_unary rest = u;
        int64_t first, last;

        dnn_cpu_share(f->rows, parts, p, &first, &last);
        run_rows(isa, u, first, last, mask);
        if (p < parts - 1 || f->left == 0) continue;
        rest.n = f->left;
        rest.x += f->rows * f->n;
        rest.y += f->rows * f->n;
        if (u.dy != NULL) rest.dy += f->rows * f->n;
        run_rows(isa, rest, 0, 1, mask == NULL ? NULL : mask + f->rows * f->n / 8);
    }
}

/* The mask if a byte has bits of two rows, computed byte by byte. */
static void ragged_mask(const struct cpu_array *x, uint8_t *mask, int threads)
{
    int64_t bytes = (x->count + 7) / 8;
    const float *mem = x->mem;

#pragma omp parallel for schedule(static) num_threads(rows_parts(x->count, threads))
    for (int64_t b = 0; b < bytes; b++) {
        unsigned byte = 0;

        for (int64_t i = 8 * b; i < 8 * b + 8 && i < x->count; i++)
            byte |= (unsigned)(mem[i / x->row * x->pitch + i % x->row] > 0) << i % 8;
        mask[b] = (uint8_t)byte;
    }
}

static void unary(const struct cpu_call *c)
{
    const struct cpu_array *x = &c->in[0], *y = &c->out[0];
    struct rows_unary u = rows_unary(&c->op->attr.unary);
    bool dense = rows_dense(x) && rows_dense(y);
    struct rows_fold f = rows_flat(x, dense);
    uint8_t *mask = c->op->nout > 1 ? c->out[1].mem : NULL;

    u.x = x->mem;
    u.x_pitch = x->pitch;
    u.y = y->mem;
    u.y_pitch = y->pitch;
    if (mask != NULL && !dense && x->row % 8 != 0) {
        ragged_mask(x, mask, c->threads);
        mask = NULL;
    }
    run_all(c, u, &f, mask);
}

static void unary_data_mask(const struct cpu_call *c)
{
    const struct cpu_array *dy = &c->in[0], *dx = &c->out[0];
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const uint8_t *mask = c->in[1].mem;
    float alpha = (float)c->op->attr.unary.alpha;
    struct rows_fold f = rows_flat(dy, rows_dense(dy) && rows_dense(dx));
    int64_t dy_pitch = f.n == f.c ? dy->pitch : f.n;
    int64_t dx_pitch = f.n == f.c ? dx->pitch : f.n;
    int parts = rows_parts(dy->count, c->threads);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;

        dnn_cpu_share(f.rows + (f.left > 0), parts, p, &first, &last);
        for (int64_t r = first; r < last; r++) {
            const float *from = (const float *)dy->mem + r * dy_pitch;
            float *to = (float *)dx->mem + r * dx_pitch;
            int64_t n = r < f.rows ? f.n : f.left, i = r * f.n;

            if (i % 8 == 0) {
                isa->mask_data(from, mask + i / 8, n, alpha, to);
                continue;
            }
            for (int64_t j = 0; j < n; j++) {
                bool on = mask[(i + j) / 8] >> (i + j) % 8 & 1;
                to[j] = on ? from[j] : from[j] * alpha;
            }
        }
    }
}

static void unary_data(const struct cpu_call *c)
{
    const struct cpu_array *dy = &c->in[0], *xy = &c->in[1], *dx = &c->out[0];
    struct rows_unary u = rows_unary(&c->op->attr.unary);
    struct rows_fold f =
        rows_flat(dy, rows_dense(dy) && rows_dense(xy) && rows_dense(dx));

    if (c->op->attr.unary.mask) {
        unary_data_mask(c);
        return;
    }
    u.dy = dy->mem;
    u.dy_pitch = dy->pitch;
    u.x = xy->mem;
    u.x_pitch = xy->pitch;
    u.y = dx->mem;
    u.y_pitch = dx->pitch;
    run_all(c, u, &f, NULL);
}

/* Backward: a mask must be contiguous. */
static bool mask_contiguous(const struct dnn_step *step)
{
    return !step->op->attr.unary.mask || step->in_pitch == NULL ||
           step->in_pitch[1] == 0 ||
           step->in_pitch[1] == step->in[1]->shape.dim[step->in[1]->shape.ndim - 1];
}

const struct cpu_algo dnn_cpu_unary = {
    .name = "rows", .in_pitch = 1, .out_pitch = 1, .fn = unary};
const struct cpu_algo dnn_cpu_unary_data = {.name = "rows",
                                            .can = mask_contiguous,
                                            .in_pitch = 3,
                                            .out_pitch = 1,
                                            .fn = unary_data};
