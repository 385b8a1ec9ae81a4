/* norm_batch.c - batch normalization: coefficients per channel first, then one pass
 * over memory.
 *
 * With m the mean as a float, y = (x - m) scale + shift, where shift corrects the
 * rounding of m. A fused activation is applied in the same pass; backward, its
 * argument is recomputed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

enum { COEFS = 5 }; /* mean, scale, shift, slope, rest */

/* The workspace: coefficients, then the sums of each part, then two chunks per part. */
struct space {
    float *coef[COEFS];
    double *sums;
    float *chunks;
    int64_t n, chunk; /* floats of a coefficient and of a chunk */
    size_t bytes;
};

static struct space space_of(int64_t c, int threads, void *work)
{
    struct space s = {.n = (rows_long(c, 64) + 15) & ~(int64_t)15};

    s.chunk = s.n > 2048 ? s.n : 2048;
    size_t coefs = COEFS * (size_t)s.n * sizeof(float);
    size_t sums = (size_t)threads * 2 * (size_t)s.n * sizeof(double);
    size_t chunks = (size_t)threads * 2 * (size_t)s.chunk * sizeof(float);
    s.bytes = coefs + sums + chunks;
    if (work == NULL) return s;
    for (int i = 0; i < COEFS; i++)
        s.coef[i] = (float *)work + i * s.n;
    s.sums = (double *)((char *)work + coefs);
    s.chunks = (float *)((char *)work + coefs + sums);
    return s;
}

static int64_t channels(const struct dnn_step *step)
{
    const struct dnn_shape *x = &step->in[0]->shape;

    return x->dim[x->ndim - 1];
}

static size_t work(const struct dnn_step *step, int threads)
{
    return space_of(channels(step), threads, NULL).bytes;
}

static bool last_axis(const struct dnn_step *step)
{
    return step->op->attr.batchnorm.axis == step->in[0]->shape.ndim - 1;
}

static double get_or(const struct cpu_call *c, int i, int64_t ch, double other)
{
    if (i >= c->op->nin || c->in[i].mem == NULL) return other;
    return ((const float *)c->in[i].mem)[ch];
}

/* A box (rows_kernel.h) with its coefficients, but without its arrays. */
static struct rows_norm box(const struct cpu_call *c, const struct space *s)
{
    return (struct rows_norm){.mean = s->coef[0],
                              .scale = s->coef[1],
                              .shift = s->coef[2],
                              .slope = s->coef[3],
                              .rest = s->coef[4],
                              .relu = rows_relu(c->op->post)};
}

/* Mean, scale and shift of channel ch; gamma and beta are inputs g and g + 1. */
static void coefficients(const struct space *s, const struct cpu_call *c, int64_t ch,
                         double mean, double variance, int g)
{
    double inv = 1 / sqrt(variance + c->op->attr.batchnorm.epsilon);
    double scale = inv * get_or(c, g, ch, 1);
    float m = (float)mean;

    s->coef[0][ch] = m;
    s->coef[1][ch] = (float)scale;
    s->coef[2][ch] = (float)(get_or(c, g + 1, ch, 0) + (m - mean) * scale);
}

static void from_sums(const struct space *s, const struct cpu_call *c,
                      const struct cpu_array *sums, int g, int64_t channels)
{
    const double *sum = sums->mem, count = sum[2 * channels];

    for (int64_t i = 0; i < channels; i++) {
        double mean = sum[i] / count;
        double variance = fmax(0, sum[channels + i] / count - mean * mean);

        coefficients(s, c, i, mean, variance, g);
    }
}

static void repeat(const struct space *s, int coefs, const struct rows_fold *f)
{
    for (int i = 0; i < coefs; i++)
        rows_repeat(s->coef[i], f->c, f->n);
}

/* ---- a box in parts, with any fused activation ---- */

typedef void norm_kernel(const struct rows_norm *b);

/* y = post(v). */
static void value_chunk(const struct dnn_rows_isa *isa, const struct cpu_call *c,
                        const struct rows_norm *b)
{
    isa->norm_apply(b);
    rows_post(isa, c->op->post, b->y, b->y_pitch, b->rows, b->n);
}

/* Runs the kernel with the gradient of v instead of that of post(v), which is dy. */
static void slope_chunk(const struct dnn_rows_isa *isa, const struct cpu_call *c,
                        const struct rows_norm *b, norm_kernel *kernel, float *buf,
                        int64_t chunk)
{
    struct rows_norm v = *b;
    struct rows_unary u = rows_unary(c->op->post);

    v.y = buf;
    v.y_pitch = v.n;
    isa->norm_apply(&v);
    if (u.result) rows_post(isa, c->op->post, buf, v.n, v.rows, v.n);
    u.rows = b->rows;
    u.n = b->n;
    u.dy = b->dy;
    u.dy_pitch = b->dy_pitch;
    u.x = buf;
    u.y = buf + chunk;
    u.x_pitch = u.y_pitch = b->n;
    isa->unary_data(&u);
    v = *b;
    v.dy = u.y;
    v.dy_pitch = u.y_pitch;
    kernel(&v);
}

