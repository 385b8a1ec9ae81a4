/* optim.c - steps of the optimizers against numbers computed by hand, with regularizers
 * and constraints.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim.h"
#include "ops/compare.h"
#include "tap.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

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

    dnn_prog_set_layer(n.prog, "layer", 3, false);
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
    run.now.rate = o->rate;
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
    is_int(n.npenalties, 1, "a penalty; none for frozen weights");
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
    is_int(dnn_field_check(dnn_optim_fields, &err), 0, "the table is valid");
    o = dnn_optim_defaults(DNN_UPDATE_SGD);
    ok(o.rate == 0.01, "sgd's rate");
    o = dnn_optim_defaults(DNN_UPDATE_ADAM);
    ok(o.rate == 0.001, "adam's rate");
}

/* ---- reading ---- */

static int read_text(const char *text, struct dnn_optim *out, struct dnn_err *err)
{
    struct dnn_json *file;

    DNN_TRY(dnn_json_text("train.json", text, strlen(text), &file, err));
    struct dnn_jobj top = dnn_json_top(file), at = dnn_json_sub(&top, "optimizer");
    int rc = dnn_optim_read(&at, out, err);
    dnn_json_free(file);
    return rc;
}

static void refuses(const char *text, const char *want)
{
    struct dnn_optim o;
    struct dnn_err err = {0};
    int rc = read_text(text, &o, &err);

    is_text(rc == DNN_ECONFIG ? err.text : "it was read", want, want);
}

static void refusals(void)
{
    refuses(
        "{\"optimizer\": \"adma\"}",
        "train.json:1: optimizer: must be one of sgd, adam, adamw, nadam, lamb, lars, "
        "adagrad, adadelta, rmsprop, hessian, not \"adma\"; did you mean \"adam\"?");
    refuses(
        "{\"optimizer\": {\"type\": \"Momentum\"}}",
        "train.json:1: optimizer.type: must be one of sgd, adam, adamw, nadam, lamb, "
        "lars, adagrad, adadelta, rmsprop, hessian, not \"Momentum\"");
    refuses("{\"optimizer\": {\"name\": \"LAMB\"}}",
            "train.json:1: optimizer.name: must be one of sgd, adam, not \"LAMB\"; for "
            "lamb use \"type\" and the keys of PyTorch");
    refuses("{\"optimizer\": {\"name\": \"adam\", \"type\": \"Adam\"}}",
            "train.json:1: optimizer.name: is a key of Keras, \"type\" one of PyTorch; "
            "give only one of them");
    refuses("{\"optimizer\": {\"type\": \"SGD\", \"beta1\": 0.9}}",
            "train.json:1: optimizer.beta1: unknown key");
    refuses("{\"optimizer\": {\"type\": \"Adam\", \"epsilon\": 0.9}}",
            "train.json:1: optimizer.epsilon: unknown key");
    refuses("{\"optimizer\": {\"type\": \"Adam\", \"beta_1\": 0.9}}",
            "train.json:1: optimizer.beta_1: unknown key; did you mean \"beta1\"?");
    refuses("{\"optimizer\": {\"type\": \"Adam\",\n\"beta1\": 1}}",
            "train.json:2: optimizer.beta1: must be below 1, not 1");
    refuses("{\"optimizer\": {\"type\": \"LAMB\",\n\"beta2\": 1}}",
            "train.json:2: optimizer.beta2: must be below 1, not 1");
    refuses(
        "{\"optimizer\": {\"type\": \"SGD\", \"nesterov\": true}}",
        "train.json:1: optimizer.nesterov: needs a momentum above 0 and dampening 0, "
        "not 0 and 0");
    refuses(
        "{\"optimizer\": {\"type\": \"LARS\", \"nesterov\": true, \"momentum\": "
        "0.9, \"dampening\": 0.5}}",
        "train.json:1: optimizer.nesterov: needs a momentum above 0 and dampening 0, "
        "not 0.9 and 0.5");
    refuses("{\"optimizer\": {\"type\": \"SGD\", \"learning_rate\": 0}}",
            "train.json:1: optimizer.learning_rate: must be above 0, not 0");
    refuses(
        "{\"optimizer\": {\"type\": \"SGD\", \"learning_rate\": -1}}",
        "train.json:1: optimizer.learning_rate: must be between 0 and 1000000, not -1");
    refuses("{\"optimizer\": {\"type\": \"Adagrad\", \"weight_decay\": -1}}",
            "train.json:1: optimizer.weight_decay: must be at least 0, not -1");
    refuses(
        "{\"optimizer\": {\"type\": \"Hessian\", \"max_iterations\": 0}}",
        "train.json:1: optimizer.max_iterations: must be between 1 and 1e+15, not 0");
    refuses("{\"optimizer\": {\"type\": 5}}",
            "train.json:1: optimizer.type: must be a string, not 5");
    refuses("{\"optimizer\": 5}", "train.json:1: optimizer: must be an object, not 5");
}

