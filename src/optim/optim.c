/* optim.c - appends the optimizer's ops.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

#include "base/mem.h"

static bool trained(const struct dnn_value *v)
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
                   .torch = o->torch,
                   .nesterov = o->nesterov,
                   .amsgrad = o->amsgrad,
                   .centered = o->centered,
                   .momentum = o->momentum,
                   .dampening = o->dampening,
                   .beta1 = o->beta1,
                   .beta2 = o->beta2,
                   .epsilon = o->epsilon,
                   .weight_decay = o->weight_decay,
                   .eta = o->eta,
                   .lr_decay = o->lr_decay,
                   .momentum_decay = o->momentum_decay,
                   .l1 = v.regularizer.l1,
                   .l2 = v.regularizer.l2,
                   .constraint = v.constraint}
    };
    const char *name[OPTIM_SLOTS] = {NULL};
    int in[2 + OPTIM_SLOTS] = {weight, v.grad, DNN_NONE, DNN_NONE, DNN_NONE}, n = 2;

    dnn_optim_rule(o->rule)->slots(o, name);
    for (int i = 0; i < OPTIM_SLOTS; i++) {
        if (name[i] == NULL) continue;
        in[2 + i] = slot(prog, weight, name[i]);
        n = 3 + i;
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
    /* Penalties come before the updates: they use the same weights as the loss. */
    for (int w = 0; w < values; w++) {
        const struct dnn_regularizer r = prog->value[w].regularizer;

        if (!trained(&prog->value[w]) || (r.l1 == 0 && r.l2 == 0)) continue;
        prog->layer = prog->value[w].layer;
        out[n++] = dnn_prog_op1(prog, DNN_OP_PENALTY,
                                &(union dnn_attr){
                                    .penalty = {r.l1, r.l2}
        },
                                w);
    }
    for (int w = 0; w < values; w++) {
        if (!trained(&prog->value[w]) || optim->rule == DNN_OPTIM_HESSIAN) continue;
        prog->layer = prog->value[w].layer;
        update(prog, optim, w);
    }
    prog->layer = layer;
    prog->line = line;
    *penalty = out;
    return n;
}
