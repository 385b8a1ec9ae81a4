/* scale.c - PReLU, scaling by constants, and the activity penalty.
 *
 * Operands that broadcast are periodic: they have the shape of the last axes, or are
 * scalars.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

/* The period with which a's elements repeat in x; 0: not periodic. */
static int64_t period(const struct dnn_shape *a, const struct dnn_shape *x)
{
    int shift = x->ndim - a->ndim, i = 0;
    int64_t n = 1;

    if (shift < 0) return 0;
    while (i < a->ndim && a->dim[i] == 1)
        i++;
    for (; i < a->ndim; i++) {
        if (a->dim[i] != x->dim[i + shift]) return 0;
        n *= a->dim[i];
    }
    return n;
}

static bool is_periodic(const struct dnn_step *step, int i)
{
    return i >= step->op->nin || step->in[i] == NULL ||
           period(&step->in[i]->shape, &step->in[0]->shape) > 0;
}

static bool can_scale(const struct dnn_step *step)
{
    return is_periodic(step, 1) && (step->op->pass != DNN_FWD || is_periodic(step, 2));
}

static bool can_prelu(const struct dnn_step *step)
{
    return is_periodic(step, step->op->pass == DNN_FWD ? 1 : 2);
}

/* The length to which n values are repeated, so that pieces are not too short. */
static int64_t repeat_length(int64_t n)
{
    int64_t all = n;

    while (all < 256)
        all += n;
    return all;
}

static size_t work(const struct dnn_step *step, int threads)
{
    int64_t max = 1;
    int first = step->op->kind == DNN_OP_PRELU && step->op->pass != DNN_FWD ? 2 : 1;

    (void)threads;
    for (int i = first; i < step->op->nin; i++) {
        int64_t n = step->in[i] == NULL ? 0 : rows_count(step->in[i]);
        if (n > max) max = n;
    }
    return 2 * (size_t)repeat_length(max) * sizeof(float);
}

/* The elements of a repeated to n: a's own memory if it has n, else buf. */
static const float *repeated_values(const struct cpu_array *a, int64_t n, float *buf)
{
    if (a == NULL || a->mem == NULL) return NULL;
    if (a->count == n) return a->mem;
    memcpy(buf, a->mem, (size_t)a->count * sizeof *buf);
    rows_repeat(buf, a->count, n);
    return buf;
}

typedef void scale_kernel(const struct rows_scale *s);

/* Run a kernel on elements first ... last - 1, in pieces: a and b (NULL: none) repeat
 * after `length` elements. */
static void pieces(const struct cpu_array *dy, const struct cpu_array *x,
                   const float *a, const float *b, int64_t length,
                   const struct cpu_array *y, scale_kernel *kernel, int64_t first,
                   int64_t last)
{
    bool dense = rows_dense(x) && rows_dense(y) && (dy == NULL || rows_dense(dy));
    int64_t row = dense ? x->count : x->row;

    while (first < last) {
        int64_t r = first / row, j = first % row, k = first % length;
        int64_t n = last - first;
        struct rows_scale s = {.a = a + k, .b = b == NULL ? NULL : b + k};

        if (n > row - j) n = row - j;
        if (n > length - k) n = length - k;
        s.n = n;
        s.x = (const float *)x->mem + r * (dense ? 0 : x->pitch) + j;
        s.y = (float *)y->mem + r * (dense ? 0 : y->pitch) + j;
        if (dy != NULL) s.dy = (const float *)dy->mem + r * (dense ? 0 : dy->pitch) + j;
        kernel(&s);
        first += n;
    }
}

static void run_pieces(const struct cpu_call *c, const struct cpu_array *dy,
                       const struct cpu_array *x, const struct cpu_array *a,
                       const struct cpu_array *b, scale_kernel *kernel)
{
    int parts = rows_parts(x->count, c->threads);
    int64_t max = b != NULL && b->count > a->count ? b->count : a->count;
    int64_t length = repeat_length(max);
    const float *of_a = repeated_values(a, length, c->work);
    const float *of_b = repeated_values(b, length, (float *)c->work + length);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;

        rows_line_share(x->count, parts, p, &first, &last);
        pieces(dy, x, of_a, of_b, length, &c->out[0], kernel, first, last);
    }
}

static void scale(const struct cpu_call *c)
{
    const struct cpu_array *b =
        c->op->pass == DNN_FWD && c->op->nin > 2 && c->in[2].mem != NULL ? &c->in[2]
                                                                         : NULL;

    run_pieces(c, NULL, &c->in[0], &c->in[1], b, dnn_rows_find()->scale);
}

static void prelu(const struct cpu_call *c)
{
    run_pieces(c, NULL, &c->in[0], &c->in[1], NULL, dnn_rows_find()->prelu);
}

static void prelu_data(const struct cpu_call *c)
{
    run_pieces(c, &c->in[0], &c->in[1], &c->in[2], NULL, dnn_rows_find()->prelu_data);
}

