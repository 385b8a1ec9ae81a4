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
    long long params, trainable;
} counts[] = {
    {"{\"zoo\": \"simplemlp\"}",                                        932362,    932362   },
    {"{\"zoo\": \"simplecnn\"}",                                        202458,    202458   },
    {"{\"zoo\": \"alexnet\"}",                                          62378344,  62378344 },
    {"{\"zoo\": \"vgg11\"}",                                            132863336, 132863336},
    {"{\"zoo\": \"vgg16\"}",                                            138357544, 138357544},
    {"{\"zoo\": \"vgg19\"}",                                            143667240, 143667240},
    {"{\"zoo\": \"googlenet\"}",                                        6998552,   6998552  },
    {"{\"zoo\": \"inceptionv3\"}",                                      23851784,  23817352 },
    {"{\"zoo\": \"resnet18\"}",                                         11699112,  11689512 },
    {"{\"zoo\": \"resnet34\"}",                                         21814696,  21797672 },
    {"{\"zoo\": \"resnet50\"}",                                         25636712,  25583592 },
    {"{\"zoo\": \"resnet101\"}",                                        44707176,  44601832 },
    {"{\"zoo\": \"resnet152\"}",                                        60419944,  60268520 },
    {"{\"zoo\": \"resnet50v2\"}",                                       25613800,  25568360 },
    {"{\"zoo\": \"wideresnet28_10\"}",                                  36497146,  36479194 },
    {"{\"zoo\": \"resnet20\"}",                                         273914,    272538   },
    {"{\"zoo\": \"densenet121\"}",                                      8062504,   7978856  },
    {"{\"zoo\": \"mobilenet\"}",                                        4253864,   4231976  },
    {"{\"zoo\": \"mobilenetv2\"}",                                      3538984,   3504872  },
    {"{\"zoo\": \"unet3d\"}",                                           1402673,   1401265  },
    {"{\"zoo\": \"unet2d\"}",                                           1929249,   1926433  },
    {"{\"zoo\": \"unet3d\", \"base\": 24, \"depth\": 2, \"norm\": \"instance\", "
     "\"down\": "
     "\"stride\", \"up\": \"upsample\", \"classes\": 4, \"dropout\": 0.1, \"input\": "
     "[48, "
     "80, 64, 2]}",                                                -1,        0        },
    {"{\"zoo\": \"unet2d\", \"norm\": \"group\", \"convolutions\": 1}", -1,        0        },
    {"{\"zoo\": \"unet2d\", \"norm\": \"none\", \"classes\": 3}",       -1,        0        },
    {"{\"zoo\": \"unet2d\", \"norm\": \"layer\"}",                      -1,        0        },
};

/* Written as Keras 3 writes it and read again it is the same network: the same layers,
 * and the same text when it is written once more. */
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
           again->trainable == graph->trainable &&
           strcmp(first.text, second.text) == 0,
       "written and read it is the same %s", err.text);
    dnn_buf_free(&first);
    dnn_buf_free(&second);
    dnn_json_free(file);
    dnn_graph_free(again);
}

/* Also through the ops: a shape the layers got wrong would stop there. */
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
        if (c->params >= 0) is_int(graph->trainable, c->trainable, "of them trainable");
        rc = dnn_graph_lower(graph, 1, prog, &output, &err);
        ok(rc == 0, "lowers to %d ops %s", prog->nops, err.text);
        if (rc == 0) {
            struct dnn_shape want = graph->node[graph->output[0]].out;

            want.dim[0] = 1;
            ok(dnn_shape_equal(dnn_prog_shape(prog, output), &want),
               "they end in the shape the graph has");
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

    ok(dnn_field_check(dnn_zoo_fields, &err) == 0, "options are sound %s", err.text);
    while (dnn_zoo_name(n) != NULL)
        n++;
    is_int(n, 21, "networks in the zoo");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        check(&counts[i]);
    return done();
}
