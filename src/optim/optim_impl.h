/* optim_impl.h - an update rule, and macros for its keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OPTIM_OPTIM_IMPL_H
#define DNN_OPTIM_OPTIM_IMPL_H

#include "optim/optim.h"

#include <math.h>
#include <stddef.h>

enum { OPTIM_SLOTS = 3 };

/* A rule in PyTorch's dialect. */
struct optim_rule {
    const char *help;
    const struct dnn_field *fields; /* every key it has, "type" first */
    /* Checks in addition to the table; NULL: none. */
    int (*check)(const struct dnn_jobj *obj, const struct dnn_optim *o,
                 struct dnn_err *err);
    /* Sets the names of the slots, in the order of UPDATE's operands; NULL: absent.  A
     * NULL function: the rule has no UPDATE. */
    void (*slots)(const struct dnn_optim *o, const char *name[OPTIM_SLOTS]);
};

extern const struct optim_rule dnn_optim_sgd, dnn_optim_lars;   /* sgd.c */
extern const struct optim_rule dnn_optim_adam, dnn_optim_adamw; /* adam.c */
extern const struct optim_rule dnn_optim_nadam, dnn_optim_lamb; /* adam.c */
extern const struct optim_rule dnn_optim_adagrad;               /* adagrad.c */
extern const struct optim_rule dnn_optim_adadelta;              /* adadelta.c */
extern const struct optim_rule dnn_optim_rmsprop;               /* rmsprop.c */
extern const struct optim_rule dnn_optim_hessian;               /* hessian.c */

/* optims.c: the rule for an enum dnn_update or DNN_OPTIM_HESSIAN. */
const struct optim_rule *dnn_optim_rule(int rule);

#define AT(f) offsetof(struct dnn_optim, f)
#define REAL(key, at, def, max, help)                                                  \
    {key, DNN_F_REAL, at, def, 0, max, NULL, help, NULL}
#define FLAG(key, at, help) {key, DNN_F_BOOL, at, "false", 0, 0, NULL, help, NULL}
#define TYPE                                                                           \
    {"type", DNN_F_ENUM, AT(rule), NULL, 0, 0, dnn_optim_types, "update rule", NULL}
#define RATE(def) REAL("learning_rate", AT(rate), def, 1e6, "learning rate")
#define DECAY(help) REAL("weight_decay", AT(weight_decay), "0", INFINITY, help)
#define ADDED "L2: this times the weight is added to the gradient"
#define SCHEDULER                                                                      \
    {"lr_scheduler", DNN_F_OTHER, 0, "null", 0, 0, NULL, "learning rate schedule", NULL}
#define END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}

#endif
