/* zoo_resnet.c - residual networks: ResNet v1, v1.5 and v2, Wide ResNet.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/zoo_impl.h"

#include <inttypes.h>
#include <stddef.h>

#define NAME(...) dnn_zoo_name_of(z, __VA_ARGS__)
#define EPSILON 1.001e-5 /* Keras's for these */

static int v1(struct zoo *z, const struct zoo_kind *kind);
static int preactivated(struct zoo *z, const struct zoo_kind *kind);

static int add(struct zoo *z, const char *name, int a, int b)
{
    return dnn_zoo_put(z, "Add", name, 2, (int[]){a, b}, "%s", "");
}

static int relu(struct zoo *z, const char *name, int x)
{
    return dnn_zoo_act(z, name, x, "relu");
}

/* Versions. */
enum { V1, V15, V2 };

/* 7x7 and a pool, each with stride 2; small images: 3x3. */
static int stem(struct zoo *z, const struct zoo_kind *kind, bool bias)
{
    int x;

    if (dnn_zoo_small(kind)) {
        x = dnn_zoo_conv(z, "conv1_conv", 0, kind->build == v1 ? 64 : 16, 3, 1, "same",
                         true, "linear");
        return dnn_zoo_bn(z, "conv1_bn", x, 1e-5);
    }
    x = dnn_zoo_pad(z, "conv1_pad", 0, 3, 3);
    x = dnn_zoo_conv(z, "conv1_conv", x, 64, 7, 2, "valid", bias, "linear");
    if (kind->variant != V2)
        x = relu(z, "conv1_relu", dnn_zoo_bn(z, "conv1_bn", x, EPSILON));
    dnn_zoo_skip(z, 0, x, 64);
    x = dnn_zoo_pad(z, "pool1_pad", x, 1, 1);
    return dnn_zoo_pool(z, "pool1_pool", x, "Max", 3, 2, "valid");
}

/* Blocks of each stage. */
static const int *stages(int layers)
{
    static const int n10[] = {1, 1, 1, 1}, n18[] = {2, 2, 2, 2}, n50[] = {3, 4, 6, 3},
                     n101[] = {3, 4, 23, 3}, n152[] = {3, 8, 36, 3};

    return layers == 10    ? n10
           : layers == 18  ? n18
           : layers == 101 ? n101
           : layers == 152 ? n152
                           : n50;
}

/* ---- two 3x3 ---- */

static int basic(struct zoo *z, const char *s, int x, int filters, int stride,
                 bool widen, bool bias)
{
    int y = dnn_zoo_conv(z, NAME("%s_1_conv", s), x, filters, 3, stride, "same", bias,
                         "linear");

    y = relu(z, NAME("%s_1_relu", s), dnn_zoo_bn(z, NAME("%s_1_bn", s), y, 1e-5));
    y = dnn_zoo_conv(z, NAME("%s_2_conv", s), y, filters, 3, 1, "same", bias, "linear");
    y = dnn_zoo_bn(z, NAME("%s_2_bn", s), y, 1e-5);
    if (widen) {
        x = dnn_zoo_conv(z, NAME("%s_0_conv", s), x, filters, 1, stride, "same", bias,
                         "linear");
        x = dnn_zoo_bn(z, NAME("%s_0_bn", s), x, 1e-5);
    }
    return relu(z, NAME("%s_out", s), add(z, NAME("%s_add", s), x, y));
}

/* ---- 1x1, 3x3, 1x1 ---- */

static int bottleneck(struct zoo *z, const char *s, int x, int filters, int stride,
                      bool widen, bool v15)
{
    int shortcut = x, y;

    if (widen) {
        shortcut = dnn_zoo_conv(z, NAME("%s_0_conv", s), x, 4 * filters, 1, stride,
                                "valid", true, "linear");
        shortcut = dnn_zoo_bn(z, NAME("%s_0_bn", s), shortcut, EPSILON);
    }
    y = dnn_zoo_conv(z, NAME("%s_1_conv", s), x, filters, 1, v15 ? 1 : stride, "valid",
                     true, "linear");
    y = relu(z, NAME("%s_1_relu", s), dnn_zoo_bn(z, NAME("%s_1_bn", s), y, EPSILON));
    y = dnn_zoo_conv(z, NAME("%s_2_conv", s), y, filters, 3, v15 ? stride : 1, "same",
                     true, "linear");
    y = relu(z, NAME("%s_2_relu", s), dnn_zoo_bn(z, NAME("%s_2_bn", s), y, EPSILON));
    y = dnn_zoo_conv(z, NAME("%s_3_conv", s), y, 4 * filters, 1, 1, "valid", true,
                     "linear");
    y = dnn_zoo_bn(z, NAME("%s_3_bn", s), y, EPSILON);
    return relu(z, NAME("%s_out", s), add(z, NAME("%s_add", s), shortcut, y));
}

/* Versions 1 and 1.5; below 50 layers the basic block. */
static int v1(struct zoo *z, const struct zoo_kind *kind)
{
    const int *n = stages(kind->number);
    bool deep = kind->number >= 50, small = dnn_zoo_small(kind);
    int x = stem(z, kind, deep);

    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < n[i]; k++) {
            const char *s = NAME("conv%d_block%d", i + 2, k + 1);
            int stride = i > 0 && k == 0 ? 2 : 1;

            x = deep
                    ? bottleneck(z, s, x, 64 << i, stride, k == 0, kind->variant == V15)
                    : basic(z, s, x, 64 << i, stride, i > 0 && k == 0, small);
        }
        if (i < 3) dnn_zoo_skip(z, i + 1, x, (deep ? 256 : 64) << i);
    }
    z->channels = deep ? 2048 : 512;
    return x;
}

