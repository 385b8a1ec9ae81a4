/* adam.c - Adam and its kin: moving means of gradients and of their squares.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

/* clang-format off */
#define BETAS                                                                          \
    REAL("beta1", AT(beta1), "0.9", 1, "decay of the mean of gradients"),              \
    REAL("beta2", AT(beta2), "0.999", 1, "decay of the mean of their squares"),        \
    REAL("eps", AT(epsilon), "1e-8", 1, "added to the root of the latter")
#define MOST                                                                           \
    FLAG("amsgrad", AT(amsgrad), "divide by the most the mean of squares ever was")
static const struct dnn_field adam_fields[] = {
    TYPE, RATE("0.01"), BETAS, DECAY(ADDED), MOST, SCHEDULER, END};
static const struct dnn_field adamw_fields[] = {
    TYPE, RATE("0.01"), BETAS,
    DECAY("times the rate: how much of the weight is lost in a step"), MOST, SCHEDULER,
    END};
static const struct dnn_field lamb_fields[] = {
    TYPE, RATE("0.01"), BETAS, DECAY("how much of the weight is added to the step"),
    MOST, SCHEDULER, END};
static const struct dnn_field nadam_fields[] = {
    TYPE, RATE("0.002"), BETAS, DECAY(ADDED),
    REAL("momentum_decay", AT(momentum_decay), "0.004", INFINITY,
         "how fast the momentum reaches beta1"),
    SCHEDULER, END};
/* clang-format on */

int dnn_optim_check_betas(const struct dnn_jobj *obj, const struct dnn_optim *o,
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

const struct optim_rule dnn_optim_adam = {
    "along the mean gradient over the root of its mean square", adam_fields,
    dnn_optim_check_betas, slots};
const struct optim_rule dnn_optim_adamw = {
    "adam whose weights decay apart from their gradients", adamw_fields,
    dnn_optim_check_betas, slots};
const struct optim_rule dnn_optim_nadam = {"adam that looks ahead along its momentum",
                                           nadam_fields, dnn_optim_check_betas, slots};
const struct optim_rule dnn_optim_lamb = {
    "adam with steps as long as the weights they belong to, for large batches",
    lamb_fields, dnn_optim_check_betas, slots};
