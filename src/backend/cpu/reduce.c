/* reduce.c - sums, means and maxima over contiguous axes before the last: (n,
 * space..., c) -> (n, c), such as global pooling.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

/* The first reduced axis; kernels support axes first ... ndim - 2. */
static int first_axis(const struct dnn_op_reduce *r, const struct dnn_shape *x)
{
    int first = 0;

    while (first < x->ndim - 1 && (r->axes >> first & 1) == 0)
        first++;
    return first;
}

static bool can(const struct dnn_step *step)
{
    bool forward = step->op->pass == DNN_FWD;
    const struct dnn_op_reduce *r = &step->op->attr.reduce;
    const struct dnn_shape *x = forward ? &step->in[0]->shape : &step->out[0]->shape;
    int first = first_axis(r, x);

    return x->ndim >= 2 && first < x->ndim - 1 &&
           r->axes == (1u << (x->ndim - 1)) - (1u << first);
}

struct task {
    const struct cpu_array *x; /* x or dx */
    int64_t outer, rows, c;    /* results; rows of each; channels */
    struct rows_fold f;
    int64_t n; /* elements reserved for a long row           */
    int parts; /* that the rows of each result are split into */
};

static int64_t padded_row(int64_t c)
{
    return (rows_long(c, 64) + 15) & ~(int64_t)15;
}

static struct task task_of(const struct cpu_call *c, const struct cpu_array *x,
                           bool dense)
{
    struct task j = {.x = x, .outer = 1, .c = x->row, .n = padded_row(x->row)};

    for (int i = 0; i < first_axis(&c->op->attr.reduce, &x->shape); i++)
        j.outer *= x->shape.dim[i];
    j.rows = j.outer == 0 ? 0 : x->rows / j.outer;
    j.f = rows_fold(j.rows, j.c, dense, 16);
    j.parts = rows_parts(j.rows * j.c, c->threads);
    if (j.outer >= c->threads) j.parts = 1;
    return j;
}

/* Per thread: sums; or the number of equal elements, and a row of each operand. */
static size_t work(const struct dnn_step *step, int threads)
{
    const struct dnn_tensor *x = step->op->pass == DNN_FWD ? step->in[0] : step->out[0];

    return (size_t)threads * 4 * (size_t)padded_row(rows_row(x)) * sizeof(double);
}

/* The offset and rows of part p of a result; left: the incomplete long row belongs to
 * it. */
static int64_t box_of(const struct task *j, const struct cpu_array *a, int64_t outer,
                      int p, int64_t *rows, bool *left)
{
    int64_t first, last, pitch = j->f.n == j->f.c ? a->pitch : j->f.n;

    dnn_cpu_share(j->f.rows, j->parts, p, &first, &last);
    *rows = last - first;
    *left = p == j->parts - 1 && j->f.left > 0;
    return outer * j->rows * a->pitch + first * pitch;
}

static int64_t pitch_of(const struct task *j, const struct cpu_array *a)
{
    return j->f.n == j->f.c ? a->pitch : j->f.n;
}

/* ---- forward ---- */

static void sum_part(const struct task *j, int64_t outer, int p, double *sum)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    struct rows_norm b = {
        .n = j->f.n, .x_pitch = pitch_of(j, j->x), .sum = sum, .sum2 = NULL};
    bool left;

    memset(sum, 0, (size_t)j->n * sizeof *sum);
    b.x = (const float *)j->x->mem + box_of(j, j->x, outer, p, &b.rows, &left);
    isa->norm_stats(&b);
    if (!left) return;
    b.x += b.rows * b.x_pitch;
    b.rows = 1;
    b.n = j->f.left;
    isa->norm_stats(&b);
}

static void max_part(const struct task *j, int64_t outer, int p, float *maximum)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    struct rows_column b = {.n = j->f.n, .x_pitch = pitch_of(j, j->x), .out = maximum};
    bool left;

    for (int64_t i = 0; i < j->n; i++)
        maximum[i] = -INFINITY;
    b.x = (const float *)j->x->mem + box_of(j, j->x, outer, p, &b.rows, &left);
    isa->column_max(&b);
    if (!left) return;
    b.x += b.rows * b.x_pitch;
    b.rows = 1;
    b.n = j->f.left;
    isa->column_max(&b);
}

