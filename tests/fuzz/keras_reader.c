/* keras_reader.c - fuzz target for the Keras reader: any input is read or gives an
 * error message, and a network that is read can be lowered or gives an error message.
 *
 * make fuzz builds it with clang's libFuzzer and runs it on corpus.tar.gz and more.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "graph/graph.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An error must have a message. */
static void expect_text(int rc, const struct dnn_err *err)
{
    if (rc < 0 && (err->text[0] == '\0' || err->code != rc)) abort();
}

static void lower(const struct dnn_graph *graph, bool training)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, training);
    int *output = dnn_alloc(((size_t)graph->noutputs + 1) * sizeof *output);
    struct dnn_err err = {0};

    expect_text(dnn_graph_lower(graph, 2, prog, output, &err), &err);
    dnn_free(output);
    dnn_prog_free(prog);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dnn_graph *graph = NULL;
    struct dnn_json *file = NULL;
    struct dnn_err err = {0};
    int rc = dnn_json_text("net", (const char *)data, size, &file, &err);

    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_graph_read_json(&top, NULL, &graph, &err);
    }
    expect_text(rc, &err);
    dnn_json_free(file);
    if (rc == 0) {
        lower(graph, false);
        lower(graph, true);
        dnn_graph_free(graph);
    }
    return 0;
}
