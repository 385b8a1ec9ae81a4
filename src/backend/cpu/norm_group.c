/* norm_group.c - layer, group and instance norm.
 *
 * Group and instance norm are a batch norm of each sample: sums per channel are added
 * per group, converted to coefficients per channel, and applied in a second pass over
 * memory. Threads split the samples if there are many, else the rows. Layer norm is
 * computed row by row. A fused activation is applied in the same pass; backward, its
 * argument is recomputed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

enum { COEFS = 5 }; /* mean, scale, shift, slope, rest */

/* The workspace of a thread. */
struct slot {
    float *coef[COEFS];
    double *sums;    /* of the kernel: sum and sum2, n of each   */
    double *total;   /* the same per channel, c of each          */
    double *weights; /* dbeta and dgamma so far, c of each       */
    float *chunks;   /* two                                      */
};

struct space {
    int64_t n, chunk; /* floats of a coefficient, of a chunk */
    size_t floats, doubles, bytes;
};

static struct space space_of(int64_t c)
{
    struct space s = {.n = (rows_long(c, 64) + 15) & ~(int64_t)15};

    s.chunk = s.n > 2048 ? s.n : 2048;
    s.floats = (size_t)(COEFS * s.n + 2 * s.chunk);
    s.doubles = (size_t)(6 * s.n);
    s.bytes = s.floats * sizeof(float) + s.doubles * sizeof(double);
    return s;
}

static struct slot slot_of(const struct space *s, void *work, int p)
{
    char *own = (char *)work + (size_t)p * s->bytes;
    double *doubles = (double *)own;
    float *floats = (float *)(doubles + s->doubles);
    struct slot q = {.sums = doubles,
                     .total = doubles + 2 * s->n,
                     .weights = doubles + 4 * s->n,
                     .chunks = floats + COEFS * s->n};

    for (int i = 0; i < COEFS; i++)
        q.coef[i] = floats + i * s->n;
    return q;
}

static size_t work(const struct dnn_step *step, int threads)
{
    return (size_t)threads * space_of(rows_row(step->in[0])).bytes;
}

static bool is_layer(const struct dnn_op_groupnorm *a, const struct dnn_shape *x)
{
    return a->groups == 1 && a->axes == 1u << (x->ndim - 1) && a->params == a->axes;
}

static bool can(const struct dnn_step *step)
{
    const struct dnn_op_groupnorm *a = &step->op->attr.groupnorm;
    const struct dnn_shape *x = &step->in[0]->shape;

    if (is_layer(a, x)) return true;
    return x->ndim >= 2 && a->axes == (1u << x->ndim) - 2 &&
           a->params == 1u << (x->ndim - 1);
}

/* ---- an activation fused with the norm, other than a ReLU ---- */

/* Writes the gradient of the activation's argument to the second chunk; the argument is
 * in the first. */
static struct rows_unary post_gradient(const struct dnn_rows_isa *isa,
                                       const struct dnn_op_unary *post, int64_t rows,
                                       int64_t n, const float *dy, int64_t dy_pitch,
                                       float *chunks, int64_t chunk)
{
    struct rows_unary u = rows_unary(post);

    if (u.result) rows_post(isa, post, chunks, n, rows, n);
    u.rows = rows;
    u.n = n;
    u.dy = dy;
    u.dy_pitch = dy_pitch;
    u.x = chunks;
    u.y = chunks + chunk;
    u.x_pitch = u.y_pitch = n;
    isa->unary_data(&u);
    return u;
}

/* ---- samples ---- */

typedef void norm_kernel(const struct rows_norm *b);

struct task {
    const struct cpu_call *c;
    const struct dnn_rows_isa *isa;
    struct space space;
    const struct cpu_array *x, *dy, *y; /* y: or dx */
    const float *stats;                 /* backward */
    float *save;                        /* forward  */
    const float *gamma, *beta;
    int64_t channels, groups, samples, rows; /* rows of a sample */
    bool dense;
    norm_kernel *sum, *last; /* last: NULL if only sums are needed */
};

static struct task task_of(const struct cpu_call *c)
{
    bool forward = c->op->pass == DNN_FWD;
    const struct cpu_array *x = &c->in[forward ? 0 : 1];
    struct task j = {.c = c,
                     .isa = dnn_rows_find(),
                     .space = space_of(x->row),
                     .x = x,
                     .dy = forward ? NULL : &c->in[0],
                     .y = c->op->pass == DNN_BWD_WEIGHTS ? NULL : &c->out[0],
                     .stats = forward ? NULL : c->in[2].mem,
                     .save = forward ? c->out[1].mem : NULL,
                     .gamma = rows_in(c, forward ? 1 : 3),
                     .beta = rows_in(c, forward ? 2 : 4),
                     .channels = x->row,
                     .groups = c->op->attr.groupnorm.groups,
                     .samples = x->shape.dim[0]};

