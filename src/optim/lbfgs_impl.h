/* lbfgs_impl.h - shared by the files of L-BFGS.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OPTIM_LBFGS_IMPL_H
#define DNN_OPTIM_LBFGS_IMPL_H

#include "optim/lbfgs.h"

#include <stddef.h>

/* ---- lbfgs_vector.c ---- */

enum { LBFGS_CHUNK = 8192 }; /* elements of a chunk */

/* Dot product: sums of chunks, added in order. */
double dnn_lbfgs_dot(const struct dnn_lbfgs *l, const void *a, const void *b);
/* z = a x + b y; z may be x or y. */
void dnn_lbfgs_blend(const struct dnn_lbfgs *l, void *z, double a, const void *x,
                     double b, const void *y);

/* ---- lbfgs_search.c ---- */

enum lbfgs_search {
    LBFGS_CONTINUE, /* the value at state->step is requested */
    LBFGS_ACCEPTED, /* the last point is accepted            */
    LBFGS_FAILED    /* no step is accepted                   */
};

/* Start at value f and slope (below 0), with a first step. */
void dnn_lbfgs_search(struct dnn_lbfgs_state *s, double f, double slope, double step);
/* Continue with value and slope at s->step. */
enum lbfgs_search dnn_lbfgs_search_next(struct dnn_lbfgs_state *s, double f,
                                        double slope);

#endif
