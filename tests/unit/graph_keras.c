/* graph_keras.c - reading Keras JSON: files of Keras 1, 2 and 3, and error messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/mem.h"
#include "base/text.h"
#include "graph/graph.h"

#include <stdlib.h>

static char *path_of(const char *name)
{
    const char *srcdir = getenv("srcdir");

    return dnn_format("%s/tests/data/keras/%s", srcdir == NULL ? "." : srcdir, name);
}

/* ---- whole files ---- */

static const struct table {
    const char *file, *want;
} tables[] = {
    {"keras1_sequential.json",
     "network: model_1\n"
     "layer (type)                               output shape         params  "
     "connected to\n"
     "convolution2d_1_input (InputLayer)         ?x12x12x1                 0\n"
     "convolution2d_1 (Conv2D)                   ?x10x10x8                80  "
     "convolution2d_1_input\n"
     "batchnormalization_1 (BatchNormalization)  ?x10x10x8                32  "
     "convolution2d_1\n"
     "maxpooling2d_1 (MaxPooling2D)              ?x5x5x8                   0  "
     "batchnormalization_1\n"
     "dropout_1 (Dropout)                        ?x5x5x8                   0  "
     "maxpooling2d_1\n"
     "flatten_1 (Flatten)                        ?x200                     0  "
     "dropout_1\n"
     "dense_1 (Dense)                            ?x10                  2,010  "
     "flatten_1\n"
     "total params: 2,122\n"
     "trainable params: 2,106\n"
     "non-trainable params: 16\n"},
    {"keras1_model.json",
     "network: model_1\n"
     "layer (type)          output shape         params  connected to\n"
     "input_1 (InputLayer)  ?x16                      0\n"
     "dense_1 (Dense)       ?x8                     136  input_1\n"
     "dense_2 (Dense)       ?x8                     128  input_1\n"
     "merge_1 (Merge)       ?x16                      0  dense_1, dense_2\n"
     "total params: 264\n"
     "trainable params: 264\n"
     "non-trainable params: 0\n" },
    {"keras2_sequential.json",
     "network: sequential\n"
     "layer (type)                    output shape         params  connected to\n"
     "conv2d_input (InputLayer)       ?x28x28x1                 0\n"
     "conv2d (Conv2D)                 ?x26x26x32              320  conv2d_input\n"
     "max_pooling2d (MaxPooling2D)    ?x13x13x32                0  conv2d\n"
     "conv2d_1 (Conv2D)               ?x11x11x64           18,496  max_pooling2d\n"
     "max_pooling2d_1 (MaxPooling2D)  ?x5x5x64                  0  conv2d_1\n"
     "flatten (Flatten)               ?x1600                    0  max_pooling2d_1\n"
     "dropout (Dropout)               ?x1600                    0  flatten\n"
     "dense (Dense)                   ?x10                 16,010  dropout\n"
     "total params: 34,826\n"
     "trainable params: 34,826\n"
     "non-trainable params: 0\n" },
    {"keras2_functional.json",
     "network: model\n"
     "layer (type)                          output shape         params  connected to\n"
     "left (InputLayer)                     ?x16x16x3                 0\n"
     "right (InputLayer)                    ?x16x16x3                 0\n"
     "encoder/enc_conv (Conv2D)             ?x16x16x4               112  left\n"
     "encoder/enc_bn (BatchNormalization)   ?x16x16x4                16  "
     "encoder/enc_conv\n"
     "encoder/max_pooling2d (MaxPooling2D)  ?x8x8x4                   0  "
     "encoder/enc_bn\n"
     "encoder/enc_conv (Conv2D)             ?x16x16x4                 0  right\n"
     "encoder/enc_bn (BatchNormalization)   ?x16x16x4                 0  "
     "encoder/enc_conv\n"
     "encoder/max_pooling2d (MaxPooling2D)  ?x8x8x4                   0  "
     "encoder/enc_bn\n"
     "subtract (Subtract)                   ?x8x8x4                   0  "
     "encoder/max_pooling2d, encoder/max_pooling2d\n"
     "concatenate (Concatenate)             ?x16x16x8                 0  "
     "encoder/enc_bn, encoder/enc_bn\n"
     "pool (GlobalAveragePooling2D)         ?x8                       0  concatenate\n"
     "flatten (Flatten)                     ?x256                     0  subtract\n"
     "dense (Dense)                         ?x5                   1,285  flatten\n"
     "head (Dense)                          ?x2                      18  pool\n"
     "total params: 1,431\n"
     "trainable params: 1,423\n"
     "non-trainable params: 8\n" },
    {"keras3_sequential.json",
     "network: sequential\n"
     "layer (type)                              output shape         params  connected "
     "to\n"
     "input_layer (InputLayer)                  ?x32x32x32x1              0\n"
     "conv3d (Conv3D)                           ?x16x16x16x8            520  "
     "input_layer\n"
     "batch_normalization (BatchNormalization)  ?x16x16x16x8             32  conv3d\n"
     "conv3d_transpose (Conv3DTranspose)        ?x32x32x32x4          2,052  "
     "batch_normalization\n"
     "gap (GlobalAveragePooling3D)              ?x1x1x1x4                 0  "
     "conv3d_transpose\n"
     "total params: 2,604\n"
     "trainable params: 2,588\n"
     "non-trainable params: 16\n"},
    {"keras3_functional.json",
     "network: functional\n"
     "layer (type)             output shape         params  connected to\n"
     "image (InputLayer)       ?x8x8x3                   0\n"
     "conv (Conv2D)            ?x8x8x4                 112  image\n"
     "shared (Conv2D)          ?x8x8x4                 148  conv\n"
     "shared (Conv2D)          ?x8x8x4                   0  shared\n"
     "bn (BatchNormalization)  ?x8x8x4                  16  shared\n"
     "add (Add)                ?x8x8x4                   0  conv, bn\n"
     "re_lu (ReLU)             ?x8x8x4                   0  add\n"
     "total params: 276\n"
     "trainable params: 268\n"
     "non-trainable params: 8\n" },
};

