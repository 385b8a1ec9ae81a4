/* ops_cases.c - layers for dnn-bench ops: each kind and pass, common and odd shapes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/bench_impl.h"

#include "base/json.h"
#include "base/text.h"

#include <stddef.h>
#include <string.h>

#define LAYER(class, config) "{\"class_name\": \"" class "\", \"config\": {" config "}}"
#define CONV(n, config) LAYER("Conv" #n "D", "\"use_bias\": false, " config)
#define SAME "\"padding\": \"same\", "

const struct dnn_ops_case dnn_ops_cases[] = {
    {"conv 3^3, 16 to 16", CONV(3, SAME "\"filters\": 16, \"kernel_size\": 3"),
     "1x12x12x12x16", "1x64x64x64x16", 0},
    {"conv 3^3, 1 to 16", CONV(3, SAME "\"filters\": 16, \"kernel_size\": 3"),
     "1x16x16x16x1", "1x64x64x64x1", 0},
    {"conv 3^3, 32 to 16", CONV(3, SAME "\"filters\": 16, \"kernel_size\": 3"),
     "1x8x8x16x32", "1x64x64x64x32", 0},
    {"conv 3^3, 64 to 64", CONV(3, SAME "\"filters\": 64, \"kernel_size\": 3"),
     "1x4x6x8x64", "1x16x16x16x64", DNN_CASE_UPDATE},
    {"conv 3^3, 24 to 24, odd", CONV(3, SAME "\"filters\": 24, \"kernel_size\": 3"),
     "2x7x9x11x24", "2x48x80x64x24", 0},
    {"conv 1^3, 16 to 1", CONV(3, SAME "\"filters\": 1, \"kernel_size\": 1"),
     "1x16x16x16x16", "1x64x64x64x16", 0},
    {"conv 4^3 stride 2, 16 to 32",
     CONV(3, SAME "\"filters\": 32, \"kernel_size\": 4, \"strides\": 2"),
     "1x12x12x12x16", "1x64x64x64x16", 0},
    {"conv 3x2x1 of odd data, 5 to 7",
     CONV(3, "\"filters\": 7, \"kernel_size\": [3, 2, 1]"), "2x9x7x5x5", "2x33x35x31x5",
     0},
    {"conv 3^2, 64 to 64", CONV(2, SAME "\"filters\": 64, \"kernel_size\": 3"),
     "2x14x14x64", "8x56x56x64", 0},
    {"conv 7^2 stride 2, 3 to 64",
     CONV(2, SAME "\"filters\": 64, \"kernel_size\": 7, \"strides\": 2"), "1x32x32x3",
     "8x224x224x3", 0},
    {"conv 1^2, 256 to 64", CONV(2, "\"filters\": 64, \"kernel_size\": 1"),
     "2x14x14x256", "8x56x56x256", 0},
    {"conv 3^2 dilated, 16 to 16",
     CONV(2, SAME "\"filters\": 16, \"kernel_size\": 3, \"dilation_rate\": 2"),
     "2x17x19x16", "8x65x67x16", 0},
    {"conv 3^2 in 4 groups, 32 to 32",
     CONV(2, SAME "\"filters\": 32, \"kernel_size\": 3, \"groups\": 4"), "2x14x14x32",
     "8x56x56x32", 0},
    {"depthwise conv 3^2, 32",
     LAYER("DepthwiseConv2D", SAME "\"use_bias\": false, \"kernel_size\": 3"),
     "2x14x14x32", "8x112x112x32", 0},
    {"conv 5, 8 to 12", CONV(1, "\"filters\": 12, \"kernel_size\": 5"), "4x100x8",
     "16x4000x8", 0},
    {"conv 3^2 with bias and ReLU, 32 to 32",
     LAYER("Conv2D",
     SAME "\"filters\": 32, \"kernel_size\": 3, \"activation\": \"relu\""),
     "2x14x14x32", "8x56x56x32", DNN_CASE_FUSED},
    {"deconv 2^3 stride 2, 32 to 16",
     LAYER("Conv3DTranspose",
     SAME "\"filters\": 16, \"kernel_size\": 2, \"strides\": 2"),
     "1x6x6x6x32", "1x32x32x32x32", DNN_CASE_FUSED},
    {"deconv 3^2 stride 2, 5 to 7",
     LAYER("Conv2DTranspose", SAME
           "\"filters\": 7, \"kernel_size\": 3, \"strides\": 2, \"use_bias\": false"),
     "2x9x11x5", "8x57x55x5", 0},
    {"dense, 784 to 128", LAYER("Dense", "\"units\": 128"), "32x784", "256x784",
     DNN_CASE_FUSED | DNN_CASE_UPDATE},
    {"dense, 13 to 5", LAYER("Dense", "\"units\": 5, \"use_bias\": false"), "7x13",
     "1001x13", 0},
    {"bias, 16", LAYER("Dense", "\"units\": 16"), "999x3", "262144x3", 0},
    {"max pooling 2^3", LAYER("MaxPooling3D", "\"pool_size\": 2"), "1x16x16x16x16",
     "1x64x64x64x16", 0},
    {"max pooling 3^2 stride 2",
     LAYER("MaxPooling2D", SAME "\"pool_size\": 3, \"strides\": 2"), "2x15x17x24",
     "8x112x112x64", 0},
    {"average pooling 3^2",
     LAYER("AveragePooling2D", SAME "\"pool_size\": 3, \"strides\": 1"), "2x15x17x24",
     "8x35x35x192", 0},
    {"upsampling 2^3 nearest", LAYER("UpSampling3D", "\"size\": 2"), "1x8x8x8x16",
     "1x32x32x32x32", 0},
    {"upsampling 2^2 linear",
     LAYER("UpSampling2D", "\"size\": 2, \"interpolation\": \"bilinear\""), "2x7x9x5",
     "4x64x64x16", 0},
    {"padding", LAYER("ZeroPadding2D", "\"padding\": [[3, 2], [1, 0]]"), "2x15x17x24",
     "8x112x112x64", 0},
    {"ReLU", LAYER("ReLU", ""), "1x16x16x16x16", "1x64x64x64x16", 0},
    {"ReLU with a mask", LAYER("ReLU", ""), "1x16x16x16x16", "1x64x64x64x16",
     DNN_CASE_FUSED},
    {"sigmoid", LAYER("Activation", "\"activation\": \"sigmoid\""), "1x16x16x16x15",
     "1x64x64x64x16", 0},
    {"gelu", LAYER("Activation", "\"activation\": \"gelu\""), "1x16x16x16x15",
     "1x64x64x64x16", 0},
    {"prelu", LAYER("PReLU", "\"shared_axes\": [1, 2]"), "2x15x17x24", "8x56x56x64", 0},
    {"softmax of 10", LAYER("Softmax", ""), "99x10", "262144x10", 0},
    {"sum of two", LAYER("Add", ""), "1x16x16x16x15", "1x64x64x64x16", DNN_CASE_PAIR},
    {"product of two", LAYER("Multiply", ""), "1x16x16x16x15", "1x64x64x64x16",
     DNN_CASE_PAIR},
    {"join of two", LAYER("Concatenate", "\"axis\": 2"), "1x16x16x16x15",
     "1x64x64x64x16", DNN_CASE_PAIR},
    {"order of axes", LAYER("Permute", "\"dims\": [3, 1, 2]"), "2x15x17x24",
     "8x56x56x64", 0},
    {"mean over space", LAYER("GlobalAveragePooling2D", ""), "2x7x9x24", "8x56x56x256",
     0},
    {"batch norm", LAYER("BatchNormalization", ""), "1x16x16x16x16", "1x64x64x64x16",
     0},
    {"batch norm and ReLU", LAYER("BatchNormalization", "") ", " LAYER("ReLU", ""),
     "1x16x16x16x16", "1x64x64x64x16", DNN_CASE_FUSED},
    {"batch norm in inference", LAYER("BatchNormalization", ""), "1x16x16x16x16",
     "1x64x64x64x16", DNN_CASE_INFER},
    {"batch norm folded",
     CONV(2, SAME
          "\"filters\": 32, \"kernel_size\": 3") ", " LAYER("BatchNormalization", ""),
     "2x14x14x32", "8x56x56x32", DNN_CASE_INFER | DNN_CASE_FUSED},
    {"instance norm", LAYER("InstanceNormalization", "\"affine\": true"),
     "1x16x16x16x16", "1x64x64x64x16", 0},
    {"layer norm", LAYER("LayerNormalization", ""), "99x24", "65536x64", 0},
    {"dropout", LAYER("Dropout", "\"rate\": 0.3"), "1x16x16x16x15", "1x64x64x64x16", 0},
    {"rescaling", LAYER("Rescaling", "\"scale\": 0.5, \"offset\": 1"), "1x16x16x16x15",
     "1x64x64x64x16", 0},
    {"penalty of activations",
     LAYER("ActivityRegularization", "\"l1\": 0.1, \"l2\": 0.2"), "1x16x16x16x15",
     "1x64x64x64x16", 0},
    {"squared error", LAYER("Activation", "\"activation\": \"tanh\""), "1x16x16x16x15",
     "1x64x64x64x16", DNN_CASE_MSE},
    {"cross-entropy of 10", LAYER("Activation", "\"activation\": \"tanh\""), "99x10",
     "262144x10", DNN_CASE_XENT},
    {NULL, NULL, NULL, NULL, 0},
};

static void add_input(struct dnn_buf *text, const char *name,
                      const struct dnn_shape *shape)
{
    dnn_buf_add(text,
                "{\"class_name\": \"InputLayer\", \"name\": \"%s\", \"inbound_nodes\": "
                "[], \"config\": {\"name\": \"%s\", \"batch_input_shape\": [null",
                name, name);
    for (int i = 1; i < shape->ndim; i++)
        dnn_buf_add(text, ", %lld", (long long)shape->dim[i]);
    dnn_buf_add(text, "]}}, ");
}

int dnn_ops_graph(const struct dnn_ops_case *c, bool full, struct dnn_graph **out,
                  int64_t *batch, struct dnn_err *err)
{
    bool pair = c->flags & DNN_CASE_PAIR;
    struct dnn_buf text = {0};
    struct dnn_json *file = NULL;
    struct dnn_shape shape;

    DNN_TRY(dnn_shape_parse(full ? c->full : c->small, &shape, err));
    *batch = shape.dim[0];
    dnn_buf_add(&text, "{\"class_name\": \"%s\", \"config\": {\"layers\": [",
                pair ? "Functional" : "Sequential");
    add_input(&text, "x", &shape);
    if (pair) {
        add_input(&text, "z", &shape);
        /* A layer with two inputs: add the edges at the end of its JSON object. */
        dnn_buf_add(&text,
                    "%.*s, \"name\": \"y\", \"inbound_nodes\": [[[\"x\", 0, 0, {}], "
                    "[\"z\", 0, 0, {}]]]}], \"input_layers\": [[\"x\", 0, 0], [\"z\", "
                    "0, 0]], \"output_layers\": [[\"y\", 0, 0]]}}",
                    (int)strlen(c->layers) - 1, c->layers);
    } else {
        dnn_buf_add(&text, "%s]}}", c->layers);
    }
    int rc = dnn_json_text(c->what, text.text, text.len, &file, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_graph_read_json(&top, NULL, out, err);
    }
    dnn_json_free(file);
    dnn_buf_free(&text);
    return rc;
}
