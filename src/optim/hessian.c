/* hessian.c - keys of the second-order optimizer; its steps are in lbfgs.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

#define COUNT(key, at, def, help) {key, DNN_F_INT, at, def, 1, 1e15, NULL, help, NULL}

static const struct dnn_field fields[] = {
    TYPE,
    COUNT("max_iterations", AT(max_iterations), "2000", "maximum number of steps"),
    COUNT("max_func_eval", AT(max_func_eval), "4000",
          "maximum number of evaluations of loss and gradient"),
    REAL("absolute_tolerance", AT(absolute_tolerance), "1e-8", INFINITY,
         "stop when the gradient norm is at most this"),
    REAL("relative_tolerance", AT(relative_tolerance), "1e-8", INFINITY,
         "stop when the gradient norm is at most this times the loss"),
    END};

const struct optim_rule dnn_optim_hessian = {
    "L-BFGS: an epoch is one line search over the loss of all training samples; "
    "dropout, "
    "random transforms, gradient clipping and constraints are not allowed",
    fields, NULL, NULL};
