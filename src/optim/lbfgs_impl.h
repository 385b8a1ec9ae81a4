/* lbfgs_impl.h - what the files of L-BFGS share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OPTIM_LBFGS_IMPL_H
#define DNN_OPTIM_LBFGS_IMPL_H

#include "optim/lbfgs.h"

#include <stddef.h>

/* ---- lbfgs_vector.c ---- */

enum { LBFGS_PIECE = 8192 }; /* elements that are summed at once */

/* Sums are of pieces, added in order. */
double dnn_lbfgs_dot(const struct dnn_lbfgs *l, const void *a, const void *b);
/* z = a x + b y; z may be one of them. */
void dnn_lbfgs_blend(const struct dnn_lbfgs *l, void *z, double a, const void *x,
                     double b, const void *y);

/* ---- lbfgs_search.c ---- */

enum lbfgs_search {
    LBFGS_FURTHER,  /* a value at state->step is wanted                       */
    LBFGS_ACCEPTED, /* the place just told is good                            */
    LBFGS_FAILED    /* no step is                                             */
};

/* Begin at value f and slope (below 0), with a first step. */
void dnn_lbfgs_search(struct dnn_lbfgs_state *s, double f, double slope, double step);
/* Value and slope at s->step. */
enum lbfgs_search dnn_lbfgs_search_next(struct dnn_lbfgs_state *s, double f,
                                        double slope);

#endif
