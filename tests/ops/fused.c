/* fused.c - networks with fused ops give the same outputs, gradients and moving
 * averages as without fusion, in f64 on the ref backend.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json.h"
#include "base/mem.h"
#include "fuse/fuse.h"
#include "graph/graph.h"
#include "graph/zoo.h"
#include "ops/compare.h"
#include "plan/plan.h"
#include "engine/exec.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

/* Number of forward ops of the kinds that fusion changes: unfused and fused. */
enum { BIAS, UNARY, NORM, PAD, FOLD, POST, MASK, COUNTS };

enum { TRAINING = 1, INFERENCE = 2, BOTH = 3 };

struct net {
    const char *zoo; /* its name there, or the network itself */
    const char *name;
    int64_t input[4]; /* extents without the batch; 0 past the end */
    int64_t base, depth;
    int norm;
    int numbers; /* in which modes to compare results, not only ops: bits */
    int before[COUNTS], training[COUNTS], inference[COUNTS];
};

static void count(const struct dnn_prog *prog, int *n)
{
    for (int i = 0; i < COUNTS; i++)
        n[i] = 0;
    for (int o = 0; o < prog->nforward; o++) {
        const struct dnn_op *op = &prog->op[o];
        n[BIAS] += op->kind == DNN_OP_BIAS;
        n[UNARY] += op->kind == DNN_OP_UNARY;
        n[NORM] += op->kind == DNN_OP_BN_APPLY || op->kind == DNN_OP_BN_INFER ||
                   op->kind == DNN_OP_GROUPNORM;
        n[PAD] += op->kind == DNN_OP_PAD;
        n[FOLD] += op->kind == DNN_OP_FOLD;
        n[POST] += op->post != NULL;
        n[MASK] += op->kind == DNN_OP_UNARY && op->attr.unary.mask;
    }
}

static void check_counts(const struct net *net, const char *when,
                         const struct dnn_prog *prog, const int *want)
{
    int n[COUNTS];

    count(prog, n);
    if (!ok(memcmp(n, want, sizeof n) == 0, "%s %s: numbers of ops", net->name, when))
        printf("#   {%d, %d, %d, %d, %d, %d, %d}\n", n[BIAS], n[UNARY], n[NORM], n[PAD],
               n[FOLD], n[POST], n[MASK]);
}

/* ---- running ---- */

struct run {
    struct dnn_prog *prog; /* owned */
    int y, ngiven, *given; /* owned: inputs and weights, in order */
    struct dnn_plan *plan;
    struct dnn_exec *exec;
    struct dnn_dev *dev;
};

static double *values(const struct run *r, int v)
{
    double *data = dnn_alloc((size_t)(ops_count(r->prog, v) + 1) * sizeof *data);

    dnn_exec_get(r->exec, v, data, NULL);
    return data;
}

/* Initial weights, but vectors (scales, biases) and averages get random numbers. */
static void fill(struct run *r)
{
    dnn_exec_init(r->exec, 3, NULL);
    for (int k = 0; k < r->ngiven; k++) {
        int v = r->given[k];
        const struct dnn_value *is = &r->prog->value[v];
        bool vector = is->role != DNN_INPUT && is->is.shape.ndim == 1;

        if ((is->role != DNN_INPUT && !vector) || is->role == DNN_CONSTANT) continue;
        int64_t n = ops_count(r->prog, v);
        double *data = dnn_alloc((size_t)n * sizeof *data);
        bool state = is->role == DNN_STATE;
        ops_fill(data, n, state ? 0.3 : -0.5, state ? 1.5 : 1, (uint64_t)k);
        dnn_exec_put(r->exec, v, data, NULL);
        dnn_free(data);
    }
}

static void start(struct run *r)
{
    const struct dnn_backend *ref = dnn_backend_find("ref", NULL);
    struct dnn_plan_opts opts = {.nkeep = 1, .keep = &r->y};
    struct dnn_err err = {0};

    if (r->prog->training) {
        int seed =
            dnn_prog_input(r->prog, "dy", DNN_F64, dnn_prog_shape(r->prog, r->y));
        dnn_grad(r->prog, 1, &(struct dnn_grad_of){r->y, seed}, false);
    }
    r->given = dnn_alloc((size_t)r->prog->nvalues * sizeof *r->given);
    for (int v = 0; v < r->prog->nvalues; v++)
        if (r->prog->value[v].op == DNN_NONE) r->given[r->ngiven++] = v;
    if (dnn_plan_make(r->prog, &opts, &r->plan, &err) < 0 ||
        ref->open(&(struct dnn_device){0}, &r->dev, &err) < 0 ||
        dnn_exec_make(r->plan, ref, r->dev, &r->exec, &err) < 0 ||
        dnn_exec_start(r->exec, &err) < 0) {
        ok(false, "%s", err.text);
        exit(1);
    }
    fill(r);
    if (dnn_exec_run(r->exec, 0, r->prog->nops, &(struct dnn_now){.seed = 9}, &err) < 0)
        ok(false, "%s", err.text);
}