    j.rows = x->rows / (j.samples > 0 ? j.samples : 1);
    j.dense = rows_dense(x) && (j.dy == NULL || rows_dense(j.dy)) &&
              (j.y == NULL || rows_dense(j.y));
    j.sum = forward ? j.isa->norm_stats : j.isa->norm_dstats;
    j.last = forward                       ? j.isa->norm_apply
             : c->op->pass == DNN_BWD_DATA ? j.isa->norm_data
                                           : NULL;
    return j;
}

static double statistic(const struct task *j, int64_t sample, int64_t group, bool inv)
{
    return j->stats[(inv ? j->samples * j->groups : 0) + sample * j->groups + group];
}

static void repeat(const struct task *j, const struct slot *q, int first, int last)
{
    for (int i = first; i < last; i++)
        rows_repeat(q->coef[i], j->channels, rows_long(j->channels, 64));
}

/* Mean, scale and shift of a group's channels. */
static void set_coefficients(const struct task *j, const struct slot *q, int64_t group,
                             double mean, double inv)
{
    int64_t per = j->channels / j->groups;
    float m = (float)mean;

    for (int64_t i = group * per; i < (group + 1) * per; i++) {
        double scale = j->gamma == NULL ? inv : inv * j->gamma[i];

        q->coef[0][i] = m;
        q->coef[1][i] = (float)scale;
        q->coef[2][i] =
            (float)((j->beta == NULL ? 0 : j->beta[i]) + (m - mean) * scale);
    }
}

/* Backward, before the sums: the coefficients of the forward pass. */
static void before_sums(const struct task *j, int64_t sample, const struct slot *q)
{
    if (j->stats == NULL) return;
    for (int64_t g = 0; g < j->groups; g++)
        set_coefficients(j, q, g, statistic(j, sample, g, false),
                         statistic(j, sample, g, true));
    repeat(j, q, 0, 3);
}

/* Forward, after the sums of x and x^2. */
static void after_sums_forward(const struct task *j, int64_t sample,
                               const struct slot *q)
{
    int64_t per = j->channels / j->groups, at = sample * j->groups;
    double each = (double)(per * j->rows);

    for (int64_t g = 0; g < j->groups; g++) {
        double sum = 0, squares = 0;

        for (int64_t i = g * per; i < (g + 1) * per; i++) {
            sum += q->total[i];
            squares += q->total[j->channels + i];
        }
        double mean = sum / each, variance = squares / each - mean * mean;
        double inv =
            1 / sqrt((variance < 0 ? 0 : variance) + j->c->op->attr.groupnorm.epsilon);
        set_coefficients(j, q, g, mean, inv);
        if (j->save == NULL) continue;
        j->save[at + g] = (float)mean;
        j->save[j->samples * j->groups + at + g] = (float)inv;
    }
    repeat(j, q, 0, 3);
}

/* Backward data, after the sums of dy and dy (x - mean):
 * dx = inv (gamma dy - (sum + hat product) / each). */
static void after_sums_data(const struct task *j, int64_t sample, const struct slot *q)
{
    int64_t per = j->channels / j->groups;
    double each = (double)(per * j->rows);

    for (int64_t g = 0; g < j->groups; g++) {
        double sum = 0, product = 0, inv = statistic(j, sample, g, true);

        for (int64_t i = g * per; i < (g + 1) * per; i++) {
            double gamma = j->gamma == NULL ? 1 : j->gamma[i];
            sum += gamma * q->total[i];
            product += gamma * inv * q->total[j->channels + i];
        }
        for (int64_t i = g * per; i < (g + 1) * per; i++) {
            q->coef[3][i] = (float)(-inv * inv * product / each);
            q->coef[4][i] = (float)(-inv * sum / each);
        }
    }
    repeat(j, q, 3, COEFS);
}

static void after_sums(const struct task *j, int64_t sample, const struct slot *q)
{
    int64_t c = j->channels, per = c / j->groups;

    if (j->stats == NULL)
        after_sums_forward(j, sample, q);
    else if (j->last != NULL)
        after_sums_data(j, sample, q);
    else
        for (int64_t i = 0; i < c; i++) {
            q->weights[i] += q->total[i];
            q->weights[c + i] += q->total[c + i] * statistic(j, sample, i / per, true);
        }
}

