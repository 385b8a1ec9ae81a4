/* combine.c - element-wise ops of several arrays: all of the same shape, or some with
 * one value per channel, or scalars.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

static int64_t count_of(const struct dnn_shape *s)
{
    int64_t n = 1;

    for (int i = 0; i < s->ndim; i++)
        n *= s->dim[i];
    return n;
}

static int64_t row_of(const struct dnn_shape *s)
{
    return s->ndim == 0 ? 1 : s->dim[s->ndim - 1];
}

/* Whether a has the shape of big, or is one row or a scalar that broadcasts to it. */
static bool fits(const struct dnn_shape *a, const struct dnn_shape *big)
{
    int64_t n = count_of(a);

    return dnn_shape_equal(a, big) || n == 1 || (n == row_of(big) && n == row_of(a));
}

static bool can(const struct dnn_step *step)
{
    const struct dnn_shape *y = &step->out[0]->shape;

    if (step->op->nin > ROWS_MAX_TERMS) return false;
    for (int i = 0; i < step->op->nin; i++)
        if (!fits(&step->in[i]->shape, y)) return false;
    return true;
}

/* A repeated row for each operand that is one row. */
static size_t work(const struct dnn_step *step, int threads)
{
    const struct dnn_shape *y = &step->out[0]->shape;

    (void)threads;
    return ROWS_MAX_TERMS * (size_t)rows_long(row_of(y), 64) * sizeof(float);
}

/* The operands to combine, as a box (rows_kernel.h): term i is operand of[i]. */
struct task {
    struct rows_combine box;
    struct rows_fold fold;
    const float *dy; /* gradient of maximum and minimum; else NULL */
    int64_t dy_pitch;
    const struct dnn_op_unary *post; /* applied after each chunk; NULL: none */
};

static struct task task_of(const struct cpu_call *c, int terms, const int *of)
{
    const struct cpu_array *y = &c->out[0];
    struct task j = {
        .box = {.terms = terms, .y = y->mem, .factor = 1}
    };
    bool dense = rows_dense(y), row = false;

    for (int i = 0; i < terms; i++) {
        const struct cpu_array *x = &c->in[of[i]];

        if (!dnn_shape_equal(&x->shape, &y->shape))
            row = true;
        else
            dense = dense && rows_dense(x);
    }
    j.fold = row ? rows_fold(y->rows, y->row, dense, 64) : rows_flat(y, dense);
    j.box.n = j.fold.n;
    j.box.y_pitch = j.fold.n == j.fold.c ? y->pitch : j.fold.n;
    for (int i = 0; i < terms; i++) {
        const struct cpu_array *x = &c->in[of[i]];

        j.box.x[i] = x->mem;
        j.box.pitch[i] = j.fold.n == j.fold.c ? x->pitch : j.fold.n;
        if (dnn_shape_equal(&x->shape, &y->shape)) continue;
        float *buf = (float *)c->work + i * rows_long(y->row, 64);
        for (int64_t k = 0; k < j.fold.n; k++)
            buf[k] = j.box.x[i][k % x->count];
        j.box.x[i] = buf;
        j.box.pitch[i] = 0;
    }
    return j;
}

/* Rows first ... last - 1, of n floats. */
static void run_rows(const struct dnn_rows_isa *isa, const struct task *j,
                     int64_t first, int64_t last, int64_t n)
{
    int64_t step = j->post == NULL ? last - first : rows_chunk(n);

    for (int64_t r = first; r < last; r += step) {
        struct rows_combine d = j->box;

        d.n = n;
        d.rows = last - r < step ? last - r : step;
        for (int t = 0; t < d.terms; t++)
            d.x[t] += r * d.pitch[t];
        d.y += r * d.y_pitch;
        if (j->dy != NULL)
            isa->max_min_data(&d, j->dy + r * j->dy_pitch, j->dy_pitch);
        else
            isa->combine(&d);
        if (j->post != NULL) rows_post(isa, j->post, d.y, d.y_pitch, d.rows, d.n);
    }
}

static void run(const struct cpu_call *c, const struct task *j)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    int parts = rows_parts(c->out[0].count, c->threads);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;

        dnn_cpu_share(j->fold.rows, parts, p, &first, &last);
        run_rows(isa, j, first, last, j->fold.n);
        if (p == parts - 1 && j->fold.left > 0)
            run_rows(isa, j, j->fold.rows, j->fold.rows + 1, j->fold.left);
    }
}

