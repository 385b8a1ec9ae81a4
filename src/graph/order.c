/* order.c - the order in which Keras 3 lists the layers of a Functional model: by
 * distance from the outputs, farthest first; layers of equal distance in the order of a
 * depth-first search from the outputs.  Weight files number layers in this order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/graph_impl.h"

#include "base/mem.h"

#include <stdlib.h>

struct entry {
    int depth, found, layer; /* found: number in the search; DNN_NONE: not reached */
};

static int by_depth(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->depth != y->depth) return y->depth - x->depth;
    return x->found != y->found ? x->found - y->found : x->layer - y->layer;
}

struct visit {
    int call, next;
};

struct search {
    const struct graph_model *m;
    struct entry *entry; /* one per layer */
    char *seen;          /* of each call */
    struct visit *stack;
    int *done; /* calls, each after those it depends on */
    int ndone, nfound;
};

static int call_of(const struct graph_model *m, const struct graph_ref *ref)
{
    return m->layer[ref->layer].start + (int)ref->call;
}

static void enter(struct search *w, int call, int *depth)
{
    struct entry *e = &w->entry[w->m->owner[call]];

    w->seen[call] = 1;
    if (e->found == DNN_NONE) e->found = w->nfound++;
    w->stack[(*depth)++] = (struct visit){call, 0};
}

/* Depth-first search, from an output to its inputs. */
static void search(struct search *w, int first)
{
    int depth = 0;

    if (w->seen[first] != 0) return;
    enter(w, first, &depth);
    while (depth > 0) {
        struct visit *top = &w->stack[depth - 1];
        const struct graph_layer *l = &w->m->layer[w->m->owner[top->call]];
        const struct graph_call *call = &l->call[top->call - l->start];

        if (top->next == call->nrefs) {
            w->done[w->ndone++] = top->call;
            depth--;
            continue;
        }
        int input = call_of(w->m, &call->ref[top->next++]);
        if (w->seen[input] == 0) enter(w, input, &depth);
    }
}

static void find_depths(struct search *w)
{
    const struct graph_model *m = w->m;
    int *depth = dnn_alloc(((size_t)m->ncalls + 1) * sizeof *depth);

    for (int i = w->ndone; i-- > 0;) {
        int at = w->done[i];
        struct entry *e = &w->entry[m->owner[at]];
        const struct graph_layer *l = &m->layer[m->owner[at]];
        const struct graph_call *call = &l->call[at - l->start];

        if (depth[at] > e->depth) e->depth = depth[at];
        for (int k = 0; k < call->nrefs; k++) {
            int input = call_of(m, &call->ref[k]);

            if (depth[input] < e->depth + 1) depth[input] = e->depth + 1;
        }
    }
    dnn_free(depth);
}

void dnn_graph_order(struct graph_read *r, struct graph_model *m)
{
    size_t nlayers = (size_t)m->nlayers + 1, ncalls = (size_t)m->ncalls + 1;
    struct search w = {.m = m,
                       .entry = dnn_alloc(nlayers * sizeof *w.entry),
                       .seen = dnn_alloc(ncalls),
                       .stack = dnn_alloc(ncalls * sizeof *w.stack),
                       .done = dnn_alloc(ncalls * sizeof *w.done)};

    m->listed = dnn_arena_alloc(r->arena, nlayers * sizeof *m->listed);
    for (int i = 0; i < m->nlayers; i++)
        w.entry[i] = (struct entry){.found = DNN_NONE, .layer = i};
    if (!m->chain) {
        for (int i = 0; i < m->noutputs; i++)
            search(&w, call_of(m, &m->output[i]));
        find_depths(&w);
        for (int i = 0; i < m->nlayers; i++) /* not in Keras's model: last */
            if (w.entry[i].found == DNN_NONE && !m->layer[i].is_input)
                w.entry[i].depth = DNN_NONE;
        qsort(w.entry, (size_t)m->nlayers, sizeof *w.entry, by_depth);
    }
    for (int i = 0; i < m->nlayers; i++)
        m->listed[i] = w.entry[i].layer;
    dnn_free(w.entry);
    dnn_free(w.seen);
    dnn_free(w.stack);
    dnn_free(w.done);
}
