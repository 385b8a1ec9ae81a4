/* op_prog.c - programs as text: ops of layers, and their gradients.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "op/grad.h"
#include "op/reorder.h"
#include "op/prog.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

static const struct dnn_init zeros = {.kind = DNN_INIT_ZEROS};
static const union dnn_attr add = {.combine = {.fn = DNN_ADD}};
static const union dnn_attr relu = {
    .unary = {.fn = DNN_RELU, .max_value = INFINITY}
};

static struct dnn_shape shape(const char *text)
{
    struct dnn_shape s = {0};

    if (dnn_shape_parse(text, &s, NULL) < 0) ok(false, "%s is not a shape", text);
    return s;
}

static int input(struct dnn_prog *prog, const char *name, const char *text)
{
    struct dnn_shape s = shape(text);

    return dnn_prog_input(prog, name, prog->dtype, &s);
}

static int weight(struct dnn_prog *prog, const char *name, const char *text)
{
    struct dnn_shape s = shape(text);

    return dnn_prog_weight(prog, name, &s, &zeros);
}

/* The program's text is want; frees it. */
static void prints(struct dnn_prog *prog, const char *want, const char *what)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    dnn_prog_print(prog, f);
    fclose(f);
    is_text(text, want, what);
    free(text);
    dnn_prog_free(prog);
}

static void differentiate(struct dnn_prog *prog, int y, bool inputs)
{
    int seed = dnn_prog_input(prog, "seed", prog->dtype, dnn_prog_shape(prog, y));

    dnn_grad(prog, 1, &(struct dnn_grad_of){y, seed}, inputs);
}

static struct dnn_prog *dense(bool training, int *y)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, training);
    int x = input(prog, "input", "32x784");

    dnn_prog_set_layer(prog, "dense", 4, false);
    int w = weight(prog, "kernel", "784x10");
    *y = dnn_prog_op2(prog, DNN_OP_MATMUL, NULL, x, w);
    int b = weight(prog, "bias", "10");
    *y = dnn_prog_op2(prog, DNN_OP_BIAS, NULL, *y, b);
    return prog;
}

static void simple(void)
{
    int y;
    struct dnn_prog *prog = dense(false, &y);

    is_int(dnn_prog_dim(prog, y, -1), 10, "the last extent");
    is_int(dnn_prog_dim(prog, y, 0), 32, "the first extent");
    is_text(prog->op[0].layer, "dense", "the layer of an op");
    is_int(prog->op[0].line, 4, "and its line");
    is_text(dnn_op_info(prog->op[0].kind)->pass[DNN_BWD_WEIGHTS].operands,
            "x dy -> dw [db]", "operands by name");
    prints(prog,
           "%0 32x784 input\n"
           "%1 784x10 kernel\n"
           "%2 32x10 = matmul %0 %1\n"
           "%3 10 bias\n"
           "%4 32x10 = bias %2 %3\n",
           "a dense layer");
    prints(dnn_prog_make(DNN_F32, false), "", "an empty program");
    dnn_prog_free(NULL);
}

static void backward(void)
{
    int y;
    struct dnn_prog *prog = dense(true, &y);

    differentiate(prog, y, false);
    is_int(prog->nforward, 2, "forward ops");
    is_int(prog->value[1].grad, 7, "the gradient of the kernel");
    is_int(prog->value[0].grad, DNN_NONE, "none of the input");
    is_text(prog->op[3].layer, "dense", "backward ops are the layer's");
    is_int(prog->op[3].line, 4, "and its line's");
    prints(prog,
           "%0 32x784 input\n"
           "%1 784x10 kernel\n"
           "%2 32x10 = matmul %0 %1\n"
           "%3 10 bias\n"
           "%4 32x10 = bias %2 %3\n"
           "%5 32x10 seed\n"
           "%6 10 = bias.weights %5\n"
           "%7 784x10 = matmul.weights %0 %5\n",
           "its weights' gradients");
    prog = dense(true, &y);
    differentiate(prog, y, true);
    prints(prog,
           "%0 32x784 input\n"
           "%1 784x10 kernel\n"
           "%2 32x10 = matmul %0 %1\n"
           "%3 10 bias\n"
           "%4 32x10 = bias %2 %3\n"
           "%5 32x10 seed\n"
           "%6 10 = bias.weights %5\n"
           "%7 784x10 = matmul.weights %0 %5\n"
           "%8 32x784 = matmul.data %5 %1\n",
           "and the input's");
}

