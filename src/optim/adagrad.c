/* adagrad.c - Adagrad.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

static const struct dnn_field fields[] = {
    TYPE,
    RATE("0.01"),
    REAL("lr_decay", AT(lr_decay), "0", INFINITY,
         "the rate of update t is divided by 1 + (t - 1) lr_decay"),
    DECAY(ADDED),
    REAL("eps", AT(epsilon), "1e-10", 1, "added to the denominator"),
    SCHEDULER,
    END};

static void slots(const struct dnn_optim *o, const char *name[OPTIM_SLOTS])
{
    (void)o;
    name[0] = "sum";
}

const struct optim_rule dnn_optim_adagrad = {
    "Adagrad: gradients over the root of the sum of their squares", fields, NULL,
    slots};