static void check_table(const struct table *t)
{
    char *path = path_of(t->file), *text = NULL;
    struct dnn_graph *graph = NULL;
    struct dnn_err err = {0};
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (dnn_graph_read(path, NULL, &graph, &err) < 0)
        fprintf(out, "%s", err.text);
    else
        dnn_graph_print(graph, out);
    fclose(out);
    is_text(text, t->want, t->file);
    free(text);
    dnn_graph_free(graph);
    dnn_free(path);
}

/* ---- ops ---- */

static char *ops_of(const char *name, int64_t batch, bool training,
                    const struct dnn_graph_opts *opts)
{
    char *path = path_of(name), *text = NULL;
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, training);
    struct dnn_graph *graph = NULL;
    struct dnn_err err = {0};
    int output[8] = {0};
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (dnn_graph_read(path, opts, &graph, &err) < 0 ||
        dnn_graph_lower(graph, batch, prog, output, &err) < 0)
        fprintf(out, "%s", err.text);
    else {
        dnn_prog_print(prog, out);
        for (int i = 0; i < graph->noutputs; i++)
            fprintf(out, "-> %%%d\n", output[i]);
    }
    fclose(out);
    dnn_graph_free(graph);
    dnn_prog_free(prog);
    dnn_free(path);
    return text;
}

