/* optim.c - steps of the optimizers against numbers worked out apart, with
 * regularizers and constraints.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim.h"
#include "ops/compare.h"
#include "tap.h"

#include <math.h>

/* One weight (2, 2), whose gradient is given: that of the sum of w dy is dy. */
struct net {
    struct dnn_prog *prog; /* owned */
    int w, dy, npenalties;
    const int *penalty;
};

static struct net make(const struct dnn_optim *o, struct dnn_regularizer reg,
                       struct dnn_constraint constraint)
{
    static const struct dnn_init zeros = {.kind = DNN_INIT_ZEROS};
    struct dnn_shape s = {
        2, {2, 2}
    };
    struct net n = {.prog = dnn_prog_make(DNN_F64, true)};

    dnn_prog_from(n.prog, "layer", 3, false);
    n.w = dnn_prog_weight(n.prog, "kernel", &s, &zeros);
    int frozen = dnn_prog_weight(n.prog, "frozen", &s, &zeros);
    n.prog->value[frozen].trainable = false;
    n.prog->value[frozen].regularizer.l2 = 1;
    n.prog->value[n.w].regularizer = reg;
    n.prog->value[n.w].constraint = constraint;
    int y = dnn_prog_op(n.prog, DNN_OP_COMBINE,
                        &(union dnn_attr){
                            .combine = {DNN_ADD, 0, 0}
    },
                        2, (int[]){n.w, frozen});
    y = dnn_prog_op1(n.prog, DNN_OP_UNARY,
                     &(union dnn_attr){.unary = {.fn = DNN_NEGATE}}, y);
    n.dy = dnn_prog_input(n.prog, "dy", DNN_F64, &s);
    dnn_grad(n.prog, 1, &(struct dnn_grad_of){y, n.dy}, false);
    n.npenalties = dnn_optim_append(n.prog, o, &n.penalty);
    return n;
}

/* w after one to three updates with gradients g (minus dy). */
static void steps(const char *name, const struct dnn_optim *o,
                  struct dnn_regularizer reg, struct dnn_constraint constraint,
                  const double *w, const double g[3][4], int nsteps, const double *want)
{
    struct net n = make(o, reg, constraint);
    struct ops_run run;
    double got[4];

    if (ops_start(n.prog, dnn_backend_find("ref", NULL), NULL, &run, NULL) < 0) {
        ok(false, "%s: does not start", name);
        return;
    }
    ops_put(&run, n.w, w);
    run.now.rate = dnn_optim_rate(o);
    for (int t = 0; t < nsteps; t++) {
        double dy[4];
        for (int i = 0; i < 4; i++)
            dy[i] = -g[t][i];
        ops_put(&run, n.dy, dy);
        run.now.updates = (uint64_t)t + 1;
        ops_go(&run, 0, n.prog->nops, NULL);
    }
    ops_get(&run, n.w, got);
    struct ops_diff d = ops_compare(got, want, 4);
    if (!ok(d.worst <= 1e-12, "%s", name))
        printf("#   element %lld: got %.17g, want %.17g\n", (long long)d.at, d.got,
               d.want);
    ops_stop(&run);
    dnn_prog_free(n.prog);
}

static const struct dnn_regularizer free_of = {0, 0};
static const struct dnn_constraint unbound = {.kind = DNN_CONSTRAIN_NONE};
static const double start[4] = {1, -2, 3, 0};
static const double grads[3][4] = {
    {0.5, -1,  0, 2   },
    {1,   0.5, 2, -1  },
    {-3,  1,   1, 0.25}
};

static void rules(void)
{
    struct dnn_optim o = dnn_optim_defaults(DNN_UPDATE_SGD);

    o.rate = 0.1;
    steps("sgd", &o, free_of, unbound, start, grads, 2,
          (double[]){1 - 0.15, -2 + 0.05, 3 - 0.2, -0.1});
    o.momentum = 0.5;
    /* Velocities: -0.05 0.1 0 -0.2, then half of it and -0.1 -0.05 -0.2 0.1. */
    steps("sgd with momentum", &o, free_of, unbound, start, grads, 2,
          (double[]){1 - 0.05 - 0.125, -2 + 0.1 + 0, 3 - 0.2, -0.2 + 0});
    o.nesterov = true;
    steps("sgd, nesterov", &o, free_of, unbound, start, grads, 2,
          (double[]){1 - 0.025 - 0.05 - 0.0625 - 0.1, -2 + 0.05 + 0.1 + 0 - 0.05,
                     3 - 0.1 - 0.2, -0.1 - 0.2 + 0 + 0.1});
    o = dnn_optim_defaults(DNN_UPDATE_ADAM);
    /* The first step is the rate in the gradient's direction, up to epsilon. */
    steps("adam, one step", &o, free_of, unbound, start, grads, 1,
          (double[]){1 - 0.001 * 0.5 / (0.5 + 1e-7 / sqrt(0.001)),
                     -2 + 0.001 / (1 + 1e-7 / sqrt(0.001)), 3,
                     -0.001 * 2 / (2 + 1e-7 / sqrt(0.001))});
    double want[4], m[4] = {0}, v[4] = {0};
    for (int i = 0; i < 4; i++)
        want[i] = start[i];
    o.beta1 = 0.8;
    o.beta2 = 0.9;
    o.epsilon = 0.01;
    o.rate = 0.2;
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 4; i++) {
            m[i] += 0.2 * (grads[t][i] - m[i]);
            v[i] += 0.1 * (grads[t][i] * grads[t][i] - v[i]);
            double alpha = 0.2 * sqrt(1 - pow(0.9, t + 1)) / (1 - pow(0.8, t + 1));
            want[i] -= alpha * m[i] / (sqrt(v[i]) + 0.01);
        }
    steps("adam, three steps", &o, free_of, unbound, start, grads, 3, want);
}

