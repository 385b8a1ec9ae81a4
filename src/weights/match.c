/* match.c - matches the arrays of a file to the weights of a program.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "weights/weights_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A layer of the program that has weights; in order, its values are value[first] to
 * value[first + n - 1]. */
struct layer {
    const char *name, *class_path;
    int first, n;
    int group; /* of the file, DNN_NONE: none */
};

enum { REFUSED = -2 }; /* of a value: its array does not fit, see refused */

struct lines {
    const char **line;
    size_t n, cap;
};

struct match {
    const struct dnn_weights *file;
    const struct dnn_prog *prog;
    struct dnn_arena *arena;
    struct layer *layer; /* sorted by name, or by class path */
    size_t nlayers, layer_cap;
    int *value; /* weights and states, layer by layer */
    int *array; /* of each value of the program */
    struct lines missing, skipped, refused;
    bool by_class;
};

static void add_line(struct match *m, struct lines *to, const char *fmt, ...)
    DNN_PRINTF(3, 4);
static void add_line(struct match *m, struct lines *to, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    to->line = dnn_grow(to->line, &to->cap, to->n + 1, sizeof *to->line);
    to->line[to->n++] = dnn_arena_strdup(m->arena, text);
}

/* ---- the program's layers ---- */

static int by_name(const void *a, const void *b)
{
    const struct layer *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static int by_class(const void *a, const void *b)
{
    const struct layer *x = a, *y = b;

    return strcmp(x->class_path, y->class_path);
}

/* The values of a layer are consecutive: it makes all of them at its first call. */
static void list_layers(struct match *m)
{
    const struct dnn_prog *prog = m->prog;
    int n = 0;

    m->value = dnn_alloc(((size_t)prog->nvalues + 1) * sizeof *m->value);
    for (int v = 0; v < prog->nvalues; v++) {
        const struct dnn_value *value = &prog->value[v];
        const char *name = value->layer == NULL ? "" : value->layer;

        m->array[v] = DNN_NONE;
        if (value->role != DNN_WEIGHT && value->role != DNN_STATE) continue;
        struct layer *last = m->nlayers == 0 ? NULL : &m->layer[m->nlayers - 1];
        if (last == NULL || strcmp(last->name, name) != 0) {
            m->layer =
                dnn_grow(m->layer, &m->layer_cap, m->nlayers + 1, sizeof *m->layer);
            last = &m->layer[m->nlayers++];
            *last = (struct layer){
                .name = name, .class_path = "", .first = n, .group = DNN_NONE};
        }
        m->value[n++] = v;
        last->n++;
    }
    qsort(m->layer, m->nlayers, sizeof *m->layer, by_name);
}

static void find_class_paths(struct match *m, const struct dnn_weights_order *order)
{
    const char **class_path = dnn_weights_class_paths(order, m->arena);

    for (int i = 0; i < order->n; i++) {
        struct layer key = {.name = order->name[i]};
        struct layer *l =
            bsearch(&key, m->layer, m->nlayers, sizeof *m->layer, by_name);

        if (l != NULL) l->class_path = class_path[i];
    }
    qsort(m->layer, m->nlayers, sizeof *m->layer, by_class);
}

/* ---- layers of the file ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);

    return n > k && text[n - k - 1] == '/' && strcmp(text + n - k, end) == 0;
}

/* For nested models, files of Keras 1 and 2 omit models in between, or repeat the
 * outermost one. */
static struct layer *find_inner(struct match *m, const struct weights_group *g,
                                bool *several)
{
    struct layer *found = NULL;
    size_t len = strlen(g->top), low = 0, high = m->nlayers;

    if (g->inner == NULL) return NULL;
    while (low < high) { /* the first one not before "top/" */
        size_t mid = low + (high - low) / 2;
        const char *name = m->layer[mid].name;
        int order = strncmp(name, g->top, len);

        if (order < 0 || (order == 0 && (unsigned char)name[len] < '/'))
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < m->nlayers; low++) {
        const char *name = m->layer[low].name;

        if (strncmp(name, g->top, len) != 0 || name[len] != '/') break;
        name += len + 1;
        if (strcmp(name, g->inner) == 0) {
            *several = false;
            return &m->layer[low];
        }
        if (!ends_with(name, g->inner) && !ends_with(g->inner, name)) continue;
        if (found != NULL) *several = true;
        found = &m->layer[low];
    }
    return found;
}

static struct layer *find_layer(struct match *m, const struct weights_group *g,
                                bool *several)
{
    struct layer key = {.name = g->top != NULL ? g->top : g->full,
                        .class_path = g->class_path};
    struct layer *l = NULL;

    *several = false;
    if (m->by_class)
        return g->class_path == NULL || g->class_path[0] == '\0'
                   ? NULL
                   : bsearch(&key, m->layer, m->nlayers, sizeof key, by_class);
    if (key.name != NULL) l = bsearch(&key, m->layer, m->nlayers, sizeof key, by_name);
    return l != NULL || g->top == NULL ? l : find_inner(m, g, several);
}

/* ---- arrays ---- */

/* The arrays from ... to - 1 of a layer of the file are not used. */
static void skip(struct match *m, const struct weights_group *g, int from, int to)
{
    struct dnn_buf text = {0};

    dnn_buf_add(&text, "layer '%.80s':", g->shown);
    for (int k = from; k < to; k++) {
        const struct dnn_weights_array *a = &m->file->array[g->first + k];
        char x[DNN_SHAPE_TEXT], number[16];

        if (k == from + 8) {
            dnn_buf_add(&text, " and %d more", to - k);
            break;
        }
        snprintf(number, sizeof number, "%d", k);
        dnn_buf_add(&text, "%s %.40s %s", k > from ? "," : "",
                    a->is.name == NULL ? number : a->is.name,
                    dnn_shape_text(x, sizeof x, &a->is.shape));
    }
    add_line(m, &m->skipped, "%s", text.text);
    dnn_buf_free(&text);
}

/* With different numbers of axes, those of extent 1 are ignored, as Keras 1 has one
 * more in the kernels of Conv1D. */
static bool same_extents(const struct dnn_shape *a, const struct dnn_shape *b)
{
    int i = 0, k = 0;

    if (a->ndim == b->ndim) return dnn_shape_equal(a, b);
    for (;; i++, k++) {
        while (i < a->ndim && a->dim[i] == 1)
            i++;
        while (k < b->ndim && b->dim[k] == 1)
            k++;
        if (i == a->ndim || k == b->ndim) return i == a->ndim && k == b->ndim;
        if (a->dim[i] != b->dim[k]) return false;
    }
}

static void one_array(struct match *m, const struct layer *l, int v, int i)
{
    const struct dnn_weights_array *a = &m->file->array[i];
    const struct dnn_tensor *is = &m->prog->value[v].is;
    char x[DNN_SHAPE_TEXT], y[DNN_SHAPE_TEXT];

    m->array[v] = i;
    if (same_extents(&a->is.shape, &is->shape)) return;
    m->array[v] = REFUSED;
    add_line(m, &m->refused, "%s: layer '%.80s': %.80s is %s in the file, %s here",
             m->file->path, l->name, is->name,
             dnn_shape_text(x, sizeof x, &a->is.shape),
             dnn_shape_text(y, sizeof y, &is->shape));
}

/* The index of a layer's weight called name, DNN_NONE: there is none. */
static int find_value(const struct match *m, const struct layer *l, const char *name)
{
    for (int k = 0; k < l->n; k++) {
        const char *is = m->prog->value[m->value[l->first + k]].is.name;

        if (is != NULL && name != NULL && strcmp(is, name) == 0) return k;
    }
    return DNN_NONE;
}

/* Match by name if all names are found; else by order if the numbers of arrays are
 * equal; else by the names that are found. */
static void fill_layer(struct match *m, struct layer *l, const struct weights_group *g)
{
    const struct dnn_weights_array *a = &m->file->array[g->first];
    int known = 0;

    for (int k = 0; k < g->n; k++)
        known += find_value(m, l, a[k].is.name) != DNN_NONE;
    bool order = known < g->n && g->n == l->n;
    if (known == 0 && !order) {
        add_line(
            m, &m->refused,
            "%s: layer '%.80s': has %d arrays in the file, %d here, and their names do "
            "not match",
            m->file->path, l->name, g->n, l->n);
        for (int k = 0; k < l->n; k++)
            m->array[m->value[l->first + k]] = REFUSED;
        return;
    }
    for (int k = 0; k < g->n; k++) {
        int to = order ? k : find_value(m, l, a[k].is.name);

        if (to != DNN_NONE)
            one_array(m, l, m->value[l->first + to], g->first + k);
        else
            skip(m, g, k, k + 1);
    }
}

/* Match the arrays of a layer of the file; returns whether the program has it. */
static bool match_group(struct match *m, int group)
{
    const struct weights_group *g = &m->file->group[group];
    bool several;
    struct layer *l = find_layer(m, g, &several);

    if (l == NULL) return false;
    if (several)
        add_line(
            m, &m->refused,
            "%s: layer '%.80s': matches several layers of the network, such as '%.80s'",
            m->file->path, g->shown, l->name);
    else if (l->group != DNN_NONE)
        add_line(m, &m->refused, "%s: layer '%.80s': is in the file twice",
                 m->file->path, l->name);
    else {
        l->group = group;
        fill_layer(m, l, g);
    }
    return true;
}

static void list_missing(struct match *m, struct dnn_weights_match *out)
{
    for (size_t i = 0; i < m->nlayers; i++)
        for (int k = 0; k < m->layer[i].n; k++) {
            int v = m->value[m->layer[i].first + k];
            char x[DNN_SHAPE_TEXT];

            out->wanted++;
            if (m->array[v] >= 0)
                out->filled++;
            else if (m->array[v] == REFUSED)
                m->array[v] = DNN_NONE;
            else
                add_line(m, &m->missing, "layer '%.80s': %.80s %s", m->layer[i].name,
                         m->prog->value[v].is.name,
                         dnn_shape_text(x, sizeof x, &m->prog->value[v].is.shape));
        }
}

static const char *const *keep(struct match *m, struct lines *lines, int *n)
{
    const char **copy = dnn_arena_alloc(m->arena, (lines->n + 1) * sizeof *copy);

    if (lines->n > 0) memcpy(copy, lines->line, lines->n * sizeof *copy);
    *n = (int)lines->n;
    dnn_free(lines->line);
    return copy;
}

/* Whether any layer of the file is found by its name. */
static bool any_name(struct match *m)
{
    bool several;

    for (size_t i = 0; i < m->file->ngroups; i++)
        if (find_layer(m, &m->file->group[i], &several) != NULL) return true;
    return false;
}

int dnn_weights_match(const struct dnn_weights *file, const struct dnn_prog *prog,
                      const struct dnn_weights_order *order,
                      struct dnn_weights_match **out, struct dnn_err *err)
{
    struct dnn_arena *arena = dnn_arena_make();
    struct dnn_weights_match *result = dnn_arena_alloc(arena, sizeof *result);
    struct match m = {.file = file, .prog = prog, .arena = arena};

    (void)err; /* cannot fail */
    m.array = dnn_arena_alloc(arena, ((size_t)prog->nvalues + 1) * sizeof *m.array);
    list_layers(&m);
    bool numbered = file->ngroups > 0 && file->group[0].class_path != NULL;
    if (numbered && order != NULL && !any_name(&m)) {
        find_class_paths(&m, order);
        m.by_class = true;
    }
    for (size_t i = 0; i < file->ngroups; i++)
        if (!match_group(&m, (int)i)) skip(&m, &file->group[i], 0, file->group[i].n);
    list_missing(&m, result);
    result->arena = arena;
    result->path = dnn_arena_strdup(arena, file->path);
    result->by_class = m.by_class;
    result->nvalues = prog->nvalues;
    result->array = m.array;
    result->missing = keep(&m, &m.missing, &result->nmissing);
    result->skipped = keep(&m, &m.skipped, &result->nskipped);
    result->refused = keep(&m, &m.refused, &result->nrefused);
    dnn_free(m.layer);
    dnn_free(m.value);
    *out = result;
    return 0;
}

void dnn_weights_match_free(struct dnn_weights_match *match)
{
    if (match != NULL) dnn_arena_free(match->arena);
}