/* Slots of every rule, with every option that needs one. */
static const char *const slots_of[] = {
    [DNN_UPDATE_SGD] = "velocity",
    [DNN_UPDATE_ADAM] = "mean square most",
    [DNN_UPDATE_ADAMW] = "mean square most",
    [DNN_UPDATE_NADAM] = "mean square",
    [DNN_UPDATE_LAMB] = "mean square most",
    [DNN_UPDATE_LARS] = "velocity",
    [DNN_UPDATE_ADAGRAD] = "sum",
    [DNN_UPDATE_ADADELTA] = "square delta",
    [DNN_UPDATE_RMSPROP] = "square mean velocity",
    [DNN_OPTIM_HESSIAN] = "",
};

static void check_slots(const struct dnn_optim *o)
{
    struct net n = make(o, free_of, unbound);
    char got[80] = "";

    for (int v = 0; v < n.prog->nvalues; v++)
        if (n.prog->value[v].role == DNN_SLOT)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s",
                     got[0] == '\0' ? "" : " ",
                     strchr(n.prog->value[v].is.name, '.') + 1);
    is_text(got, slots_of[o->rule], "slots");
    dnn_prog_free(n.prog);
}

/* The printed configuration is read as the same. */
static void check_print(const char *name, const struct dnn_optim *o)
{
    struct dnn_optim back = {0};
    struct dnn_err err = {0};
    char *printed = NULL;
    size_t size;
    FILE *to = open_memstream(&printed, &size);

    fputs("{\"optimizer\": ", to);
    dnn_optim_print(o, to);
    fputs("}", to);
    fclose(to);
    if (!ok(read_text(printed, &back, &err) == 0, "%s: the printed text is read", name))
        printf("# %s\n# %s\n", err.text, printed);
    ok(back.rule == o->rule && back.torch && back.rate == o->rate &&
           back.weight_decay == o->weight_decay && back.momentum == o->momentum &&
           back.amsgrad == o->amsgrad && back.centered == o->centered &&
           back.beta2 == o->beta2 && back.max_iterations == o->max_iterations,
       "%s: and is the same", name);
    dnn_free(printed);
}

static void catalogue(void)
{
    const struct dnn_field *fields;
    const char *name, *help;
    int count = 0;

    for (; (name = dnn_optim_info(count, &help, &fields)) != NULL; count++) {
        char *text = dnn_format("{\"optimizer\": {\"type\": \"%s\"}}", name);
        struct dnn_optim o = {0};
        struct dnn_err err = {0};

        ok(dnn_field_check(fields, &err) == 0 && help != NULL, "%s: its table", name);
        ok(read_text(text, &o, &err) == 0, "%s: only with its type", name);
        if (o.rule != DNN_OPTIM_HESSIAN) o.weight_decay = 0.125;
        if (strstr(slots_of[o.rule], "velocity") != NULL) o.momentum = 0.5;
        o.amsgrad = strstr(slots_of[o.rule], "most") != NULL;
        o.centered = o.rule == DNN_UPDATE_RMSPROP;
        check_slots(&o);
        check_print(name, &o);
        dnn_free(text);
    }
    is_int(count, DNN_UPDATES + 1, "every rule has a name");
}

static void dialects(void)
{
    struct dnn_optim o;
    struct dnn_err err;

    read_text("{}", &o, &err);
    ok(o.rule == DNN_UPDATE_ADAM && !o.torch && o.rate == 0.001 && o.epsilon == 1e-7,
       "nothing: Keras's Adam");
    read_text("{\"optimizer\": {\"learning_rate\": 0.5}}", &o, &err);
    ok(o.rule == DNN_UPDATE_ADAM && !o.torch && o.rate == 0.5, "only a rate: the same");
    read_text("{\"optimizer\": \"SGD\"}", &o, &err);
    ok(o.rule == DNN_UPDATE_SGD && !o.torch && o.rate == 0.01, "a name: Keras's");
    read_text("{\"optimizer\": \"RMSprop\"}", &o, &err);
    ok(o.rule == DNN_UPDATE_RMSPROP && o.torch && o.rate == 0.01 && o.beta2 == 0.99 &&
           o.epsilon == 1e-8,
       "a name that Keras does not have: PyTorch's");
    read_text("{\"optimizer\": {\"type\": \"Adam\", \"lr_scheduler\": {}}}", &o, &err);
    ok(o.rule == DNN_UPDATE_ADAM && o.torch && o.rate == 0.01 && o.epsilon == 1e-8,
       "a type: PyTorch's, with a scheduler");
    read_text("{\"optimizer\": {\"type\": \"Hessian\"}}", &o, &err);
    ok(o.rule == DNN_OPTIM_HESSIAN && o.max_iterations == 2000 &&
           o.max_func_eval == 4000 && o.absolute_tolerance == 1e-8 &&
           o.relative_tolerance == 1e-8,
       "Hessian's numbers");
    o = dnn_optim_defaults(DNN_UPDATE_NADAM);
    ok(o.rule == DNN_UPDATE_NADAM && o.torch && o.rate == 0.002 && o.beta1 == 0.9 &&
           o.momentum_decay == 0.004,
       "defaults of a rule");
}

int main(void)
{
    refusals();
    catalogue();
    dialects();
    rules();
    regularizers();
    constraints();
    program();
    return done();
}
