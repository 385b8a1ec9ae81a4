/* loss.c - losses as scalars, and their gradients.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/loss_impl.h"

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
    return rows_sums_bytes(threads);
}

/* Part p of all rows; contiguous rows are joined to a single one. */
static struct rows_box part_of(const struct cpu_array *x, const struct cpu_array *t,
                               const struct cpu_array *y, int parts, int p)
{
    struct rows_box b = {.x = x->mem, .t = t->mem, .y = y == NULL ? NULL : y->mem};
    int64_t first, last;

    if (rows_dense(x) && rows_dense(t) && (y == NULL || rows_dense(y))) {
        rows_line_share(x->count, parts, p, &first, &last);
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
    const struct dnn_rows_isa *isa = dnn_rows_find();
    int parts = rows_parts(c->in[0].count, c->threads);
    double *sums = c->work;

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows_box b = part_of(&c->in[0], &c->in[1], NULL, parts, p);

        sums[8 * p] = isa->squares(&b);
    }
    rows_put(&c->out[0], rows_add_up(sums, parts) * c->op->attr.loss.scale);
}

static void mse_data(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    int parts = rows_parts(c->out[0].count, c->threads);
    double factor = 2 * c->op->attr.loss.scale * rows_number(&c->in[0]);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows_box b = part_of(&c->in[1], &c->in[2], &c->out[0], parts, p);

        isa->difference(&b, (float)factor);
    }
}

/* ---- cross-entropy, and functions of single elements ---- */

static size_t loss_work(const struct dnn_step *step, int threads)
{
    int64_t each = loss_scratch(rows_row(step->in[loss_x(step->op)]));

    return rows_sums_bytes(threads) + (size_t)threads * (size_t)each * sizeof(float);
}

/* The scale of the loss. Input number at, if present, is the sum of the weights and the
 * number of samples: the former then replaces the latter as the divisor. */
static double scale(const struct cpu_call *c, int at)
{
    const double *sums = at < c->op->nin ? c->in[at].mem : NULL;
    double factor = c->op->attr.loss.scale;

    if (sums == NULL) return factor;
    return sums[0] == 0 ? 0 : factor * sums[1] / sums[0];
}

/* The array as rows of one element, for losses without class weights. */
static struct cpu_array flat(const struct cpu_array *a)
{
    struct cpu_array one = *a;

    one.rows = a->count;
    one.row = one.pitch = 1;
    return one;
}

/* Part p of the rows.  data: with the gradient as output. */
static struct rows_loss part(const struct cpu_call *c, bool data, int parts, int p)
{
    const struct dnn_op_loss *l = &c->op->attr.loss;
    int at = loss_x(c->op);
    struct cpu_array x = c->in[at], t = c->in[at + 1], y = c->out[0];
    const float *w = rows_in(c, at + 2);
    int64_t first, last, row = x.row;

    if (c->op->kind == DNN_OP_POINT && w == NULL && t.shape.ndim == x.shape.ndim &&
        rows_dense(&x) && rows_dense(&t) && (!data || rows_dense(&y))) {
        x = flat(&x);
        t = flat(&t);
        y = flat(&y);
    }
    dnn_cpu_share(x.rows, parts, p, &first, &last);
    struct rows_loss k = loss_rows(&x, &t, data ? &y : NULL, first, last);
    k.w = w;
    if (l->ignores) k.ignore = l->ignore;
    k.on = (float)(1 - l->smoothing);
    k.off = (float)(l->smoothing / (double)row);
    k.gamma = (float)l->gamma;
    k.delta = (float)l->delta;
    k.alpha = (float)l->alpha;
    k.raw = l->raw;
    k.fn = l->fn;
    k.scratch = (float *)((char *)c->work + rows_sums_bytes(c->threads)) +
                p * loss_scratch(row);
    return k;
}

static void loss(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    int parts = rows_parts(c->in[0].count, c->threads);
    double *sums = c->work;

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows_loss k = part(c, false, parts, p);

        sums[8 * p] = c->op->kind == DNN_OP_POINT ? isa->point(&k) : isa->xent(&k);
    }
    rows_put(&c->out[0], rows_add_up(sums, parts) * scale(c, 3));
}

static void loss_data(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    int parts = rows_parts(c->out[0].count, c->threads);
    double factor = scale(c, 4) * rows_number(&c->in[0]);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows_loss k = part(c, true, parts, p);

        k.factor = (float)factor;
        if (c->op->kind == DNN_OP_POINT)
            isa->point_data(&k);
        else
            isa->xent_data(&k);
    }
}

/* ---- the sum of the labels' weights ---- */

static void weigh(const struct cpu_call *c)
{
    const struct dnn_op_loss *l = &c->op->attr.loss;
    int parts = rows_parts(c->in[0].count, c->threads);
    int32_t end = l->classes == 1 ? 2 : (int32_t)l->classes;
    int32_t ignore = l->ignores ? l->ignore : -1;
    const int32_t *label = c->in[0].mem;
    const float *w = l->classes == 1 ? NULL : c->in[1].mem;
    double *sums = c->work, *out = c->out[0].mem;

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last, n = 0;
        double sum = 0;

        dnn_cpu_share(c->in[0].count, parts, p, &first, &last);
        for (int64_t i = first; i < last; i++) {
            bool valid = label[i] >= 0 && label[i] < end && label[i] != ignore;

            n += valid;
            if (valid && w != NULL) sum += (double)w[label[i]];
        }
        sums[8 * p] = w == NULL ? (double)n : sum;
    }
    out[0] = rows_add_up(sums, parts);
    out[1] = (double)c->in[0].shape.dim[0];
}

const struct cpu_algo dnn_cpu_mse = {
    .name = "rows", .can = same_shape, .in_pitch = 3, .fn = mse, .work = sums_work};
const struct cpu_algo dnn_cpu_mse_data = {
    .name = "rows", .can = same_shape, .in_pitch = 6, .out_pitch = 1, .fn = mse_data};
const struct cpu_algo dnn_cpu_loss = {
    .name = "rows", .can = loss_can, .in_pitch = 1, .fn = loss, .work = loss_work};
const struct cpu_algo dnn_cpu_loss_data = {.name = "rows",
                                           .can = loss_can,
                                           .in_pitch = 2,
                                           .out_pitch = 1,
                                           .fn = loss_data,
                                           .work = loss_work};
const struct cpu_algo dnn_cpu_weigh = {.name = "rows", .fn = weigh, .work = sums_work};
