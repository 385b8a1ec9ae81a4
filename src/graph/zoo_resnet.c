/* zoo_resnet.c - residual networks: ResNet 18 to 152, ResNet50 v2, wide ResNet.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/zoo_impl.h"

#include <inttypes.h>
#include <stddef.h>

#define NAME(...) dnn_zoo_name_of(z, __VA_ARGS__)
#define EPSILON 1.001e-5 /* Keras's for these */

static int add(struct zoo *z, const char *name, int a, int b)
{
    return dnn_zoo_put(z, "Add", name, 2, (int[]){a, b}, "%s", "");
}

static int relu(struct zoo *z, const char *name, int x)
{
    return dnn_zoo_act(z, name, x, "relu");
}

static int head(struct zoo *z, int x)
{
    return dnn_zoo_dense(z, "predictions", dnn_zoo_gap(z, "avg_pool", x), z->classes,
                         "softmax");
}

/* 7x7 and a pool, each halving. */
static int stem(struct zoo *z, bool bias, bool norm)
{
    int x = dnn_zoo_pad(z, "conv1_pad", 0, 3, 3);

    x = dnn_zoo_conv(z, "conv1_conv", x, 64, 7, 2, "valid", bias, "linear");
    if (norm) x = relu(z, "conv1_relu", dnn_zoo_bn(z, "conv1_bn", x, EPSILON));
    x = dnn_zoo_pad(z, "pool1_pad", x, 1, 1);
    return dnn_zoo_pool(z, "pool1_pool", x, "Max", 3, 2, "valid");
}

/* Blocks of each stage. */
static const int *stages(int number)
{
    static const int n18[] = {2, 2, 2, 2}, n50[] = {3, 4, 6, 3}, n101[] = {3, 4, 23, 3},
                     n152[] = {3, 8, 36, 3};

    return number == 18 ? n18 : number == 101 ? n101 : number == 152 ? n152 : n50;
}

/* ---- 18 and 34: two 3x3 each ---- */

static int basic(struct zoo *z, const char *s, int x, int filters, int stride,
                 bool widen)
{
    int y = dnn_zoo_conv(z, NAME("%s_1_conv", s), x, filters, 3, stride, "same", false,
                         "linear");

    y = relu(z, NAME("%s_1_relu", s), dnn_zoo_bn(z, NAME("%s_1_bn", s), y, 1e-5));
    y = dnn_zoo_conv(z, NAME("%s_2_conv", s), y, filters, 3, 1, "same", false,
                     "linear");
    y = dnn_zoo_bn(z, NAME("%s_2_bn", s), y, 1e-5);
    if (widen) {
        x = dnn_zoo_conv(z, NAME("%s_0_conv", s), x, filters, 1, stride, "same", false,
                         "linear");
        x = dnn_zoo_bn(z, NAME("%s_0_bn", s), x, 1e-5);
    }
    return relu(z, NAME("%s_out", s), add(z, NAME("%s_add", s), x, y));
}

static int small(struct zoo *z, const struct zoo_kind *kind)
{
    const int *n = stages(kind->number);
    int x = stem(z, false, true);

    for (int i = 0; i < 4; i++)
        for (int k = 0; k < n[i]; k++) {
            const char *s = NAME("conv%d_block%d", i + 2, k + 1);

            x = basic(z, s, x, 64 << i, i > 0 && k == 0 ? 2 : 1, i > 0 && k == 0);
        }
    return head(z, x);
}

/* ---- 50, 101 and 152: 1x1, 3x3, 1x1 ---- */

static int bottleneck(struct zoo *z, const char *s, int x, int filters, int stride,
                      bool widen)
{
    int shortcut = x, y;

    if (widen) {
        shortcut = dnn_zoo_conv(z, NAME("%s_0_conv", s), x, 4 * filters, 1, stride,
                                "valid", true, "linear");
        shortcut = dnn_zoo_bn(z, NAME("%s_0_bn", s), shortcut, EPSILON);
    }
    y = dnn_zoo_conv(z, NAME("%s_1_conv", s), x, filters, 1, stride, "valid", true,
                     "linear");
    y = relu(z, NAME("%s_1_relu", s), dnn_zoo_bn(z, NAME("%s_1_bn", s), y, EPSILON));
    y = dnn_zoo_conv(z, NAME("%s_2_conv", s), y, filters, 3, 1, "same", true, "linear");
    y = relu(z, NAME("%s_2_relu", s), dnn_zoo_bn(z, NAME("%s_2_bn", s), y, EPSILON));
    y = dnn_zoo_conv(z, NAME("%s_3_conv", s), y, 4 * filters, 1, 1, "valid", true,
                     "linear");
    y = dnn_zoo_bn(z, NAME("%s_3_bn", s), y, EPSILON);
    return relu(z, NAME("%s_out", s), add(z, NAME("%s_add", s), shortcut, y));
}

static int large(struct zoo *z, const struct zoo_kind *kind)
{
    const int *n = stages(kind->number);
    int x = stem(z, true, true);

    for (int i = 0; i < 4; i++)
        for (int k = 0; k < n[i]; k++) {
            const char *s = NAME("conv%d_block%d", i + 2, k + 1);

            x = bottleneck(z, s, x, 64 << i, i > 0 && k == 0 ? 2 : 1, k == 0);
        }
    return head(z, x);
}

