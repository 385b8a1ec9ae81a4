/* zoo_mobilenet.c - MobileNet v1 and v2, as in Keras; v1 for CIFAR as in PyDTNN.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/zoo_impl.h"

#include <inttypes.h>
#include <stddef.h>

#define NAME(...) dnn_zoo_name_of(z, __VA_ARGS__)

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
    int x = dnn_zoo_conv(z, "conv1", 0, 32, 3, 2, "same", false, "linear"), level = 0;

    if (!dnn_zoo_small(kind)) x = dnn_zoo_bn(z, "conv1_bn", x, 1e-3);
    x = relu6(z, "conv1_relu", x);
    for (int i = 0; i < 13; i++) {
        x = depthwise(z, NAME("conv_pad_%d", i + 1), NAME("conv_dw_%d", i + 1), x,
                      block[i].stride);
        x = dnn_zoo_bn(z, NAME("conv_dw_%d_bn", i + 1), x, 1e-3);
        x = relu6(z, NAME("conv_dw_%d_relu", i + 1), x);
        x = dnn_zoo_conv(z, NAME("conv_pw_%d", i + 1), x, block[i].filters, 1, 1,
                         "same", false, "linear");
        x = dnn_zoo_bn(z, NAME("conv_pw_%d_bn", i + 1), x, 1e-3);
        x = relu6(z, NAME("conv_pw_%d_relu", i + 1), x);
        if (i < 12 && block[i + 1].stride == 2)
            dnn_zoo_skip(z, level++, x, block[i].filters);
    }
    z->channels = 1024;
    return x;
}

static int mobilenet_head(struct zoo *z, const struct zoo_kind *kind, int x)
{
    if (dnn_zoo_small(kind)) {
        x = dnn_zoo_dense(z, "fc1", dnn_zoo_gap(z, "avg_pool", x), 1024, "relu");
        return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
    }
    x = dnn_zoo_put1(z, "GlobalAveragePooling2D", "global_average_pooling2d", x,
                     "\"keepdims\": true");
    x = dnn_zoo_dropout(z, "dropout", x, 1e-3);
    x = dnn_zoo_conv(z, "conv_preds", x, z->classes, 1, 1, "same", true, "linear");
    x = dnn_zoo_put1(z, "Reshape", "reshape_2", x, "\"target_shape\": [%" PRId64 "]",
                     z->classes);
    return dnn_zoo_act(z, "predictions", x, "softmax");
}

/* Inverted residual: expand, depthwise, project; plus its input if the shapes match. */
static int inverted(struct zoo *z, int block, int x, int in, int out, int stride,
                    int expansion, int *level)
{
    const char *s = block == 0 ? "expanded_conv" : NAME("block_%d", block);
    int y = x;

    if (block > 0) {
        y = dnn_zoo_conv(z, NAME("%s_expand", s), y, expansion * in, 1, 1, "same",
                         false, "linear");
        y = dnn_zoo_bn(z, NAME("%s_expand_BN", s), y, 1e-3);
        y = relu6(z, NAME("%s_expand_relu", s), y);
    }
    if (stride > 1) dnn_zoo_skip(z, (*level)++, y, expansion * in);
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
    int channels = 32, block = 0, level = 0;

    (void)kind;
    x = relu6(z, "Conv1_relu", dnn_zoo_bn(z, "bn_Conv1", x, 1e-3));
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < stage[i].count; k++) {
            x = inverted(z, block++, x, channels, stage[i].filters,
                         k == 0 ? stage[i].stride : 1, 6, &level);
            channels = stage[i].filters;
        }
    x = dnn_zoo_conv(z, "Conv_1", x, 1280, 1, 1, "same", false, "linear");
    z->channels = 1280;
    return relu6(z, "out_relu", dnn_zoo_bn(z, "Conv_1_bn", x, 1e-3));
}

static int mobilenetv2_head(struct zoo *z, const struct zoo_kind *kind, int x)
{
    (void)kind;
    return dnn_zoo_classify(z, "global_average_pooling2d", x);
}

const struct zoo_kind dnn_zoo_mobilenets[] = {
    {"mobilenet",           "dropout", 3, {224, 224, 3}, 1000, 0, 0, mobilenet,   mobilenet_head  },
    {"mobilenetv1_cifar10", "",        3, {32, 32, 3},   10,   0, 0, mobilenet,   mobilenet_head  },
    {"mobilenetv2",         "",        3, {224, 224, 3}, 1000, 0, 0, mobilenetv2, mobilenetv2_head},
    {NULL,                  NULL,      0, {0},           0,    0, 0, NULL,        NULL            },
};