static void check_ops(void)
{
    char *text = ops_of("keras3_functional.json", 2, true, NULL);

    /* The shared layer has one kernel; the norm was called with training false. */
    is_text(text,
            "%0 2x8x8x3 image\n"
            "%1 3x3x3x4 kernel\n"
            "%2 4 bias\n"
            "%3 2x8x8x4 = conv %0 %1 kernel=3x3 pad=1x1:1x1\n"
            "%4 2x8x8x4 = bias %3 %2\n"
            "%5 3x3x4x4 kernel\n"
            "%6 4 bias\n"
            "%7 2x8x8x4 = conv %4 %5 kernel=3x3 pad=1x1:1x1\n"
            "%8 2x8x8x4 = bias %7 %6\n"
            "%9 2x8x8x4 = unary %8 gelu\n"
            "%10 2x8x8x4 = conv %9 %5 kernel=3x3 pad=1x1:1x1\n"
            "%11 2x8x8x4 = bias %10 %6\n"
            "%12 2x8x8x4 = unary %11 gelu\n"
            "%13 4 gamma\n"
            "%14 4 beta\n"
            "%15 4 moving_mean\n"
            "%16 4 moving_variance\n"
            "%17 2x8x8x4 = bn_infer %12 %15 %16 %13 %14 axis=3 epsilon=0.001\n"
            "%18 2x8x8x4 = combine %4 %17 add\n"
            "%19 2x8x8x4 = unary %18 relu max=6\n"
            "-> %19\n",
            "ops of keras3_functional.json");
    free(text);

    struct dnn_shape other = {
        .ndim = 4, .dim = {DNN_UNKNOWN, 6, 4, 3}
    };
    text =
        ops_of("keras3_functional.json", 1, false, &(struct dnn_graph_opts){1, &other});
    ok(strstr(text, "%0 1x6x4x3 image\n") == text, "another input shape");
    free(text);
    text = ops_of("keras3_functional.json", 0, false, NULL);
    is_text(text, "the batch must be between 1 and 1073741824, not 0", "no batch");
    free(text);
    text =
        ops_of("keras2_functional.json", 1, false, &(struct dnn_graph_opts){1, &other});
    ok(strstr(text, "keras2_functional.json: the network has 2 inputs, not 1") != NULL,
       "a shape for one input of two");
    free(text);
}

/* ---- small networks, valid and invalid ---- */

#define IN(name, shape)                                                                \
    "{\"class_name\": \"InputLayer\", \"config\": {\"name\": \"" name                  \
    "\", \"batch_input_shape\": " shape "}, \"inbound_nodes\": []}"
#define DENSE(name, more, from)                                                        \
    "{\"class_name\": \"Dense\", \"name\": \"" name                                    \
    "\", \"config\": {\"units\": 3" more "}, \"inbound_nodes\": " from "}"
#define LAYER(kind, name, from)                                                        \
    "{\"class_name\": \"" kind "\", \"name\": \"" name                                 \
    "\", \"config\": {}, \"inbound_nodes\": " from "}"
#define MODEL(layers, ends)                                                            \
    "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": [" layers   \
    "]" ends "}}"

