/* zoo_densenet.c - DenseNets, for ImageNet as in Keras, for CIFAR as in PyDTNN.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/zoo_impl.h"

#include <inttypes.h>
#include <stddef.h>

#define NAME(...) dnn_zoo_name_of(z, __VA_ARGS__)
#define EPSILON 1.001e-5 /* Keras's */

static int bn_relu(struct zoo *z, const char *bn, const char *relu, int x)
{
    return dnn_zoo_act(z, relu, dnn_zoo_bn(z, bn, x, EPSILON), "relu");
}

static int block(struct zoo *z, const char *s, int x, int growth)
{
    int y = bn_relu(z, NAME("%s_0_bn", s), NAME("%s_0_relu", s), x);

    y = dnn_zoo_conv(z, NAME("%s_1_conv", s), y, 4 * growth, 1, 1, "valid", false,
                     "linear");
    y = bn_relu(z, NAME("%s_1_bn", s), NAME("%s_1_relu", s), y);
    y = dnn_zoo_conv(z, NAME("%s_2_conv", s), y, growth, 3, 1, "same", false, "linear");
    return dnn_zoo_join(z, NAME("%s_concat", s), 2, (int[]){x, y});
}

static int stem(struct zoo *z, const struct zoo_kind *kind, int filters)
{
    int x;

    if (dnn_zoo_small(kind))
        return dnn_zoo_conv(z, "conv1_conv", 0, filters, 3, 1, "same", false, "linear");
    x = dnn_zoo_pad(z, "conv1_pad", 0, 3, 3);
    x = dnn_zoo_conv(z, "conv1_conv", x, filters, 7, 2, "valid", false, "linear");
    x = bn_relu(z, "conv1_bn", "conv1_relu", x);
    dnn_zoo_skip(z, 0, x, filters);
    x = dnn_zoo_pad(z, "pool1_pad", x, 1, 1);
    return dnn_zoo_pool(z, "pool1", x, "Max", 3, 2, "valid");
}

/* number: layers; variant: growth rate. */
static int build(struct zoo *z, const struct zoo_kind *kind)
{
    const int growth = kind->variant, layers = kind->number;
    const int blocks[] = {6, 12,
                          layers == 121   ? 24
                          : layers == 161 ? 36
                          : layers == 169 ? 32
                                          : 48,
                          layers == 121   ? 16
                          : layers == 161 ? 24
                                          : 32};
    int channels = 2 * growth, x = stem(z, kind, channels);

    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < blocks[i]; k++) {
            x = block(z, NAME("conv%d_block%d", i + 2, k + 1), x, growth);
            channels += growth;
        }
        if (i == 3) break;
        x = bn_relu(z, NAME("pool%d_bn", i + 2), NAME("pool%d_relu", i + 2), x);
        dnn_zoo_skip(z, i + 1, x, channels);
        channels /= 2;
        x = dnn_zoo_conv(z, NAME("pool%d_conv", i + 2), x, channels, 1, 1, "valid",
                         false, "linear");
        x = dnn_zoo_pool(z, NAME("pool%d_pool", i + 2), x, "Average", 2, 2, "valid");
    }
    z->channels = channels;
    return bn_relu(z, "bn", "relu", x);
}

static int head(struct zoo *z, const struct zoo_kind *kind, int x)
{
    (void)kind;
    return dnn_zoo_classify(z, "avg_pool", x);
}

const struct zoo_kind dnn_zoo_densenets[] = {
    {"densenet121",         "",   3, {224, 224, 3}, 1000, 121, 32, build, head},
    {"densenet161",         "",   3, {224, 224, 3}, 1000, 161, 48, build, head},
    {"densenet169",         "",   3, {224, 224, 3}, 1000, 169, 32, build, head},
    {"densenet201",         "",   3, {224, 224, 3}, 1000, 201, 32, build, head},
    {"densenet_cifar10",    "",   3, {32, 32, 3},   10,   121, 12, build, head},
    {"densenet121_cifar10", "",   3, {32, 32, 3},   10,   121, 32, build, head},
    {"densenet161_cifar10", "",   3, {32, 32, 3},   10,   161, 48, build, head},
    {"densenet169_cifar10", "",   3, {32, 32, 3},   10,   169, 32, build, head},
    {"densenet201_cifar10", "",   3, {32, 32, 3},   10,   201, 32, build, head},
    {NULL,                  NULL, 0, {0},           0,    0,   0,  NULL,  NULL},
};