/* The CIFAR networks of He et al., three stages of (layers - 2) / 6 blocks.  As in
 * PyDTNN, from 56 layers on the first shortcut has a convolution, too. */
static int cifar(struct zoo *z, const struct zoo_kind *kind)
{
    int x = stem(z, kind, true);

    for (int i = 0; i < 3; i++)
        for (int k = 0; k < (kind->number - 2) / 6; k++)
            x = basic(z, NAME("conv%d_block%d", i + 2, k + 1), x, 16 << i,
                      i > 0 && k == 0 ? 2 : 1, k == 0 && (i > 0 || kind->number >= 56),
                      true);
    z->channels = 64;
    return x;
}

static int head(struct zoo *z, const struct zoo_kind *kind, int x)
{
    if (dnn_zoo_small(kind) && kind->build != preactivated)
        return dnn_zoo_classify_small(z, x, z->channels);
    return dnn_zoo_classify(z, "avg_pool", x);
}

/* ---- v2: norm and ReLU before each convolution ---- */

static int preact_block(struct zoo *z, const char *s, int x, int filters, int stride,
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
    int x = stem(z, kind, true);

    for (int i = 0; i < 4; i++)
        for (int k = 0; k < n[i]; k++) {
            bool last = k == n[i] - 1;
            const char *s = NAME("conv%d_block%d", i + 2, k + 1);

            x = preact_block(z, s, x, 64 << i, last && i < 3 ? 2 : 1, k == 0);
        }
    return relu(z, "post_relu", dnn_zoo_bn(z, "post_bn", x, EPSILON));
}

/* ---- pre-activation for small images: Wide ResNet, and with k = 1 ---- */

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

/* number: blocks per level; variant: widening factor k. */
static int preactivated(struct zoo *z, const struct zoo_kind *kind)
{
    const struct dnn_zoo_opts *o = z->opts;
    int64_t base = o->base > 0 ? o->base : 16,
            k = o->width > 0 ? o->width : kind->variant;
    int64_t blocks = o->depth == 0 ? kind->number
                     : k > 0       ? (o->depth - 4) / 6
                                   : o->depth;
    int x = dnn_zoo_conv(z, "conv1", 0, base, 3, 1, "same", false, "linear");

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < (int)blocks; j++)
            x = wide_block(z, NAME("conv%d_block%d", i + 2, j + 1), x,
                           (base << i) * (k > 0 ? k : 1), i > 0 && j == 0 ? 2 : 1,
                           j == 0);
    return relu(z, "post_relu", dnn_zoo_bn(z, "post_bn", x, 1e-5));
}

#define IMAGENET 3, {224, 224, 3}, 1000
#define CIFAR 3, {32, 32, 3}, 10
const struct zoo_kind dnn_zoo_resnets[] = {
    {"resnet10", "", IMAGENET, 10, V1, v1, head},
    {"resnet18", "", IMAGENET, 18, V1, v1, head},
    {"resnet34", "", IMAGENET, 34, V1, v1, head},
    {"resnet50", "", IMAGENET, 50, V1, v1, head},
    {"resnet101", "", IMAGENET, 101, V1, v1, head},
    {"resnet152", "", IMAGENET, 152, V1, v1, head},
    {"resnet50v15", "", IMAGENET, 50, V15, v1, head},
    {"resnet101v15", "", IMAGENET, 101, V15, v1, head},
    {"resnet152v15", "", IMAGENET, 152, V15, v1, head},
    {"resnet50v2", "", IMAGENET, 50, V2, v2, head},
    {"resnet101v2", "", IMAGENET, 101, V2, v2, head},
    {"resnet152v2", "", IMAGENET, 152, V2, v2, head},
    {"resnet18_cifar10", "", CIFAR, 18, V1, v1, head},
    {"resnet34_cifar10", "", CIFAR, 34, V1, v1, head},
    {"resnet50_cifar10", "", CIFAR, 50, V1, v1, head},
    {"resnet101_cifar10", "", CIFAR, 101, V1, v1, head},
    {"resnet152_cifar10", "", CIFAR, 152, V1, v1, head},
    {"resnet20_cifar10", "", CIFAR, 20, V1, cifar, head},
    {"resnet32_cifar10", "", CIFAR, 32, V1, cifar, head},
    {"resnet44_cifar10", "", CIFAR, 44, V1, cifar, head},
    {"resnet56_cifar10", "", CIFAR, 56, V1, cifar, head},
    {"resnet110_cifar10", "", CIFAR, 110, V1, cifar, head},
    {"resnet1202_cifar10", "", CIFAR, 1202, V1, cifar, head},
    {"resnet20", "base depth dropout", CIFAR, 3, 0, preactivated, head},
    {"wideresnet", "base depth width dropout", CIFAR, 4, 10, preactivated, head},
    {"wideresnet28_10", "base dropout", CIFAR, 4, 10, preactivated, head},
    {NULL, NULL, 0, {0}, 0, 0, 0, NULL, NULL},
};
