/* lbfgs.h - limited-memory BFGS: quasi-Newton steps of the last few changes of point
 * and gradient, with a line search that ends where the strong Wolfe conditions hold.
 *
 * It computes no loss.  It says at which point it wants one, and is told value and
 * gradient there:
 *
 *   dnn_lbfgs_start(&l, n, DNN_F32, &opts, err);
 *   do value(x, &f, g); while ((why = dnn_lbfgs_next(&l, f, g, x)) == DNN_LBFGS_GO);
 *
 * Sums are made in an order that depends on n alone, so that ranks which are told the
 * same numbers ask for the same points, with any number of threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OPTIM_LBFGS_H
#define DNN_OPTIM_LBFGS_H

#include "base/err.h"
#include "base/tensor.h"

#include <stdint.h>

enum { DNN_LBFGS_HISTORY = 10 }; /* changes that are remembered */

struct dnn_lbfgs_opts {
    int64_t max_iterations, max_func_eval;
    double absolute_tolerance; /* of the gradient's norm                     */
    double relative_tolerance; /* of the gradient's norm over the value      */
};

/* Why it ended. */
enum dnn_lbfgs_why {
    DNN_LBFGS_GO,          /* it did not: value and gradient at x are wanted */
    DNN_LBFGS_ABSOLUTE,    /* the gradient is as short as was asked for      */
    DNN_LBFGS_RELATIVE,    /* or is, beside the value                        */
    DNN_LBFGS_ITERATIONS,  /* as many steps as were allowed                  */
    DNN_LBFGS_EVALUATIONS, /* as many values as were allowed                 */
    DNN_LBFGS_STUCK,       /* even along the gradient nothing is smaller     */
    DNN_LBFGS_NOT_FINITE   /* the first value or gradient is not a number    */
};
const char *dnn_lbfgs_text(enum dnn_lbfgs_why why); /* a sentence for the log */

/* A place on the line: how far along, value and slope there. */
struct dnn_lbfgs_place {
    double at, f, slope;
};

/* What is remembered beside the vectors.  Plain bytes, all zero at the start. */
struct dnn_lbfgs_state {
    int64_t iterations, evaluations;
    double f, norm; /* at the point of the last step: value, length of the gradient */
    int32_t pairs, newest; /* how many changes there are, and where the last one is */
    double product[DNN_LBFGS_HISTORY]; /* of change of point and of gradient         */
    /* The line search under way: */
    int32_t phase, tries;
    double step;                      /* where the value was asked for              */
    struct dnn_lbfgs_place from;      /* its start                                  */
    struct dnn_lbfgs_place low, high; /* the best place so far, and the other end   */
};

enum { DNN_LBFGS_VECTORS = 3 + 2 * DNN_LBFGS_HISTORY };

/* To save one under way: n, state, vectors (bytes of them), and x, which the caller
 * has.  To go on: start one of the same n and dtype, and put state and vectors back. */
struct dnn_lbfgs {
    int64_t n;
    enum dnn_dtype dtype; /* of x, g and all vectors: f32 or f64 */
    struct dnn_lbfgs_opts opts;
    struct dnn_lbfgs_state state;
    void *vectors; /* owned: DNN_LBFGS_VECTORS of n elements */
    size_t bytes;
    double *sums; /* owned: of pieces */
};

/* Local.  n is 1 or more.  DNN_ENOMEM: there is no room for the vectors. */
int dnn_lbfgs_start(struct dnn_lbfgs *l, int64_t n, enum dnn_dtype dtype,
                    const struct dnn_lbfgs_opts *opts, struct dnn_err *err);
void dnn_lbfgs_stop(struct dnn_lbfgs *l); /* of one filled with zeros, too */

/* Local.  The point of the last step, of which a first value is known; of one that has
 * ended x is the best. */
const void *dnn_lbfgs_point(const struct dnn_lbfgs *l);

/* Local.  Value f and gradient g at x.  Either x becomes the next point, or, if it has
 * ended, the best one.  A value that is not finite is one that is too large. */
enum dnn_lbfgs_why dnn_lbfgs_next(struct dnn_lbfgs *l, double f, const void *g,
                                  void *x);

#endif