static const int in_order[ROWS_MAX_TERMS] = {0, 1, 2, 3, 4, 5, 6, 7};

static void combine(const struct cpu_call *c)
{
    const struct dnn_op_unary *post = c->op->post;
    struct task j = task_of(c, c->op->nin, in_order);

    j.box.fn = c->op->attr.combine.fn;
    if (j.box.fn == DNN_AVERAGE) j.box.factor = 1 / (float)c->op->nin;
    j.box.relu = rows_relu(post);
    if (post != NULL && !j.box.relu.on) j.post = post;
    run(c, &j);
}

/* ---- backward: dy [y] x... -> dx ---- */

/* Whether the operand was broadcast over the rows: its gradient is a sum over rows. */
static bool is_columns(const struct dnn_step *step)
{
    const struct dnn_shape *dx = &step->out[0]->shape;

    return !dnn_shape_equal(dx, &step->in[0]->shape) &&
           count_of(dx) == row_of(&step->in[0]->shape) && count_of(dx) == row_of(dx);
}

static bool can_data(const struct dnn_step *step)
{
    enum dnn_combine fn = step->op->attr.combine.fn;
    const struct dnn_shape *dy = &step->in[0]->shape;

    if (fn == DNN_ADD || fn == DNN_SUBTRACT || fn == DNN_AVERAGE)
        return is_columns(step) || dnn_shape_equal(&step->out[0]->shape, dy);
    return dnn_shape_equal(&step->out[0]->shape, dy) && can(step);
}

static size_t data_work(const struct dnn_step *step, int threads)
{
    if (is_columns(step))
        return dnn_cpu_columns_work(row_of(&step->in[0]->shape), threads);
    return work(step, threads);
}

/* Maximum and minimum: dy is the gradient of the first operand that equals y. */
static void max_min_data(const struct cpu_call *c)
{
    const struct cpu_array *dy = &c->in[0];
    int part = c->op->attr.combine.part, of[ROWS_MAX_TERMS] = {2 + part, 1};

    for (int i = 0; i < part; i++)
        of[2 + i] = 2 + i;
    struct task j = task_of(c, 2 + part, of);
    if (!rows_dense(dy) && j.fold.n != j.fold.c) {
        /* dy is not contiguous: do not join rows */
        j.fold = (struct rows_fold){.c = dy->row, .n = dy->row, .rows = dy->rows};
        j.box.n = dy->row;
        j.box.y_pitch = c->out[0].pitch;
        for (int t = 0; t < j.box.terms; t++)
            if (j.box.pitch[t] != 0) j.box.pitch[t] = c->in[of[t]].pitch;
    }
    j.dy = dy->mem;
    j.dy_pitch = j.fold.n == j.fold.c ? dy->pitch : j.fold.n;
    run(c, &j);
}

static void combine_data(const struct cpu_call *c)
{
    const struct dnn_op_combine *a = &c->op->attr.combine;
    const struct cpu_array *dy = &c->in[0], *dx = &c->out[0];
    float factor = 1;

    if (a->fn == DNN_SUBTRACT && a->part == 1) factor = -1;
    if (a->fn == DNN_AVERAGE) factor = 1 / (float)a->parts;
    if (!dnn_shape_equal(&dx->shape, &dy->shape)) {
        dnn_cpu_columns(dy, c->threads, c->work, factor, dx->mem);
        return;
    }
    if (a->fn == DNN_MAXIMUM || a->fn == DNN_MINIMUM) {
        max_min_data(c);
        return;
    }
    struct task j = task_of(c, a->fn == DNN_MULTIPLY ? c->op->nin : 1, in_order);
    j.box.fn = a->fn == DNN_MULTIPLY ? DNN_MULTIPLY : DNN_ADD;
    j.box.factor = factor;
    run(c, &j);
}

const struct cpu_algo dnn_cpu_combine = {.name = "rows",
                                         .can = can,
                                         .in_pitch = 0xff,
                                         .out_pitch = 1,
                                         .fn = combine,
                                         .work = work};
const struct cpu_algo dnn_cpu_combine_data = {.name = "rows",
                                              .can = can_data,
                                              .in_pitch = 0xff,
                                              .out_pitch = 1,
                                              .fn = combine_data,
                                              .work = data_work};
