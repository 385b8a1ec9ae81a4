/* folder.c - directories as splits and classes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A directory in a name; len 0: none.  The last component is the file itself. */
struct part {
    const char *text;
    size_t len;
};

static struct part first_part(const char *name)
{
    const char *slash = strchr(name, '/');

    return (struct part){name, slash == NULL ? 0 : (size_t)(slash - name)};
}

static struct part next_part(struct part p)
{
    return p.len == 0 ? p : first_part(p.text + p.len + 1);
}

static bool part_is(struct part p, const char *name)
{
    return p.len == strlen(name) && memcmp(p.text, name, p.len) == 0;
}

static struct part find_part(const char *name, const char *tag)
{
    struct part p = first_part(name);

    while (p.len > 0 && !part_is(p, tag))
        p = next_part(p);
    return p;
}

int dnn_import_tagged(struct dnn_import_list *list, const char *dir, const char *tag,
                      struct dnn_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        if (dnn_import_of_split(list->file[i].name, tag))
            list->file[n++] = list->file[i];
    if (n == 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: no files for the split \"%s\": no directory of this name, "
                        "and no file name begins with it",
                        dir, tag);
    list->n = n;
    return 0;
}

static bool is_split(struct part p)
{
    static const char *const splits[] = {"train", "training", "test",       "testing",
                                         "val",   "valid",    "validation", NULL};

    for (int i = 0; splits[i] != NULL; i++)
        if (p.len == strlen(splits[i]) && strncasecmp(p.text, splits[i], p.len) == 0)
            return true;
    return false;
}

/* The class directory of a file. */
static struct part class_part(const char *name, const char *tag, bool splits)
{
    if (tag != NULL) return next_part(find_part(name, tag));
    return splits ? next_part(first_part(name)) : first_part(name);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sort the names and remove duplicates; returns how many are left. */
static int64_t unique(const char **name, size_t n)
{
    size_t kept = 0;

    qsort(name, n, sizeof *name, by_text);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(name[kept - 1], name[i]) != 0) name[kept++] = name[i];
    return (int64_t)kept;
}

int64_t dnn_import_classes(struct dnn_import_list *list, const char *tag,
                           const char *const **names)
{
    bool splits = true;
    const char **class_name;
    int64_t n;

    for (size_t i = 0; i < list->n; i++)
        splits = splits && is_split(first_part(list->file[i].name));
    for (size_t i = 0; i < list->n; i++)
        if (class_part(list->file[i].name, tag, splits).len == 0) return 0;
    class_name = dnn_alloc((list->n + 1) * sizeof *class_name);
    for (size_t i = 0; i < list->n; i++) {
        struct part p = class_part(list->file[i].name, tag, splits);

        /* Files of a class are consecutive and share one copy. */
        if (i > 0 && part_is(p, class_name[i - 1]))
            class_name[i] = class_name[i - 1];
        else {
            char *text = dnn_strndup(p.text, p.len);

            class_name[i] = dnn_arena_strdup(list->arena, text);
            dnn_free(text);
        }
    }
    const char **all = dnn_alloc((list->n + 1) * sizeof *all);
    memcpy(all, class_name, list->n * sizeof *all);
    n = unique(all, list->n);
    if (n < 2) n = 0; /* a single directory is not a class */
    if (n > 0) {
        const char **kept = dnn_arena_alloc(list->arena, (size_t)n * sizeof *kept);

        memcpy(kept, all, (size_t)n * sizeof *kept);
        *names = kept;
        for (size_t i = 0; i < list->n; i++) {
            const char **at =
                bsearch(&class_name[i], kept, (size_t)n, sizeof *kept, by_text);

            list->file[i].class_of = at - kept;
        }
    }
    dnn_free(all);
    dnn_free(class_name);
    return n;
}