static const struct text {
    const char *what, *json, *want; /* "nodes params trainable", or a message */
} texts[] = {
    {"a list of layers",
     "[{\"class_name\": \"Dense\", \"config\": {\"units\": 3, \"batch_input_shape\": "
     "[null, 4]}}, {\"class_name\": \"ReLU\", \"config\": {}}]", "3 15 15"},
    {"input_shape without the batch",
     "[{\"class_name\": \"Dense\", \"config\": {\"units\": 3, \"input_shape\": [4]}}]", "2 15 15"},
    {"layers without inbound_nodes follow each other",
     MODEL(IN("a", "[null, 4]") ", " DENSE(
               "b", "", "[[[\"a\", 0, 0, {}]]]") ", {\"class_name\": \"ReLU\", "
                                                 "\"config\": {\"name\": \"c\"}}", ""),
     "3 15 15"},
    {"a frozen model",
     "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"trainable\": "
     "false, "
     "\"layers\": [{\"class_name\": \"Dense\", \"config\": {\"units\": 3, "
     "\"batch_input_shape\": [null, 4]}}]}}", "2 15 0"},
    {"a model in a model, first in the chain",
     "[{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": "
     "[{\"class_name\": \"Dense\", \"config\": {\"units\": 3, \"batch_input_shape\": "
     "[null, 4]}}]}}, {\"class_name\": \"Dense\", \"config\": {\"units\": 2}}]", "3 23 23"},
    {"a zoo network", "{\"zoo\": \"simplemlp\", \"base\": 8}", "6 6514 6514"},
    {"outputs that are not listed",
     MODEL(IN("a", "[null, 4]") ", " DENSE("b", "", "[[[\"a\", 0, 0]]]") ", " DENSE(
               "c", "", "[[[\"a\", 0, 0]]]"),
     ""),
     "3 30 30"},
    {"no input shape", "[{\"class_name\": \"Dense\", \"config\": {\"units\": 3}}]",
     "net:1: layer 'Dense_1_input' (InputLayer): the input shape is not given: add an "
     "InputLayer with \"batch_input_shape\": [null, 64, 64, 1] in front, or that key "
     "into "
     "the first layer"},
    {"an unknown layer name",
     MODEL(IN("image", "[null, 4]") ",\n" DENSE("b", "", "[[[\"imgae\", 0, 0, {}]]]"),
     ""),
     "net:2: layer 'b' (Dense): there is no layer \"imgae\"; did you mean \"image\"?"},
    {"a cycle",
     MODEL(IN("a", "[null, 4]") ",\n" LAYER(
               "Add", "b",
     "[[[\"a\", 0, 0], [\"c\", 0, 0]]]") ",\n" LAYER("ReLU", "c",
     "[[[\"b\", 0, 0]]]"),
     ""),
     "net:3: layer 'c' (ReLU): is part of a cycle: it needs 'b', which needs it"},
    {"a name twice",
     "[{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 3, "
     "\"input_dim\": 4}},\n{\"class_name\": \"ReLU\", \"config\": {\"name\": \"d\"}}]", "net:2: layer 'd' (ReLU): another layer has this name already"},
    {"two names of one layer",
     "[{\"class_name\": \"ReLU\", \"name\": \"a\", \"config\": {\"name\": \"b\"}}]", "net:1: [0].config.name: must be \"a\", as the name next to \"config\""},
    {"shapes that do not match",
     MODEL(IN("a", "[null, 4]") ", " IN("b", "[null, 5]") ",\n" LAYER(
               "Add", "c", "[[[\"a\", 0, 0], [\"b\", 0, 0]]]"),
     ""),
     "net:2: layer 'c' (Add): input shapes do not match: the first is ?x4, number 2 is "
     "?x5"},
    {"a shared layer with different input shapes",
     MODEL(IN("a", "[null, 4]") ", " IN("b", "[null, 5]") ",\n" DENSE(
               "c", "", "[[[\"a\", 0, 0]], [[\"b\", 0, 0]]]"),
     ""),
     "net:2: layer 'c' (Dense): is used again with an input for which its kernel would "
     "be "
     "5x3, not 4x3"},
    {"a call that does not exist",
     MODEL(IN("a", "[null, 4]") ",\n" DENSE("c", "", "[[[\"a\", 1, 0]]]"), ""),
     "net:2: layer 'c' (Dense): layer \"a\" is used 1 time, there is no use 1"},
    {"an output that does not exist",
     MODEL(IN("a", "[null, 4]") ",\n" DENSE("c", "", "[[[\"a\", 0, 1]]]"), ""),
     "net:2: layer 'c' (Dense): layer \"a\" has 1 output, there is no output 1"},
    {"an output layer that does not exist",
     MODEL(IN("a", "[null, 4]"), ", \"output_layers\": [[\"b\", 0, 0]]"),
     "net:1: model 'm': there is no layer \"b\""},
    {"a call with something else",
     MODEL(
         IN("a", "[null, 4]") ",\n" DENSE("c", "", "[[[\"a\", 0, 0, {\"mask\": 3}]]]"),
     ""),
     "net:2: config.layers[1].inbound_nodes[0][0][3].mask: a layer may be called with "
     "\"training\", not with 3; make it a layer of its own"},
    {"a model of another kind", "{\"class_name\": \"Sequental\", \"config\": []}",
     "net:1: class_name: must be Sequential, Functional or Model, not \"Sequental\""},
    {"a key of a model",
     "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layer\": []}}", "net:1: config: the key \"layers\" is missing"},
    {"a key of a layer",
     "[{\"class_name\": \"ReLU\", \"config\": {}, \"inbound\": []}]", "net:1: [0].inbound: unknown key"},
    {"no layers", "[]", "net:1: must have at least one layer"},
    {"no network", "3", "net:1: must be a model or a list of layers, not 3"},
    {"an absurd extent",
     "[{\"class_name\": \"Flatten\", \"config\": {\"batch_input_shape\": [null, "
     "1e12]}}]", "net:1: layer 'Flatten_1' (Flatten): batch_input_shape[1]: must be null or "
     "between 1 "
     "and 1073741824, not 1000000000000"},
    {"an absurd product",
     "[{\"class_name\": \"UpSampling2D\", \"config\": {\"size\": 65536, "
     "\"batch_input_shape\": [null, 9999, 9999, 9]}}]", "net:1: layer 'UpSampling2D_1' (UpSampling2D): its output would be "
     "?x655294464x655294464x9, too large to compute"},
    {"an unknown zoo network", "{\"zoo\": \"unet4d\"}",
     "net:1: the zoo has no network \"unet4d\"; did you mean \"unet2d\"?"},
    {"a zoo network without that option", "{\"zoo\": \"vgg16\", \"depth\": 3}",
     "net:1: the network vgg16 has no option \"depth\""},
};

