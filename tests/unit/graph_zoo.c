/* graph_zoo.c - well-known networks have the published numbers of parameters.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/mem.h"
#include "graph/graph.h"
#include "graph/zoo.h"

static const struct count {
    const char *json;
    long long params, trainable; /* -1: not published */
} counts[] = {
    {"{\"zoo\": \"simplemlp\"}",                                              932362,    932362   },
    {"{\"zoo\": \"simplecnn\"}",                                              202458,    202458   },
    {"{\"zoo\": \"alexnet\"}",                                                62378344,  62378344 },
    {"{\"zoo\": \"vgg11\"}",                                                  132863336, 132863336},
    {"{\"zoo\": \"vgg16\"}",                                                  138357544, 138357544},
    {"{\"zoo\": \"vgg19\"}",                                                  143667240, 143667240},
    {"{\"zoo\": \"googlenet\"}",                                              6998552,   6998552  },
    {"{\"zoo\": \"inceptionv3\"}",                                            23851784,  23817352 },
    {"{\"zoo\": \"resnet18\"}",                                               11699112,  11689512 },
    {"{\"zoo\": \"resnet34\"}",                                               21814696,  21797672 },
    {"{\"zoo\": \"resnet50\"}",                                               25636712,  25583592 },
    {"{\"zoo\": \"resnet101\"}",                                              44707176,  44601832 },
    {"{\"zoo\": \"resnet152\"}",                                              60419944,  60268520 },
    {"{\"zoo\": \"resnet50v2\"}",                                             25613800,  25568360 },
    {"{\"zoo\": \"wideresnet28_10\"}",                                        36497146,  36479194 },
    {"{\"zoo\": \"resnet20\"}",                                               273914,    272538   },
    {"{\"zoo\": \"densenet121\"}",                                            8062504,   7978856  },
    {"{\"zoo\": \"mobilenet\"}",                                              4253864,   4231976  },
    {"{\"zoo\": \"mobilenetv2\"}",                                            3538984,   3504872  },
    {"{\"zoo\": \"unet3d\"}",                                                 1402673,   1401265  },
    {"{\"zoo\": \"unet2d\"}",                                                 1929249,   1926433  },
    {"{\"zoo\": \"alexnet_cifar10\"}",                                        23272266,  -1       },
    {"{\"zoo\": \"vgg1\"}",                                                   1060138,   -1       },
    {"{\"zoo\": \"vgg2\"}",                                                   591274,    -1       },
    {"{\"zoo\": \"vgg3\"}",                                                   550570,    -1       },
    {"{\"zoo\": \"vgg3do\"}",                                                 550570,    -1       },
    {"{\"zoo\": \"vgg3do2\"}",                                                550570,    -1       },
    {"{\"zoo\": \"vgg3dobn\"}",                                               1345066,   -1       },
    {"{\"zoo\": \"vgg11_cifar10\"}",                                          9750922,   -1       },
    {"{\"zoo\": \"vgg16_cifar10\"}",                                          15245130,  -1       },
    {"{\"zoo\": \"vgg11bn_cifar10\"}",                                        9766026,   -1       },
    {"{\"zoo\": \"vgg16bn_cifar10\"}",                                        15266122,  -1       },
    {"{\"zoo\": \"resnet20_cifar10\"}",                                       279242,    -1       },
    {"{\"zoo\": \"resnet32_cifar10\"}",                                       475018,    -1       },
    {"{\"zoo\": \"resnet56_cifar10\"}",                                       866906,    -1       },
    {"{\"zoo\": \"resnet110_cifar10\"}",                                      1747898,   -1       },
    {"{\"zoo\": \"resnet18_cifar10\"}",                                       11453066,  -1       },
    {"{\"zoo\": \"resnet34_cifar10\"}",                                       21572362,  -1       },
    {"{\"zoo\": \"densenet_cifar10\"}",                                       1031938,   -1       },
    {"{\"zoo\": \"googlenet_cifar10\"}",                                      7235754,   -1       },
    {"{\"zoo\": \"mobilenetv1_cifar10\"}",                                    4288586,   -1       },
    {"{\"zoo\": \"resnet50v15\"}",                                            25636712,  25583592 },
    {"{\"zoo\": \"resnet101v2\"}",                                            44675560,  44577896 },
    {"{\"zoo\": \"resnet152v2\"}",                                            60380648,  60236904 },
    {"{\"zoo\": \"densenet169\"}",                                            14307880,  14149480 },
    {"{\"zoo\": \"densenet201\"}",                                            20242984,  20013928 },
    {"{\"zoo\": \"densenet161\"}",                                            -1,        28681000 },
    {"{\"zoo\": \"vgg13\"}",                                                  133047848, 133047848},
    {"{\"zoo\": \"vgg11bn\"}",                                                -1,        132868840},
    {"{\"zoo\": \"vgg13bn\"}",                                                -1,        133053736},
    {"{\"zoo\": \"vgg16bn\"}",                                                -1,        138365992},
    {"{\"zoo\": \"vgg19bn\"}",                                                -1,        143678248},
    {"{\"zoo\": \"resnet10\"}",                                               -1,        -1       },
    {"{\"zoo\": \"ResNet50_imagenet\"}",                                      25636712,  25583592 },
    {"{\"zoo\": \"unet\", \"backbone\": \"vgg16\"}",                          23752273,  -1       },
    {"{\"zoo\": \"unet\", \"backbone\": \"mobilenetv2\"}",                    8047441,   -1       },
    {"{\"zoo\": \"wideresnet\"}",                                             36497146,  36479194 },
    {"{\"zoo\": \"wideresnet\", \"depth\": 16, \"width\": 4}",                -1,        -1       },
    {"{\"zoo\": \"unet\", \"backbone\": \"vgg19\"}",                          -1,        -1       },
    {"{\"zoo\": \"unet\", \"backbone\": \"resnet18\"}",                       -1,        -1       },
    {"{\"zoo\": \"unet\", \"backbone\": \"resnet34\"}",                       -1,        -1       },
    {"{\"zoo\": \"unet\", \"backbone\": \"resnet50\"}",                       -1,        -1       },
    {"{\"zoo\": \"unet\", \"backbone\": \"resnet101\"}",                      -1,        -1       },
    {"{\"zoo\": \"unet\", \"backbone\": \"resnet152\"}",                      -1,        -1       },
    {"{\"zoo\": \"unet\", \"backbone\": \"densenet121\"}",                    -1,        -1       },
    {"{\"zoo\": \"unet\", \"backbone\": \"densenet169\"}",                    -1,        -1       },
    {"{\"zoo\": \"unet\", \"backbone\": \"densenet201\"}",                    -1,        -1       },
    {"{\"zoo\": \"unet\", \"backbone\": \"mobilenet\"}",                      -1,        -1       },
    {"{\"zoo\": \"linknet\", \"backbone\": \"vgg16\", \"classes\": 3}",       -1,        -1       },
    {"{\"zoo\": \"linknet\", \"backbone\": \"vgg19\", \"classes\": 3}",       -1,        -1       },
    {"{\"zoo\": \"linknet\", \"backbone\": \"resnet18\", \"classes\": 3}",    -1,        -1       },
    {"{\"zoo\": \"linknet\", \"backbone\": \"resnet50\", \"classes\": 3}",    -1,        -1       },
    {"{\"zoo\": \"linknet\", \"backbone\": \"densenet121\", \"classes\": 3}", -1,        -1       },
    {"{\"zoo\": \"linknet\", \"backbone\": \"mobilenet\", \"classes\": 3}",   -1,        -1       },
    {"{\"zoo\": \"linknet\", \"backbone\": \"mobilenetv2\", \"classes\": 3}", -1,        -1       },
    {"{\"zoo\": \"fpn\", \"backbone\": \"vgg16\", \"classes\": 3}",           -1,        -1       },
    {"{\"zoo\": \"fpn\", \"backbone\": \"vgg19\", \"classes\": 3}",           -1,        -1       },
    {"{\"zoo\": \"fpn\", \"backbone\": \"resnet18\", \"classes\": 3}",        -1,        -1       },
    {"{\"zoo\": \"fpn\", \"backbone\": \"resnet50\", \"classes\": 3}",        -1,        -1       },
    {"{\"zoo\": \"fpn\", \"backbone\": \"densenet121\", \"classes\": 3}",     -1,        -1       },
    {"{\"zoo\": \"fpn\", \"backbone\": \"mobilenet\", \"classes\": 3}",       -1,        -1       },
    {"{\"zoo\": \"fpn\", \"backbone\": \"mobilenetv2\", \"classes\": 3}",     -1,        -1       },
    {"{\"zoo\": \"pspnet\", \"backbone\": \"vgg16\", \"classes\": 3}",        -1,        -1       },
    {"{\"zoo\": \"pspnet\", \"backbone\": \"vgg19\", \"classes\": 3}",        -1,        -1       },
    {"{\"zoo\": \"pspnet\", \"backbone\": \"resnet18\", \"classes\": 3}",     -1,        -1       },
    {"{\"zoo\": \"pspnet\", \"backbone\": \"resnet50\", \"classes\": 3}",     -1,        -1       },
    {"{\"zoo\": \"pspnet\", \"backbone\": \"densenet121\", \"classes\": 3}",  -1,        -1       },
    {"{\"zoo\": \"pspnet\", \"backbone\": \"mobilenet\", \"classes\": 3}",    -1,        -1       },
    {"{\"zoo\": \"pspnet\", \"backbone\": \"mobilenetv2\", \"classes\": 3}",  -1,        -1       },
    {"{\"zoo\": \"resnet44_cifar10\"}",                                       -1,        -1       },
    {"{\"zoo\": \"resnet1202_cifar10\"}",                                     -1,        -1       },
    {"{\"zoo\": \"resnet50_cifar10\"}",                                       -1,        -1       },
    {"{\"zoo\": \"resnet101_cifar10\"}",                                      -1,        -1       },
    {"{\"zoo\": \"resnet152_cifar10\"}",                                      -1,        -1       },
    {"{\"zoo\": \"densenet121_cifar10\"}",                                    -1,        -1       },
    {"{\"zoo\": \"densenet161_cifar10\"}",                                    -1,        -1       },
    {"{\"zoo\": \"densenet169_cifar10\"}",                                    -1,        -1       },
    {"{\"zoo\": \"densenet201_cifar10\"}",                                    -1,        -1       },
    {"{\"zoo\": \"resnet101v15\"}",                                           -1,        -1       },
    {"{\"zoo\": \"resnet152v15\"}",                                           -1,        -1       },
    {"{\"zoo\": \"cifar10_model\"}",                                          -1,        -1       },
    {"{\"zoo\": \"unet3d\", \"base\": 24, \"depth\": 2, \"norm\": \"instance\", "
     "\"down\": "
     "\"stride\", \"up\": \"upsample\", \"classes\": 4, \"dropout\": 0.1, \"input\": "
     "[48, "
     "80, 64, 2]}",                                                      -1,        -1       },
    {"{\"zoo\": \"unet2d\", \"norm\": \"group\", \"convolutions\": 1}",       -1,        -1       },
    {"{\"zoo\": \"unet2d\", \"norm\": \"none\", \"classes\": 3}",             -1,        -1       },
    {"{\"zoo\": \"unet2d\", \"norm\": \"layer\"}",                            -1,        -1       },
};

