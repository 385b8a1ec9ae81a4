/* optim_lbfgs.c - L-BFGS on functions with known minima: error, number of evaluations,
 * stopping reason, in f32 and f64, and resuming from a saved state.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/mem.h"
#include "optim/lbfgs.h"

#include <math.h>

typedef double fn(int64_t n, const double *x, double *g);

/* Minimum 0 at (1, 1, ...); condition number 10^4. */
static double bowl(int64_t n, const double *x, double *g)
{
    double f = 0;

    for (int64_t i = 0; i < n; i++) {
        double a = pow(10, 4.0 * (double)i / (double)(n - 1));
        f += 0.5 * a * (x[i] - 1) * (x[i] - 1);
        g[i] = a * (x[i] - 1);
    }
    return f;
}

/* The same with condition number 10. */
static double dish(int64_t n, const double *x, double *g)
{
    double f = 0;

    for (int64_t i = 0; i < n; i++) {
        double a = (double)(1 + i % 10);
        f += 0.5 * a * (x[i] - 1) * (x[i] - 1);
        g[i] = a * (x[i] - 1);
    }
    return f;
}

/* Chained Rosenbrock function; the same minimum. */
static double valley(int64_t n, const double *x, double *g)
{
    double f = 0;

    for (int64_t i = 0; i < n; i++)
        g[i] = 0;
    for (int64_t i = 0; i + 1 < n; i++) {
        double u = x[i + 1] - x[i] * x[i], v = 1 - x[i];
        f += 100 * u * u + v * v;
        g[i + 1] += 200 * u;
        g[i] += -400 * x[i] * u - 2 * v;
    }
    return f;
}

/* NaN if an element is 0 or less; minimum at (1, 1, ...). */
static double half(int64_t n, const double *x, double *g)
{
    double f = 0;

    for (int64_t i = 0; i < n; i++) {
        f += x[i] - log(x[i]);
        g[i] = 1 - 1 / x[i];
    }
    return f;
}

/* No minimum. */
static double slope(int64_t n, const double *x, double *g)
{
    double f = 0;

    for (int64_t i = 0; i < n; i++) {
        f -= x[i];
        g[i] = -1;
    }
    return f;
}

/* The gradient has the wrong sign. */
static double liar(int64_t n, const double *x, double *g)
{
    double f = bowl(n, x, g);

    for (int64_t i = 0; i < n; i++)
        g[i] = -g[i];
    return f;
}

struct problem {
    fn *f;
    int64_t n;
    double first, second; /* initial values, alternating */
    enum dnn_dtype dtype;
    struct dnn_lbfgs_opts opts;
};

struct end {
    enum dnn_lbfgs_why why;
    double f, off; /* off: the largest difference from 1 */
    int64_t iterations, evaluations;
    double x0;
};

static double evaluate(const struct problem *p, const void *x, void *g, double *work)
{
    double *dx = work, *dg = work + p->n;

    for (int64_t i = 0; i < p->n; i++)
        dx[i] = p->dtype == DNN_F32 ? ((const float *)x)[i] : ((const double *)x)[i];
    double f = p->f(p->n, dx, dg);
    for (int64_t i = 0; i < p->n; i++)
        if (p->dtype == DNN_F32)
            ((float *)g)[i] = (float)dg[i];
        else
            ((double *)g)[i] = dg[i];
    return p->dtype == DNN_F32 ? (float)f : f;
}

/* Copy the state of a run into a new one. */
static void go_on(struct dnn_lbfgs *l)
{
    struct dnn_lbfgs other;

    if (dnn_lbfgs_start(&other, l->n, l->dtype, &l->opts, NULL) < 0) return;
    other.state = l->state;
    memcpy(other.vectors, l->vectors, l->bytes);
    dnn_lbfgs_stop(l);
    *l = other;
}

static struct end run(const struct problem *p, bool broken)
{
    struct dnn_lbfgs l;
    struct end end = {.why = DNN_LBFGS_CONTINUE};
    double *work = dnn_alloc((size_t)p->n * 2 * sizeof *work);
    double *x = dnn_alloc((size_t)p->n * sizeof *x);
    double *g = dnn_alloc((size_t)p->n * sizeof *g);

    for (int64_t i = 0; i < p->n; i++)
        if (p->dtype == DNN_F32)
            ((float *)x)[i] = (float)(i % 2 == 0 ? p->first : p->second);
        else
            x[i] = i % 2 == 0 ? p->first : p->second;
    if (dnn_lbfgs_start(&l, p->n, p->dtype, &p->opts, NULL) < 0) return end;
    do {
        double f = evaluate(p, x, g, work);
        end.why = dnn_lbfgs_next(&l, f, g, x);
        if (broken && l.state.evaluations % 7 == 3) go_on(&l);
    } while (end.why == DNN_LBFGS_CONTINUE);
    end.f = evaluate(p, x, g, work);
    for (int64_t i = 0; i < p->n; i++)
        end.off = fmax(end.off, fabs(work[i] - 1));
    end.x0 = work[0];
    end.iterations = l.state.iterations;
    end.evaluations = l.state.evaluations;
    dnn_lbfgs_stop(&l);
    dnn_free(work);
    dnn_free(x);
    dnn_free(g);
    return end;
}

/* most: largest number of evaluations.  If it is a product, the first factor is what
 * SciPy's L-BFGS-B needs with as many pairs, to a gradient of 1e-8. */
