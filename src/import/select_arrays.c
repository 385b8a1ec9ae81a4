/* select_arrays.c - select the arrays of a file that are input and target.
 *
 * Configured names are used first.  Without them, the only array of a file is the
 * input, and a pair with names of the table below is input and target.  If a file is
 * one sample
 * ("whole") and has no such pair, each of its arrays is a sample.  Ambiguous files are
 * an error that lists the arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>

enum { SHOWN = 20 }; /* names in a message */

static const struct pair {
    const char *input, *target, *split;
} pairs[] = {
    {"x",        "y",       NULL   },
    {"X",        "Y",       NULL   },
    {"X",        "y",       NULL   },
    {"features", "labels",  NULL   },
    {"features", "targets", NULL   },
    {"data",     "label",   NULL   },
    {"data",     "labels",  NULL   },
    {"input",    "target",  NULL   },
    {"inputs",   "targets", NULL   },
    {"image",    "label",   NULL   },
    {"image",    "mask",    NULL   },
    {"images",   "labels",  NULL   },
    {"images",   "masks",   NULL   },
    {"x_train",  "y_train", "train"},
    {"x_test",   "y_test",  "test" },
    {"arr_0",    "arr_1",   NULL   },
};
enum { NPAIRS = sizeof pairs / sizeof *pairs, UNNAMED = NPAIRS - 1 };

static int find(const struct dnn_store_array *array, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (array[i].name != NULL && strcmp(array[i].name, name) == 0) return (int)i;
    return -1;
}

/* "x, y and 3 more"; for dnn_buf_free(). */
static struct dnn_buf names(const struct dnn_store_array *array, size_t n)
{
    struct dnn_buf buf = {0};

    for (size_t i = 0; i < n && i < SHOWN; i++)
        dnn_buf_add(&buf, "%s%.40s", i > 0 ? ", " : "", array[i].name);
    if (n > SHOWN) dnn_buf_add(&buf, " and %zu more", n - SHOWN);
    return buf;
}

/* The array with a configured name. */
static int find_named(const char *path, const struct dnn_store_array *array, size_t n,
                      const char *name, int *out, struct dnn_err *err)
{
    char hint[128];

    *out = find(array, n, name);
    if (*out >= 0) return 0;
    if (n == 1 && array[0].name == NULL)
        return dnn_fail(err, DNN_EDATA,
                        "%s: contains a single unnamed array, so the name \"%s\" "
                        "cannot be selected",
                        path, name);
    const char **known = dnn_alloc((n + 1) * sizeof *known);
    for (size_t i = 0; i < n; i++)
        known[i] = array[i].name;
    struct dnn_buf all = names(array, n);
    dnn_text_hint(hint, sizeof hint, name, known);
    dnn_fail(err, DNN_EDATA, "%s: there is no array \"%s\"%s; available: %s", path,
             name, hint, all.text);
    dnn_buf_free(&all);
    dnn_free(known);
    return DNN_EDATA;
}

static int ambiguous(const char *path, const struct dnn_store_array *array, size_t n,
                     const struct dnn_import *how, struct dnn_err *err)
{
    struct dnn_buf all = names(array, n);

    if (how->split != NULL)
        dnn_fail(
            err, DNN_EDATA,
            "%s: no arrays for the split \"%s\", such as x_%s and y_%s; available: %s",
            path, how->split, how->split, how->split, all.text);
    else
        dnn_fail(err, DNN_EDATA,
                 "%s: several arrays; set \"name\" to the one with the samples: %s",
                 path, all.text);
    dnn_buf_free(&all);
    return DNN_EDATA;
}

/* By the usual names; *found: the number of different matches. */
static void find_usual(const struct dnn_store_array *array, size_t n, const char *split,
                       bool whole, bool as_target, bool both, struct dnn_chosen *out,
                       int *found)
{
    *found = 0;
    for (int i = 0; i < NPAIRS; i++) {
        int in = find(array, n, pairs[i].input), to = find(array, n, pairs[i].target);
        bool other = split != NULL &&
                     (pairs[i].split == NULL || strcmp(pairs[i].split, split) != 0);

        if (other || (i == UNNAMED && whole)) continue;
        if (as_target) in = to;
        if (!both) to = -1;
        if (in < 0 || (both && to < 0)) continue;
        if (*found > 0 && in == out->input && to == out->target) continue;
        ++*found;
        *out = (struct dnn_chosen){.input = in, .target = to, .split = pairs[i].split};
    }
}

