/* zoo_mobile.c - DenseNet121, MobileNet, MobileNet v2.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/zoo_impl.h"

#include <inttypes.h>
#include <stddef.h>

#define NAME(...) dnn_zoo_name_of(z, __VA_ARGS__)
#define EPSILON 1.001e-5 /* Keras's for DenseNet */

/* ---- DenseNet ---- */

static int bn_relu(struct zoo *z, const char *bn, const char *relu, int x)
{
    return dnn_zoo_act(z, relu, dnn_zoo_bn(z, bn, x, EPSILON), "relu");
}

static int dense_block(struct zoo *z, const char *s, int x, int growth)
{
    int y = bn_relu(z, NAME("%s_0_bn", s), NAME("%s_0_relu", s), x);

    y = dnn_zoo_conv(z, NAME("%s_1_conv", s), y, 4 * growth, 1, 1, "valid", false,
                     "linear");
    y = bn_relu(z, NAME("%s_1_bn", s), NAME("%s_1_relu", s), y);
    y = dnn_zoo_conv(z, NAME("%s_2_conv", s), y, growth, 3, 1, "same", false, "linear");
    return dnn_zoo_put(z, "Concatenate", NAME("%s_concat", s), 2, (int[]){x, y},
                       "\"axis\": -1");
}

static int densenet(struct zoo *z, const struct zoo_kind *kind)
{
    static const int blocks[] = {6, 12, 24, 16};
    int channels = 64, growth = kind->number, x = dnn_zoo_pad(z, "conv1_pad", 0, 3, 3);

    x = dnn_zoo_conv(z, "conv1_conv", x, 64, 7, 2, "valid", false, "linear");
    x = bn_relu(z, "conv1_bn", "conv1_relu", x);
    x = dnn_zoo_pad(z, "pool1_pad", x, 1, 1);
    x = dnn_zoo_pool(z, "pool1", x, "Max", 3, 2, "valid");
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < blocks[i]; k++) {
            const char *s = NAME("conv%d_block%d", i + 2, k + 1);

            x = dense_block(z, s, x, growth);
            channels += growth;
        }
        if (i == 3) break;
        channels /= 2;
        x = bn_relu(z, NAME("pool%d_bn", i + 2), NAME("pool%d_relu", i + 2), x);
        x = dnn_zoo_conv(z, NAME("pool%d_conv", i + 2), x, channels, 1, 1, "valid",
                         false, "linear");
        x = dnn_zoo_pool(z, NAME("pool%d_pool", i + 2), x, "Average", 2, 2, "valid");
    }
    x = dnn_zoo_gap(z, "avg_pool", bn_relu(z, "bn", "relu", x));
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

/* ---- MobileNets ---- */

static int relu6(struct zoo *z, const char *name, int x)
{
    return dnn_zoo_put1(z, "ReLU", name, x, "\"max_value\": 6.0");
}

static int depthwise(struct zoo *z, const char *pad, const char *name, int x,
                     int stride)
{
    if (stride > 1) x = dnn_zoo_pad(z, pad, x, 0, 1);
    return dnn_zoo_put1(z, "DepthwiseConv2D", name, x,
                        "\"kernel_size\": 3, \"strides\": %d, \"padding\": \"%s\", "
                        "\"use_bias\": false",
                        stride, stride > 1 ? "valid" : "same");
}