static int read_text(const char *json, struct dnn_graph **out, struct dnn_err *err)
{
    struct dnn_json *file = NULL;

    DNN_TRY(dnn_json_text("net", json, strlen(json), &file, err));
    struct dnn_jobj top = dnn_json_top(file);
    int rc = dnn_graph_read_json(&top, NULL, out, err);
    dnn_json_free(file);
    return rc;
}

static void check_text(const struct text *t)
{
    struct dnn_graph *graph = NULL;
    struct dnn_err err = {0};
    char *got = NULL;

    if (read_text(t->json, &graph, &err) == 0)
        got = dnn_format("%d %lld %lld", graph->nnodes, (long long)graph->params,
                         (long long)graph->trainable);
    is_text(got == NULL ? err.text : got, t->want, t->what);
    dnn_free(got);
    dnn_graph_free(graph);
}

/* ---- small files that would be large networks ---- */

/* Models in models, each used ten times by the next. */
static void check_bomb(void)
{
    char *text = dnn_strdup(
        MODEL(IN("i", "[null, 4]") ", " LAYER("ReLU", "r", "[[[\"i\", 0, 0]]]"), ""));
    struct dnn_graph *graph = NULL;
    struct dnn_err err = {0};

    for (int level = 0; level < 8; level++) {
        struct dnn_buf calls = {0};

        for (int i = 0; i < 10; i++)
            dnn_buf_add(&calls, "%s[[\"i\", 0, 0]]", i == 0 ? "" : ", ");
        text[strlen(text) - 1] = '\0'; /* its last brace */
        char *next = dnn_format(
            "{\"class_name\": \"Model\", \"config\": {\"name\": \"m%d\", \"layers\": "
            "[" IN("i", "[null, 4]") ", %s, \"inbound_nodes\": [%s]}]}}",
            level, text, calls.text);
        dnn_buf_free(&calls);
        dnn_free(text);
        text = next;
    }
    int rc = read_text(text, &graph, &err);
    ok(rc < 0 && strstr(err.text, "more than") != NULL,
       "models in models that multiply: %s", err.text);
    dnn_graph_free(graph);
    dnn_free(text);
}

int main(void)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        check_table(&tables[i]);
    check_ops();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_text(&texts[i]);
    check_bomb();
    return done();
}
