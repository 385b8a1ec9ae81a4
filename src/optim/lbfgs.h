/* lbfgs.h - limited-memory BFGS: quasi-Newton steps from the last few changes of point
 * and gradient, with a line search for the strong Wolfe conditions.
 *
 * The caller evaluates value and gradient at each requested point:
 *
 *   dnn_lbfgs_start(&l, n, DNN_F32, &opts, err);
 *   do {
 *       value(x, &f, g);
 *       why = dnn_lbfgs_next(&l, f, g, x);
 *   } while (why == DNN_LBFGS_CONTINUE);
 *
 * The order of additions depends only on n, so that ranks with the same values request
 * the same points, with any number of threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OPTIM_LBFGS_H
#define DNN_OPTIM_LBFGS_H

#include "base/err.h"
#include "base/tensor.h"

#include <stdint.h>

enum { DNN_LBFGS_HISTORY = 10 }; /* steps in the history */

struct dnn_lbfgs_opts {
    int64_t max_iterations, max_func_eval;
    double absolute_tolerance; /* of the gradient's norm                     */
    double relative_tolerance; /* of the gradient's norm over the value      */
};

/* Why it ended. */
enum dnn_lbfgs_why {
    DNN_LBFGS_CONTINUE,    /* not ended: value and gradient at x are requested */
    DNN_LBFGS_ABSOLUTE,    /* absolute_tolerance reached                       */
    DNN_LBFGS_RELATIVE,    /* relative_tolerance reached                       */
    DNN_LBFGS_ITERATIONS,  /* max_iterations reached                           */
    DNN_LBFGS_EVALUATIONS, /* max_func_eval reached                            */
    DNN_LBFGS_NO_DECREASE, /* no smaller value, even along the gradient        */
    DNN_LBFGS_NOT_FINITE   /* the first value or gradient is not finite        */
};
const char *dnn_lbfgs_text(enum dnn_lbfgs_why why); /* a sentence for the log */

/* A point of the line search: its step, value and slope. */
struct dnn_lbfgs_trial {
    double at, f, slope;
};

/* The state except the vectors.  Plain bytes, initially 0. */
struct dnn_lbfgs_state {
    int64_t iterations, evaluations;
    double f, norm;        /* after the last step: value, norm of the gradient */
    int32_t pairs, newest; /* number of pairs, and index of the last one */
    double product[DNN_LBFGS_HISTORY]; /* dot product of each pair */
    /* The current line search: */
    int32_t phase, tries;
    double step;                      /* the requested step */
    struct dnn_lbfgs_trial from;      /* its start */
    struct dnn_lbfgs_trial low, high; /* the best point so far, and the other end */
};

enum { DNN_LBFGS_VECTORS = 3 + 2 * DNN_LBFGS_HISTORY };

/* To save it: n, state, vectors (bytes of them), and x, which the caller has.  To
 * resume: start one with the same n and dtype, and restore state and vectors. */
struct dnn_lbfgs {
    int64_t n;
    enum dnn_dtype dtype; /* of x, g and all vectors: f32 or f64 */
    struct dnn_lbfgs_opts opts;
    struct dnn_lbfgs_state state;
    void *vectors; /* owned: DNN_LBFGS_VECTORS of n elements */
    size_t bytes;
    double *sums; /* owned: of chunks */
};

/* Local.  n is 1 or more.  DNN_ENOMEM: not enough memory for the vectors. */
int dnn_lbfgs_start(struct dnn_lbfgs *l, int64_t n, enum dnn_dtype dtype,
                    const struct dnn_lbfgs_opts *opts, struct dnn_err *err);
void dnn_lbfgs_stop(struct dnn_lbfgs *l); /* all zero is fine */

/* Local.  The point after the last step; valid after the first dnn_lbfgs_next().  When
 * it has ended, x is the best point instead. */
const void *dnn_lbfgs_point(const struct dnn_lbfgs *l);

/* Local.  Continue with value f and gradient g at x.  Sets x to the next point or, when
 * it has ended, to the best one.  A value that is not finite counts as too large. */
enum dnn_lbfgs_why dnn_lbfgs_next(struct dnn_lbfgs *l, double f, const void *g,
                                  void *x);

#endif
