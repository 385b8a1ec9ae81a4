/* adam.c - Adam, AdamW, NAdam, LAMB.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

/* clang-format off */
#define BETAS                                                                          \
    REAL("beta1", AT(beta1), "0.9", 1, "decay of the first moment"),              \
    REAL("beta2", AT(beta2), "0.999", 1, "decay of the second moment"),        \
    REAL("eps", AT(epsilon), "1e-8", 1, "added to the denominator")
#define AMSGRAD                                                                        \
    FLAG("amsgrad", AT(amsgrad), "use the maximum of all second moments so far")
static const struct dnn_field adam_fields[] = {
    TYPE, RATE("0.01"), BETAS, DECAY(ADDED), AMSGRAD, SCHEDULER, END};
static const struct dnn_field adamw_fields[] = {
    TYPE, RATE("0.01"), BETAS,
    DECAY("decoupled: each step multiplies the weights by 1 - learning rate * this"),
    AMSGRAD, SCHEDULER, END};
static const struct dnn_field lamb_fields[] = {
    TYPE, RATE("0.01"), BETAS, DECAY("times the weight, is added to the step"),
    AMSGRAD, SCHEDULER, END};
static const struct dnn_field nadam_fields[] = {
    TYPE, RATE("0.002"), BETAS, DECAY(ADDED),
    REAL("momentum_decay", AT(momentum_decay), "0.004", INFINITY,
         "decay of the momentum schedule"),
    SCHEDULER, END};
/* clang-format on */

static int check_betas(const struct dnn_jobj *obj, const struct dnn_optim *o,
                       struct dnn_err *err)
{
    struct dnn_jobj first = dnn_json_sub(obj, "beta1");
    struct dnn_jobj second = dnn_json_sub(obj, "beta2");

    if (o->beta1 >= 1) return dnn_json_fail(&first, err, "must be below 1, not 1");
    if (o->beta2 >= 1) return dnn_json_fail(&second, err, "must be below 1, not 1");
    return 0;
}

static void slots(const struct dnn_optim *o, const char *name[OPTIM_SLOTS])
{
    name[0] = "mean";
    name[1] = "square";
    if (o->amsgrad) name[2] = "most";
}

const struct optim_rule dnn_optim_adam = {"Adam: adaptive moment estimation",
                                          adam_fields, check_betas, slots};
const struct optim_rule dnn_optim_adamw = {"Adam with decoupled weight decay",
                                           adamw_fields, check_betas, slots};
const struct optim_rule dnn_optim_nadam = {"Adam with Nesterov momentum", nadam_fields,
                                           check_betas, slots};
const struct optim_rule dnn_optim_lamb = {
    "Adam with layer-wise step sizes, for large batches", lamb_fields, check_betas,
    slots};