/* Runs a kernel on the rows of a box, in chunks if it does not fuse the activation. */
static void box_rows(const struct task *j, struct rows_norm b, norm_kernel *kernel,
                     float *chunks)
{
    const struct dnn_op_unary *post = j->c->op->post;
    bool slow = post != NULL && !b.relu.on && kernel != j->isa->norm_stats;
    int64_t rows = b.rows, step = slow ? rows_chunk(b.n) : rows;

    for (int64_t r = 0; r < rows; r += step) {
        struct rows_norm d = b, v;

        d.rows = rows - r < step ? rows - r : step;
        d.x += r * b.x_pitch;
        if (b.dy != NULL) d.dy += r * b.dy_pitch;
        if (b.y != NULL) d.y += r * b.y_pitch;
        if (slow && b.dy != NULL) {
            v = d;
            v.y = chunks;
            v.y_pitch = d.n;
            j->isa->norm_apply(&v);
            d.dy = post_gradient(j->isa, post, d.rows, d.n, d.dy, d.dy_pitch, chunks,
                                 j->space.chunk)
                       .y;
            d.dy_pitch = d.n;
        }
        kernel(&d);
        if (slow && b.dy == NULL) rows_post(j->isa, post, d.y, d.y_pitch, d.rows, d.n);
    }
}

/* Part p of the rows of a sample, with the coefficients of q; sums and chunks are those
 * of own. */
static void run_part(const struct task *j, int64_t sample, const struct slot *q,
                     const struct slot *own, norm_kernel *kernel, int parts, int p)
{
    bool sums = kernel == j->sum;
    struct rows_fold f = rows_fold(j->rows, j->channels, j->dense, sums ? 16 : 64);
    struct rows_norm b = {.n = f.n,
                          .mean = q->coef[0],
                          .scale = q->coef[1],
                          .shift = q->coef[2],
                          .slope = q->coef[3],
                          .rest = q->coef[4],
                          .relu = rows_relu(j->c->op->post)};
    int64_t first, last, at = sample * j->rows;

    dnn_cpu_share(f.rows, parts, p, &first, &last);
    b.rows = last - first;
    b.x_pitch = j->dense ? f.n : j->x->pitch;
    b.x = (const float *)j->x->mem + at * j->x->pitch + first * b.x_pitch;
    if (j->dy != NULL) {
        b.dy_pitch = j->dense ? f.n : j->dy->pitch;
        b.dy = (const float *)j->dy->mem + at * j->dy->pitch + first * b.dy_pitch;
    }
    if (!sums) {
        b.y_pitch = j->dense ? f.n : j->y->pitch;
        b.y = (float *)j->y->mem + at * j->y->pitch + first * b.y_pitch;
        b.stream = (j->c->op->post == NULL || b.relu.on) &&
                   dnn_rows_stream(j->y, j->dy == NULL ? j->x : j->dy, ROWS_LARGE_COPY);
    } else {
        b.sum = own->sums;
        b.sum2 = own->sums + j->space.n;
        memset(b.sum, 0, 2 * (size_t)j->space.n * sizeof(double));
    }
    box_rows(j, b, kernel, own->chunks);
    if (p < parts - 1 || f.left == 0) return;
    b.x += b.rows * b.x_pitch; /* the incomplete long row */
    if (b.dy != NULL) b.dy += b.rows * b.dy_pitch;
    if (b.y != NULL) b.y += b.rows * b.y_pitch;
    b.rows = 1;
    b.n = f.left;
    box_rows(j, b, kernel, own->chunks);
}

/* Adds the sums of all parts, in order, to q's total. */
static void add_up(const struct task *j, const struct slot *q, int parts, int first)
{
    int64_t c = j->channels, n = rows_fold(j->rows, c, j->dense, 16).n;

    for (int64_t i = 0; i < c; i++) {
        double sum = 0, sum2 = 0;

        for (int p = first; p < first + parts; p++) {
            const double *sums = slot_of(&j->space, j->c->work, p).sums;
            for (int64_t k = i; k < n; k += c) {
                sum += sums[k];
                sum2 += sums[j->space.n + k];
            }
        }
        q->total[i] = sum;
        q->total[c + i] = sum2;
    }
}

/* Samples first ... last - 1, by this thread only. */
static void run_samples(const struct task *j, int p, int64_t first, int64_t last)
{
    struct slot q = slot_of(&j->space, j->c->work, p);

    for (int64_t s = first; s < last; s++) {
        before_sums(j, s, &q);
        run_part(j, s, &q, &q, j->sum, 1, 0);
        add_up(j, &q, 1, p);
        after_sums(j, s, &q);
        if (j->last != NULL) run_part(j, s, &q, &q, j->last, 1, 0);
    }
}

static void run_split_sample(const struct task *j, int64_t s, int parts)
{
    struct slot q = slot_of(&j->space, j->c->work, 0);

    before_sums(j, s, &q);
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct slot own = slot_of(&j->space, j->c->work, p);
        run_part(j, s, &q, &own, j->sum, parts, p);
    }
    add_up(j, &q, parts, 0);
    after_sums(j, s, &q);
    if (j->last == NULL) return;
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct slot own = slot_of(&j->space, j->c->work, p);
        run_part(j, s, &q, &own, j->last, parts, p);
    }
}

