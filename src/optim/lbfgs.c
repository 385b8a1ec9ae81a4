/* lbfgs.c - L-BFGS that asks for values instead of calling for them.
 *
 * Vectors: the point and gradient of the last step, the direction, and the changes of
 * point and gradient of up to DNN_LBFGS_HISTORY steps before, in a ring.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/lbfgs_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINT, SLOPE, WAY, CHANGES };

static void *vector(const struct dnn_lbfgs *l, int i)
{
    return (char *)l->vectors + (size_t)i * (size_t)l->n * dnn_dtype_size(l->dtype);
}

/* Of pair i: the change of the point, and that of the gradient. */
static void *moved(const struct dnn_lbfgs *l, int i)
{
    return vector(l, CHANGES + 2 * i);
}

static void *bent(const struct dnn_lbfgs *l, int i)
{
    return vector(l, CHANGES + 2 * i + 1);
}

static void copy(const struct dnn_lbfgs *l, void *to, const void *from)
{
    memcpy(to, from, (size_t)l->n * dnn_dtype_size(l->dtype));
}

/* ---- start and stop ---- */

int dnn_lbfgs_start(struct dnn_lbfgs *l, int64_t n, enum dnn_dtype dtype,
                    const struct dnn_lbfgs_opts *opts, struct dnn_err *err)
{
    size_t bytes;
    char size[32];

    assert(n >= 1 && (dtype == DNN_F32 || dtype == DNN_F64));
    *l = (struct dnn_lbfgs){.n = n, .dtype = dtype, .opts = *opts};
    if (__builtin_mul_overflow((size_t)n, DNN_LBFGS_VECTORS * dnn_dtype_size(dtype),
                               &bytes) ||
        (l->vectors = calloc(1, bytes)) == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "not enough memory for the %d vectors of %" PRId64
                        " weights of the Hessian optimizer's history: %s",
                        DNN_LBFGS_VECTORS, n,
                        dnn_text_bytes(size, sizeof size,
                                       (double)n * DNN_LBFGS_VECTORS *
                                           (double)dnn_dtype_size(dtype)));
    l->bytes = bytes;
    l->sums = dnn_alloc((size_t)(n / LBFGS_PIECE + 1) * sizeof *l->sums);
    return 0;
}

void dnn_lbfgs_stop(struct dnn_lbfgs *l)
{
    free(l->vectors);
    dnn_free(l->sums);
    *l = (struct dnn_lbfgs){0};
}

const char *dnn_lbfgs_text(enum dnn_lbfgs_why why)
{
    static const char *const text[] = {
        [DNN_LBFGS_GO] = "not finished",
        [DNN_LBFGS_ABSOLUTE] = "absolute_tolerance reached",
        [DNN_LBFGS_RELATIVE] = "relative_tolerance reached",
        [DNN_LBFGS_ITERATIONS] = "max_iterations reached",
        [DNN_LBFGS_EVALUATIONS] = "max_func_eval reached",
        [DNN_LBFGS_STUCK] =
            "no step reduces the loss: the limit of its precision is reached",
        [DNN_LBFGS_NOT_FINITE] = "loss or gradient is not finite at the start",
    };

    return text[why];
}

const void *dnn_lbfgs_point(const struct dnn_lbfgs *l)
{
    return vector(l, POINT);
}

/* ---- direction ---- */

static void forget(struct dnn_lbfgs *l)
{
    l->state.pairs = 0;
}

/* Pair k back from the newest: its place in the ring. */
static int back(const struct dnn_lbfgs_state *s, int k)
{
    return (s->newest - k + DNN_LBFGS_HISTORY) % DNN_LBFGS_HISTORY;
}

/* Minus the gradient times what the pairs know of the inverse Hessian. */
static void direction(struct dnn_lbfgs *l)
{
    const struct dnn_lbfgs_state *s = &l->state;
    double part[DNN_LBFGS_HISTORY];
    void *d = vector(l, WAY);

    dnn_lbfgs_blend(l, d, -1, vector(l, SLOPE), 0, vector(l, SLOPE));
    for (int k = 0; k < s->pairs; k++) {
        int i = back(s, k);

        part[k] = dnn_lbfgs_dot(l, moved(l, i), d) / s->product[i];
        dnn_lbfgs_blend(l, d, 1, d, -part[k], bent(l, i));
    }
    if (s->pairs > 0) {
        const void *y = bent(l, s->newest);

        dnn_lbfgs_blend(l, d, s->product[s->newest] / dnn_lbfgs_dot(l, y, y), d, 0, d);
    }
    for (int k = s->pairs - 1; k >= 0; k--) {
        int i = back(s, k);
        double other = dnn_lbfgs_dot(l, bent(l, i), d) / s->product[i];

        dnn_lbfgs_blend(l, d, 1, d, part[k] - other, moved(l, i));
    }
}