/* Rows first ... last - 1 of a box. */
static void run_rows(const struct dnn_rows_isa *isa, const struct cpu_call *c,
                     struct rows_norm b, norm_kernel *kernel, int64_t first,
                     int64_t last, float *buf, int64_t chunk)
{
    bool slow = c->op->post != NULL && !b.relu.on;
    int64_t step = slow ? rows_chunk(b.n) : last - first;

    for (int64_t r = first; r < last; r += step) {
        struct rows_norm d = b;

        d.rows = last - r < step ? last - r : step;
        d.x += r * b.x_pitch;
        if (b.dy != NULL) d.dy += r * b.dy_pitch;
        if (b.y != NULL) d.y += r * b.y_pitch;
        if (!slow)
            kernel(&d);
        else if (b.dy == NULL)
            value_chunk(isa, c, &d);
        else
            slope_chunk(isa, c, &d, kernel, buf, chunk);
    }
}

/* All rows of a box, in parts. If b.sum is set, only sums, in memory of each part. */
static void run_all(const struct cpu_call *c, const struct space *s, struct rows_norm b,
                    const struct rows_fold *f, norm_kernel *kernel, int parts)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();

    if (f->n != f->c) b.x_pitch = b.dy_pitch = b.y_pitch = f->n;
    b.n = f->n;
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct rows_norm d = b;
        float *buf = s->chunks + p * 2 * s->chunk;
        int64_t first, last;

        dnn_cpu_share(f->rows, parts, p, &first, &last);
        if (b.sum != NULL) {
            d.sum = s->sums + p * 2 * s->n;
            if (b.sum2 != NULL) d.sum2 = d.sum + s->n;
            memset(d.sum, 0, 2 * (size_t)s->n * sizeof(double));
        }
        run_rows(isa, c, d, kernel, first, last, buf, s->chunk);
        if (p < parts - 1 || f->left == 0) continue;
        d.n = f->left; /* the incomplete long row follows the others */
        run_rows(isa, c, d, kernel, f->rows, f->rows + 1, buf, s->chunk);
    }
}

/* Adds the sums of all parts, in order: c of sum, then c of sum2. */
static void add_up(const struct space *s, const struct rows_fold *f, int parts,
                   double *out)
{
    for (int64_t i = 0; i < f->c; i++) {
        double sum = 0, sum2 = 0;

        for (int p = 0; p < parts; p++) {
            const double *buf = s->sums + p * 2 * s->n;

            for (int64_t j = i; j < f->n; j += f->c) {
                sum += buf[j];
                sum2 += buf[s->n + j];
            }
        }
        out[i] = sum;
        out[f->c + i] = sum2;
    }
}

/* ---- the passes ---- */

static void stats(const struct cpu_call *c)
{
    const struct cpu_array *x = &c->in[0];
    int parts = rows_parts(x->count, c->threads);
    struct space s = space_of(x->row, c->threads, c->work);
    struct rows_fold f = rows_fold(x->rows, x->row, rows_dense(x), 16);
    struct rows_norm b = {.x = x->mem, .x_pitch = x->pitch, .sum = s.sums};
    double *out = c->out[0].mem;

    b.sum2 = s.sums;
    run_all(c, &s, b, &f, dnn_rows_find()->norm_stats, parts);
    add_up(&s, &f, parts, out);
    out[2 * x->row] = (double)x->rows;
}

static void apply_rows(const struct cpu_call *c, const struct space *s)
{
    const struct cpu_array *x = &c->in[0], *y = &c->out[0];
    struct rows_fold f = rows_fold(x->rows, x->row, rows_dense(x) && rows_dense(y), 64);
    struct rows_norm b = box(c, s);

    repeat(s, 3, &f);
    b.x = x->mem;
    b.x_pitch = x->pitch;
    b.y = y->mem;
    b.y_pitch = y->pitch;
    b.stream =
        (c->op->post == NULL || b.relu.on) && dnn_rows_stream(y, x, ROWS_LARGE_COPY);
    run_all(c, s, b, &f, dnn_rows_find()->norm_apply, rows_parts(x->count, c->threads));
}

static void apply(const struct cpu_call *c)
{
    struct space s = space_of(c->in[0].row, c->threads, c->work);

    from_sums(&s, c, &c->in[1], 2, c->in[0].row);
    apply_rows(c, &s);
}

