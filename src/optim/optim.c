/* optim.c - the optimizer as ops.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim.h"

#include "base/mem.h"

#include <stddef.h>

static const struct dnn_choice rules[] = {
    {"sgd",  DNN_UPDATE_SGD },
    {"adam", DNN_UPDATE_ADAM},
    {NULL,   0              }
};

#define AT(f) offsetof(struct dnn_optim, f)
#define REAL(key, at, def, max, help)                                                  \
    {key, DNN_F_REAL, at, def, 0, max, NULL, help, NULL}
const struct dnn_field dnn_optim_fields[] = {
    {"name",     DNN_F_ENUM, AT(rule),     "adam",  0, 0, rules, "rule of the update", NULL},
    REAL("learning_rate", AT(rate), "0", 1e6,
         "how far a step goes; 0: the rule's own, 0.01 (sgd) or 0.001 (adam)"),
    REAL("momentum", AT(momentum), "0", 1, "sgd: part of the last step in this one"),
    {"nesterov", DNN_F_BOOL, AT(nesterov), "false", 0, 0, NULL,
     "sgd: look ahead along the momentum",                                             NULL},
    REAL("beta_1", AT(beta1), "0.9", 1, "adam: decay of the mean of gradients"),
    REAL("beta_2", AT(beta2), "0.999", 1, "adam: decay of the mean of their squares"),
    REAL("epsilon", AT(epsilon), "1e-7", 1, "adam: added to the root of the latter"),
    {NULL,       0,          0,            NULL,    0, 0, NULL,  NULL,                 NULL},
};

struct dnn_optim dnn_optim_defaults(enum dnn_update rule)
{
    return (struct dnn_optim){
        .rule = (int)rule, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7};
}

double dnn_optim_rate(const struct dnn_optim *optim)
{
    if (optim->rate > 0) return optim->rate;
    return optim->rule == DNN_UPDATE_SGD ? 0.01 : 0.001;
}

static bool follows(const struct dnn_value *v)
{
    return v->role == DNN_WEIGHT && v->trainable && v->grad != DNN_NONE;
}

static int slot(struct dnn_prog *prog, int weight, const char *what)
{
    const char *of = prog->value[weight].is.name;
    char *name = dnn_format("%s.%s", of == NULL ? "weight" : of, what);
    int v = dnn_prog_slot(prog, name, weight);

    dnn_free(name);
    return v;
}

static void update(struct dnn_prog *prog, const struct dnn_optim *o, int weight)
{
    const struct dnn_value v = prog->value[weight];
    const union dnn_attr attr = {
        .update = {.rule = (enum dnn_update)o->rule,
                   .momentum = o->momentum,
                   .nesterov = o->nesterov,
                   .beta1 = o->beta1,
                   .beta2 = o->beta2,
                   .epsilon = o->epsilon,
                   .l1 = v.regularizer.l1,
                   .l2 = v.regularizer.l2,
                   .constraint = v.constraint}
    };
    int in[4] = {weight, v.grad}, n = 2;

    if (o->rule == DNN_UPDATE_ADAM) {
        in[n++] = slot(prog, weight, "mean");
        in[n++] = slot(prog, weight, "square");
    } else if (o->momentum != 0) {
        in[n++] = slot(prog, weight, "velocity");
    }
    dnn_prog_op(prog, DNN_OP_UPDATE, &attr, n, in);
}

int dnn_optim_append(struct dnn_prog *prog, const struct dnn_optim *optim,
                     const int **penalty)
{
    const char *layer = prog->layer;
    int line = prog->line, values = prog->nvalues, n = 0;
    int *out = dnn_arena_alloc(prog->arena, ((size_t)values + 1) * sizeof *out);

    prog->line = 0;
    /* The penalty is that of the weights the loss was computed with. */
    for (int w = 0; w < values; w++) {
        const struct dnn_regularizer r = prog->value[w].regularizer;

        if (!follows(&prog->value[w]) || (r.l1 == 0 && r.l2 == 0)) continue;
        prog->layer = prog->value[w].layer;
        out[n++] = dnn_prog_op1(prog, DNN_OP_PENALTY,
                                &(union dnn_attr){
                                    .penalty = {r.l1, r.l2}
        },
                                w);
    }
    for (int w = 0; w < values; w++) {
        if (!follows(&prog->value[w])) continue;
        prog->layer = prog->value[w].layer;
        update(prog, optim, w);
    }
    prog->layer = layer;
    prog->line = line;
    *penalty = out;
    return n;
}
