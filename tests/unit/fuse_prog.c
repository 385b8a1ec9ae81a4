/* fuse_prog.c - which ops are fused and which are not.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "fuse/fuse.h"
#include "op/grad.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

static const struct dnn_init zeros = {.kind = DNN_INIT_ZEROS};
static const struct dnn_op_unary relu = {.fn = DNN_RELU, .max_value = INFINITY};

static struct dnn_shape shape(const char *text)
{
    struct dnn_shape s = {0};

    if (dnn_shape_parse(text, &s, NULL) < 0) abort();
    return s;
}

static int input(struct dnn_prog *p, const char *text)
{
    struct dnn_shape s = shape(text);

    return dnn_prog_input(p, "x", DNN_F32, &s);
}

static int weight(struct dnn_prog *p, const char *name, const char *text)
{
    struct dnn_shape s = shape(text);

    return dnn_prog_weight(p, name, &s, &zeros);
}

static int state(struct dnn_prog *p, const char *name, const char *text)
{
    struct dnn_shape s = shape(text);

    return dnn_prog_state(p, name, &s, &zeros);
}

static int unary(struct dnn_prog *p, struct dnn_op_unary fn, int x)
{
    return dnn_prog_op1(p, DNN_OP_UNARY, &(union dnn_attr){.unary = fn}, x);
}

/* x w + b of 4 and 3 channels, of the current layer. */
static int dense(struct dnn_prog *p, const char *size, int x)
{
    const char *last = strchr(size, 'x') + 1;
    int y = dnn_prog_op2(p, DNN_OP_MATMUL, NULL, x, weight(p, "kernel", size));

    return dnn_prog_op2(p, DNN_OP_BIAS, NULL, y, weight(p, "bias", last));
}

static void prints(const struct dnn_prog *prog, const char *want, const char *name)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (f == NULL) abort();
    dnn_prog_print(prog, f);
    fclose(f);
    is_text(text, want, name);
    free(text);
}

/* Fuse, compare the printed program, and free both. */
static void fused(struct dnn_prog *prog, int n, int *value, const char *want,
                  const char *name)
{
    struct dnn_prog *out = dnn_fuse(prog, n, value);

    prints(out, want, name);
    dnn_prog_free(prog);
    dnn_prog_free(out);
}

static void whole(void)
{
    struct dnn_prog *p = dnn_prog_make(DNN_F32, true);
    int x = input(p, "2x4");

    dnn_prog_set_layer(p, "first", 7, false);
    int y = unary(p, relu, dense(p, "4x3", x));
    dnn_prog_set_layer(p, "second", 8, true);
    y = dense(p, "3x2", y);
    p->value[1].regularizer.l2 = 0.5;
    p->value[1].constraint = (struct dnn_constraint){.kind = DNN_NON_NEG};
    int value[2] = {y, x};
    struct dnn_prog *out = dnn_fuse(p, 2, value);
    prints(out,
           "%0 2x4 x\n%1 4x3 kernel\n%2 3 bias\n%3 2x3 = matmul %0 %1 %2 then relu\n"
           "%4 3x2 kernel\n%5 2 bias\n%6 2x2 = matmul %3 %4 %5\n",
           "two dense layers");
    is_int(value[0], 6, "the number of the output");
    is_int(value[1], 0, "and the input");
    is_text(out->op[0].layer, "first", "the layer of a fused op");
    is_int(out->op[0].line, 7, "its line");
    is_text(out->value[4].layer, "second", "the layer of a weight");
    ok(out->value[1].trainable && !out->value[4].trainable,
       "frozen weights stay frozen");
    ok(out->value[1].regularizer.l2 == 0.5 &&
           out->value[1].constraint.kind == DNN_NON_NEG,
       "a regularizer and a constraint");
    ok(out->training && out->nforward == 2 && out->op[0].layer != p->op[0].layer,
       "an independent program");
    dnn_prog_free(p);
    prints(out,
           "%0 2x4 x\n%1 4x3 kernel\n%2 3 bias\n%3 2x3 = matmul %0 %1 %2 then relu\n"
           "%4 3x2 kernel\n%5 2 bias\n%6 2x2 = matmul %3 %4 %5\n",
           "which is valid after the other is freed");
    struct dnn_shape s = shape("2x2");
    int seed = dnn_prog_input(out, "dy", DNN_F32, &s);
    dnn_grad(out, 1, &(struct dnn_grad_of){value[0], seed}, false);
    prints(out,
           "%0 2x4 x\n%1 4x3 kernel\n%2 3 bias\n%3 2x3 = matmul %0 %1 %2 then relu\n"
           "%4 3x2 kernel\n%5 2 bias\n%6 2x2 = matmul %3 %4 %5\n%7 2x2 dy\n"
           "%8 2x3 = matmul.data %7 %4\n%9 2x3 = unary.data %8 %3 relu\n"
           "%10 4x3, %11 3 = matmul.weights %0 %9\n",
           "its gradient: nothing for frozen weights");
    dnn_prog_free(out);
}