/* The memory of thread t: four rows of doubles. */
static double *scratch_of(const struct cpu_call *c, const struct task *j, int t)
{
    return (double *)c->work + (int64_t)t * 4 * j->n;
}

static void finish_sum(const struct cpu_call *c, const struct task *j, int64_t outer,
                       int first)
{
    bool mean = c->op->attr.reduce.fn == DNN_REDUCE_MEAN;
    float *y = (float *)c->out[0].mem + outer * c->out[0].pitch;

    for (int64_t i = 0; i < j->c; i++) {
        double sum = 0;

        for (int p = first; p < first + j->parts; p++)
            for (int64_t k = i; k < j->f.n; k += j->c)
                sum += scratch_of(c, j, p)[k];
        y[i] = (float)(mean ? sum / (double)j->rows : sum);
    }
}

static void finish_max(const struct cpu_call *c, const struct task *j, int64_t outer,
                       int first)
{
    float *y = (float *)c->out[0].mem + outer * c->out[0].pitch;

    for (int64_t i = 0; i < j->c; i++) {
        float maximum = -INFINITY;

        for (int p = first; p < first + j->parts; p++)
            for (int64_t k = i; k < j->f.n; k += j->c) {
                float v = ((const float *)scratch_of(c, j, p))[k];
                if (v > maximum || v != v) maximum = v;
            }
        y[i] = maximum;
    }
}

static void part(const struct cpu_call *c, const struct task *j, int64_t outer, int p,
                 int t)
{
    if (c->op->attr.reduce.fn == DNN_REDUCE_MAX)
        max_part(j, outer, p, (float *)scratch_of(c, j, t));
    else
        sum_part(j, outer, p, scratch_of(c, j, t));
}

static void finish(const struct cpu_call *c, const struct task *j, int64_t outer, int t)
{
    if (c->op->attr.reduce.fn == DNN_REDUCE_MAX)
        finish_max(c, j, outer, t);
    else
        finish_sum(c, j, outer, t);
}

static void reduce(const struct cpu_call *c)
{
    const struct task j = task_of(c, &c->in[0], rows_dense(&c->in[0]));
    int workers = rows_parts(c->in[0].count, c->threads);

    if (j.parts == 1) { /* each result by one thread */
#pragma omp parallel for schedule(static, 1) num_threads(workers)
        for (int t = 0; t < workers; t++) {
            int64_t first, last;

            dnn_cpu_share(j.outer, workers, t, &first, &last);
            for (int64_t o = first; o < last; o++) {
                part(c, &j, o, 0, t);
                finish(c, &j, o, t);
            }
        }
        return;
    }
    for (int64_t o = 0; o < j.outer; o++) {
#pragma omp parallel for schedule(static, 1) num_threads(j.parts)
        for (int p = 0; p < j.parts; p++)
            part(c, &j, o, p, p);
        finish(c, &j, o, 0);
    }
}

/* ---- backward ---- */

/* Rows of dx: dy in each row, or only where x is the maximum. */
static void spread_part(const struct cpu_call *c, const struct task *j, int64_t outer,
                        int p, const float *dy, const float *maximum)
{
    const struct cpu_array *dx = j->x, *x = &c->in[1];
    struct rows_column b = {.n = j->f.n, .dy = dy, .max = maximum};
    struct rows_combine same = {.terms = 1, .fn = DNN_ADD, .factor = 1};
    bool left;

    b.y_pitch = pitch_of(j, dx);
    b.y = (float *)dx->mem + box_of(j, dx, outer, p, &b.rows, &left);
    if (maximum != NULL) {
        b.x_pitch = pitch_of(j, x);
        b.x = (const float *)x->mem + box_of(j, x, outer, p, &b.rows, &left);
    }
    for (int pass = 0; pass <= left; pass++) {
        same.rows = b.rows;
        same.n = b.n;
        same.x[0] = dy;
        same.y = b.y;
        same.y_pitch = b.y_pitch;
        if (maximum != NULL)
            dnn_rows_find()->column_spread(&b);
        else
            dnn_rows_find()->combine(&same);
        b.y += b.rows * b.y_pitch;
        if (maximum != NULL) b.x += b.rows * b.x_pitch;
        b.rows = 1;
        b.n = j->f.left;
    }
}

