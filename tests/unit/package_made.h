/* package_made.h - a small model file for tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_PACKAGE_MADE_H
#define DNN_TESTS_PACKAGE_MADE_H

#include "archive/archive.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "package/package_impl.h"

#include <stdlib.h>

/* 8x8x1 images, 3 classes; UNITS and SHAPE vary. */
#define MADE_NETWORK(SHAPE, FILTERS)                                                   \
    "[{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"conv\", "                  \
    "\"filters\": " FILTERS ", \"kernel_size\": [3, 3]" SHAPE "}},"                    \
    " {\"class_name\": \"Flatten\", \"config\": {\"name\": \"flat\"}},"                \
    " {\"class_name\": \"Dense\", \"config\": {\"name\": \"out\", \"units\": 3}}]"
#define MADE_SHAPE ", \"batch_input_shape\": [null, 8, 8, 1]"

static const int64_t made_extent[] = {8, 8, 1};
static const double made_scale[] = {0.125}, made_offset[] = {-1};
static const char *const made_class[] = {"cat", "dog", "\"bird\""};
static const struct dnn_package_input made_input = {
    .name = "conv_input",
    .column = "picture",
    .stored = "u8",
    .kind = "image",
    .shape = {.count = 3, .ints = made_extent },
    .scale = {.count = 1, .reals = made_scale },
    .offset = {.count = 1, .reals = made_offset}
};
static const struct dnn_package_target made_target = {
    .name = "out",
    .kind = "label",
    .classes = 3,
    .class_names = {.count = 3, .texts = made_class}
};

/* A model file in parts. */
struct made {
    struct dnn_graph *graph;
    struct dnn_buf keras; /* the network as Keras writes it */
    struct dnn_package_parts parts;
};

static int made_value(void *arg, int v, void *to, struct dnn_err *err)
{
    const struct dnn_prog *prog = arg;
    int64_t n = 0;

    DNN_TRY(dnn_shape_count(&prog->value[v].is.shape, &n, err));
    for (int64_t i = 0; i < n; i++)
        ((float *)to)[i] = (float)(v + 1) + (float)i * 0.25F;
    return 0;
}

/* Make the parts: the network given, with weights for it. */
static int made_open(struct made *m, const char *network, struct dnn_err *err)
{
    struct dnn_json *file;
    char *weights = NULL;
    int output = 0;

    *m = (struct made){0};
    DNN_TRY(dnn_json_text("network", network, strlen(network), &file, err));
    struct dnn_jobj top = dnn_json_top(file);
    int rc = dnn_graph_read_json(&top, NULL, &m->graph, err);
    dnn_json_free(file);
    DNN_TRY(rc);
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);
    const struct dnn_weights_order order = {m->graph->nlayers, m->graph->layer_name,
                                            m->graph->layer_class,
                                            m->graph->layer_model};
    rc = dnn_graph_lower(m->graph, 1, prog, &output, err);
    if (rc == 0)
        rc = dnn_weights_image("x.weights.h5", prog, &order, NULL, made_value, prog,
                               &weights, &m->parts.weights_len, err);
    if (rc == 0) rc = dnn_graph_write(m->graph, &m->keras, err);
    dnn_prog_free(prog);
    m->parts.weights = weights;
    m->parts.network = m->parts.keras = m->keras.text;
    m->parts.scaling = "{\"inputs\": {}}";
    m->parts.info = (struct dnn_package_info){
        .inputs = {.count = 1, .objects = &made_input },
        .targets = {.count = 1, .objects = &made_target},
        .preparation =
            "{\"steps\": [{\"type\": \"u8\"}, {\"normalise\": \"channel\"}]}",
        .inference = "{\"loss\": \"cross_entropy\"}",
        .training = "{\"config\": {\"num_epochs\": 2}, \"epochs\": 2}"
    };
    return rc;
}

static void made_close(struct made *m)
{
    free((void *)m->parts.weights);
    dnn_buf_free(&m->keras);
    dnn_graph_free(m->graph);
}

#endif
