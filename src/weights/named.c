/* named.c - lists a file of Keras 1 or 2: it has the attribute "layer_names", and in
 * each layer's group "weight_names", the paths of its arrays.
 *
 * A nested model is one such layer; the paths of its arrays contain only the name of
 * the innermost layer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#if DNN_HAVE_HDF5
#include "weights/h5_impl.h"

#include <stdlib.h>
#include <string.h>

/* "tail/conv/kernel:0" is "kernel" of "tail/conv". */
static void split(struct dnn_arena *arena, const char *path, const char **inner,
                  const char **name)
{
    char *text = dnn_arena_strdup(arena, dnn_h5_clean(arena, path));
    char *colon = strrchr(text, ':'), *slash = strrchr(text, '/');

    if (colon != NULL && colon > text && (slash == NULL || colon > slash + 1))
        *colon = '\0';
    *name = slash == NULL ? text : slash + 1;
    *inner = NULL;
    if (slash == NULL) return;
    *slash = '\0';
    *inner = text;
}

/* The layer's name for messages: top/inner, without repeating top. */
static const char *shown_name(struct dnn_arena *arena, const char *top,
                              const char *inner)
{
    size_t n = strlen(top), k = inner == NULL ? 0 : strlen(inner);

    if (inner == NULL || strcmp(inner, top) == 0 ||
        (k > n && inner[k - n - 1] == '/' && strcmp(inner + k - n, top) == 0))
        return top;
    if (strncmp(inner, top, n) == 0 && inner[n] == '/') return inner;
    char *text = dnn_format("%s/%s", top, inner);
    const char *shown = dnn_arena_strdup(arena, text);
    dnn_free(text);
    return shown;
}

static void start_group(struct dnn_weights *w, const char *top, const char *inner)
{
    struct weights_group *g = dnn_h5_group(w);

    g->top = dnn_h5_clean(w->arena, top);
    g->inner = inner;
    g->shown = shown_name(w->arena, g->top, inner);
}

/* An array in "weight_names". */
struct entry {
    const char *path, *inner, *name;
    int at;
};

static int by_inner(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order =
        strcmp(x->inner == NULL ? "" : x->inner, y->inner == NULL ? "" : y->inner);

    return order != 0 ? order : x->at - y->at;
}

static int add_array(struct dnn_weights *w, hid_t group, const char *where,
                     const char *top, const struct entry *e, struct dnn_err *err)
{
    hid_t data = dnn_h5_open(group, e->path, H5O_TYPE_DATASET);

    if (data < 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: \"weight_names\" of the layer '%.80s' names the array "
                        "\"%.200s\", which is not there",
                        w->path, dnn_h5_clean(w->arena, top),
                        dnn_h5_clean(w->arena, e->path));
    char *full = dnn_format("%s%s/%s", where, top, e->path);
    int rc = dnn_h5_array(w, data, full, e->name, err);
    dnn_free(full);
    H5Oclose(data);
    return rc;
}

/* A nested model lists the trainable weights of all its layers first, then the others:
 * sort them by layer. */
static int list_layer(struct dnn_weights *w, hid_t group, const char *where,
                      const char *top, struct dnn_err *err)
{
    const char **path;
    int n, rc = 0;

    DNN_TRY(dnn_h5_texts(w, group, "weight_names", &n, &path, err));
    if (n <= 0) return 0;
    struct entry *all = dnn_alloc((size_t)n * sizeof *all);
    for (int i = 0; i < n; i++) {
        all[i] = (struct entry){.path = path[i], .at = i};
        split(w->arena, path[i], &all[i].inner, &all[i].name);
    }
    qsort(all, (size_t)n, sizeof *all, by_inner);
    for (int i = 0; rc == 0 && i < n; i++) {
        const char *last = i == 0 ? NULL : all[i - 1].inner;

        if (i == 0 || (last == NULL) != (all[i].inner == NULL) ||
            (last != NULL && strcmp(last, all[i].inner) != 0))
            start_group(w, top, all[i].inner);
        rc = add_array(w, group, where, top, &all[i], err);
    }
    dnn_free(all);
    return rc;
}

int dnn_h5_list_named(struct dnn_weights *w, hid_t top, const char *where,
                      struct dnn_err *err)
{
    const char **layer;
    int n;

    DNN_TRY(dnn_h5_texts(w, top, "layer_names", &n, &layer, err));
    for (int i = 0; i < n; i++) {
        hid_t group = dnn_h5_open(top, layer[i], H5O_TYPE_GROUP);

        if (group < 0)
            return dnn_fail(err, DNN_EDATA,
                            "%s: \"layer_names\" names '%.80s', which is not there",
                            w->path, dnn_h5_clean(w->arena, layer[i]));
        int rc = list_layer(w, group, where, layer[i], err);
        H5Oclose(group);
        DNN_TRY(rc);
    }
    return 0;
}
#endif