/* Returns the number of slots whose weights must be added. */
static int all_samples(const struct task *j)
{
    int parts = rows_parts(j->x->count, j->c->threads);
    int64_t each = j->rows * j->channels;

    for (int p = 0; p < parts; p++)
        memset(slot_of(&j->space, j->c->work, p).weights, 0,
               2 * (size_t)j->channels * sizeof(double));
    if (j->samples % parts != 0 && j->samples < 8 * parts && each > 65536) {
        for (int64_t s = 0; s < j->samples; s++)
            run_split_sample(j, s, parts);
        return 1;
    }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;

        dnn_cpu_share(j->samples, parts, p, &first, &last);
        run_samples(j, p, first, last);
    }
    return parts;
}

/* ---- layer norm: each row on its own ---- */

static void layer_chunk(const struct task *j, struct rows_layer l,
                        const struct slot *own)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct dnn_op_unary *post = j->c->op->post;

    if (j->dy == NULL) {
        isa->layer(&l);
        if (post != NULL) rows_post(j->isa, post, l.y, l.y_pitch, l.rows, l.n);
        return;
    }
    if (post != NULL) {
        struct rows_layer v = l;

        v.y = own->chunks;
        v.y_pitch = l.n;
        isa->layer_recompute(&v);
        l.dy = post_gradient(j->isa, post, l.rows, l.n, l.dy, l.dy_pitch, own->chunks,
                             j->space.chunk)
                   .y;
        l.dy_pitch = l.n;
    }
    if (j->last != NULL)
        isa->layer_data(&l);
    else
        isa->layer_weights(&l);
}

static int all_rows(const struct task *j)
{
    int parts = rows_parts(j->x->count, j->c->threads);
    int64_t rows = j->x->rows, n = j->channels, step = rows_chunk(n);
    float *stats = j->stats != NULL ? j->c->in[2].mem : j->save;

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct slot own = slot_of(&j->space, j->c->work, p);
        int64_t first, last;

        memset(own.weights, 0, 2 * (size_t)n * sizeof(double));
        dnn_cpu_share(rows, parts, p, &first, &last);
        for (int64_t r = first; r < last; r += step) {
            struct rows_layer l = {.rows = last - r < step ? last - r : step,
                                   .n = n,
                                   .gamma = j->gamma,
                                   .beta = j->beta,
                                   .epsilon = j->c->op->attr.groupnorm.epsilon,
                                   .sum = own.weights,
                                   .product = own.weights + n};

            l.x = (const float *)j->x->mem + r * j->x->pitch;
            l.x_pitch = j->x->pitch;
            if (j->dy != NULL) l.dy = (const float *)j->dy->mem + r * j->dy->pitch;
            if (j->dy != NULL) l.dy_pitch = j->dy->pitch;
            if (j->y != NULL) l.y = (float *)j->y->mem + r * j->y->pitch;
            if (j->y != NULL) l.y_pitch = j->y->pitch;
            if (stats != NULL) l.mean = stats + r;
            if (stats != NULL) l.inv = stats + rows + r;
            layer_chunk(j, l, &own);
        }
    }
    return parts;
}

/* ---- the passes ---- */

static void norm(const struct cpu_call *c)
{
    struct task j = task_of(c);
    float *dgamma = c->out[0].mem, *dbeta = c->out[1].mem;
    int parts =
        is_layer(&c->op->attr.groupnorm, &j.x->shape) ? all_rows(&j) : all_samples(&j);

    for (int64_t i = 0; i < j.channels && c->op->pass == DNN_BWD_WEIGHTS; i++) {
        double sum = 0, product = 0;

        for (int p = 0; p < parts; p++) {
            const double *w = slot_of(&j.space, c->work, p).weights;
            sum += w[i];
            product += w[j.channels + i];
        }
        if (dgamma != NULL) dgamma[i] = (float)product;
        if (dbeta != NULL) dbeta[i] = (float)sum;
    }
}

const struct cpu_algo dnn_cpu_groupnorm = {.name = "rows",
                                           .can = can,
                                           .in_pitch = 1,
                                           .out_pitch = 1,
                                           .fn = norm,
                                           .work = work};
const struct cpu_algo dnn_cpu_groupnorm_data = {.name = "rows",
                                                .can = can,
                                                .in_pitch = 3,
                                                .out_pitch = 1,
                                                .fn = norm,
                                                .work = work};
const struct cpu_algo dnn_cpu_groupnorm_weights = {
    .name = "rows", .can = can, .in_pitch = 3, .fn = norm, .work = work};