/* The usual partner of an array: the input of a target or vice versa; -1: none. */
static int partner(const struct dnn_store_array *array, size_t n, const char *name,
                   bool input)
{
    for (int i = 0; i < NPAIRS; i++) {
        const char *is = input ? pairs[i].target : pairs[i].input;
        int other = find(array, n, input ? pairs[i].input : pairs[i].target);

        if (strcmp(is, name) == 0 && other >= 0) return other;
    }
    return -1;
}

bool dnn_import_of_split(const char *path, const char *split)
{
    if (split == NULL) return true;
    for (size_t len = strlen(split); *path != '\0'; path += *path == '/') {
        size_t n = strcspn(path, "/");
        bool begins = n >= len && strncmp(path, split, len) == 0;

        if (begins && path[n] == '/' && n == len) return true;
        if (begins && path[n] == '\0' && !isalnum((unsigned char)path[len]))
            return true;
        path += n;
    }
    return false;
}

static int select_arrays(const char *path, const struct dnn_store_array *array,
                         size_t n, const struct dnn_import *how,
                         const struct dnn_import_side *side, struct dnn_chosen *out,
                         struct dnn_err *err)
{
    bool as_target = side == &how->target;
    bool both = !as_target && how->target.path == NULL;
    const char *target = both ? how->target.name : NULL;
    int found;

    if (target != NULL) DNN_TRY(find_named(path, array, n, target, &out->target, err));
    if (side->name != NULL) {
        DNN_TRY(find_named(path, array, n, side->name, &out->input, err));
        if (both && target == NULL) out->target = partner(array, n, side->name, false);
        return 0;
    }
    if (target != NULL) {
        out->input = n == 2 ? 1 - out->target : partner(array, n, target, true);
        return out->input >= 0 ? 0 : ambiguous(path, array, n, how, err);
    }
    find_usual(array, n, how->split, how->whole, as_target, both, out, &found);
    if (found == 0 && how->split != NULL) {
        if (!dnn_import_of_split(path, how->split))
            return ambiguous(path, array, n, how, err);
        find_usual(array, n, NULL, how->whole, as_target, both, out, &found);
    }
    if (found == 1) return 0;
    if (found == 0 && n == 1) {
        out->input = 0;
        return 0;
    }
    if (found > 1 || !how->whole) return ambiguous(path, array, n, how, err);
    *out = (struct dnn_chosen){.input = -1, .target = -1, .members = true};
    return 0;
}

int dnn_store_select(const char *path, const struct dnn_store_array *array,
                     size_t narrays, const struct dnn_import *how,
                     const struct dnn_import_side *side, struct dnn_chosen *out,
                     struct dnn_err *err)
{
    *out = (struct dnn_chosen){.input = -1, .target = -1};
    if (narrays == 0) return dnn_fail(err, DNN_EDATA, "%s: contains no arrays", path);
    /* A file that is a single array has no splits and no names. */
    if (array[0].name == NULL && !dnn_import_of_split(path, how->split))
        return dnn_fail(err, DNN_EDATA,
                        "%s: not part of the split \"%s\": neither a directory nor the "
                        "file name says so",
                        path, how->split);
    if (array[0].name == NULL && side->name == NULL)
        out->input = 0;
    else
        DNN_TRY(select_arrays(path, array, narrays, how, side, out, err));
    for (size_t i = 0; i < narrays; i++)
        if (array[i].error != NULL &&
            (out->members || (int)i == out->input || (int)i == out->target))
            return dnn_fail(err, DNN_EDATA, "%s%s%s: %s", path,
                            array[i].name != NULL ? ": " : "",
                            array[i].name != NULL ? array[i].name : "", array[i].error);
    return 0;
}
