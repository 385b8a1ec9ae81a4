/* numbered.c - lists a file of Keras 3: it has a group "layers" with a group for each
 * layer, named by class and order, which contains "vars" with arrays 0, 1, 2... and, in
 * newer files, the layer's name as an attribute.  A nested model has its own "layers".
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#if DNN_HAVE_HDF5
#include "weights/h5_impl.h"

#include <stdlib.h>
#include <string.h>

/* A group of the file. */
struct at {
    hid_t group;
    const char *path;       /* "layers/functional", "" at the top    */
    const char *class_path; /* the same without "layers"             */
    const char *full;       /* full name of the layer; NULL: unknown */
    int depth;
};

struct walk {
    struct dnn_weights *w;
    struct dnn_err *err;
    int objects; /* so far; limited, as a group may be linked many times */
};

static const char *join(struct dnn_arena *arena, const char *a, const char *b)
{
    char *text = dnn_format("%s%s%s", a, a[0] == '\0' ? "" : "/", b);
    const char *out = dnn_arena_strdup(arena, text);

    dnn_free(text);
    return out;
}

/* ---- the arrays of a layer ---- */

static int list_vars(struct walk *k, const struct at *at, hid_t vars)
{
    struct dnn_weights *w = k->w;
    char number[16];

    for (int i = 0; i < DNN_WEIGHTS_ARRAYS; i++) {
        snprintf(number, sizeof number, "%d", i);
        hid_t data = dnn_h5_open(vars, number, H5O_TYPE_DATASET);
        if (data < 0) break;
        if (i == 0) {
            struct weights_group *g = dnn_h5_group(w);

            g->full = at->full;
            g->class_path = at->class_path;
            g->shown = at->full != NULL ? at->full : at->class_path;
        }
        char *path =
            dnn_format("%s%svars/%s", at->path, at->path[0] == '\0' ? "" : "/", number);
        int rc = dnn_h5_array(w, data, path, NULL, k->err);
        dnn_free(path);
        H5Oclose(data);
        DNN_TRY(rc);
    }
    return 0;
}

/* Append the layer's name to those of the models it is in. */
static int find_name(struct walk *k, struct at *at, hid_t vars)
{
    const char **name;
    int n;

    DNN_TRY(dnn_h5_texts(k->w, vars, "name", &n, &name, k->err));
    if (at->depth == 0) return 0; /* the name of the network */
    if (n < 1 || name[0][0] == '\0')
        at->full = NULL;
    else if (at->full != NULL)
        at->full = join(k->w->arena, at->full, dnn_h5_clean(k->w->arena, name[0]));
    return 0;
}

/* ---- the tree ---- */

struct names {
    struct dnn_arena *arena;
    const char **name;
    size_t n, cap;
};

static herr_t keep_name(hid_t group, const char *name, const H5L_info_t *info,
                        void *arg)
{
    struct names *all = arg;

    (void)group;
    if (info->type != H5L_TYPE_HARD) return 0;
    if (all->n >= DNN_WEIGHTS_ARRAYS) return -1;
    all->name = dnn_grow(all->name, &all->cap, all->n + 1, sizeof *all->name);
    all->name[all->n++] = dnn_arena_strdup(all->arena, name);
    return 0;
}

static int walk(struct walk *k, struct at at);

/* "layers" (in early files "_layer_checkpoint_dependencies") contains the layers;
 * others are layers, or parts of one such as a random generator. */
static int walk_child(struct walk *k, const struct at *up, const char *name)
{
    struct dnn_arena *arena = k->w->arena;
    const char *clean = dnn_h5_clean(arena, name);
    struct at at = *up;

    if (strcmp(name, "vars") == 0) return 0;
    if (++k->objects > DNN_WEIGHTS_ARRAYS || up->depth >= DNN_WEIGHTS_DEPTH)
        return dnn_fail(
            k->err, DNN_EDATA,
            "%s: groups are nested more than %d deep, or there are more than %d",
            k->w->path, DNN_WEIGHTS_DEPTH, DNN_WEIGHTS_ARRAYS);
    at.path = join(arena, up->path, name);
    DNN_TRY(dnn_h5_count_name(k->w, at.path, k->err));
    at.group = dnn_h5_open(up->group, name, H5O_TYPE_GROUP);
    if (at.group < 0) return 0;
    at.depth++;
    if (strcmp(name, "layers") != 0 &&
        strcmp(name, "_layer_checkpoint_dependencies") != 0)
        at.class_path = join(arena, up->class_path, clean);
    int rc = walk(k, at);
    H5Oclose(at.group);
    return rc;
}

static int walk(struct walk *k, struct at at)
{
    struct names all = {.arena = k->w->arena};
    hid_t vars = dnn_h5_open(at.group, "vars", H5O_TYPE_GROUP);
    int rc = 0;

    if (vars >= 0) {
        rc = find_name(k, &at, vars);
        if (rc == 0) rc = list_vars(k, &at, vars);
        H5Oclose(vars);
    }
    if (rc == 0 &&
        H5Literate(at.group, H5_INDEX_NAME, H5_ITER_INC, NULL, keep_name, &all) < 0)
        rc = dnn_h5_fail(k->w->path, k->err, "the group \"%.200s\"",
                         dnn_h5_clean(k->w->arena, at.path));
    for (size_t i = 0; rc == 0 && i < all.n; i++)
        rc = walk_child(k, &at, all.name[i]);
    dnn_free(all.name);
    return rc;
}

int dnn_h5_list_numbered(struct dnn_weights *w, struct dnn_err *err)
{
    struct walk k = {.w = w, .err = err};
    struct at at = {.path = "", .class_path = "", .full = ""};

    at.group = H5Gopen2(w->file, "/", H5P_DEFAULT);
    if (at.group < 0) return dnn_h5_fail(w->path, err, "cannot open the root group");
    int rc = walk(&k, at);
    H5Gclose(at.group);
    return rc;
}
#endif
