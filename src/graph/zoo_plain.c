/* zoo_plain.c - networks without shortcuts: simplemlp, simplecnn, AlexNet, VGG,
 * GoogLeNet, Inception v3.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/zoo_impl.h"

#include <inttypes.h>
#include <stddef.h>

#define NAME(...) dnn_zoo_name_of(z, __VA_ARGS__)

static int flatten(struct zoo *z, int x)
{
    return dnn_zoo_put1(z, "Flatten", "flatten", x, "%s", "");
}

static int simplemlp(struct zoo *z, const struct zoo_kind *kind)
{
    int64_t width = z->opts->base > 0 ? z->opts->base : kind->number;
    int x = flatten(z, 0);

    for (int i = 1; i <= 3; i++)
        x = dnn_zoo_dense(z, NAME("fc%d", i), x, width, "relu");
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

static int simplecnn(struct zoo *z, const struct zoo_kind *kind)
{
    int64_t base = z->opts->base > 0 ? z->opts->base : kind->number;
    int x = dnn_zoo_conv(z, "conv1", 0, base, 3, 1, "same", true, "relu");

    x = dnn_zoo_conv(z, "conv2", x, 2 * base, 3, 1, "same", true, "relu");
    x = flatten(z, dnn_zoo_pool(z, "pool", x, "Max", 2, 2, "valid"));
    x = dnn_zoo_dense(z, "fc1", x, 128, "relu");
    x = dnn_zoo_dropout(z, "dropout", x, 0.5);
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

/* Two wide layers and the classes, as AlexNet and VGG end. */
static int wide_head(struct zoo *z, int x, double dropout)
{
    x = dnn_zoo_dense(z, "fc1", flatten(z, x), 4096, "relu");
    x = dnn_zoo_dropout(z, "dropout1", x, dropout);
    x = dnn_zoo_dense(z, "fc2", x, 4096, "relu");
    x = dnn_zoo_dropout(z, "dropout2", x, dropout);
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

static int alexnet(struct zoo *z, const struct zoo_kind *kind)
{
    int x = dnn_zoo_conv(z, "conv1", 0, 96, 11, 4, "valid", true, "relu");

    (void)kind;
    x = dnn_zoo_pool(z, "pool1", x, "Max", 3, 2, "valid");
    x = dnn_zoo_conv(z, "conv2", x, 256, 5, 1, "same", true, "relu");
    x = dnn_zoo_pool(z, "pool2", x, "Max", 3, 2, "valid");
    x = dnn_zoo_conv(z, "conv3", x, 384, 3, 1, "same", true, "relu");
    x = dnn_zoo_conv(z, "conv4", x, 384, 3, 1, "same", true, "relu");
    x = dnn_zoo_conv(z, "conv5", x, 256, 3, 1, "same", true, "relu");
    x = dnn_zoo_pool(z, "pool5", x, "Max", 3, 2, "valid");
    return wide_head(z, x, 0.5);
}

/* Layer names as in Keras, which has no dropout there. */
static int vgg(struct zoo *z, const struct zoo_kind *kind)
{
    static const int filters[] = {64, 128, 256, 512, 512};
    int x = 0;

    for (int i = 0; i < 5; i++) {
        int n = kind->number == 11 ? (i < 2 ? 1 : 2)
                : i < 2            ? 2
                                   : (kind->number == 16 ? 3 : 4);

        for (int k = 1; k <= n; k++)
            x = dnn_zoo_conv(z, NAME("block%d_conv%d", i + 1, k), x, filters[i], 3, 1,
                             "same", true, "relu");
        x = dnn_zoo_pool(z, NAME("block%d_pool", i + 1), x, "Max", 2, 2, "valid");
    }
    return wide_head(z, x, 0);
}

/* ---- GoogLeNet ---- */

/* a: 1x1; b, c: 1x1 then 3x3; d, e: 1x1 then 5x5; f: after the pool. */
static int inception(struct zoo *z, const char *name, int x, const int size[6])
{
    int way[4];

    way[0] =
        dnn_zoo_conv(z, NAME("%s_1x1", name), x, size[0], 1, 1, "same", true, "relu");
    way[1] = dnn_zoo_conv(z, NAME("%s_3x3_reduce", name), x, size[1], 1, 1, "same",
                          true, "relu");
    way[1] = dnn_zoo_conv(z, NAME("%s_3x3", name), way[1], size[2], 3, 1, "same", true,
                          "relu");
    way[2] = dnn_zoo_conv(z, NAME("%s_5x5_reduce", name), x, size[3], 1, 1, "same",
                          true, "relu");
    way[2] = dnn_zoo_conv(z, NAME("%s_5x5", name), way[2], size[4], 5, 1, "same", true,
                          "relu");
    way[3] = dnn_zoo_pool(z, NAME("%s_pool", name), x, "Max", 3, 1, "same");
    way[3] = dnn_zoo_conv(z, NAME("%s_pool_proj", name), way[3], size[5], 1, 1, "same",
                          true, "relu");
    return dnn_zoo_put(z, "Concatenate", NAME("%s_output", name), 4, way,
                       "\"axis\": -1");
}

static int googlenet(struct zoo *z, const struct zoo_kind *kind)
{
    static const struct {
        const char *name;
        int size[6];
        bool pool; /* behind it */
    } block[] = {
        {"inception_3a", {64, 96, 128, 16, 32, 32},     false},
        {"inception_3b", {128, 128, 192, 32, 96, 64},   true },
        {"inception_4a", {192, 96, 208, 16, 48, 64},    false},
        {"inception_4b", {160, 112, 224, 24, 64, 64},   false},
        {"inception_4c", {128, 128, 256, 24, 64, 64},   false},
        {"inception_4d", {112, 144, 288, 32, 64, 64},   false},
        {"inception_4e", {256, 160, 320, 32, 128, 128}, true },
        {"inception_5a", {256, 160, 320, 32, 128, 128}, false},
        {"inception_5b", {384, 192, 384, 48, 128, 128}, false}
    };
    int x = dnn_zoo_conv(z, "conv1_7x7_s2", 0, 64, 7, 2, "same", true, "relu");

    (void)kind;
    x = dnn_zoo_pool(z, "pool1_3x3_s2", x, "Max", 3, 2, "same");
    x = dnn_zoo_conv(z, "conv2_3x3_reduce", x, 64, 1, 1, "same", true, "relu");
    x = dnn_zoo_conv(z, "conv2_3x3", x, 192, 3, 1, "same", true, "relu");
    x = dnn_zoo_pool(z, "pool2_3x3_s2", x, "Max", 3, 2, "same");
    for (size_t i = 0; i < sizeof block / sizeof block[0]; i++) {
        x = inception(z, block[i].name, x, block[i].size);
        if (block[i].pool)
            x = dnn_zoo_pool(z, NAME("%s_pool_s2", block[i].name), x, "Max", 3, 2,
                             "same");
    }
    x = dnn_zoo_dropout(z, "dropout", dnn_zoo_gap(z, "avg_pool", x), 0.4);
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

/* ---- Inception v3 ---- */

/* Convolution of rows x cols, batch norm without a scale, ReLU; numbered as Keras
 * numbers them. */
static int cbr(struct zoo *z, int x, int filters, int rows, int cols, int stride,
               const char *padding)
{
    int n = (int)z->nlayers;

    x = dnn_zoo_put1(z, "Conv2D", NAME("conv2d_%d", n), x,
                     "\"filters\": %d, \"kernel_size\": [%d, %d], \"strides\": %d, "
                     "\"padding\": \"%s\", \"use_bias\": false",
                     filters, rows, cols, stride, padding);
    x = dnn_zoo_put1(z, "BatchNormalization", NAME("batch_normalization_%d", n), x,
                     "\"axis\": 3, \"scale\": false");
    return dnn_zoo_act(z, NAME("activation_%d", n), x, "relu");
}

static int join(struct zoo *z, const char *name, int n, const int *in)
{
    return dnn_zoo_put(z, "Concatenate", name, n, in, "\"axis\": -1");
}

static int near_pool(struct zoo *z, int x, int filters)
{
    x = dnn_zoo_pool(z, NAME("average_pooling2d_%zu", z->nlayers), x, "Average", 3, 1,
                     "same");
    return cbr(z, x, filters, 1, 1, 1, "same");
}

static int mixed_5x5(struct zoo *z, int n, int x, int pool)
{
    int way[4];

    way[0] = cbr(z, x, 64, 1, 1, 1, "same");
    way[1] = cbr(z, cbr(z, x, 48, 1, 1, 1, "same"), 64, 5, 5, 1, "same");
    way[2] = cbr(z, cbr(z, x, 64, 1, 1, 1, "same"), 96, 3, 3, 1, "same");
    way[2] = cbr(z, way[2], 96, 3, 3, 1, "same");
    way[3] = near_pool(z, x, pool);
    return join(z, NAME("mixed%d", n), 4, way);
}

static int mixed_7x7(struct zoo *z, int n, int x, int c)
{
    int way[4];

    way[0] = cbr(z, x, 192, 1, 1, 1, "same");
    way[1] = cbr(z, cbr(z, x, c, 1, 1, 1, "same"), c, 1, 7, 1, "same");
    way[1] = cbr(z, way[1], 192, 7, 1, 1, "same");
    way[2] = cbr(z, cbr(z, x, c, 1, 1, 1, "same"), c, 7, 1, 1, "same");
    way[2] = cbr(z, cbr(z, way[2], c, 1, 7, 1, "same"), c, 7, 1, 1, "same");
    way[2] = cbr(z, way[2], 192, 1, 7, 1, "same");
    way[3] = near_pool(z, x, 192);
    return join(z, NAME("mixed%d", n), 4, way);
}

static int mixed_3x3(struct zoo *z, int n, int x)
{
    int way[4], two[2], mid;

    way[0] = cbr(z, x, 320, 1, 1, 1, "same");
    mid = cbr(z, x, 384, 1, 1, 1, "same");
    two[0] = cbr(z, mid, 384, 1, 3, 1, "same");
    two[1] = cbr(z, mid, 384, 3, 1, 1, "same");
    way[1] = join(z, NAME("mixed9_%d", n - 9), 2, two);
    mid = cbr(z, cbr(z, x, 448, 1, 1, 1, "same"), 384, 3, 3, 1, "same");
    two[0] = cbr(z, mid, 384, 1, 3, 1, "same");
    two[1] = cbr(z, mid, 384, 3, 1, 1, "same");
    way[2] = join(z, NAME("concatenate_%d", n - 9), 2, two);
    way[3] = near_pool(z, x, 192);
    return join(z, NAME("mixed%d", n), 4, way);
}

static int inceptionv3(struct zoo *z, const struct zoo_kind *kind)
{
    static const int sevens[] = {128, 160, 160, 192};
    int way[3], x = cbr(z, 0, 32, 3, 3, 2, "valid");

    (void)kind;
    x = cbr(z, cbr(z, x, 32, 3, 3, 1, "valid"), 64, 3, 3, 1, "same");
    x = dnn_zoo_pool(z, "max_pooling2d_1", x, "Max", 3, 2, "valid");
    x = cbr(z, cbr(z, x, 80, 1, 1, 1, "valid"), 192, 3, 3, 1, "valid");
    x = dnn_zoo_pool(z, "max_pooling2d_2", x, "Max", 3, 2, "valid");
    for (int i = 0; i < 3; i++)
        x = mixed_5x5(z, i, x, i == 0 ? 32 : 64);
    way[0] = cbr(z, x, 384, 3, 3, 2, "valid");
    way[1] = cbr(z, cbr(z, x, 64, 1, 1, 1, "same"), 96, 3, 3, 1, "same");
    way[1] = cbr(z, way[1], 96, 3, 3, 2, "valid");
    way[2] = dnn_zoo_pool(z, "max_pooling2d_3", x, "Max", 3, 2, "valid");
    x = join(z, "mixed3", 3, way);
    for (int i = 0; i < 4; i++)
        x = mixed_7x7(z, i + 4, x, sevens[i]);
    way[0] = cbr(z, cbr(z, x, 192, 1, 1, 1, "same"), 320, 3, 3, 2, "valid");
    way[1] = cbr(z, cbr(z, x, 192, 1, 1, 1, "same"), 192, 1, 7, 1, "same");
    way[1] = cbr(z, cbr(z, way[1], 192, 7, 1, 1, "same"), 192, 3, 3, 2, "valid");
    way[2] = dnn_zoo_pool(z, "max_pooling2d_4", x, "Max", 3, 2, "valid");
    x = join(z, "mixed8", 3, way);
    x = mixed_3x3(z, 10, mixed_3x3(z, 9, x));
    return dnn_zoo_dense(z, "predictions", dnn_zoo_gap(z, "avg_pool", x), z->classes,
                         "softmax");
}

const struct zoo_kind dnn_zoo_plain[] = {
    {"simplemlp",   "base",         3, {28, 28, 1},   10,   512, simplemlp  },
    {"simplecnn",   "base dropout", 3, {28, 28, 1},   10,   4,   simplecnn  },
    {"alexnet",     "dropout",      3, {227, 227, 3}, 1000, 0,   alexnet    },
    {"vgg11",       "dropout",      3, {224, 224, 3}, 1000, 11,  vgg        },
    {"vgg16",       "dropout",      3, {224, 224, 3}, 1000, 16,  vgg        },
    {"vgg19",       "dropout",      3, {224, 224, 3}, 1000, 19,  vgg        },
    {"googlenet",   "dropout",      3, {224, 224, 3}, 1000, 0,   googlenet  },
    {"inceptionv3", "",             3, {299, 299, 3}, 1000, 0,   inceptionv3},
    {NULL,          NULL,           0, {0},           0,    0,   NULL       },
};