static void regularizers(void)
{
    struct dnn_optim o = dnn_optim_defaults(DNN_UPDATE_SGD);
    struct dnn_regularizer reg = {0.5, 0.25};
    struct net n = make(&o, reg, unbound);
    struct ops_run run;
    double got;

    o.rate = 0.1;
    /* The gradient of 0.5 |w| + 0.25 w^2 is sign / 2 + w / 2. */
    steps("l1 and l2", &o, reg, unbound, start, grads, 1,
          (double[]){1 - 0.1 * 1.5, -2 + 0.1 * (1 + 0.5 + 1), 3 - 0.1 * 2, -0.2});
    is_int(n.npenalties, 1, "a penalty, none of what is frozen");
    if (n.npenalties == 1 &&
        ops_start(n.prog, dnn_backend_find("ref", NULL), NULL, &run, NULL) == 0) {
        ops_put(&run, n.w, start);
        ops_go(&run, 0, n.prog->nops, NULL);
        ops_get(&run, n.penalty[0], &got);
        ok(fabs(got - (0.5 * 6 + 0.25 * 14)) < 1e-14, "the penalty: %g", got);
        ops_stop(&run);
    }
    dnn_prog_free(n.prog);
}

static void constraints(void)
{
    const double none[3][4] = {{0}}, w[4] = {3, 0.3, 4, -0.4};
    struct dnn_optim o = dnn_optim_defaults(DNN_UPDATE_SGD);
    struct dnn_constraint k = {.kind = DNN_NON_NEG};
    const double tiny = 1e-7;

    steps("not negative", &o, free_of, k, w, none, 1, (double[]){3, 0.3, 4, 0});
    k = (struct dnn_constraint){.kind = DNN_MAX_NORM, .max = 1, .axes = 1};
    /* Columns of norms 5 and 0.5. */
    steps("norms at most 1", &o, free_of, k, w, none, 1,
          (double[]){3 / (5 + tiny), 0.3 * 0.5 / (0.5 + tiny), 4 / (5 + tiny),
                     -0.4 * 0.5 / (0.5 + tiny)});
    k = (struct dnn_constraint){.kind = DNN_UNIT_NORM, .axes = 1};
    steps("norms of 1", &o, free_of, k, w, none, 1,
          (double[]){3 / (5 + tiny), 0.3 / (0.5 + tiny), 4 / (5 + tiny),
                     -0.4 / (0.5 + tiny)});
    k = (struct dnn_constraint){
        .kind = DNN_MIN_MAX_NORM, .min = 1, .max = 4, .rate = 0.5, .axes = 1};
    steps("norms half way to 1 ... 4", &o, free_of, k, w, none, 1,
          (double[]){3 * 4.5 / (5 + tiny), 0.3 * 0.75 / (0.5 + tiny),
                     4 * 4.5 / (5 + tiny), -0.4 * 0.75 / (0.5 + tiny)});
    k = (struct dnn_constraint){.kind = DNN_UNIT_NORM, .axes = 3};
    double all = sqrt(9 + 0.09 + 16 + 0.16) + tiny;
    steps("one norm for all", &o, free_of, k, w, none, 1,
          (double[]){3 / all, 0.3 / all, 4 / all, -0.4 / all});
}

static void program(void)
{
    struct dnn_optim o = dnn_optim_defaults(DNN_UPDATE_ADAM);
    struct net n = make(&o, free_of, unbound);
    const struct dnn_op *op = &n.prog->op[n.prog->nops - 1];
    struct dnn_err err = {0};

    is_int(n.prog->nforward, 2, "forward ops are still those before the gradients");
    is_int(op->kind, DNN_OP_UPDATE, "an update at the end");
    is_text(op->layer, "layer", "its layer");
    is_int(op->nin, 4, "with two slots");
    is_int(n.prog->value[op->in[2]].role, DNN_SLOT, "which are slots");
    is_text(n.prog->value[op->in[2]].is.name, "kernel.mean", "the first's name");
    is_text(n.prog->value[op->in[3]].is.name, "kernel.square", "the second's name");
    is_int(n.npenalties, 0, "no penalty");
    dnn_prog_free(n.prog);
    is_int(dnn_field_check(dnn_optim_fields, &err), 0, "the table is sound");
    o = dnn_optim_defaults(DNN_UPDATE_SGD);
    ok(dnn_optim_rate(&o) == 0.01, "sgd's rate");
    o = dnn_optim_defaults(DNN_UPDATE_ADAM);
    ok(dnn_optim_rate(&o) == 0.001, "adam's rate");
}

int main(void)
{
    rules();
    regularizers();
    constraints();
    program();
    return done();
}