static void stop(struct run *r)
{
    dnn_exec_close(r->exec);
    if (r->dev != NULL) dnn_backend_find("ref", NULL)->close(r->dev);
    dnn_plan_free(r->plan);
    dnn_prog_free(r->prog);
    dnn_free(r->given);
}

static double apart(const struct run *a, int va, const struct run *b, int vb)
{
    double *want = values(a, va), *got = values(b, vb);
    struct ops_diff d = ops_compare(got, want, ops_count(a->prog, va));

    dnn_free(want);
    dnn_free(got);
    return d.worst;
}

static void compare(const struct net *net, const struct run *a, const struct run *b)
{
    double worst = 0, moved = 0;
    int grads = 0, same = a->ngiven == b->ngiven;

    for (int k = 0; k < a->ngiven && same; k++) {
        const struct dnn_value *x = &a->prog->value[a->given[k]];
        const struct dnn_value *y = &b->prog->value[b->given[k]];
        same = x->role == y->role && dnn_shape_equal(&x->is.shape, &y->is.shape) &&
               x->trainable == y->trainable &&
               (x->grad == DNN_NONE) == (y->grad == DNN_NONE) &&
               strcmp(x->is.name, y->is.name) == 0;
        if (x->layer != NULL && same) same = strcmp(x->layer, y->layer) == 0;
        if (!same) break;
        if (x->role == DNN_STATE)
            moved = fmax(moved, apart(a, a->given[k], b, b->given[k]));
        if (x->grad == DNN_NONE) continue;
        worst = fmax(worst, apart(a, x->grad, b, y->grad));
        grads++;
    }
    ok(same, "%s: the same weights and inputs", net->name);
    double out = apart(a, a->y, b, b->y);
    if (!ok(out <= 1e-10, "%s: the same output", net->name))
        printf("#   apart by %g\n", out);
    if (!ok(worst <= 1e-10, "%s: %d gradients", net->name, grads))
        printf("#   apart by %g\n", worst);
    ok(moved <= 1e-10, "%s: the same averages", net->name);
}

static struct dnn_graph *read_zoo(const struct net *net, struct dnn_err *err)
{
    struct dnn_zoo_opts opts = dnn_zoo_defaults(net->zoo);
    struct dnn_json *json = NULL;
    struct dnn_graph *graph = NULL;
    char *text = NULL;
    int ndim = 0;

    while (ndim < 4 && net->input[ndim] > 0)
        ndim++;
    opts.base = net->base;
    opts.depth = net->depth;
    opts.norm = net->norm;
    opts.classes = 7;
    opts.input = (struct dnn_list){.count = ndim, .ints = net->input};
    int rc = 0;
    if (net->zoo[0] == '[' || net->zoo[0] == '{')
        text = dnn_strdup(net->zoo);
    else
        rc = dnn_zoo_text(&opts, &text, err);
    if (rc == 0) rc = dnn_json_text(net->zoo, text, strlen(text), &json, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(json);
        dnn_graph_read_json(&top, NULL, &graph, err);
    }
    dnn_json_free(json);
    dnn_free(text);
    return graph;
}

static void check_net(const struct net *net, bool training)
{
    struct dnn_err err = {0};
    struct dnn_graph *graph = read_zoo(net, &err);
    struct run a = {.prog = dnn_prog_make(DNN_F64, training)}, b = {0};
    const char *when = training ? "in training" : "in inference";

    if (graph == NULL || dnn_graph_lower(graph, 2, a.prog, &a.y, &err) < 0) {
        ok(false, "%s: %s", net->name, err.text);
        exit(1);
    }
    b.y = a.y;
    b.prog = dnn_fuse(a.prog, 1, &b.y);
    check_counts(net, when, a.prog, net->before);
    check_counts(net, when, b.prog, training ? net->training : net->inference);
    if (net->numbers & (training ? TRAINING : INFERENCE)) {
        start(&a);
        start(&b);
        compare(net, &a, &b);
    }
    stop(&a);
    stop(&b);
    dnn_graph_free(graph);
}

/* clang-format off */
#define L(name, config) "{\"class_name\": \"" name "\", \"config\": {" config "}}"
/* Every linear op with a batch norm after it, activations that cannot be fused, a frozen
 * norm, and a ReLU between two poolings. */
