/* resolve.c - resolves references between layers, and sorts their calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/graph_impl.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- implicit layers and calls ---- */

static bool shape_of_chain(const struct graph_model *m, struct dnn_shape *out)
{
    const struct graph_layer *first = &m->layer[0];

    if (m->has_shape) {
        *out = m->shape;
        return true;
    }
    if (first->model != NULL && first->model->nlayers > 0) {
        const struct graph_layer *inner = &first->model->layer[0];

        if (inner->layer == NULL || !inner->layer->has_input) return false;
        *out = inner->layer->input;
        return true;
    }
    if (first->layer == NULL || !first->layer->has_input) return false;
    *out = first->layer->input;
    return true;
}

/* Add the implicit input of a chain; read_layers() allocated one more layer. */
static void add_input(struct graph_read *r, struct graph_model *m)
{
    struct dnn_layer *input = dnn_arena_alloc(r->arena, sizeof *input);
    struct graph_layer made = m->layer[0];
    char *name = dnn_format("%s_input", made.name);
    char *full = dnn_format("%s_input", made.full);

    input->type = dnn_layer_find("InputLayer");
    input->trainable = true;
    input->keras = r->keras;
    input->arena = r->arena;
    input->has_input = shape_of_chain(m, &input->input);
    made.name = dnn_arena_strdup(r->arena, name);
    made.full = dnn_arena_strdup(r->arena, full);
    made.class_name = "InputLayer";
    input->name = made.full;
    made.layer = input;
    made.model = NULL;
    made.is_input = true;
    made.ncalls = 0;
    made.call = NULL;
    dnn_free(name);
    dnn_free(full);
    memmove(&m->layer[1], &m->layer[0], (size_t)m->nlayers * sizeof m->layer[0]);
    m->layer[0] = made;
    m->nlayers++;
}

/* Add a call of layer i with all outputs of the layer before it. */
static void add_chain_call(struct graph_read *r, struct graph_model *m, int i)
{
    struct graph_layer *l = &m->layer[i], *before = &m->layer[i - 1];
    int n = before->model != NULL ? before->model->noutputs : 1;

    l->ncalls = 1;
    l->call = dnn_arena_alloc(r->arena, sizeof *l->call);
    l->call->training = -1;
    l->call->nrefs = n;
    l->call->ref = dnn_arena_alloc(r->arena, ((size_t)n + 1) * sizeof *l->call->ref);
    for (int k = 0; k < n; k++)
        l->call->ref[k] = (struct graph_ref){before->name, 0, k, DNN_NONE};
}

static int add_implicit(struct graph_read *r, struct graph_model *m,
                        struct dnn_err *err)
{
    if (m->chain && !m->layer[0].is_input) add_input(r, m);
    for (int i = 0; i < m->nlayers; i++) {
        struct graph_layer *l = &m->layer[i];

        if (l->is_input && l->ncalls > 0)
            return dnn_graph_fail(l, err, "an input has no inbound_nodes");
        if (l->is_input && m->chain && i > 0)
            return dnn_graph_fail(l, err,
                                  "an input inside a chain of layers: a Functional "
                                  "model can have several, with inbound_nodes");
        if (l->is_input) {
            l->ncalls = 1;
            l->call = dnn_arena_alloc(r->arena, sizeof *l->call);
            l->call->training = -1;
        } else if (l->ncalls == 0) {
            if (i == 0)
                return dnn_graph_fail(l, err,
                                      "has no inbound_nodes, and no layer is "
                                      "before it");
            add_chain_call(r, m, i);
        }
    }
    return 0;
}

/* ---- names ---- */

