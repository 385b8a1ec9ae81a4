/* dot.c - writes a graph in Graphviz's dot format.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/graph.h"

#include "base/text.h"

static void add_name(struct dnn_buf *out, const char *name)
{
    for (; *name != '\0'; name++)
        dnn_buf_add(out, *name == '"' || *name == '\\' ? "\\%c" : "%c", *name);
}

void dnn_graph_dot(const struct dnn_graph *graph, struct dnn_buf *out)
{
    char shape[DNN_SHAPE_TEXT];

    dnn_buf_add(out, "digraph \"");
    add_name(out, graph->name);
    dnn_buf_add(out, "\" {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (int i = 0; i < graph->nnodes; i++) {
        const struct dnn_graph_node *node = &graph->node[i];

        dnn_buf_add(out, "  n%d [label=\"", i);
        add_name(out, node->name);
        dnn_buf_add(out, "\\n%s\\n%s\"];\n", node->layer->type->name,
                    dnn_shape_text(shape, sizeof shape, &node->out));
        for (int k = 0; k < node->nin; k++)
            dnn_buf_add(out, "  n%d -> n%d;\n", node->in[k], i);
    }
    dnn_buf_add(out, "}\n");
}