/* Written as Keras 3 JSON and read again, the network has the same layers, and the same
 * text when it is written again. */
static void check_written(const struct dnn_graph *graph)
{
    struct dnn_buf first = {0}, second = {0};
    struct dnn_graph *again = NULL;
    struct dnn_json *file = NULL;
    struct dnn_err err = {0};
    int rc = dnn_graph_write(graph, &first, &err);

    if (rc == 0) rc = dnn_json_text("written", first.text, first.len, &file, &err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_graph_read_json(&top, NULL, &again, &err);
    }
    if (rc == 0) rc = dnn_graph_write(again, &second, &err);
    ok(rc == 0 && again->nnodes == graph->nnodes && again->params == graph->params &&
           again->trainable == graph->trainable && strcmp(first.text, second.text) == 0,
       "the same after writing and reading %s", err.text);
    dnn_buf_free(&first);
    dnn_buf_free(&second);
    dnn_json_free(file);
    dnn_graph_free(again);
}

/* Also lower it: a wrong shape of a layer would be an error. */
static void check(const struct count *c)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    struct dnn_graph *graph = NULL;
    struct dnn_json *file = NULL;
    struct dnn_err err = {0};
    int output;
    int rc = dnn_json_text("zoo", c->json, strlen(c->json), &file, &err);

    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_graph_read_json(&top, NULL, &graph, &err);
    }
    ok(rc == 0, "%s reads %s", c->json, err.text);
    if (rc == 0) {
        if (c->params >= 0) is_int(graph->params, c->params, "its parameters");
        if (c->trainable >= 0)
            is_int(graph->trainable, c->trainable, "of them trainable");
        rc = dnn_graph_lower(graph, 1, prog, &output, &err);
        ok(rc == 0, "lowers to %d ops %s", prog->nops, err.text);
        if (rc == 0) {
            struct dnn_shape want = graph->node[graph->output[0]].out;

            want.dim[0] = 1;
            ok(dnn_shape_equal(dnn_prog_shape(prog, output), &want),
               "their output has the shape of the graph");
        }
        int64_t weights = 0;
        for (int i = 0; i < prog->nvalues; i++) {
            int64_t n = 0;
            enum dnn_role role = prog->value[i].role;

            if (role == DNN_WEIGHT || role == DNN_STATE)
                if (dnn_shape_count(&prog->value[i].is.shape, &n, NULL) == 0)
                    weights += n;
        }
        is_int(weights, graph->params, "weights of the program");
        check_written(graph);
    }
    dnn_json_free(file);
    dnn_graph_free(graph);
    dnn_prog_free(prog);
}

int main(void)
{
    struct dnn_err err = {0};
    int n = 0;

    ok(dnn_field_check(dnn_zoo_fields, &err) == 0, "options are valid %s", err.text);
    while (dnn_zoo_name(n) != NULL)
        n++;
    is_int(n, 70, "networks in the zoo");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        check(&counts[i]);
    return done();
}