struct entry {
    const char *name;
    int layer;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int layer_hint(const struct graph_model *m, const char *name, char *hint,
                      size_t size)
{
    const char **words = dnn_alloc(((size_t)m->nlayers + 1) * sizeof *words);

    for (int i = 0; i < m->nlayers; i++)
        words[i] = m->layer[i].name;
    dnn_text_hint(hint, size, name, words);
    dnn_free(words);
    return 0;
}

static const struct entry *look_up(const struct graph_model *m,
                                   const struct entry *index, const char *name)
{
    struct entry key = {name, 0};

    return bsearch(&key, index, (size_t)m->nlayers, sizeof key, by_name);
}

/* Whether the calls of a nested model are numbered from 1.  In Keras 2 they are (call 0
 * is the creation of the model); other writers number from 0.  Every call is
 * referenced, so the highest reference shows which.  Keras 3 numbers from 0, but in
 * "output_layers" from 1 unless the model is a Sequential. */
static bool from_one(const struct graph_layer *l, const struct graph_ref *ref,
                     bool keras3_output)
{
    if (l->model == NULL) return false;
    if (keras3_output) return strcmp(l->class_name, "Sequential") != 0 && ref->call > 0;
    return l->low > 0 && l->high == l->ncalls;
}

static void note_ref(struct graph_model *m, const struct entry *index,
                     const struct graph_ref *ref)
{
    const struct entry *found = look_up(m, index, ref->name);

    if (found == NULL) return;
    struct graph_layer *l = &m->layer[found->layer];
    if (l->high < 0 || ref->call < l->low) l->low = ref->call;
    if (ref->call > l->high) l->high = ref->call;
}

static void note_refs(const struct graph_read *r, struct graph_model *m,
                      const struct entry *index)
{
    for (int i = 0; i < m->nlayers; i++)
        m->layer[i].high = -1;
    for (int i = 0; i < m->nlayers; i++)
        for (int c = 0; c < m->layer[i].ncalls; c++)
            for (int k = 0; k < m->layer[i].call[c].nrefs; k++)
                note_ref(m, index, &m->layer[i].call[c].ref[k]);
    for (int i = 0; i < m->noutputs && r->keras < 3; i++)
        note_ref(m, index, &m->output[i]);
}

/* Find a reference's layer, and check that its call and tensor exist.  user: the layer
 * with the reference; NULL: it is one of the model's inputs or outputs. */
static int find(const struct graph_read *r, const struct graph_model *m,
                const struct entry *index, struct graph_ref *ref,
                const struct graph_layer *user, struct dnn_err *err)
{
    const struct entry *found = look_up(m, index, ref->name);
    char hint[256];
    struct dnn_err why = {0};

    if (found == NULL) {
        layer_hint(m, ref->name, hint, sizeof hint);
        dnn_fail(&why, DNN_ECONFIG, "there is no layer \"%.80s\"%s", ref->name, hint);
    } else {
        const struct graph_layer *l = &m->layer[found->layer];
        int64_t tensors = l->model != NULL ? l->model->noutputs : 1;

        ref->layer = found->layer;
        if (from_one(l, ref, user == NULL && r->keras >= 3)) ref->call--;
        if (ref->call < 0 || ref->call >= l->ncalls)
            dnn_fail(&why, DNN_ECONFIG,
                     "layer \"%.80s\" is used %d time%s, there is no use %" PRId64,
                     ref->name, l->ncalls, l->ncalls == 1 ? "" : "s", ref->call);
        else if (ref->tensor < 0 || ref->tensor >= tensors)
            dnn_fail(&why, DNN_ECONFIG,
                     "layer \"%.80s\" has %" PRId64
                     " output%s, there is no output %" PRId64,
                     ref->name, tensors, tensors == 1 ? "" : "s", ref->tensor);
    }
    if (why.code == 0) return 0;
    if (user != NULL) return dnn_graph_fail(user, err, "%s", why.text);
    return dnn_fail(err, DNN_ECONFIG, "%s:%zu: model '%.80s': %s",
                    dnn_json_name(m->at.file), dnn_json_line(&m->at), m->name,
                    why.text);
}

static int find_all(const struct graph_read *r, struct graph_model *m,
                    const struct entry *index, struct dnn_err *err)
{
    note_refs(r, m, index);
    for (int i = 0; i < m->nlayers; i++)
        for (int c = 0; c < m->layer[i].ncalls; c++)
            for (int k = 0; k < m->layer[i].call[c].nrefs; k++)
                DNN_TRY(
                    find(r, m, index, &m->layer[i].call[c].ref[k], &m->layer[i], err));
    for (int i = 0; i < m->ninputs; i++) {
        DNN_TRY(find(r, m, index, &m->input[i], NULL, err));
        if (!m->layer[m->input[i].layer].is_input)
            return dnn_graph_fail(
                &m->layer[m->input[i].layer], err,
                "is named in \"input_layers\", but is not an InputLayer");
    }
    for (int i = 0; i < m->noutputs; i++)
        DNN_TRY(find(r, m, index, &m->output[i], NULL, err));
    return 0;
}

/* If not in the file: the inputs are all InputLayers, the outputs all layers that are
 * inputs of no other. */
static void default_ends(struct graph_read *r, struct graph_model *m)
{
    size_t n = (size_t)m->nlayers + 1;

    if (m->ninputs == 0) {
        m->input = dnn_arena_alloc(r->arena, n * sizeof *m->input);
        for (int i = 0; i < m->nlayers; i++)
            if (m->layer[i].is_input)
                m->input[m->ninputs++] = (struct graph_ref){m->layer[i].name, 0, 0, i};
    }
    if (m->noutputs > 0) return;
    const struct graph_layer *last = &m->layer[m->nlayers - 1];
    int count = last->model != NULL ? last->model->noutputs : 1;
    if (m->chain) {
        m->output = dnn_arena_alloc(r->arena, ((size_t)count + 1) * sizeof *m->output);
        for (int k = 0; k < count; k++)
            m->output[m->noutputs++] =
                (struct graph_ref){last->name, 0, k, m->nlayers - 1};
        return;
    }
    bool *taken = dnn_alloc(n);
    for (int i = 0; i < m->nlayers; i++)
        for (int c = 0; c < m->layer[i].ncalls; c++)
            for (int k = 0; k < m->layer[i].call[c].nrefs; k++)
                taken[m->layer[i].call[c].ref[k].layer] = true;
    m->output = dnn_arena_alloc(r->arena, n * sizeof *m->output);
    for (int i = 0; i < m->nlayers; i++)
        if (!taken[i])
            m->output[m->noutputs++] = (struct graph_ref){m->layer[i].name, 0, 0, i};
    dnn_free(taken);
}

/* ---- order ---- */

/* A call on the stack, and the number of its references already visited. */
struct visit {
    int at, next;
};

static int number_calls(struct graph_read *r, struct graph_model *m,
                        struct dnn_err *err)
{
    int n = 0;