/* Counts the elements that equal the maximum, column by column. */
static void equal_all(const struct cpu_call *c, const struct task *task, int64_t outer,
                      const float *maximum, float *count)
{
    const struct cpu_array *x = &c->in[1];
    struct task j = *task;
    struct rows_column b = {.max = maximum, .out = count};
    bool left;

    j.parts = 1;
    b.n = j.f.n;
    b.x_pitch = pitch_of(&j, x);
    b.x = (const float *)x->mem + box_of(&j, x, outer, 0, &b.rows, &left);
    for (int64_t i = 0; i < j.n; i++)
        count[i] = 0;
    dnn_rows_find()->column_equal(&b);
    if (left) {
        b.x += b.rows * b.x_pitch;
        b.rows = 1;
        b.n = j.f.left;
        dnn_rows_find()->column_equal(&b);
    }
    for (int64_t i = 0; i < j.c; i++)
        for (int64_t k = i + j.c; k < j.f.n; k += j.c)
            count[i] += count[k];
}

/* The gradient of the rows of a result, and the maximum they are compared with. */
static void row_of(const struct cpu_call *c, const struct task *j, int64_t outer,
                   float *dy, float *maximum, float *count)
{
    enum dnn_reduce fn = c->op->attr.reduce.fn;
    const float *from = (const float *)c->in[0].mem + outer * c->in[0].pitch;
    double part = fn == DNN_REDUCE_MEAN ? 1 / (double)j->rows : 1;

    for (int64_t i = 0; i < j->c; i++)
        dy[i] = (float)(from[i] * part);
    if (fn == DNN_REDUCE_MAX) {
        memcpy(maximum, (const float *)c->in[2].mem + outer * c->in[2].pitch,
               (size_t)j->c * sizeof *maximum);
        rows_repeat(maximum, j->c, j->f.n);
        equal_all(c, j, outer, maximum, count);
        for (int64_t i = 0; i < j->c; i++)
            dy[i] /= count[i];
    }
    rows_repeat(dy, j->c, j->f.n);
}

static void one_result(const struct cpu_call *c, const struct task *j, int64_t outer,
                       int t, int p)
{
    bool max = c->op->attr.reduce.fn == DNN_REDUCE_MAX;
    float *dy = (float *)scratch_of(c, j, t), *maximum = dy + j->n,
          *count = maximum + j->n;

    row_of(c, j, outer, dy, maximum, count);
    spread_part(c, j, outer, p, dy, max ? maximum : NULL);
}

static void reduce_data(const struct cpu_call *c)
{
    bool max = c->op->attr.reduce.fn == DNN_REDUCE_MAX;
    bool dense = rows_dense(&c->out[0]) && (!max || rows_dense(&c->in[1]));
    const struct task j = task_of(c, &c->out[0], dense);
    int workers = rows_parts(c->out[0].count, c->threads);
    int64_t pieces = j.outer * j.parts;

#pragma omp parallel for schedule(static, 1) num_threads(workers)
    for (int t = 0; t < workers; t++) {
        int64_t first, last;

        dnn_cpu_share(pieces, workers, t, &first, &last);
        for (int64_t i = first; i < last; i++)
            one_result(c, &j, i / j.parts, t, (int)(i % j.parts));
    }
}

const struct cpu_algo dnn_cpu_reduce = {.name = "rows",
                                        .can = can,
                                        .in_pitch = 1,
                                        .out_pitch = 1,
                                        .fn = reduce,
                                        .work = work};
const struct cpu_algo dnn_cpu_reduce_data = {.name = "rows",
                                             .can = can,
                                             .in_pitch = 7,
                                             .out_pitch = 1,
                                             .fn = reduce_data,
                                             .work = work};