/* A residual block whose two convolutions share their weights. */
static void shared(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    union dnn_attr conv = {
        .window = {2, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}
    };
    int x = input(prog, "input", "1x8x8x4"), y = x;

    dnn_prog_set_layer(prog, "stem", 1, false);
    y = x =
        dnn_prog_op2(prog, DNN_OP_CONV, &conv, x, weight(prog, "kernel", "3x3x4x4"));
    for (int i = 0; i < 2; i++) {
        dnn_prog_set_layer(prog, "conv", 2, false);
        int w = weight(prog, "kernel", "3x3x4x4");
        y = dnn_prog_op2(prog, DNN_OP_CONV, &conv, y, w);
        y = dnn_prog_op1(prog, DNN_OP_UNARY, &relu, y);
    }
    y = dnn_prog_op2(prog, DNN_OP_COMBINE, &add, y, x);
    differentiate(prog, y, false);
    prints(prog,
           "%0 1x8x8x4 input\n"
           "%1 3x3x4x4 kernel\n"
           "%2 1x8x8x4 = conv %0 %1 kernel=3x3 pad=1x1:1x1\n"
           "%3 3x3x4x4 kernel\n"
           "%4 1x8x8x4 = conv %2 %3 kernel=3x3 pad=1x1:1x1\n"
           "%5 1x8x8x4 = unary %4 relu\n"
           "%6 1x8x8x4 = conv %5 %3 kernel=3x3 pad=1x1:1x1\n"
           "%7 1x8x8x4 = unary %6 relu\n"
           "%8 1x8x8x4 = combine %7 %2 add\n"
           "%9 1x8x8x4 seed\n"
           "%10 1x8x8x4 = unary.data %9 %7 relu\n"
           "%11 3x3x4x4 = conv.weights %5 %10 kernel=3x3 pad=1x1:1x1\n"
           "%12 1x8x8x4 = conv.data %10 %3 kernel=3x3 pad=1x1:1x1\n"
           "%13 1x8x8x4 = unary.data %12 %5 relu\n"
           "%14 3x3x4x4 = conv.weights %2 %13 kernel=3x3 pad=1x1:1x1\n"
           "%15 1x8x8x4 = conv.data %13 %3 kernel=3x3 pad=1x1:1x1\n"
           "%16 3x3x4x4 = combine %11 %14 add\n"
           "%17 1x8x8x4 = combine %9 %15 add\n"
           "%18 3x3x4x4 = conv.weights %0 %17 kernel=3x3 pad=1x1:1x1\n",
           "a value and a weight used twice get sums");
}

/* Frozen layers before a trainable one: no gradients for them. */
static void frozen(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    int y = input(prog, "input", "2x3");

    for (int i = 0; i < 3; i++) {
        dnn_prog_set_layer(prog, i == 0 ? "a" : i == 1 ? "b" : "c", i, i != 1);
        y = dnn_prog_op2(prog, DNN_OP_MATMUL, NULL, y, weight(prog, "kernel", "3x3"));
        y = dnn_prog_op1(prog, DNN_OP_UNARY, &relu, y);
    }
    differentiate(prog, y, false);
    is_int(prog->value[1].grad, DNN_NONE, "no gradient of a frozen weight");
    prints(prog,
           "%0 2x3 input\n"
           "%1 3x3 kernel\n"
           "%2 2x3 = matmul %0 %1\n"
           "%3 2x3 = unary %2 relu\n"
           "%4 3x3 kernel\n"
           "%5 2x3 = matmul %3 %4\n"
           "%6 2x3 = unary %5 relu\n"
           "%7 3x3 kernel\n"
           "%8 2x3 = matmul %6 %7\n"
           "%9 2x3 = unary %8 relu\n"
           "%10 2x3 seed\n"
           "%11 2x3 = unary.data %10 %9 relu\n"
           "%12 2x3 = matmul.data %11 %7\n"
           "%13 2x3 = unary.data %12 %6 relu\n"
           "%14 3x3 = matmul.weights %3 %13\n",
           "only gradients for trainable weights");
    prog = dnn_prog_make(DNN_F32, true);
    dnn_prog_set_layer(prog, "a", 1, true);
    y = input(prog, "input", "2x3");
    y = dnn_prog_op2(prog, DNN_OP_MATMUL, NULL, y, weight(prog, "kernel", "3x3"));
    differentiate(prog, y, false);
    is_int(prog->nops, 1, "without trainable weights nothing is appended");
    dnn_prog_free(prog);
}

