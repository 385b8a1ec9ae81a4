/* zoo_plain.c - sequential networks: simplemlp, simplecnn, AlexNet, VGG, and small ones
 * of PyDTNN, Theano-MPI and NNLO.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/zoo_impl.h"

#include <inttypes.h>
#include <stddef.h>

#define NAME(...) dnn_zoo_name_of(z, __VA_ARGS__)

static int simplemlp(struct zoo *z, const struct zoo_kind *kind)
{
    int64_t width = z->opts->base > 0 ? z->opts->base : kind->number;
    int x = dnn_zoo_flatten(z, 0);

    for (int i = 1; i <= 3; i++)
        x = dnn_zoo_dense(z, NAME("fc%d", i), x, width, "relu");
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

static int simplecnn(struct zoo *z, const struct zoo_kind *kind)
{
    int64_t base = z->opts->base > 0 ? z->opts->base : kind->number;
    int x = dnn_zoo_conv(z, "conv1", 0, base, 3, 1, "same", true, "relu");

    x = dnn_zoo_conv(z, "conv2", x, 2 * base, 3, 1, "same", true, "relu");
    x = dnn_zoo_flatten(z, dnn_zoo_pool(z, "pool", x, "Max", 2, 2, "valid"));
    x = dnn_zoo_dense(z, "fc1", x, 128, "relu");
    x = dnn_zoo_dropout(z, "dropout", x, 0.5);
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

/* ---- AlexNet, VGG ---- */