/* The step from the last point is to be remembered, if the gradient grew along it as
 * it does in a valley. */
static void remember(struct dnn_lbfgs *l, const void *g, const void *x)
{
    struct dnn_lbfgs_state *s = &l->state;
    int i = s->pairs == 0 ? 0 : (s->newest + 1) % DNN_LBFGS_HISTORY;
    void *dx = moved(l, i), *dg = bent(l, i);

    if (s->pairs == DNN_LBFGS_HISTORY) s->pairs--; /* the oldest is written over */
    dnn_lbfgs_blend(l, dx, 1, x, -1, vector(l, POINT));
    dnn_lbfgs_blend(l, dg, 1, g, -1, vector(l, SLOPE));
    double product = dnn_lbfgs_dot(l, dx, dg);
    if (!(product > 1e-12 * dnn_lbfgs_dot(l, dg, dg)) || !isfinite(product)) return;
    s->product[i] = product;
    s->newest = i;
    s->pairs++;
}

/* ---- the machine ---- */

/* Ask for the value at the search's next step. */
static enum dnn_lbfgs_why ask(struct dnn_lbfgs *l, void *x)
{
    const struct dnn_lbfgs_state *s = &l->state;

    if (s->evaluations < l->opts.max_func_eval) {
        dnn_lbfgs_blend(l, x, 1, vector(l, POINT), s->step, vector(l, WAY));
        return DNN_LBFGS_GO;
    }
    dnn_lbfgs_blend(l, x, 1, vector(l, POINT), s->low.at, vector(l, WAY));
    return DNN_LBFGS_EVALUATIONS;
}

/* From the point that was reached: a new direction, and the first step along it. */
static enum dnn_lbfgs_why set_out(struct dnn_lbfgs *l, void *x)
{
    struct dnn_lbfgs_state *s = &l->state;

    direction(l);
    double slope = dnn_lbfgs_dot(l, vector(l, SLOPE), vector(l, WAY));
    if (s->pairs > 0 && !(slope < 0)) {
        forget(l);
        direction(l);
        slope = dnn_lbfgs_dot(l, vector(l, SLOPE), vector(l, WAY));
    }
    dnn_lbfgs_search(s, s->f, slope, s->pairs > 0 ? 1 : fmin(1, 1 / s->norm));
    return ask(l, x);
}

/* Value and gradient at x are those of the next step. */
static enum dnn_lbfgs_why arrive(struct dnn_lbfgs *l, double f, const void *g, void *x)
{
    struct dnn_lbfgs_state *s = &l->state;

    copy(l, vector(l, POINT), x);
    copy(l, vector(l, SLOPE), g);
    s->f = f;
    s->norm = sqrt(dnn_lbfgs_dot(l, g, g));
    if (!isfinite(f) || !isfinite(s->norm)) return DNN_LBFGS_NOT_FINITE;
    if (s->norm <= l->opts.absolute_tolerance) return DNN_LBFGS_ABSOLUTE;
    if (s->norm <= l->opts.relative_tolerance * fabs(f)) return DNN_LBFGS_RELATIVE;
    if (s->iterations >= l->opts.max_iterations) return DNN_LBFGS_ITERATIONS;
    return set_out(l, x);
}

enum dnn_lbfgs_why dnn_lbfgs_next(struct dnn_lbfgs *l, double f, const void *g, void *x)
{
    struct dnn_lbfgs_state *s = &l->state;

    if (s->evaluations++ == 0) return arrive(l, f, g, x);
    switch (dnn_lbfgs_search_next(s, f, dnn_lbfgs_dot(l, g, vector(l, WAY)))) {
    case LBFGS_FURTHER:
        return ask(l, x);
    case LBFGS_ACCEPTED:
        remember(l, g, x);
        s->iterations++;
        return arrive(l, f, g, x);
    default:
        break;
    }
    /* Along the gradient itself, before giving up. */
    copy(l, x, vector(l, POINT));
    if (s->pairs == 0) return DNN_LBFGS_STUCK;
    forget(l);
    return set_out(l, x);
}