    for (int i = 0; i < m->nlayers; i++) {
        m->layer[i].start = n;
        n += m->layer[i].ncalls;
        if (n > DNN_GRAPH_NODES)
            return dnn_graph_fail(&m->layer[i], err,
                                  "layers are used more than %d times",
                                  DNN_GRAPH_NODES);
    }
    m->ncalls = n;
    m->order = dnn_arena_alloc(r->arena, ((size_t)n + 1) * sizeof *m->order);
    m->owner = dnn_arena_alloc(r->arena, ((size_t)n + 1) * sizeof *m->owner);
    for (int i = 0; i < m->nlayers; i++)
        for (int c = 0; c < m->layer[i].ncalls; c++)
            m->owner[m->layer[i].start + c] = i;
    return 0;
}

enum { NEW, OPEN, DONE };

/* Append to the order the calls that a call depends on, then the call itself: depth
 * first, with an explicit stack, since a network may be deep. */
static int visit(struct graph_model *m, int first, char *state, struct visit *stack,
                 int *done, struct dnn_err *err)
{
    int depth = 0;

    stack[depth++] = (struct visit){first, 0};
    state[first] = OPEN;
    while (depth > 0) {
        struct visit *top = &stack[depth - 1];
        const struct graph_layer *l = &m->layer[m->owner[top->at]];
        const struct graph_call *call = &l->call[top->at - l->start];

        if (top->next == call->nrefs) {
            state[top->at] = DONE;
            m->order[(*done)++] = top->at;
            depth--;
            continue;
        }
        const struct graph_ref *ref = &call->ref[top->next++];
        int input = m->layer[ref->layer].start + (int)ref->call;
        if (state[input] == OPEN)
            return dnn_graph_fail(l, err,
                                  "is part of a cycle: it needs '%.80s', which "
                                  "needs it",
                                  ref->name);
        if (state[input] == NEW) {
            state[input] = OPEN;
            stack[depth++] = (struct visit){input, 0};
        }
    }
    return 0;
}

static int sort(struct graph_read *r, struct graph_model *m, struct dnn_err *err)
{
    int done = 0, rc = 0;

    DNN_TRY(number_calls(r, m, err));
    char *state = dnn_alloc((size_t)m->ncalls + 1);
    struct visit *stack = dnn_alloc(((size_t)m->ncalls + 1) * sizeof *stack);
    for (int at = 0; rc == 0 && at < m->ncalls; at++)
        if (state[at] == NEW) rc = visit(m, at, state, stack, &done, err);
    dnn_free(stack);
    dnn_free(state);
    return rc;
}

int dnn_graph_resolve(struct graph_read *r, struct graph_model *m, struct dnn_err *err)
{
    DNN_TRY(add_implicit(r, m, err));
    struct entry *index = dnn_alloc(((size_t)m->nlayers + 1) * sizeof *index);
    for (int i = 0; i < m->nlayers; i++)
        index[i] = (struct entry){m->layer[i].name, i};
    qsort(index, (size_t)m->nlayers, sizeof *index, by_name);
    int rc = find_all(r, m, index, err);
    dnn_free(index);
    DNN_TRY(rc);
    default_ends(r, m);
    DNN_TRY(sort(r, m, err));
    dnn_graph_order(r, m);
    return 0;
}
