/* lbfgs.c - L-BFGS; the caller evaluates the function at the points it requests.
 *
 * Vectors: point and gradient after the last step, the search direction, and a ring
 * buffer with the changes of point and gradient in up to DNN_LBFGS_HISTORY steps.
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

enum { POINT, GRADIENT, DIRECTION, PAIRS };

static void *vector(const struct dnn_lbfgs *l, int i)
{
    return (char *)l->vectors + (size_t)i * (size_t)l->n * dnn_dtype_size(l->dtype);
}

/* The change of the point, and that of the gradient, of pair i. */
static void *point_change(const struct dnn_lbfgs *l, int i)
{
    return vector(l, PAIRS + 2 * i);
}

static void *gradient_change(const struct dnn_lbfgs *l, int i)
{
    return vector(l, PAIRS + 2 * i + 1);
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
    l->sums = dnn_alloc((size_t)(n / LBFGS_CHUNK + 1) * sizeof *l->sums);
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
        [DNN_LBFGS_CONTINUE] = "not finished",
        [DNN_LBFGS_ABSOLUTE] = "absolute_tolerance reached",
        [DNN_LBFGS_RELATIVE] = "relative_tolerance reached",
        [DNN_LBFGS_ITERATIONS] = "max_iterations reached",
        [DNN_LBFGS_EVALUATIONS] = "max_func_eval reached",
        [DNN_LBFGS_NO_DECREASE] =
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

static void clear_pairs(struct dnn_lbfgs *l)
{
    l->state.pairs = 0;
}

/* The index of the k-th newest pair in the ring buffer. */
static int ring_index(const struct dnn_lbfgs_state *s, int k)
{
    return (s->newest - k + DNN_LBFGS_HISTORY) % DNN_LBFGS_HISTORY;
}

/* The two-loop recursion: minus the inverse Hessian of the pairs times the gradient. */
static void direction(struct dnn_lbfgs *l)
{
    const struct dnn_lbfgs_state *s = &l->state;
    double part[DNN_LBFGS_HISTORY];
    void *d = vector(l, DIRECTION);

    dnn_lbfgs_blend(l, d, -1, vector(l, GRADIENT), 0, vector(l, GRADIENT));
    for (int k = 0; k < s->pairs; k++) {
        int i = ring_index(s, k);

        part[k] = dnn_lbfgs_dot(l, point_change(l, i), d) / s->product[i];
        dnn_lbfgs_blend(l, d, 1, d, -part[k], gradient_change(l, i));
    }
    if (s->pairs > 0) {
        const void *y = gradient_change(l, s->newest);

        dnn_lbfgs_blend(l, d, s->product[s->newest] / dnn_lbfgs_dot(l, y, y), d, 0, d);
    }
    for (int k = s->pairs - 1; k >= 0; k--) {
        int i = ring_index(s, k);
        double other = dnn_lbfgs_dot(l, gradient_change(l, i), d) / s->product[i];

        dnn_lbfgs_blend(l, d, 1, d, part[k] - other, point_change(l, i));
    }
}

/* Add a pair for the step from the last point, if its curvature is positive. */
static void add_pair(struct dnn_lbfgs *l, const void *g, const void *x)
{
    struct dnn_lbfgs_state *s = &l->state;
    int i = s->pairs == 0 ? 0 : (s->newest + 1) % DNN_LBFGS_HISTORY;
    void *dx = point_change(l, i), *dg = gradient_change(l, i);

    if (s->pairs == DNN_LBFGS_HISTORY) s->pairs--; /* overwrite the oldest */
    dnn_lbfgs_blend(l, dx, 1, x, -1, vector(l, POINT));
    dnn_lbfgs_blend(l, dg, 1, g, -1, vector(l, GRADIENT));
    double product = dnn_lbfgs_dot(l, dx, dg);
    if (!(product > 1e-12 * dnn_lbfgs_dot(l, dg, dg)) || !isfinite(product)) return;
    s->product[i] = product;
    s->newest = i;
    s->pairs++;
}

/* ---- state machine ---- */

/* Request the value at the next step of the line search. */
static enum dnn_lbfgs_why request(struct dnn_lbfgs *l, void *x)
{
    const struct dnn_lbfgs_state *s = &l->state;

    if (s->evaluations < l->opts.max_func_eval) {
        dnn_lbfgs_blend(l, x, 1, vector(l, POINT), s->step, vector(l, DIRECTION));
        return DNN_LBFGS_CONTINUE;
    }
    dnn_lbfgs_blend(l, x, 1, vector(l, POINT), s->low.at, vector(l, DIRECTION));
    return DNN_LBFGS_EVALUATIONS;
}

/* Start a line search from the last point, in a new direction. */
static enum dnn_lbfgs_why start_search(struct dnn_lbfgs *l, void *x)
{
    struct dnn_lbfgs_state *s = &l->state;

    direction(l);
    double slope = dnn_lbfgs_dot(l, vector(l, GRADIENT), vector(l, DIRECTION));
    if (s->pairs > 0 && !(slope < 0)) {
        clear_pairs(l);
        direction(l);
        slope = dnn_lbfgs_dot(l, vector(l, GRADIENT), vector(l, DIRECTION));
    }
    dnn_lbfgs_search(s, s->f, slope, s->pairs > 0 ? 1 : fmin(1, 1 / s->norm));
    return request(l, x);
}

/* The step to x, with value f and gradient g, is accepted. */
static enum dnn_lbfgs_why accept_step(struct dnn_lbfgs *l, double f, const void *g,
                                      void *x)
{
    struct dnn_lbfgs_state *s = &l->state;

    copy(l, vector(l, POINT), x);
    copy(l, vector(l, GRADIENT), g);
    s->f = f;
    s->norm = sqrt(dnn_lbfgs_dot(l, g, g));
    if (!isfinite(f) || !isfinite(s->norm)) return DNN_LBFGS_NOT_FINITE;
    if (s->norm <= l->opts.absolute_tolerance) return DNN_LBFGS_ABSOLUTE;
    if (s->norm <= l->opts.relative_tolerance * fabs(f)) return DNN_LBFGS_RELATIVE;
    if (s->iterations >= l->opts.max_iterations) return DNN_LBFGS_ITERATIONS;
    return start_search(l, x);
}

enum dnn_lbfgs_why dnn_lbfgs_next(struct dnn_lbfgs *l, double f, const void *g, void *x)
{
    struct dnn_lbfgs_state *s = &l->state;

    if (s->evaluations++ == 0) return accept_step(l, f, g, x);
    switch (dnn_lbfgs_search_next(s, f, dnn_lbfgs_dot(l, g, vector(l, DIRECTION)))) {
    case LBFGS_CONTINUE:
        return request(l, x);
    case LBFGS_ACCEPTED:
        add_pair(l, g, x);
        s->iterations++;
        return accept_step(l, f, g, x);
    default:
        break;
    }
    /* The search failed: try along the gradient before giving up. */
    copy(l, x, vector(l, POINT));
    if (s->pairs == 0) return DNN_LBFGS_NO_DECREASE;
    clear_pairs(l);
    return start_search(l, x);
}