static void batchnorm(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    struct dnn_op_batchnorm bn = {1, 1e-3, 0.99, false};
    struct dnn_shape four = shape("4");
    int x = input(prog, "input", "8x4");

    dnn_prog_set_layer(prog, "bn", 1, false);
    int gamma = weight(prog, "gamma", "4"), beta = weight(prog, "beta", "4");
    int mean = dnn_prog_state(prog, "moving_mean", &four, &zeros);
    int var = dnn_prog_state(prog, "moving_variance", &four, &zeros);
    ok(!prog->value[mean].trainable && prog->value[gamma].trainable, "a state is kept");
    int y = dnn_prog_batchnorm(prog, &bn, true, x, gamma, beta, mean, var);
    differentiate(prog, y, true);
    prints(prog,
           "%0 8x4 input\n"
           "%1 4 gamma\n"
           "%2 4 beta\n"
           "%3 4 moving_mean\n"
           "%4 4 moving_variance\n"
           "%5 f64 9 = bn_stats %0 axis=1\n"
           "%6 f64 9 = exchange %5\n"
           "bn_update %6 %3 %4 axis=1 momentum=0.99\n"
           "%7 8x4 = bn_apply %0 %6 %1 %2 axis=1 epsilon=0.001\n"
           "%8 8x4 seed\n"
           "%9 f64 8 = bn_apply.stats %8 %0 %6 axis=1 epsilon=0.001\n"
           "%10 4, %11 4 = bn_apply.weights %9 axis=1 epsilon=0.001\n"
           "%12 f64 8 = exchange %9\n"
           "%13 8x4 = bn_apply.data %8 %0 %6 %12 %1 axis=1 epsilon=0.001\n",
           "batch norm with its exchanges");
}

/* A product and a norm. */
static int stage(struct dnn_prog *prog, const char *name, int x, const char *size)
{
    struct dnn_op_batchnorm bn = {1, 1e-3, 0.99, false};
    struct dnn_shape four = shape("4");

    dnn_prog_set_layer(prog, name, 1, false);
    x = dnn_prog_op2(prog, DNN_OP_MATMUL, NULL, x, weight(prog, "kernel", size));
    int mean = dnn_prog_state(prog, "moving_mean", &four, &zeros);
    int var = dnn_prog_state(prog, "moving_variance", &four, &zeros);
    return dnn_prog_batchnorm(prog, &bn, true, x, DNN_NONE, DNN_NONE, mean, var);
}

static void overlap(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    int y = stage(prog, "two", stage(prog, "one", input(prog, "input", "8x4"), "4x4"),
                  "4x4");

    differentiate(prog, y, false);
    dnn_prog_reorder(prog);
    for (int v = 0; v < prog->nvalues; v++) {
        int o = prog->value[v].op;

        if (o == DNN_NONE) continue;
        if (prog->op[o].out[0] != v) ok(false, "%%%d is not made by op %d", v, o);
    }
    prints(prog,
           "%0 8x4 input\n"
           "%1 4x4 kernel\n"
           "%2 8x4 = matmul %0 %1\n"
           "%3 4 moving_mean\n"
           "%4 4 moving_variance\n"
           "%5 f64 9 = bn_stats %2 axis=1\n"
           "%6 f64 9 = exchange %5\n"
           "bn_update %6 %3 %4 axis=1 momentum=0.99\n"
           "%7 8x4 = bn_apply %2 %6 - - axis=1 epsilon=0.001\n"
           "%8 4x4 kernel\n"
           "%9 8x4 = matmul %7 %8\n"
           "%10 4 moving_mean\n"
           "%11 4 moving_variance\n"
           "%12 f64 9 = bn_stats %9 axis=1\n"
           "%13 f64 9 = exchange %12\n"
           "bn_update %13 %10 %11 axis=1 momentum=0.99\n"
           "%14 8x4 = bn_apply %9 %13 - - axis=1 epsilon=0.001\n"
           "%15 8x4 seed\n"
           "%16 f64 8 = bn_apply.stats %15 %9 %13 axis=1 epsilon=0.001\n"
           "%17 f64 8 = exchange %16\n"
           "%18 8x4 = bn_apply.data %15 %9 %13 %17 - axis=1 epsilon=0.001\n"
           "%20 8x4 = matmul.data %18 %8\n"
           "%21 f64 8 = bn_apply.stats %20 %2 %6 axis=1 epsilon=0.001\n"
           "%19 4x4 = matmul.weights %7 %18\n"
           "%22 f64 8 = exchange %21\n"
           "%23 8x4 = bn_apply.data %20 %2 %6 %22 - axis=1 epsilon=0.001\n"
           "%24 4x4 = matmul.weights %0 %23\n",
           "weight gradients are computed during an exchange");
}