static void shared(void)
{
    struct dnn_prog *p = dnn_prog_make(DNN_F32, true);
    int x = input(p, "2x4");

    dnn_prog_set_layer(p, "dense", 1, false);
    int a = dense(p, "4x4", x), b = dense(p, "4x4", a);
    fused(p, 1, &(int){unary(p, relu, b)},
          "%0 2x4 x\n%1 4x4 kernel\n%2 4 bias\n%3 2x4 = matmul %0 %1 %2\n"
          "%4 2x4 = matmul %3 %1 %2 then relu\n",
          "a layer used twice");
}

/* Values with other uses are kept. */
static void wanted(void)
{
    struct dnn_prog *p = dnn_prog_make(DNN_F32, true);
    int x = input(p, "2x4"), y = dense(p, "4x3", x), z = unary(p, relu, y);

    fused(p, 2, (int[]){y, z},
          "%0 2x4 x\n%1 4x3 kernel\n%2 3 bias\n%3 2x3 = matmul %0 %1 %2\n"
          "%4 2x3 = unary %3 relu\n",
          "a value that is an output");
    p = dnn_prog_make(DNN_F32, true);
    x = input(p, "2x4");
    y = dnn_prog_op2(p, DNN_OP_MATMUL, NULL, x, weight(p, "kernel", "4x3"));
    z = dnn_prog_op2(p, DNN_OP_BIAS, NULL, y, weight(p, "bias", "3"));
    unary(p, relu, z); /* not used */
    int both[2] = {y, z};
    z = dnn_prog_op(p, DNN_OP_COMBINE,
                    &(union dnn_attr){
                        .combine = {DNN_ADD, 0, 0}
    },
                    2, both);
    fused(
        p, 1, (int[]){unary(p, (struct dnn_op_unary){.fn = DNN_SIGMOID}, z)},
        "%0 2x4 x\n%1 4x3 kernel\n%2 2x3 = matmul %0 %1\n%3 3 bias\n"
        "%4 2x3 = bias %2 %3\n%5 2x3 = combine %2 %4 add\n%6 2x3 = unary %5 sigmoid\n",
        "a result with two uses, one with none, and a sigmoid");
}

/* A function whose gradient needs its argument, or the result of a maximum. */
static void training(bool is)
{
    struct dnn_prog *p = dnn_prog_make(DNN_F32, is);
    int x = input(p, "2x4");
    int y = unary(p, (struct dnn_op_unary){.fn = DNN_SWISH}, dense(p, "4x3", x));
    union dnn_attr max = {
        .combine = {DNN_MAXIMUM, 0, 0}
    };

    y = unary(p, relu, dnn_prog_op(p, DNN_OP_COMBINE, &max, 2, (int[]){y, y}));
    fused(p, 1, &y,
          is ? "%0 2x4 x\n%1 4x3 kernel\n%2 3 bias\n%3 2x3 = matmul %0 %1 %2\n"
               "%4 2x3 = unary %3 swish\n%5 2x3 = combine %4 %4 maximum\n"
               "%6 2x3 = unary %5 relu\n"
             : "%0 2x4 x\n%1 4x3 kernel\n%2 3 bias\n"
               "%3 2x3 = matmul %0 %1 %2 then swish\n"
               "%4 2x3 = combine %3 %3 maximum\n%5 2x3 = unary %4 relu\n",
          is ? "swish in training" : "swish in inference");
}

