/* zoo_inception.c - GoogLeNet (for CIFAR as in PyDTNN) and Inception v3.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/zoo_impl.h"

#include <stddef.h>

#define NAME(...) dnn_zoo_name_of(z, __VA_ARGS__)

/* ---- GoogLeNet ---- */

/* A convolution and ReLU; for small images with a batch norm between them. */
static int unit(struct zoo *z, const struct zoo_kind *kind, const char *name, int x,
                int filters, int k)
{
    if (!dnn_zoo_small(kind))
        return dnn_zoo_conv(z, name, x, filters, k, 1, "same", true, "relu");
    x = dnn_zoo_conv(z, name, x, filters, k, 1, "same", true, "linear");
    x = dnn_zoo_bn(z, NAME("%s_bn", name), x, 1e-5);
    return dnn_zoo_act(z, NAME("%s_relu", name), x, "relu");
}

/* Filters: 1x1; 1x1 then 3x3; 1x1 then 5x5 (small images: twice 3x3); after the pool.
 */
static int inception(struct zoo *z, const struct zoo_kind *kind, const char *s, int x,
                     const int size[6])
{
    int path[4];

    path[0] = unit(z, kind, NAME("%s_1x1", s), x, size[0], 1);
    path[1] = unit(z, kind, NAME("%s_3x3_reduce", s), x, size[1], 1);
    path[1] = unit(z, kind, NAME("%s_3x3", s), path[1], size[2], 3);
    path[2] = unit(z, kind, NAME("%s_5x5_reduce", s), x, size[3], 1);
    if (dnn_zoo_small(kind)) {
        path[2] = unit(z, kind, NAME("%s_5x5_1", s), path[2], size[4], 3);
        path[2] = unit(z, kind, NAME("%s_5x5_2", s), path[2], size[4], 3);
    } else
        path[2] = unit(z, kind, NAME("%s_5x5", s), path[2], size[4], 5);
    path[3] = dnn_zoo_pool(z, NAME("%s_pool", s), x, "Max", 3, 1, "same");
    path[3] = unit(z, kind, NAME("%s_pool_proj", s), path[3], size[5], 1);
    return dnn_zoo_join(z, NAME("%s_output", s), 4, path);
}

