/* rmsprop.c - RMSprop.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

static const struct dnn_field fields[] = {
    TYPE,
    RATE("0.01"),
    REAL("momentum", AT(momentum), "0", 1, "momentum"),
    REAL("alpha", AT(beta2), "0.99", 1, "decay of the mean of squared gradients"),
    REAL("eps", AT(epsilon), "1e-8", 1, "added to the denominator"),
    FLAG("centered", AT(centered), "divide by the variance instead of the mean square"),
    DECAY(ADDED),
    SCHEDULER,
    END};

static void slots(const struct dnn_optim *o, const char *name[OPTIM_SLOTS])
{
    name[0] = "square";
    if (o->centered) name[1] = "mean";
    if (o->momentum != 0) name[2] = "velocity";
}

const struct optim_rule dnn_optim_rmsprop = {
    "RMSprop: gradients over the root of their mean square", fields, NULL, slots};