static void folded(int axis)
{
    struct dnn_prog *p = dnn_prog_make(DNN_F32, false);
    struct dnn_op_batchnorm bn = {.axis = axis, .epsilon = 0.5};
    struct dnn_op_window win = {
        .nspatial = 1, .kernel = {2}, .stride = {2}, .dilation = {1}, .groups = 1};
    int x = input(p, "1x2x3");
    int y = dnn_prog_op2(p, DNN_OP_DECONV, &(union dnn_attr){.window = win}, x,
                         weight(p, "kernel", "2x4x3"));

    int beta = weight(p, "beta", "4"), mean = state(p, "mean", "4");
    int variance = state(p, "variance", "4");
    y = dnn_prog_batchnorm(p, &bn, false, y, DNN_NONE, beta, mean, variance);
    fused(p, 1, (int[]){unary(p, relu, y)},
          axis == 2
              ? "%0 1x2x3 x\n%1 2x4x3 kernel\n%2 4 beta\n%3 4 mean\n%4 4 variance\n"
                "%5 2x4x3, %6 4 = fold %1 - %3 %4 - %2 axis=1 epsilon=0.5\n"
                "%7 1x4x4 = deconv %0 %5 %6 kernel=2 stride=2 then relu\n"
              : "%0 1x2x3 x\n%1 2x4x3 kernel\n%2 1x4x4 = deconv %0 %1 kernel=2 "
                "stride=2\n%3 4 beta\n%4 4 mean\n%5 4 variance\n"
                "%6 1x4x4 = bn_infer %2 %4 %5 - %3 axis=1 epsilon=0.5 then relu\n",
          "batch norm in inference");
}

/* A ReLU between poolings stores a mask, unless a convolution needs its output. */
static void masked(void)
{
    struct dnn_prog *p = dnn_prog_make(DNN_F32, true);
    const struct dnn_op_window two = {
        .nspatial = 1, .kernel = {2}, .stride = {2}, .dilation = {1}, .groups = 1};
    union dnn_attr pool = {
        .pool = {two, DNN_POOL_AVERAGE, false}
    };
    union dnn_attr flat = {.reshape = {{2, {2, 8}}}};
    union dnn_attr pad = {
        .pad = {{0, 1, 0}, {0, 1, 0}}
    };
    int x = dnn_prog_op1(p, DNN_OP_POOL, &pool, input(p, "2x8x4"));
    int y = unary(p, relu, x);
    int z = dnn_prog_op1(p, DNN_OP_POOL, &pool, y);

    z = unary(p, relu, z);
    z = dnn_prog_op1(p, DNN_OP_RESHAPE, &flat, z);
    z = dnn_prog_op2(p, DNN_OP_MATMUL, NULL, z, weight(p, "w", "8x3"));
    int v = unary(p, relu, x);
    v = dnn_prog_op1(p, DNN_OP_PAD, &pad, v);
    v = dnn_prog_op2(p, DNN_OP_CONV, &(union dnn_attr){.window = two}, v,
                     weight(p, "k", "2x4x1"));
    fused(p, 2, (int[]){z, v},
          "%0 2x8x4 x\n%1 2x4x4 = pool %0 average kernel=2 stride=2\n"
          "%2 2x4x4, %3 u8 4 = unary %1 relu\n"
          "%4 2x2x4 = pool %2 average kernel=2 stride=2\n"
          "%5 2x2x4 = unary %4 relu\n%6 2x8 = reshape %5\n%7 8x3 w\n"
          "%8 2x3 = matmul %6 %7\n%9 2x4x4 = unary %1 relu\n%10 2x4x1 k\n"
          "%11 2x3x1 = conv %9 %10 kernel=2 stride=2 pad=1:1\n",
          "masks");
}

int main(void)
{
    whole();
    shared();
    wanted();
    training(true);
    training(false);
    folded(2);
    folded(1);
    masked();
    return done();
}