static int mobilenet(struct zoo *z, const struct zoo_kind *kind)
{
    static const struct {
        int filters, stride;
    } block[] = {
        {64,   1},
        {128,  2},
        {128,  1},
        {256,  2},
        {256,  1},
        {512,  2},
        {512,  1},
        {512,  1},
        {512,  1},
        {512,  1},
        {512,  1},
        {1024, 2},
        {1024, 1}
    };
    int x = dnn_zoo_conv(z, "conv1", 0, 32, 3, 2, "same", false, "linear");

    (void)kind;
    x = relu6(z, "conv1_relu", dnn_zoo_bn(z, "conv1_bn", x, 1e-3));
    for (int i = 0; i < 13; i++) {
        x = depthwise(z, NAME("conv_pad_%d", i + 1), NAME("conv_dw_%d", i + 1), x,
                      block[i].stride);
        x = dnn_zoo_bn(z, NAME("conv_dw_%d_bn", i + 1), x, 1e-3);
        x = relu6(z, NAME("conv_dw_%d_relu", i + 1), x);
        x = dnn_zoo_conv(z, NAME("conv_pw_%d", i + 1), x, block[i].filters, 1, 1,
                         "same", false, "linear");
        x = dnn_zoo_bn(z, NAME("conv_pw_%d_bn", i + 1), x, 1e-3);
        x = relu6(z, NAME("conv_pw_%d_relu", i + 1), x);
    }
    x = dnn_zoo_put1(z, "GlobalAveragePooling2D", "global_average_pooling2d", x,
                     "\"keepdims\": true");
    x = dnn_zoo_dropout(z, "dropout", x, 1e-3);
    x = dnn_zoo_conv(z, "conv_preds", x, z->classes, 1, 1, "same", true, "linear");
    x = dnn_zoo_put1(z, "Reshape", "reshape_2", x, "\"target_shape\": [%" PRId64 "]",
                     z->classes);
    return dnn_zoo_act(z, "predictions", x, "softmax");
}

/* Wider, channel by channel, narrow again; added to itself where it fits. */
static int inverted(struct zoo *z, int block, int x, int in, int out, int stride,
                    int expansion)
{
    const char *s = block == 0 ? "expanded_conv" : NAME("block_%d", block);
    int y = x;

    if (block > 0) {
        y = dnn_zoo_conv(z, NAME("%s_expand", s), y, expansion * in, 1, 1, "same",
                         false, "linear");
        y = dnn_zoo_bn(z, NAME("%s_expand_BN", s), y, 1e-3);
        y = relu6(z, NAME("%s_expand_relu", s), y);
    }
    y = depthwise(z, NAME("%s_pad", s), NAME("%s_depthwise", s), y, stride);
    y = dnn_zoo_bn(z, NAME("%s_depthwise_BN", s), y, 1e-3);
    y = relu6(z, NAME("%s_depthwise_relu", s), y);
    y = dnn_zoo_conv(z, NAME("%s_project", s), y, out, 1, 1, "same", false, "linear");
    y = dnn_zoo_bn(z, NAME("%s_project_BN", s), y, 1e-3);
    if (in != out || stride != 1) return y;
    return dnn_zoo_put(z, "Add", NAME("%s_add", s), 2, (int[]){x, y}, "%s", "");
}

static int mobilenetv2(struct zoo *z, const struct zoo_kind *kind)
{
    static const struct {
        int filters, stride, count;
    } stage[] = {
        {16,  1, 1},
        {24,  2, 2},
        {32,  2, 3},
        {64,  2, 4},
        {96,  1, 3},
        {160, 2, 3},
        {320, 1, 1}
    };
    int x = dnn_zoo_conv(z, "Conv1", 0, 32, 3, 2, "same", false, "linear");
    int channels = 32, block = 0;

    (void)kind;
    x = relu6(z, "Conv1_relu", dnn_zoo_bn(z, "bn_Conv1", x, 1e-3));
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < stage[i].count; k++) {
            x = inverted(z, block++, x, channels, stage[i].filters,
                         k == 0 ? stage[i].stride : 1, 6);
            channels = stage[i].filters;
        }
    x = dnn_zoo_conv(z, "Conv_1", x, 1280, 1, 1, "same", false, "linear");
    x = relu6(z, "out_relu", dnn_zoo_bn(z, "Conv_1_bn", x, 1e-3));
    return dnn_zoo_dense(z, "predictions",
                         dnn_zoo_gap(z, "global_average_pooling2d", x), z->classes,
                         "softmax");
}

const struct zoo_kind dnn_zoo_mobiles[] = {
    {"densenet121", "",        3, {224, 224, 3}, 1000, 32, densenet   },
    {"mobilenet",   "dropout", 3, {224, 224, 3}, 1000, 0,  mobilenet  },
    {"mobilenetv2", "",        3, {224, 224, 3}, 1000, 0,  mobilenetv2},
    {NULL,          NULL,      0, {0},           0,    0,  NULL       },
};