/* ---- v2: norm and ReLU before each convolution ---- */

static int before(struct zoo *z, const char *s, int x, int filters, int stride,
                  bool widen)
{
    int y = dnn_zoo_bn(z, NAME("%s_preact_bn", s), x, EPSILON), shortcut = x;

    y = relu(z, NAME("%s_preact_relu", s), y);
    if (widen)
        shortcut = dnn_zoo_conv(z, NAME("%s_0_conv", s), y, 4 * filters, 1, stride,
                                "valid", true, "linear");
    else if (stride > 1)
        shortcut = dnn_zoo_pool(z, NAME("%s_0_pool", s), x, "Max", 1, stride, "valid");
    y = dnn_zoo_conv(z, NAME("%s_1_conv", s), y, filters, 1, 1, "valid", false,
                     "linear");
    y = relu(z, NAME("%s_1_relu", s), dnn_zoo_bn(z, NAME("%s_1_bn", s), y, EPSILON));
    y = dnn_zoo_pad(z, NAME("%s_2_pad", s), y, 1, 1);
    y = dnn_zoo_conv(z, NAME("%s_2_conv", s), y, filters, 3, stride, "valid", false,
                     "linear");
    y = relu(z, NAME("%s_2_relu", s), dnn_zoo_bn(z, NAME("%s_2_bn", s), y, EPSILON));
    y = dnn_zoo_conv(z, NAME("%s_3_conv", s), y, 4 * filters, 1, 1, "valid", true,
                     "linear");
    return add(z, NAME("%s_out", s), shortcut, y);
}

static int v2(struct zoo *z, const struct zoo_kind *kind)
{
    const int *n = stages(kind->number);
    int x = stem(z, true, false);

    for (int i = 0; i < 4; i++)
        for (int k = 0; k < n[i]; k++) {
            bool last = k == n[i] - 1;
            const char *s = NAME("conv%d_block%d", i + 2, k + 1);

            x = before(z, s, x, 64 << i, last && i < 3 ? 2 : 1, k == 0);
        }
    x = relu(z, "post_relu", dnn_zoo_bn(z, "post_bn", x, EPSILON));
    return head(z, x);
}

/* ---- for small images: 16, 32 and 64 filters, or as many times more ---- */

static int wide_block(struct zoo *z, const char *s, int x, int64_t filters, int stride,
                      bool widen)
{
    int y = relu(z, NAME("%s_1_relu", s), dnn_zoo_bn(z, NAME("%s_1_bn", s), x, 1e-5));
    int shortcut = x;

    if (widen)
        shortcut = dnn_zoo_conv(z, NAME("%s_0_conv", s), y, filters, 1, stride, "same",
                                false, "linear");
    y = dnn_zoo_conv(z, NAME("%s_1_conv", s), y, filters, 3, stride, "same", false,
                     "linear");
    y = relu(z, NAME("%s_2_relu", s), dnn_zoo_bn(z, NAME("%s_2_bn", s), y, 1e-5));
    y = dnn_zoo_dropout(z, NAME("%s_dropout", s), y, 0);
    y = dnn_zoo_conv(z, NAME("%s_2_conv", s), y, filters, 3, 1, "same", false,
                     "linear");
    return add(z, NAME("%s_add", s), shortcut, y);
}

static int levels(struct zoo *z, int blocks, int times)
{
    int64_t base = z->opts->base > 0 ? z->opts->base : 16;
    int x = dnn_zoo_conv(z, "conv1", 0, base, 3, 1, "same", false, "linear");

    for (int i = 0; i < 3; i++)
        for (int k = 0; k < blocks; k++) {
            const char *s = NAME("conv%d_block%d", i + 2, k + 1);

            x = wide_block(z, s, x, (base << i) * times, i > 0 && k == 0 ? 2 : 1,
                           k == 0);
        }
    return head(z, relu(z, "post_relu", dnn_zoo_bn(z, "post_bn", x, 1e-5)));
}

static int wide(struct zoo *z, const struct zoo_kind *kind)
{
    return levels(z, 4, kind->number);
}

static int narrow(struct zoo *z, const struct zoo_kind *kind)
{
    return levels(z, z->opts->depth > 0 ? (int)z->opts->depth : kind->number, 1);
}

const struct zoo_kind dnn_zoo_resnets[] = {
    {"resnet18",        "",                   3, {224, 224, 3}, 1000, 18,  small },
    {"resnet34",        "",                   3, {224, 224, 3}, 1000, 34,  small },
    {"resnet50",        "",                   3, {224, 224, 3}, 1000, 50,  large },
    {"resnet101",       "",                   3, {224, 224, 3}, 1000, 101, large },
    {"resnet152",       "",                   3, {224, 224, 3}, 1000, 152, large },
    {"resnet50v2",      "",                   3, {224, 224, 3}, 1000, 50,  v2    },
    {"wideresnet28_10", "base dropout",       3, {32, 32, 3},   10,   10,  wide  },
    {"resnet20",        "base depth dropout", 3, {32, 32, 3},   10,   3,   narrow},
    {NULL,              NULL,                 0, {0},           0,    0,   NULL  },
};