/* ---- the gradient of PReLU's weights ---- */

/* Number of columns to sum: n weights, repeated if they are few. */
static int64_t columns(int64_t count, int64_t n)
{
    int64_t all = n < 64 ? rows_long(n, 64) : n;

    return all <= count ? all : n;
}

static bool can_prelu_weights(const struct dnn_step *step)
{
    return period(&step->out[0]->shape, &step->in[0]->shape) > 0;
}

static size_t prelu_work(const struct dnn_step *step, int threads)
{
    int64_t n = rows_count(step->out[0]);

    return (size_t)threads * (size_t)((columns(rows_count(step->in[0]), n) + 7) & ~7) *
           sizeof(double);
}

static void prelu_part(const struct cpu_call *c, int64_t n, int parts, int p,
                       double *sum)
{
    const struct cpu_array *dy = &c->in[0], *x = &c->in[1];
    int64_t rows = x->count / n, left = x->count % n, first, last;
    struct rows_column b = {.n = n, .x_pitch = n, .dy_pitch = n, .sum = sum};

    dnn_cpu_share(rows, parts, p, &first, &last);
    memset(sum, 0, (size_t)n * sizeof *sum);
    b.rows = last - first;
    b.x = (const float *)x->mem + first * n;
    b.dy = (const float *)dy->mem + first * n;
    dnn_rows_find()->column_prelu(&b);
    if (p < parts - 1 || left == 0) return;
    b.x += b.rows * n;
    b.dy += b.rows * n;
    b.rows = 1;
    b.n = left;
    dnn_rows_find()->column_prelu(&b);
}

static void prelu_weights(const struct cpu_call *c)
{
    int64_t count = c->out[0].count, n = columns(c->in[0].count, count);
    int64_t padded = (n + 7) & ~(int64_t)7;
    int parts = rows_parts(c->in[0].count, c->threads);
    float *da = c->out[0].mem;
    double *sums = c->work;

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++)
        prelu_part(c, n, parts, p, sums + p * padded);
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;

        for (int p = 0; p < parts; p++)
            for (int64_t j = i; j < n; j += count)
                sum += sums[p * padded + j];
        da[i] = (float)sum;
    }
}

/* ---- the activity penalty ---- */

static size_t activity_work(const struct dnn_step *step, int threads)
{
    (void)step;
    return rows_sums_bytes(threads);
}

static void activity(const struct cpu_call *c)
{
    const struct dnn_op_activity *a = &c->op->attr.activity;
    const float *x = c->in[0].mem;
    float *y = c->out[0].mem;
    int parts = rows_parts(c->in[0].count, c->threads);
    double *sums = c->work;

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;
        double absolute, square;

        rows_line_share(c->in[0].count, parts, p, &first, &last);
        dnn_rows_find()->norms(x + first, last - first, &absolute, &square);
        if (x != y) memcpy(y + first, x + first, (size_t)(last - first) * sizeof *x);
        sums[8 * p] = a->l1 * absolute + a->l2 * square;
    }
    rows_put(&c->out[1], rows_add_up(sums, parts));
}

static void activity_data(const struct cpu_call *c)
{
    const struct dnn_op_activity *a = &c->op->attr.activity;
    const float *dy = c->in[0].mem, *x = c->in[1].mem;
    float *dx = c->out[0].mem;
    int parts = rows_parts(c->in[0].count, c->threads);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;

        rows_line_share(c->in[0].count, parts, p, &first, &last);
        dnn_rows_find()->penalty_data(dy + first, x + first, dx + first, last - first,
                                      (float)a->l1, (float)(2 * a->l2));
    }
}

const struct cpu_algo dnn_cpu_prelu = {.name = "rows",
                                       .can = can_prelu,
                                       .in_pitch = 1,
                                       .out_pitch = 1,
                                       .fn = prelu,
                                       .work = work};
const struct cpu_algo dnn_cpu_prelu_data = {.name = "rows",
                                            .can = can_prelu,
                                            .in_pitch = 3,
                                            .out_pitch = 1,
                                            .fn = prelu_data,
                                            .work = work};
const struct cpu_algo dnn_cpu_prelu_weights = {
    .name = "rows", .can = can_prelu_weights, .fn = prelu_weights, .work = prelu_work};
const struct cpu_algo dnn_cpu_scale = {.name = "rows",
                                       .can = can_scale,
                                       .in_pitch = 1,
                                       .out_pitch = 1,
                                       .fn = scale,
                                       .work = work};
const struct cpu_algo dnn_cpu_scale_data = {.name = "rows",
                                            .can = can_scale,
                                            .in_pitch = 1,
                                            .out_pitch = 1,
                                            .fn = scale,
                                            .work = work};
const struct cpu_algo dnn_cpu_activity = {
    .name = "rows", .fn = activity, .work = activity_work};
const struct cpu_algo dnn_cpu_activity_data = {.name = "rows", .fn = activity_data};
