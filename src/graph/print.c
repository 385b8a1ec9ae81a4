/* print.c - prints a graph as a table, like Keras's summary().
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/graph.h"

#include "base/text.h"

#include <string.h>

static int64_t params_of(const struct dnn_graph *g, int i)
{
    const struct dnn_graph_node *node = &g->node[i];
    struct dnn_layer_weight w[DNN_LAYER_WEIGHTS];
    int64_t sum = 0;

    if (node->first != i || node->nin == 0) return 0;
    struct dnn_shape *in = dnn_alloc((size_t)node->nin * sizeof *in);
    for (int k = 0; k < node->nin; k++)
        in[k] = g->node[node->in[k]].out;
    int n = dnn_layer_weights(node->layer, node->nin, in, w);
    for (int k = 0; k < n; k++) {
        int64_t count = 0;

        if (dnn_shape_count(&w[k].shape, &count, NULL) == 0) sum += count;
    }
    dnn_free(in);
    return sum;
}

static void add_head(struct dnn_buf *out, const struct dnn_graph_node *node,
                     size_t width)
{
    size_t from = out->len;

    dnn_buf_add(out, "%s (%s)", node->name, node->layer->type->name);
    dnn_buf_add(out, "%*s", (int)(from + width - out->len), "");
}

void dnn_graph_print(const struct dnn_graph *graph, FILE *where)
{
    char text[DNN_SHAPE_TEXT], number[32];
    size_t width = strlen("layer (type)"), shapes = strlen("output shape");

    for (int i = 0; i < graph->nnodes; i++) {
        const struct dnn_graph_node *node = &graph->node[i];
        size_t len = strlen(node->name) + strlen(node->layer->type->name) + 3;
        size_t wide = strlen(dnn_shape_text(text, sizeof text, &node->out));

        if (len > width) width = len;
        if (wide > shapes) shapes = wide;
    }
    fprintf(where, "network: %s\n", graph->name);
    fprintf(where, "%-*s  %-*s  %13s  %s\n", (int)width, "layer (type)", (int)shapes,
            "output shape", "params", "connected to");
    for (int i = 0; i < graph->nnodes; i++) {
        const struct dnn_graph_node *node = &graph->node[i];
        struct dnn_buf line = {0};

        add_head(&line, node, width);
        dnn_buf_add(&line, "  %-*s  ", (int)shapes,
                    dnn_shape_text(text, sizeof text, &node->out));
        dnn_buf_add(&line, "%13s", dnn_text_count(number, params_of(graph, i)));
        for (int k = 0; k < node->nin; k++)
            dnn_buf_add(&line, "%s%s", k == 0 ? "  " : ", ",
                        graph->node[node->in[k]].name);
        fprintf(where, "%s\n", line.text);
        dnn_buf_free(&line);
    }
    fprintf(where, "total params: %s\n", dnn_text_count(number, graph->params));
    fprintf(where, "trainable params: %s\n", dnn_text_count(number, graph->trainable));
    fprintf(where, "non-trainable params: %s\n",
            dnn_text_count(number, graph->params - graph->trainable));
}