static int googlenet(struct zoo *z, const struct zoo_kind *kind)
{
    static const struct {
        const char *name;
        int size[6];
        bool pool; /* followed by a pool */
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
    bool small = dnn_zoo_small(kind);
    int x = 0;

    if (!small) {
        x = dnn_zoo_conv(z, "conv1_7x7_s2", x, 64, 7, 2, "same", true, "relu");
        x = dnn_zoo_pool(z, "pool1_3x3_s2", x, "Max", 3, 2, "same");
        x = unit(z, kind, "conv2_3x3_reduce", x, 64, 1);
    }
    x = unit(z, kind, "conv2_3x3", x, 192, 3);
    if (!small) x = dnn_zoo_pool(z, "pool2_3x3_s2", x, "Max", 3, 2, "same");
    for (size_t i = 0; i < sizeof block / sizeof block[0]; i++) {
        x = inception(z, kind, block[i].name, x, block[i].size);
        if (block[i].pool)
            x = dnn_zoo_pool(z, NAME("%s_pool_s2", block[i].name), x, "Max", 3, 2,
                             "same");
    }
    if (small) return dnn_zoo_classify_small(z, x, 1024);
    x = dnn_zoo_dropout(z, "dropout", dnn_zoo_gap(z, "avg_pool", x), 0.4);
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

/* ---- Inception v3 ---- */

/* Convolution of rows x cols, batch norm without a scale, ReLU; their names contain the
 * number of the layer. */
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

static int pool_path(struct zoo *z, int x, int filters)
{
    x = dnn_zoo_pool(z, NAME("average_pooling2d_%zu", z->nlayers), x, "Average", 3, 1,
                     "same");
    return cbr(z, x, filters, 1, 1, 1, "same");
}

static int mixed_5x5(struct zoo *z, int n, int x, int pool)
{
    int path[4];

    path[0] = cbr(z, x, 64, 1, 1, 1, "same");
    path[1] = cbr(z, cbr(z, x, 48, 1, 1, 1, "same"), 64, 5, 5, 1, "same");
    path[2] = cbr(z, cbr(z, x, 64, 1, 1, 1, "same"), 96, 3, 3, 1, "same");
    path[2] = cbr(z, path[2], 96, 3, 3, 1, "same");
    path[3] = pool_path(z, x, pool);
    return dnn_zoo_join(z, NAME("mixed%d", n), 4, path);
}

static int mixed_7x7(struct zoo *z, int n, int x, int c)
{
    int path[4];

    path[0] = cbr(z, x, 192, 1, 1, 1, "same");
    path[1] = cbr(z, cbr(z, x, c, 1, 1, 1, "same"), c, 1, 7, 1, "same");
    path[1] = cbr(z, path[1], 192, 7, 1, 1, "same");
    path[2] = cbr(z, cbr(z, x, c, 1, 1, 1, "same"), c, 7, 1, 1, "same");
    path[2] = cbr(z, cbr(z, path[2], c, 1, 7, 1, "same"), c, 7, 1, 1, "same");
    path[2] = cbr(z, path[2], 192, 1, 7, 1, "same");
    path[3] = pool_path(z, x, 192);
    return dnn_zoo_join(z, NAME("mixed%d", n), 4, path);
}

static int mixed_3x3(struct zoo *z, int n, int x)
{
    int path[4], two[2], mid;

    path[0] = cbr(z, x, 320, 1, 1, 1, "same");
    mid = cbr(z, x, 384, 1, 1, 1, "same");
    two[0] = cbr(z, mid, 384, 1, 3, 1, "same");
    two[1] = cbr(z, mid, 384, 3, 1, 1, "same");
    path[1] = dnn_zoo_join(z, NAME("mixed9_%d", n - 9), 2, two);
    mid = cbr(z, cbr(z, x, 448, 1, 1, 1, "same"), 384, 3, 3, 1, "same");
    two[0] = cbr(z, mid, 384, 1, 3, 1, "same");
    two[1] = cbr(z, mid, 384, 3, 1, 1, "same");
    path[2] = dnn_zoo_join(z, NAME("concatenate_%d", n - 9), 2, two);
    path[3] = pool_path(z, x, 192);
    return dnn_zoo_join(z, NAME("mixed%d", n), 4, path);
}

static int inceptionv3(struct zoo *z, const struct zoo_kind *kind)
{
    static const int sevens[] = {128, 160, 160, 192};
    int path[3], x = cbr(z, 0, 32, 3, 3, 2, "valid");

    (void)kind;
    x = cbr(z, cbr(z, x, 32, 3, 3, 1, "valid"), 64, 3, 3, 1, "same");
    x = dnn_zoo_pool(z, "max_pooling2d_1", x, "Max", 3, 2, "valid");
    x = cbr(z, cbr(z, x, 80, 1, 1, 1, "valid"), 192, 3, 3, 1, "valid");
    x = dnn_zoo_pool(z, "max_pooling2d_2", x, "Max", 3, 2, "valid");
    for (int i = 0; i < 3; i++)
        x = mixed_5x5(z, i, x, i == 0 ? 32 : 64);
    path[0] = cbr(z, x, 384, 3, 3, 2, "valid");
    path[1] = cbr(z, cbr(z, x, 64, 1, 1, 1, "same"), 96, 3, 3, 1, "same");
    path[1] = cbr(z, path[1], 96, 3, 3, 2, "valid");
    path[2] = dnn_zoo_pool(z, "max_pooling2d_3", x, "Max", 3, 2, "valid");
    x = dnn_zoo_join(z, "mixed3", 3, path);
    for (int i = 0; i < 4; i++)
        x = mixed_7x7(z, i + 4, x, sevens[i]);
    path[0] = cbr(z, cbr(z, x, 192, 1, 1, 1, "same"), 320, 3, 3, 2, "valid");
    path[1] = cbr(z, cbr(z, x, 192, 1, 1, 1, "same"), 192, 1, 7, 1, "same");
    path[1] = cbr(z, cbr(z, path[1], 192, 7, 1, 1, "same"), 192, 3, 3, 2, "valid");
    path[2] = dnn_zoo_pool(z, "max_pooling2d_4", x, "Max", 3, 2, "valid");
    x = dnn_zoo_join(z, "mixed8", 3, path);
    x = mixed_3x3(z, 10, mixed_3x3(z, 9, x));
    return dnn_zoo_classify(z, "avg_pool", x);
}

const struct zoo_kind dnn_zoo_inceptions[] = {
    {"googlenet",         "dropout", 3, {224, 224, 3}, 1000, 0, 0, googlenet,   NULL},
    {"googlenet_cifar10", "",        3, {32, 32, 3},   10,   0, 0, googlenet,   NULL},
    {"inceptionv3",       "",        3, {299, 299, 3}, 1000, 0, 0, inceptionv3, NULL},
    {NULL,                NULL,      0, {0},           0,    0, 0, NULL,        NULL},
};
