/* keras_resave.c - read a network and its weights, and write the weights again, for
 * keras_layout.py.
 *
 * Usage: keras_resave NETWORK.json WEIGHTS OUTPUT
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "graph/graph.h"
#include "weights/weights.h"

#include <stdio.h>
#include <stdlib.h>

struct source {
    struct dnn_weights *file;
    struct dnn_weights_match *match;
};

static int give(void *arg, int value, void *to, struct dnn_err *err)
{
    struct source *s = arg;

    if (s->match->array[value] == DNN_NONE)
        return dnn_fail(err, DNN_EDATA, "value %d is not in the file", value);
    return dnn_weights_get(s->file, s->match->array[value], DNN_F32, to, err);
}

/* Unknown dimensions do not change weights: set any value. */
static int lower(const char *path, struct dnn_graph **graph, struct dnn_prog *prog,
                 struct dnn_err *err)
{
    struct dnn_graph *first;

    DNN_TRY(dnn_graph_read(path, NULL, &first, err));
    struct dnn_shape *shape = dnn_alloc((size_t)first->ninputs * sizeof *shape);
    struct dnn_graph_opts opts = {first->ninputs, shape};
    for (int i = 0; i < first->ninputs; i++) {
        shape[i] = first->node[first->input[i]].out;
        for (int k = 1; k < shape[i].ndim; k++)
            if (shape[i].dim[k] < 0) shape[i].dim[k] = 16;
    }
    dnn_graph_free(first);
    int rc = dnn_graph_read(path, &opts, graph, err);
    if (rc == 0) {
        int *output = dnn_alloc((size_t)(*graph)->noutputs * sizeof *output);

        rc = dnn_graph_lower(*graph, 1, prog, output, err);
        dnn_free(output);
    }
    dnn_free(shape);
    return rc;
}

int main(int argc, char **argv)
{
    struct dnn_err err = {0};
    struct dnn_graph *graph = NULL;
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);
    struct source s = {0};

    if (argc != 4) {
        fprintf(stderr, "usage: keras_resave NETWORK.json WEIGHTS OUTPUT\n");
        return 2;
    }
    int rc = lower(argv[1], &graph, prog, &err);
    if (rc == 0) rc = dnn_weights_open(argv[2], &s.file, &err);
    if (rc == 0) {
        struct dnn_weights_order order = {graph->nlayers, graph->layer_name,
                                          graph->layer_class, graph->layer_model};

        rc = dnn_weights_match(s.file, prog, &order, &s.match, &err);
        if (rc == 0) dnn_weights_print(s.match, stdout);
        if (rc == 0) rc = dnn_weights_save(argv[3], prog, &order, NULL, give, &s, &err);
    }
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    dnn_weights_match_free(s.match);
    dnn_weights_close(s.file);
    dnn_prog_free(prog);
    dnn_graph_free(graph);
    return dnn_exit_status(rc);
}
