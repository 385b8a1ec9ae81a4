/* sgd.c - SGD and LARS.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

/* clang-format off */
#define KEYS                                                                           \
    TYPE, RATE("0.01"),                                                                \
    REAL("momentum", AT(momentum), "0", 1, "momentum"),       \
    REAL("dampening", AT(dampening), "0", 1,                                           \
         "dampening of the momentum"),                     \
    FLAG("nesterov", AT(nesterov), "Nesterov momentum"),                   \
    DECAY(ADDED)
static const struct dnn_field sgd_fields[] = {KEYS, SCHEDULER, END};
static const struct dnn_field lars_fields[] = {
    KEYS,
    REAL("eta", AT(eta), "0.001", INFINITY,
         "trust coefficient: the gradient's norm is scaled to this times the weight's"),
    SCHEDULER, END};
/* clang-format on */

static int check(const struct dnn_jobj *obj, const struct dnn_optim *o,
                 struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(obj, "nesterov");

    if (!o->nesterov || (o->momentum > 0 && o->dampening == 0)) return 0;
    return dnn_json_fail(&at, err,
                         "needs a momentum above 0 and dampening 0, not %g and %g",
                         o->momentum, o->dampening);
}

static void slots(const struct dnn_optim *o, const char *name[OPTIM_SLOTS])
{
    if (o->momentum != 0) name[0] = "velocity";
}

const struct optim_rule dnn_optim_sgd = {"stochastic gradient descent, with momentum",
                                         sgd_fields, check, slots};
const struct optim_rule dnn_optim_lars = {"SGD with layer-wise learning rates, for "
                                          "large batches",
                                          lars_fields, check, slots};