/* Two dense layers and the classes; norm: with batch norms. */
static int wide_head(struct zoo *z, int x, int units, double dropout, bool norm)
{
    x = dnn_zoo_flatten(z, x);
    for (int i = 1; i <= 2; i++) {
        x = dnn_zoo_dense(z, NAME("fc%d", i), x, units, norm ? "linear" : "relu");
        if (norm) x = dnn_zoo_bn(z, NAME("fc%d_bn", i), x, 1e-5);
        if (norm) x = dnn_zoo_act(z, NAME("fc%d_relu", i), x, "relu");
        x = dnn_zoo_dropout(z, NAME("dropout%d", i), x, dropout);
    }
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

static int alexnet(struct zoo *z, const struct zoo_kind *kind)
{
    static const int large[] = {96, 256, 384, 384, 256},
                     few[] = {64, 192, 384, 256, 256};
    bool small = dnn_zoo_small(kind);
    const int *filters = small ? few : large;
    int pool = small ? 2 : 3, x;

    x = small ? dnn_zoo_conv(z, "conv1", 0, filters[0], 3, 2, "same", true, "relu")
              : dnn_zoo_conv(z, "conv1", 0, filters[0], 11, 4, "valid", true, "relu");
    x = dnn_zoo_pool(z, "pool1", x, "Max", pool, 2, "valid");
    x = dnn_zoo_conv(z, "conv2", x, filters[1], small ? 3 : 5, 1, "same", true, "relu");
    x = dnn_zoo_pool(z, "pool2", x, "Max", pool, 2, "valid");
    for (int i = 2; i < 5; i++)
        x = dnn_zoo_conv(z, NAME("conv%d", i + 1), x, filters[i], 3, 1, "same", true,
                         "relu");
    x = dnn_zoo_pool(z, "pool5", x, "Max", pool, 2, "valid");
    return wide_head(z, x, 4096, 0.5, false);
}

/* Layer names as in Keras, which has no dropout there.  number: layers; variant: with
 * batch norms. */
static int vgg(struct zoo *z, const struct zoo_kind *kind)
{
    static const int filters[] = {64, 128, 256, 512, 512};
    bool norm = kind->variant != 0;
    int x = 0;

    for (int i = 0; i < 5; i++) {
        int n = i < 2 && kind->number == 11  ? 1
                : i < 2 || kind->number < 16 ? 2
                : kind->number == 16         ? 3
                                             : 4;

        for (int k = 1; k <= n; k++) {
            const char *s = NAME("block%d_conv%d", i + 1, k);

            x = dnn_zoo_conv(z, s, x, filters[i], 3, 1, "same", true,
                             norm ? "linear" : "relu");
            if (norm) x = dnn_zoo_bn(z, NAME("%s_bn", s), x, 1e-5);
            if (norm) x = dnn_zoo_act(z, NAME("%s_relu", s), x, "relu");
        }
        if (i > 0) dnn_zoo_skip(z, i - 1, x, filters[i]);
        x = dnn_zoo_pool(z, NAME("block%d_pool", i + 1), x, "Max", 2, 2, "valid");
    }
    z->channels = 512;
    return x;
}

static int vgg_head(struct zoo *z, const struct zoo_kind *kind, int x)
{
    bool small = dnn_zoo_small(kind);

    return wide_head(z, x, small ? 512 : 4096, small ? 0.5 : 0,
                     small && kind->variant != 0);
}

/* ---- small networks ---- */

/* number: blocks of two convolutions; variant: dropout, and batch norms. */
enum { PLAIN, DROP, MORE_DROP, DROP_NORM };

static int norm_of(struct zoo *z, const char *s, int x, bool norm)
{
    return norm ? dnn_zoo_bn(z, NAME("%s_bn", s), x, 1e-5) : x;
}

static int he_dense(struct zoo *z, const char *name, int x, int units)
{
    return dnn_zoo_put1(z, "Dense", name, x,
                        "\"units\": %d, \"activation\": \"relu\", "
                        "\"kernel_initializer\": \"he_uniform\"",
                        units);
}

static int blocks(struct zoo *z, const struct zoo_kind *kind)
{
    bool norm = kind->variant == DROP_NORM;
    int x = 0;

    for (int i = 0; i <= kind->number; i++) {
        double rate = kind->variant == PLAIN  ? 0
                      : kind->variant == DROP ? 0.2
                                              : 0.2 + 0.1 * i;

        for (int k = 1; k <= 2 && i < kind->number; k++) {
            const char *s = NAME("block%d_conv%d", i + 1, k);

            x = dnn_zoo_put1(z, "Conv2D", s, x,
                             "\"filters\": %d, \"kernel_size\": 3, \"padding\": "
                             "\"same\", \"activation\": \"relu\", "
                             "\"kernel_initializer\": \"he_uniform\"",
                             32 << i);
            x = norm_of(z, s, x, norm);
        }
        if (i < kind->number)
            x = dnn_zoo_pool(z, NAME("block%d_pool", i + 1), x, "Max", 2, 2, "valid");
        else
            x = norm_of(z, "fc1",
                        he_dense(z, "fc1", dnn_zoo_flatten(z, x), norm ? 512 : 128),
                        norm);
        x = dnn_zoo_dropout(z, NAME("dropout%d", i + 1), x, rate);
    }
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

/* Theano-MPI's Cifar10_model. */
static int cifar10_model(struct zoo *z, const struct zoo_kind *kind)
{
    int x = dnn_zoo_conv(z, "conv1", 0, 64, 5, 1, "same", true, "relu");

    (void)kind;
    x = dnn_zoo_pool(z, "pool1", x, "Max", 2, 2, "valid");
    x = dnn_zoo_conv(z, "conv2", x, 128, 5, 1, "same", true, "relu");
    x = dnn_zoo_pool(z, "pool2", x, "Max", 2, 2, "valid");
    x = dnn_zoo_conv(z, "conv3", x, 64, 3, 1, "same", true, "relu");
    x = dnn_zoo_dense(z, "fc1", dnn_zoo_flatten(z, x), 256, "relu");
    x = dnn_zoo_dropout(z, "dropout", x, 0.5);
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

#define MNIST 3, {28, 28, 1}, 10
#define CIFAR 3, {32, 32, 3}, 10
#define IMAGENET 3, {224, 224, 3}, 1000
const struct zoo_kind dnn_zoo_plain[] = {
    {"simplemlp", "base", MNIST, 512, 0, simplemlp, NULL},
    {"simplecnn", "base dropout", MNIST, 4, 0, simplecnn, NULL},
    {"cifar10_model", "dropout", 3, {28, 28, 3}, 10, 0, 0, cifar10_model, NULL},
    {"alexnet", "dropout", 3, {227, 227, 3}, 1000, 0, 0, alexnet, NULL},
    {"alexnet_cifar10", "dropout", CIFAR, 0, 0, alexnet, NULL},
    {"vgg1", "dropout", CIFAR, 1, PLAIN, blocks, NULL},
    {"vgg2", "dropout", CIFAR, 2, PLAIN, blocks, NULL},
    {"vgg3", "dropout", CIFAR, 3, PLAIN, blocks, NULL},
    {"vgg3do", "dropout", CIFAR, 3, DROP, blocks, NULL},
    {"vgg3do2", "dropout", CIFAR, 3, MORE_DROP, blocks, NULL},
    {"vgg3dobn", "dropout", CIFAR, 3, DROP_NORM, blocks, NULL},
    {"vgg11", "dropout", IMAGENET, 11, 0, vgg, vgg_head},
    {"vgg13", "dropout", IMAGENET, 13, 0, vgg, vgg_head},
    {"vgg16", "dropout", IMAGENET, 16, 0, vgg, vgg_head},
    {"vgg19", "dropout", IMAGENET, 19, 0, vgg, vgg_head},
    {"vgg11bn", "dropout", IMAGENET, 11, 1, vgg, vgg_head},
    {"vgg13bn", "dropout", IMAGENET, 13, 1, vgg, vgg_head},
    {"vgg16bn", "dropout", IMAGENET, 16, 1, vgg, vgg_head},
    {"vgg19bn", "dropout", IMAGENET, 19, 1, vgg, vgg_head},
    {"vgg11_cifar10", "dropout", CIFAR, 11, 0, vgg, vgg_head},
    {"vgg16_cifar10", "dropout", CIFAR, 16, 0, vgg, vgg_head},
    {"vgg11bn_cifar10", "dropout", CIFAR, 11, 1, vgg, vgg_head},
    {"vgg16bn_cifar10", "dropout", CIFAR, 16, 1, vgg, vgg_head},
    {NULL, NULL, 0, {0}, 0, 0, 0, NULL, NULL},
};
