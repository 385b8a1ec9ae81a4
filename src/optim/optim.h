/* optim.h - the optimizer.
 *
 * It is part of the program: each weight has slots (the state of the optimizer) and one
 * UPDATE op, which also applies the weight's regularizer and constraint.  One file per
 * rule or family, one list in optims.c.
 *
 * There are two dialects.  {"type": "SGD", ...} has the keys, defaults and formulas of
 * PyTorch, which are also rmldnn's; {"name": "sgd", ...} those of Keras, with two
 * rules, sgd and adam.  A name alone is Keras's if it is one of these.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OPTIM_OPTIM_H
#define DNN_OPTIM_OPTIM_H

#include "base/field.h"
#include "op/prog.h"

/* It has no UPDATE op: lbfgs.h computes its steps. */
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

/* Keys of Keras's dialect: {"name": "adam", "learning_rate": 0.001, "beta_1": 0.9}. */
extern const struct dnn_field dnn_optim_fields[];

/* PyTorch's dialect: the values of "type"; name, help and keys of the index-th one,
 * NULL past the end. */
extern const struct dnn_choice dnn_optim_types[];
const char *dnn_optim_info(int index, const char **help,
                           const struct dnn_field **fields);

/* Local.  From a name, an object of either dialect, or absent: Keras's Adam.  Keeps
 * nothing of obj.  The key lr_scheduler is read by dnn_schedule_read(). */
int dnn_optim_read(const struct dnn_jobj *obj, struct dnn_optim *out,
                   struct dnn_err *err);

/* Print as JSON that reads back as the same optimizer. */
void dnn_optim_print(const struct dnn_optim *optim, FILE *where);

/* Keras's defaults for sgd and adam, PyTorch's for the others. */
struct dnn_optim dnn_optim_defaults(enum dnn_update rule);

/* Append to a program that dnn_grad() has differentiated: a PENALTY for each weight
 * that has a gradient and a regularizer, then the slots and the UPDATE of each weight
 * that has a gradient.  Returns the number of penalties; *penalty gets their values,
 * f64 scalars that live with the program and belong to the reported loss.
 * DNN_OPTIM_HESSIAN has only the penalties: the caller of lbfgs.h adds the gradients of
 * the regularizers. */
int dnn_optim_append(struct dnn_prog *prog, const struct dnn_optim *optim,
                     const int **penalty);

#endif
