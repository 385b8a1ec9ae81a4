/* adadelta.c - steps as long as the steps before were.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

static const struct dnn_field fields[] = {
    TYPE,
    RATE("1"),
    REAL("rho", AT(beta2), "0.9", 1, "decay of both means of squares"),
    REAL("eps", AT(epsilon), "1e-6", 1, "added to both under their roots"),
    DECAY(ADDED),
    SCHEDULER,
    END};

static void slots(const struct dnn_optim *o, const char *name[OPTIM_SLOTS])
{
    (void)o;
    name[0] = "square";
    name[1] = "delta";
}

const struct optim_rule dnn_optim_adadelta = {
    "along the gradient, as far as the mean of the steps before", fields, NULL, slots};
