/* hessian.c - the keys of the second-order optimizer, whose steps lbfgs.c makes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

#define COUNT(key, at, def, help) {key, DNN_F_INT, at, def, 1, 1e15, NULL, help, NULL}

static const struct dnn_field fields[] = {
    TYPE,
    COUNT("max_iterations", AT(max_iterations), "2000", "steps at most"),
    COUNT("max_func_eval", AT(max_func_eval), "4000",
          "evaluations of loss and gradient at most"),
    REAL("absolute_tolerance", AT(absolute_tolerance), "1e-8", INFINITY,
         "stop when the gradient is no longer than this"),
    REAL("relative_tolerance", AT(relative_tolerance), "1e-8", INFINITY,
         "stop when the gradient is no longer than this many times the loss"),
    END};

const struct optim_rule dnn_optim_hessian = {
    "limited-memory quasi-Newton steps (L-BFGS): an epoch is one of them, a line "
    "search "
    "over the loss of all training samples, which takes one evaluation or a few; what "
    "is "
    "random (dropout, transforms), clipping and constraints are refused",
    fields, NULL, NULL};