static void finds(const char *what, struct problem p, enum dnn_lbfgs_why why,
                  double near, int64_t most)
{
    struct end e = run(&p, false), again = run(&p, true);

    ok(e.why == why && e.off <= near && e.evaluations <= most,
       "%s: %s; %g off, %lld steps, %lld values", what, dnn_lbfgs_text(e.why), e.off,
       (long long)e.iterations, (long long)e.evaluations);
    ok(again.why == e.why && again.off == e.off && again.evaluations == e.evaluations &&
           again.f == e.f,
       "%s: the same bits when saved and restored", what);
}

static const struct dnn_lbfgs_opts tight = {2000, 4000, 1e-8, 0};

static void places(void)
{
    finds("a bowl", (struct problem){bowl, 60, 0, 0, DNN_F64, tight},
          DNN_LBFGS_ABSOLUTE, 1e-8, 1104 * 5 / 4);
    finds("Rosenbrock's valley", (struct problem){valley, 2, -1.2, 1, DNN_F64, tight},
          DNN_LBFGS_ABSOLUTE, 1e-8, 46 * 5 / 4);
    finds("a long valley", (struct problem){valley, 100, -1.2, 1, DNN_F64, tight},
          DNN_LBFGS_ABSOLUTE, 1e-8, 634 * 5 / 4);
    finds("a half line", (struct problem){half, 3, 0.01, 30, DNN_F64, tight},
          DNN_LBFGS_ABSOLUTE, 1e-7, 60);
    finds("a large dish", (struct problem){dish, 66001, 0, 0, DNN_F64, tight},
          DNN_LBFGS_ABSOLUTE, 1e-8, 60);
    struct dnn_lbfgs_opts loose = tight;
    loose.absolute_tolerance = 1e-3;
    finds("Rosenbrock's valley in single precision",
          (struct problem){valley, 2, -1.2, 1, DNN_F32, loose}, DNN_LBFGS_ABSOLUTE,
          1e-2, 70);
    finds("a bowl in single precision",
          (struct problem){bowl, 60, 0, 0, DNN_F32, loose}, DNN_LBFGS_ABSOLUTE, 1e-3,
          800);
}

static void ends(void)
{
    struct problem p = {valley, 2, -1.2, 1, DNN_F64, tight};
    struct end e;

    p.opts.max_iterations = 5;
    e = run(&p, false);
    ok(e.why == DNN_LBFGS_ITERATIONS && e.iterations == 5, "five steps");
    p.opts = tight;
    p.opts.max_func_eval = 9;
    e = run(&p, false);
    ok(e.why == DNN_LBFGS_EVALUATIONS && e.evaluations == 9 && e.f < 24.2,
       "nine evaluations, and the best is kept: %g", e.f);
    p.opts.max_func_eval = 1;
    e = run(&p, false);
    ok(e.why == DNN_LBFGS_EVALUATIONS && e.evaluations == 1 && e.x0 == -1.2,
       "one evaluation: the initial point");
    p = (struct problem){half, 2, 3, 4, DNN_F64, tight};
    p.opts.absolute_tolerance = 0;
    p.opts.relative_tolerance = 1e-3;
    e = run(&p, false);
    ok(e.why == DNN_LBFGS_RELATIVE && e.off < 3e-3, "relative: %g off", e.off);
    p = (struct problem){bowl, 60, 1, 1, DNN_F64, tight};
    e = run(&p, false);
    ok(e.why == DNN_LBFGS_ABSOLUTE && e.evaluations == 1, "the start is the minimum");
    p = (struct problem){half, 2, -1, 1, DNN_F64, tight};
    e = run(&p, false);
    ok(e.why == DNN_LBFGS_NOT_FINITE && e.evaluations == 1, "NaN at the start");
    p = (struct problem){liar, 60, 0, 0, DNN_F64, tight};
    e = run(&p, false);
    ok(e.why == DNN_LBFGS_NO_DECREASE && e.iterations == 0 && e.off == 1,
       "no step decreases the loss: %lld evaluations", (long long)e.evaluations);
    p = (struct problem){
        slope, 3, 0, 0, DNN_F64, {20, 4000, 0, 0}
    };
    e = run(&p, false);
    ok((e.why == DNN_LBFGS_ITERATIONS || e.why == DNN_LBFGS_NO_DECREASE) && e.f < -1e6,
       "no minimum: %g, %s", e.f, dnn_lbfgs_text(e.why));
    p = (struct problem){
        valley, 100, -1.2, 1, DNN_F32, {2000, 4000, 0, 0}
    };
    e = run(&p, false);
    ok(e.why == DNN_LBFGS_NO_DECREASE && e.off < 1e-2,
       "to the limit of f32: error %g, %lld evaluations", e.off,
       (long long)e.evaluations);
}

static void too_large(void)
{
    struct dnn_lbfgs l = {0};
    struct dnn_err err = {0};

    is_int(dnn_lbfgs_start(&l, INT64_C(1) << 61, DNN_F64, &tight, &err), DNN_ENOMEM,
           "too many weights");
    is_text(err.text,
            "not enough memory for the 23 vectors of 2305843009213693952 weights of "
            "the Hessian optimizer's history: 376832.0 PiB",
            "its message");
    dnn_lbfgs_stop(&l);
}

int main(void)
{
    places();
    ends();
    too_large();
    return done();
}