/* Attributes of each kind of op, as text. */
static void numbers(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    union dnn_attr a = {
        .pool = {{2, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, 1}, DNN_POOL_MAX, false}
    };
    int y = input(prog, NULL, "1x4x4x4");

    y = dnn_prog_op1(prog, DNN_OP_POOL, &a, y);
    a = (union dnn_attr){
        .upsample = {2, {2, 3}, DNN_UP_LINEAR}
    };
    y = dnn_prog_op1(prog, DNN_OP_UPSAMPLE, &a, y);
    a = (union dnn_attr){
        .pad = {{0, 1, 0, 0}, {0, 0, -2, 0}}
    };
    y = dnn_prog_op1(prog, DNN_OP_PAD, &a, y);
    a = (union dnn_attr){
        .unary = {.fn = DNN_RELU, .alpha = 0.1, .max_value = 6, .threshold = 0.5}
    };
    y = dnn_prog_op1(prog, DNN_OP_UNARY, &a, y);
    a = (union dnn_attr){
        .softmax = {3, true}
    };
    y = dnn_prog_op1(prog, DNN_OP_SOFTMAX, &a, y);
    a = (union dnn_attr){
        .noise = {DNN_DROPOUT, 0.5, 9, 0, 6}
    };
    y = dnn_prog_op1(prog, DNN_OP_NOISE, &a, y);
    y = dnn_prog_op1(prog, DNN_OP_NOISE, &a, y);
    a = (union dnn_attr){
        .groupnorm = {14, 8, 2, 1e-3, false}
    };
    y = dnn_prog_op(prog, DNN_OP_GROUPNORM, &a, 3, (int[]){y, DNN_NONE, DNN_NONE});
    a = (union dnn_attr){.transpose = {{0, 3, 1, 2}}};
    y = dnn_prog_op1(prog, DNN_OP_TRANSPOSE, &a, y);
    a = (union dnn_attr){
        .reduce = {DNN_REDUCE_MEAN, 12, false}
    };
    y = dnn_prog_op1(prog, DNN_OP_REDUCE, &a, y);
    a = (union dnn_attr){.reshape = {shape("2x2")}};
    y = dnn_prog_op1(prog, DNN_OP_RESHAPE, &a, y);
    a = (union dnn_attr){
        .concat = {1, 0}
    };
    y = dnn_prog_op2(prog, DNN_OP_CONCAT, &a, y, y);
    a = (union dnn_attr){
        .activity = {0.1, 0}
    };
    y = dnn_prog_op1(prog, DNN_OP_ACTIVITY, &a, y);
    struct dnn_shape one = shape("1");
    int c = dnn_prog_constant(prog, NULL, &one, (double[]){3});
    ok(prog->value[c].data[0] == 3, "a constant's number");
    dnn_prog_op(prog, DNN_OP_SCALE, NULL, 3, (int[]){y, c, DNN_NONE});
    prints(prog,
           "%0 1x4x4x4 input\n"
           "%1 1x2x2x4, %2 u8 1x2x2x4 = pool %0 max kernel=2x2 stride=2x2\n"
           "%3 1x4x6x4 = upsample %1 linear factor=2x3\n"
           "%4 1x5x4x4 = pad %3 pad=0x1x0x0:0x0x-2x0\n"
           "%5 1x5x4x4 = unary %4 relu alpha=0.1 max=6 threshold=0.5\n"
           "%6 1x5x4x4 = softmax %5 log axis=3\n"
           "%7 1x5x4x4 = noise %6 dropout rate=0.5 stream=1 seed=9 shared=1,2\n"
           "%8 1x5x4x4 = noise %7 dropout rate=0.5 stream=2 seed=9 shared=1,2\n"
           "%9 1x5x4x4, %10 2x2 = groupnorm %8 - - axes=1,2,3 groups=2 epsilon=0.001\n"
           "%11 1x4x5x4 = transpose %9 axes=0,3,1,2\n"
           "%12 1x4 = reduce %11 mean axes=2,3\n"
           "%13 2x2 = reshape %12\n"
           "%14 2x4 = concat %13 %13 axis=1\n"
           "%15 2x4, %16 scalar = activity %14 l1=0.1 l2=0\n"
           "%17 1 constant\n"
           "%18 2x4 = scale %15 %17 -\n",
           "attributes of every kind");
}

/* More ops and operands than the arrays begin with. */
static void many(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    int y = weight(prog, "w", "3"), all[300];

    for (int i = 0; i < 300; i++)
        all[i] = y = dnn_prog_op1(prog, DNN_OP_UNARY, &relu, y);
    y = dnn_prog_op(prog, DNN_OP_COMBINE, &add, 300, all);
    differentiate(prog, y, false);
    /* 300 relus backward, and 299 sums for values that are used twice. */
    is_int(prog->nops, 301 + 300 + 299, "a program of 900 ops");
    ok(prog->value[0].grad != DNN_NONE, "its weight has a gradient");
    dnn_prog_free(prog);
}

int main(void)
{
    simple();
    backward();
    shared();
    frozen();
    batchnorm();
    overlap();
    numbers();
    many();
    return done();
}
