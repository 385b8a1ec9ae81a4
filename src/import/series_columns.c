/* series_columns.c - the common columns of the files of a series.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/import_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

/* Copies names, because from may be closed before base. */
void dnn_import_columns_copy(struct dnn_source *base, const struct dnn_source *from,
                             struct dnn_arena *arena)
{
    base->ncols = from->ncols;
    for (int k = 0; k < from->ncols; k++) {
        struct dnn_column *col = &base->col[k];

        *col = from->col[k];
        if (col->class_name == NULL) continue;
        const char **names =
            dnn_arena_alloc(arena, ((size_t)col->classes + 1) * sizeof *names);
        for (int64_t c = 0; c < col->classes; c++)
            names[c] = dnn_arena_strdup(arena, from->col[k].class_name[c]);
        col->class_name = names;
    }
    base->split = from->split == NULL ? NULL : dnn_arena_strdup(arena, from->split);
}

/* A column must be the same in two files, except for its extents. */
static int same_kind(const struct dnn_column *old, const char *old_path,
                     const struct dnn_column *new, const char *path,
                     struct dnn_err *err)
{
    if (strcmp(new->name, old->name) == 0 && new->kind == old->kind &&new->type ==
                                                 old->type &&new->shape.ndim ==
                                                 old->shape.ndim)
        return 0;
    return dnn_fail(
        err, DNN_EDATA,
        "%s: column \"%s\" is %s %s with %d axes, but \"%s\" of %s is %s %s with %d",
        path, new->name, dnn_dtype_name(new->type),
        dnn_choice_name(dnn_kind_choices, (int)new->kind), new->shape.ndim, old->name,
        old_path, dnn_dtype_name(old->type),
        dnn_choice_name(dnn_kind_choices, (int)old->kind), old->shape.ndim);
}

/* Class names must be equal; without names, the larger number of classes is used. */
static int same_classes(struct dnn_column *old, const char *old_path,
                        const struct dnn_column *new, const char *path,
                        struct dnn_err *err)
{
    int64_t c = 0;

    if (new->class_name == NULL && old->class_name == NULL) {
        if (new->classes > old->classes) old->classes = new->classes;
        return 0;
    }
    if (new->class_name == NULL || old->class_name == NULL)
        return dnn_fail(err, DNN_EDATA,
                        "%s: the classes have %s names, but in %s they have %s", path,
                        new->class_name == NULL ? "no" : "their", old_path,
                        old->class_name == NULL ? "none" : "names");
    while (c < new->classes &&
           c < old->classes &&strcmp(new->class_name[c], old->class_name[c]) == 0)
        c++;
    if (c == new->classes && c == old->classes) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s: the classes differ from those of %s: class %" PRId64
                    " is \"%s\", not \"%s\"",
                    path, old_path, c, c < new->classes ? new->class_name[c] : "",
                    c < old->classes ? old->class_name[c] : "");
}

int dnn_import_columns_join(struct dnn_source *base, const char *base_path,
                            const struct dnn_source *from, const char *path,
                            struct dnn_err *err)
{
    if (from->ncols != base->ncols)
        return dnn_fail(err, DNN_EDATA, "%s: %d columns, but %s has %d", path,
                        from->ncols, base_path, base->ncols);
    for (int k = 0; k < base->ncols; k++) {
        const struct dnn_column *new = &from->col[k];
        struct dnn_column *old = &base->col[k];

        DNN_TRY(same_kind(old, base_path, new, path, err));
        DNN_TRY(same_classes(old, base_path, new, path, err));
        for (int d = 0; d < old->shape.ndim; d++)
            if (new->shape.dim[d] != old->shape.dim[d]) old->shape.dim[d] = DNN_UNKNOWN;
    }
    if (base->split != NULL &&
        (from->split == NULL || strcmp(from->split, base->split) != 0))
        base->split = NULL;
    return 0;
}