static const char chain[] =
    "["
    L("Conv2DTranspose", "\"filters\": 4, \"kernel_size\": 3, \"strides\": 2, \"padding\": \"same\", \"batch_input_shape\": [null, 8, 6, 2]") ","
    L("BatchNormalization", "") ","
    L("Activation", "\"activation\": \"swish\"") ","
    L("SeparableConv2D", "\"filters\": 5, \"kernel_size\": 3") ","
    L("BatchNormalization", "") ","
    L("ReLU", "") ","
    L("AveragePooling2D", "") ","
    L("ReLU", "") ","
    L("MaxPooling2D", "") ","
    L("DepthwiseConv2D", "\"kernel_size\": 2, \"depth_multiplier\": 2") ","
    L("BatchNormalization", "\"epsilon\": 0.1") ","
    L("LeakyReLU", "") ","
    L("ZeroPadding2D", "") ","
    L("Conv2D", "\"filters\": 3, \"kernel_size\": 3") ","
    L("BatchNormalization", "\"trainable\": false") ","
    L("ReLU", "") ","
    L("Flatten", "") ","
    L("Dense", "\"units\": 4") ","
    L("BatchNormalization", "") ","
    L("Activation", "\"activation\": \"tanh\"") ","
    L("Dense", "\"units\": 2, \"activation\": \"sigmoid\"") "]";

/* Counts: biases, functions, norms, paddings, folds, functions inside others, masks. */
static const struct net nets[] = {
    {"unet3d", "unet3d, batch norm", {8, 4, 4, 1}, 2, 2, DNN_ZOO_NORM_BATCH, BOTH,
     {3, 10, 10, 0, 0, 0, 0}, {0, 0, 10, 0, 0, 10, 0}, {0, 0, 0, 0, 10, 10, 0}},
    {"unet3d", "unet3d, instance norm", {8, 4, 4, 1}, 2, 2, DNN_ZOO_NORM_INSTANCE, BOTH,
     {3, 10, 10, 0, 0, 0, 0}, {0, 0, 10, 0, 0, 10, 0}, {0, 0, 10, 0, 0, 10, 0}},
    {"unet3d", "unet3d, group norm", {8, 4, 4, 1}, 8, 1, DNN_ZOO_NORM_GROUP, BOTH,
     {2, 6, 6, 0, 0, 0, 0}, {0, 0, 6, 0, 0, 6, 0}, {0, 0, 6, 0, 0, 6, 0}},
    {"unet3d", "unet3d, layer norm", {8, 4, 4, 1}, 2, 2, DNN_ZOO_NORM_LAYER, BOTH,
     {3, 10, 10, 0, 0, 0, 0}, {0, 0, 10, 0, 0, 10, 0}, {0, 0, 10, 0, 0, 10, 0}},
    {"unet3d", "unet3d, no norm", {8, 4, 4, 1}, 2, 2, DNN_ZOO_NORM_NONE, BOTH,
     {13, 10, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 10, 0}, {0, 0, 0, 0, 0, 10, 0}},
    {chain, "a chain", {0}, 0, 0, 0, BOTH,
     {6, 7, 5, 1, 0, 0, 0}, {0, 4, 5, 0, 0, 3, 1}, {0, 2, 0, 0, 5, 5, 0}},
    {"simplecnn", "simplecnn", {8, 8, 3}, 0, 0, 0, BOTH,
     {4, 3, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 3, 0}, {0, 0, 0, 0, 0, 3, 0}},
    {"mobilenetv2", "mobilenetv2", {32, 32, 3}, 0, 0, 0, BOTH,
     {1, 35, 52, 4, 0, 0, 0}, {0, 0, 52, 0, 0, 35, 0}, {0, 0, 0, 0, 52, 35, 0}},
    {"densenet121", "densenet121", {32, 32, 3}, 0, 0, 0, INFERENCE,
     {1, 121, 121, 2, 0, 0, 0}, {0, 0, 121, 1, 0, 121, 0}, {0, 0, 62, 1, 59, 121, 0}},
    {"resnet18", "resnet18", {32, 32, 3}, 0, 0, 0, TRAINING,
     {1, 17, 20, 2, 0, 0, 0}, {0, 0, 20, 1, 0, 17, 0}, {0, 0, 0, 1, 20, 17, 0}},
    /* Networks with more weights: only their ops are compared. */
    {"resnet50v2", "resnet50v2", {224, 224, 3}, 0, 0, 0, 0,
     {22, 49, 49, 18, 0, 0, 0}, {0, 0, 49, 1, 0, 49, 0}, {0, 0, 17, 1, 32, 49, 0}},
    {"vgg11", "vgg11", {224, 224, 3}, 0, 0, 0, 0,
     {11, 10, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 10, 0}, {0, 0, 0, 0, 0, 10, 0}},
};
/* clang-format on */

int main(void)
{
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        check_net(&nets[i], true);
        check_net(&nets[i], false);
    }
    return done();
}
