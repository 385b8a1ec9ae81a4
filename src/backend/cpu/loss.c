/* loss.c - losses, as one number, and their gradients.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows2_share.h"

/* ---- squared differences ---- */

static bool same_shape(const struct dnn_step *step)
{
    int x = step->op->pass == DNN_FWD ? 0 : 1;

    return dnn_shape_equal(&step->in[x]->shape, &step->in[x + 1]->shape) &&
           step->in[x + 1]->dtype == DNN_F32;
}

static size_t sums_work(const struct dnn_step *step, int threads)
{
    (void)step;
    return rows2_sums_bytes(threads);
}

/* Part p of all rows; they are one where nothing is between them. */
static struct rows2_box part_of(const struct cpu_array *x, const struct cpu_array *t,
                                const struct cpu_array *y, int parts, int p)
{
    struct rows2_box b = {.x = x->mem, .t = t->mem, .y = y == NULL ? NULL : y->mem};
    int64_t first, last;

    if (rows_dense(x) && rows_dense(t) && (y == NULL || rows_dense(y))) {
        rows2_line_share(x->count, parts, p, &first, &last);
        b.rows = 1;
        b.n = last - first;
        b.x_pitch = b.t_pitch = b.y_pitch = 1;
    } else {
        dnn_cpu_share(x->rows, parts, p, &first, &last);
        b.rows = last - first;
        b.n = x->row;
        b.x_pitch = x->pitch;
        b.t_pitch = t->pitch;
        if (y != NULL) b.y_pitch = y->pitch;
    }
    b.x += first * b.x_pitch;
    b.t += first * b.t_pitch;
    if (y != NULL) b.y += first * b.y_pitch;
    return b;
}

static void mse(const struct cpu_call *c)
{
    const struct dnn_rows2_isa *isa = dnn_rows2_find();
    int parts = rows_parts(c->in[0].count, c->threads);
    double *sums = c->work;

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows2_box b = part_of(&c->in[0], &c->in[1], NULL, parts, p);

        sums[8 * p] = isa->squares(&b);
    }
    rows2_put(&c->out[0], rows2_add_up(sums, parts) * c->op->attr.loss.scale);
}

static void mse_data(const struct cpu_call *c)
{
    const struct dnn_rows2_isa *isa = dnn_rows2_find();
    int parts = rows_parts(c->out[0].count, c->threads);
    double times = 2 * c->op->attr.loss.scale * rows2_number(&c->in[0]);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows2_box b = part_of(&c->in[1], &c->in[2], &c->out[0], parts, p);

        isa->difference(&b, (float)times);
    }
}

/* ---- cross-entropy ---- */

static bool can_xent(const struct dnn_step *step)
{
    int x = step->op->pass == DNN_FWD ? 0 : 1;
    bool labels = step->in[x + 1]->shape.ndim < step->in[x]->shape.ndim;

    return step->in[x + 1]->dtype == (labels ? DNN_I32 : DNN_F32) &&
           rows2_row(step->in[x]) <= INT32_MAX;
}

static int64_t scratch(int64_t classes)
{
    return 2 * ROWS2_TOGETHER * classes;
}

static size_t xent_work(const struct dnn_step *step, int threads)
{
    int x = step->op->pass == DNN_FWD ? 0 : 1;
    int64_t each = scratch(rows2_row(step->in[x]));

    return rows2_sums_bytes(threads) + (size_t)threads * (size_t)each * sizeof(float);
}

static struct rows2_classes classes(const struct cpu_call *c, const struct cpu_array *x,
                                    const struct cpu_array *t,
                                    const struct cpu_array *y, int parts, int p)
{
    struct rows2_classes k = {.n = x->row, .x_pitch = x->pitch, .t_pitch = t->pitch};
    int64_t first, last;

    dnn_cpu_share(x->rows, parts, p, &first, &last);
    k.rows = last - first;
    k.x = (const float *)x->mem + first * x->pitch;
    if (t->shape.ndim < x->shape.ndim)
        k.labels = (const int32_t *)t->mem + first;
    else
        k.t = (const float *)t->mem + first * t->pitch;
    if (y != NULL) {
        k.y = (float *)y->mem + first * y->pitch;
        k.y_pitch = y->pitch;
    }
    k.scratch =
        (float *)((char *)c->work + rows2_sums_bytes(c->threads)) + p * scratch(x->row);
    return k;
}

static void xent(const struct cpu_call *c)
{
    const struct dnn_rows2_isa *isa = dnn_rows2_find();
    int parts = rows_parts(c->in[0].count, c->threads);
    double *sums = c->work;

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows2_classes k = classes(c, &c->in[0], &c->in[1], NULL, parts, p);

        sums[8 * p] = isa->xent(&k);
    }
    rows2_put(&c->out[0], rows2_add_up(sums, parts) * c->op->attr.loss.scale);
}

static void xent_data(const struct cpu_call *c)
{
    const struct dnn_rows2_isa *isa = dnn_rows2_find();
    int parts = rows_parts(c->out[0].count, c->threads);
    double times = c->op->attr.loss.scale * rows2_number(&c->in[0]);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows2_classes k = classes(c, &c->in[1], &c->in[2], &c->out[0], parts, p);

        k.factor = (float)times;
        isa->xent_data(&k);
    }
}

const struct cpu_way dnn_cpu_mse = {
    .name = "rows", .can = same_shape, .in_pitch = 3, .fn = mse, .work = sums_work};
const struct cpu_way dnn_cpu_mse_data = {
    .name = "rows", .can = same_shape, .in_pitch = 6, .out_pitch = 1, .fn = mse_data};
const struct cpu_way dnn_cpu_xent = {
    .name = "rows", .can = can_xent, .in_pitch = 1, .fn = xent, .work = xent_work};
const struct cpu_way dnn_cpu_xent_data = {.name = "rows",
                                          .can = can_xent,
                                          .in_pitch = 2,
                                          .out_pitch = 1,
                                          .fn = xent_data,
                                          .work = xent_work};
