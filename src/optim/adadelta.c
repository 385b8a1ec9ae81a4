/* adadelta.c - Adadelta.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

static const struct dnn_field fields[] = {
    TYPE,
    RATE("1"),
    REAL("rho", AT(beta2), "0.9", 1, "decay of both mean squares"),
    REAL("eps", AT(epsilon), "1e-6", 1, "added to both mean squares"),
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
    "Adadelta: step sizes from previous steps", fields, NULL, slots};
