/* optim.h - the optimizer.
 *
 * It is part of the program: a slot or a few beside each weight and one UPDATE op,
 * which also knows the weight's regularizer and constraint.  One file per rule or
 * family, one list in optims.c.
 *
 * There are two dialects.  {"type": "SGD", ...} has the keys, defaults and formulas of
 * PyTorch, which are also rmldnn's; {"name": "sgd", ...} those of Keras, which has two
 * rules here, sgd and adam.  A name alone is Keras's if it is one of these.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OPTIM_OPTIM_H
#define DNN_OPTIM_OPTIM_H

#include "base/field.h"
#include "op/prog.h"

/* It has no op: lbfgs.h drives whole evaluations. */
enum { DNN_OPTIM_HESSIAN = DNN_UPDATES };

struct dnn_optim {
    int rule;    /* enum dnn_update, or DNN_OPTIM_HESSIAN                      */
    bool torch;  /* PyTorch's dialect, else Keras's                            */
    double rate; /* learning rate, before schedules                            */
    double weight_decay;
    double momentum, dampening;
    bool nesterov, amsgrad, centered;
    double beta1, beta2, epsilon; /* beta2: RMSprop's alpha, Adadelta's rho, too */
    double eta;                   /* LARS: trust coefficient                     */
    double lr_decay;              /* Adagrad                                     */
    double momentum_decay;        /* Nadam                                       */
    int64_t max_iterations, max_func_eval; /* Hessian                            */
    double absolute_tolerance, relative_tolerance;
};

/* Of {"name": "adam", "learning_rate": 0.001, "beta_1": 0.9...}, Keras's dialect. */
extern const struct dnn_field dnn_optim_fields[];

/* PyTorch's dialect: the names for "type"; help and keys of the index-th of them, NULL
 * past the end. */
extern const struct dnn_choice dnn_optim_types[];
const char *dnn_optim_info(int index, const char **help,
                           const struct dnn_field **fields);

/* Local.  From a name, an object of either dialect, or absent: Keras's Adam.  Nothing
 * of obj is kept.  The key lr_scheduler is left to dnn_schedule_read(). */
int dnn_optim_read(const struct dnn_jobj *obj, struct dnn_optim *out,
                   struct dnn_err *err);

/* As JSON that reads back as the same. */
void dnn_optim_print(const struct dnn_optim *optim, FILE *where);

/* Keras's defaults for sgd and adam, PyTorch's for the others. */
struct dnn_optim dnn_optim_defaults(enum dnn_update rule);

/* Append to a program that dnn_grad() has differentiated: a PENALTY for each weight
 * that has a gradient and a regularizer, then the slots and the UPDATE of each weight
 * that has a gradient.  Returns the number of penalties; *penalty gets their values,
 * f64 scalars that live with the program and belong to the reported loss.
 * DNN_OPTIM_HESSIAN has only the penalties: its driver adds the regularizers'
 * gradients, too. */
int dnn_optim_append(struct dnn_prog *prog, const struct dnn_optim *optim,
                     const int **penalty);

#endif
