/* update.c - ops on weights: an optimizer step, the regularization penalty, and folding
 * of batch norm into the weights before it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"
#include "backend/update_impl.h"

/* ---- an optimizer step ---- */

static bool can_update(const struct dnn_step *step)
{
    const struct dnn_op_update *u = &step->op->attr.update;

    /* Other constraints need norms: a pass over all weights first. */
    return u->constraint.kind == DNN_CONSTRAIN_NONE ||
           u->constraint.kind == DNN_NON_NEG;
}

static struct rows_update rule(const struct cpu_call *c)
{
    const struct dnn_op_update *u = &c->op->attr.update;
    const struct update_now now = update_now(u, &c->now);

    return (struct rows_update){.n = c->in[0].count,
                                .w = c->in[0].mem,
                                .g = c->in[1].mem,
                                .m = rows_in(c, 2),
                                .v = rows_in(c, 3),
                                .s = rows_in(c, 4),
                                .l1 = (float)u->l1,
                                .decay = (float)now.decay,
                                .regularized = u->l1 != 0 || now.decay != 0,
                                .clip = u->constraint.kind == DNN_NON_NEG,
                                .torch = u->torch,
                                .nesterov = u->nesterov,
                                .momentum = (float)u->momentum,
                                .grad_factor = (float)now.grad_factor,
                                .beta1 = (float)u->beta1,
                                .rest1 = (float)(1 - u->beta1),
                                .beta2 = (float)u->beta2,
                                .rest2 = (float)(1 - u->beta2),
                                .epsilon = (float)now.epsilon,
                                .rate = (float)now.rate,
                                .grad_rate = (float)now.grad_rate,
                                .w_factor = (float)now.w_factor,
                                .w_rate = (float)u->weight_decay,
                                .trust = 1};
}

/* Weights first ... last - 1. */
static struct rows_update part_of(const struct rows_update *all, int64_t first,
                                  int64_t last)
{
    struct rows_update u = *all;

    u.n = last - first;
    u.w += first;
    u.g += first;
    if (u.m != NULL) u.m += first;
    if (u.v != NULL) u.v += first;
    if (u.s != NULL) u.s += first;
    return u;
}

typedef void update_fn(const struct rows_update *u);
typedef void norms_fn(const struct rows_update *u, double *weight, double *other);

static void run_rule(const struct cpu_call *c, const struct rows_update *all,
                     update_fn *fn)
{
    int parts = rows_parts(all->n, c->threads);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;

        rows_line_share(all->n, parts, p, &first, &last);
        const struct rows_update u = part_of(all, first, last);
        fn(&u);
    }
}

/* Norms are summed over pieces of this many weights, so that they do not depend on the
 * number of threads. */
enum { PIECE = 16384 };

static size_t update_work(const struct dnn_step *step, int threads)
{
    enum dnn_update kind = step->op->attr.update.rule;
    int64_t pieces = (rows_count(step->in[0]) + PIECE - 1) / PIECE;

    (void)threads;
    if (kind != DNN_UPDATE_LARS && kind != DNN_UPDATE_LAMB) return 0;
    return (size_t)pieces * 2 * sizeof(double);
}

/* The trust ratio, from the norms over all weights. */
static double trust(const struct cpu_call *c, const struct rows_update *all,
                    norms_fn *fn)
{
    int64_t pieces = (all->n + PIECE - 1) / PIECE;
    double *sums = c->work, weight = 0, other = 0;

#pragma omp parallel for schedule(static) num_threads(rows_parts(all->n, c->threads))
    for (int64_t p = 0; p < pieces; p++) {
        int64_t first = p * PIECE;
        int64_t last = all->n - first < PIECE ? all->n : first + PIECE;
        const struct rows_update u = part_of(all, first, last);

        fn(&u, &sums[2 * p], &sums[2 * p + 1]);
    }
    for (int64_t p = 0; p < pieces; p++) {
        weight += sums[2 * p];
        other += sums[2 * p + 1];
    }
    return update_trust(&c->op->attr.update, sqrt(weight), sqrt(other));
}

static void lars(const struct cpu_call *c, struct rows_update *all)
{
    const struct dnn_op_update *u = &c->op->attr.update;
    const struct dnn_rows_isa *isa = dnn_rows_find();
    struct rows_update undecayed = *all;

    /* The norm is that of the gradient without weight decay. */
    undecayed.decay = (float)(2 * u->l2);
    undecayed.regularized = u->l1 != 0 || u->l2 != 0;
    all->trust = (float)trust(c, &undecayed, isa->lars_norms);
    run_rule(c, all, isa->sgd);
}

