/* sgd.c - stochastic gradient descent, and LARS: the same with a length of its own for
 * each weight's gradient.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

/* clang-format off */
#define KEYS                                                                           \
    TYPE, RATE("0.01"),                                                                \
    REAL("momentum", AT(momentum), "0", 1, "part of the last step in this one"),       \
    REAL("dampening", AT(dampening), "0", 1,                                           \
         "part of the gradient that does not enter the momentum"),                     \
    FLAG("nesterov", AT(nesterov), "look ahead along the momentum"),                   \
    DECAY(ADDED)
static const struct dnn_field sgd_fields[] = {KEYS, SCHEDULER, END};
static const struct dnn_field lars_fields[] = {
    KEYS,
    REAL("eta", AT(eta), "0.001", INFINITY,
         "the gradient is made this many times as long as the weight"),
    SCHEDULER, END};
/* clang-format on */

static int check(const struct dnn_jobj *obj, const struct dnn_optim *o,
                 struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(obj, "nesterov");

    if (!o->nesterov || (o->momentum > 0 && o->dampening == 0)) return 0;
    return dnn_json_fail(&at, err,
                         "needs a momentum above 0 and no dampening, not %g and %g",
                         o->momentum, o->dampening);
}

static void slots(const struct dnn_optim *o, const char *name[OPTIM_SLOTS])
{
    if (o->momentum != 0) name[0] = "velocity";
}

const struct optim_rule dnn_optim_sgd = {
    "along the gradient, with momentum if asked for", sgd_fields, check, slots};
const struct optim_rule dnn_optim_lars = {"sgd with gradients as long as the weights "
                                          "they belong to demand, for large batches",
                                          lars_fields, check, slots};