static void infer(const struct cpu_call *c)
{
    struct space s = space_of(c->in[0].row, c->threads, c->work);
    const float *mean = c->in[1].mem, *variance = c->in[2].mem;

    for (int64_t i = 0; i < c->in[0].row; i++)
        coefficients(&s, c, i, mean[i], variance[i], 3);
    apply_rows(c, &s);
}

static void apply_stats(const struct cpu_call *c)
{
    const struct cpu_array *dy = &c->in[0], *x = &c->in[1], *sums = &c->in[2];
    int parts = rows_parts(x->count, c->threads);
    struct space s = space_of(x->row, c->threads, c->work);
    struct rows_fold f =
        rows_fold(x->rows, x->row, rows_dense(x) && rows_dense(dy), 16);
    struct rows_norm b = box(c, &s);
    double *out = c->out[0].mem;
    const double *sum = sums->mem, count = sum[2 * x->row];

    from_sums(&s, c, sums, 3, x->row);
    repeat(&s, 3, &f);
    b.x = x->mem;
    b.x_pitch = x->pitch;
    b.dy = dy->mem;
    b.dy_pitch = dy->pitch;
    b.sum = b.sum2 = s.sums;
    run_all(c, &s, b, &f, dnn_rows_find()->norm_dstats, parts);
    add_up(&s, &f, parts, out);
    for (int64_t i = 0; i < x->row; i++) {
        double mean = sum[i] / count;
        double variance = fmax(0, sum[x->row + i] / count - mean * mean);
        double *product = &out[x->row + i];

        /* it is the sum of dy (x - m): convert to dy hat */
        *product = (*product + (s.coef[0][i] - mean) * out[i]) /
                   sqrt(variance + c->op->attr.batchnorm.epsilon);
    }
}

/* dx = scale (dy - (dsum + hat dproduct) / count), hat = (x - mean) inv. */
static void data_coefficients(const struct space *s, const struct cpu_call *c)
{
    int64_t n = c->in[1].row;
    const double *sum = c->in[2].mem, *dsum = c->in[3].mem, count = sum[2 * n];

    from_sums(s, c, &c->in[2], 4, n);
    for (int64_t i = 0; i < n; i++) {
        double mean = sum[i] / count;
        double variance = fmax(0, sum[n + i] / count - mean * mean);
        double inv = 1 / sqrt(variance + c->op->attr.batchnorm.epsilon);
        double scale = inv * get_or(c, 4, i, 1);
        double slope = -scale * inv * dsum[n + i] / count;

        s->coef[3][i] = (float)slope;
        s->coef[4][i] =
            (float)(-scale * dsum[i] / count + slope * (s->coef[0][i] - mean));
    }
}

static void apply_data(const struct cpu_call *c)
{
    const struct cpu_array *dy = &c->in[0], *x = &c->in[1], *dx = &c->out[0];
    struct space s = space_of(x->row, c->threads, c->work);
    bool dense = rows_dense(x) && rows_dense(dy) && rows_dense(dx);
    struct rows_fold f = rows_fold(x->rows, x->row, dense, 64);
    struct rows_norm b = box(c, &s);

    data_coefficients(&s, c);
    repeat(&s, COEFS, &f);
    b.x = x->mem;
    b.x_pitch = x->pitch;
    b.dy = dy->mem;
    b.dy_pitch = dy->pitch;
    b.y = dx->mem;
    b.y_pitch = dx->pitch;
    run_all(c, &s, b, &f, dnn_rows_find()->norm_data, rows_parts(x->count, c->threads));
}

const struct cpu_algo dnn_cpu_bn_stats = {
    .name = "rows", .can = last_axis, .in_pitch = 1, .fn = stats, .work = work};
const struct cpu_algo dnn_cpu_bn_apply = {.name = "rows",
                                          .can = last_axis,
                                          .in_pitch = 1,
                                          .out_pitch = 1,
                                          .fn = apply,
                                          .work = work};
const struct cpu_algo dnn_cpu_bn_apply_stats = {
    .name = "rows", .can = last_axis, .in_pitch = 3, .fn = apply_stats, .work = work};
const struct cpu_algo dnn_cpu_bn_apply_data = {.name = "rows",
                                               .can = last_axis,
                                               .in_pitch = 3,
                                               .out_pitch = 1,
                                               .fn = apply_data,
                                               .work = work};
const struct cpu_algo dnn_cpu_bn_infer = {.name = "rows",
                                          .can = last_axis,
                                          .in_pitch = 1,
                                          .out_pitch = 1,
                                          .fn = infer,
                                          .work = work};