static void lamb(const struct cpu_call *c, struct rows_update *all)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();

    all->trust = (float)(c->now.rate * trust(c, all, isa->lamb_means));
    run_rule(c, all, isa->lamb);
}

static void update(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    struct rows_update all = rule(c);

    switch (c->op->attr.update.rule) {
    case DNN_UPDATE_SGD:
        run_rule(c, &all, isa->sgd);
        break;
    case DNN_UPDATE_ADAM:
    case DNN_UPDATE_ADAMW:
        run_rule(c, &all, isa->adam);
        break;
    case DNN_UPDATE_NADAM:
        run_rule(c, &all, isa->nadam);
        break;
    case DNN_UPDATE_ADAGRAD:
        run_rule(c, &all, isa->adagrad);
        break;
    case DNN_UPDATE_ADADELTA:
        run_rule(c, &all, isa->adadelta);
        break;
    case DNN_UPDATE_RMSPROP:
        run_rule(c, &all, isa->rmsprop);
        break;
    case DNN_UPDATE_LARS:
        lars(c, &all);
        break;
    default:
        assert(c->op->attr.update.rule == DNN_UPDATE_LAMB);
        lamb(c, &all);
        break;
    }
}

/* ---- the penalty ---- */

static size_t penalty_work(const struct dnn_step *step, int threads)
{
    (void)step;
    return rows_sums_bytes(threads);
}

static void penalty(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct dnn_op_penalty *a = &c->op->attr.penalty;
    const float *w = c->in[0].mem;
    int64_t n = c->in[0].count;
    int parts = rows_parts(n, c->threads);
    double *sums = c->work;

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        double absolute, square;
        int64_t first, last;

        rows_line_share(n, parts, p, &first, &last);
        isa->norms(w + first, last - first, &absolute, &square);
        sums[8 * p] = a->l1 * absolute + a->l2 * square;
    }
    rows_put(&c->out[0], rows_add_up(sums, parts));
}

/* ---- batch norm folded: w b mean var gamma beta -> v c ---- */

static size_t fold_work(const struct dnn_step *step, int threads)
{
    (void)threads;
    return (size_t)rows_count(step->in[2]) * sizeof(float);
}

/* The factor of each channel's weights, and its new bias. */
static void fold_channels(const struct cpu_call *c, float *scale)
{
    const float *b = c->in[1].mem, *mean = c->in[2].mem, *var = c->in[3].mem;
    const float *gamma = rows_in(c, 4), *beta = rows_in(c, 5);
    float *out = c->out[1].mem;

    for (int64_t ch = 0; ch < c->in[2].count; ch++) {
        double s = 1 / sqrt(var[ch] + c->op->attr.fold.epsilon), v = -mean[ch];

        if (gamma != NULL) s *= gamma[ch];
        if (b != NULL) v += b[ch];
        scale[ch] = (float)s;
        out[ch] = (float)(v * s + (beta == NULL ? 0 : beta[ch]));
    }
}

static void fold(const struct cpu_call *c)
{
    const struct dnn_op_fold *f = &c->op->attr.fold;
    const struct cpu_array *w = &c->in[0];
    const struct dnn_rows_isa *isa = dnn_rows_find();
    int64_t channels = c->in[2].count, inner = 1;
    const float *x = w->mem;
    float *scale = c->work, *y = c->out[0].mem;

    fold_channels(c, scale);
    for (int i = f->axis + 1; i < w->shape.ndim && !f->depthwise; i++)
        inner *= w->shape.dim[i];
    int64_t rows = w->count / (inner == 1 ? channels : inner);
    int parts = rows_parts(w->count, c->threads);
#pragma omp parallel for schedule(static) num_threads(parts)
    for (int64_t r = 0; r < rows; r++) {
        if (inner == 1) {
            int64_t at = r * channels;
            isa->scale(&(struct rows_scale){
                .n = channels, .x = x + at, .a = scale, .y = y + at});
            continue;
        }
        float s = scale[r % channels];
        for (int64_t i = r * inner; i < (r + 1) * inner; i++)
            y[i] = x[i] * s;
    }
}

const struct cpu_algo dnn_cpu_update = {
    .name = "rows", .can = can_update, .fn = update, .work = update_work};
const struct cpu_algo dnn_cpu_penalty = {
    .name = "rows", .fn = penalty, .work = penalty_work};
const struct cpu_algo dnn_cpu_fold = {.name = "rows", .fn = fold, .work = fold_work};
