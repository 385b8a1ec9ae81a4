/* choose.c - which arrays of a file are its inputs and targets.
 *
 * Names that are given decide.  Without them, a file with one array has that; one with
 * a pair of the names below has input and target; and if a file is one sample ("whole")
 * and has no such pair, each of its arrays is a sample.  What could be meant in two
 * ways is an error that lists what there is.
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

static int find(const struct dnn_part *part, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (part[i].name != NULL && strcmp(part[i].name, name) == 0) return (int)i;
    return -1;
}

/* "x, y and 3 more"; for dnn_buf_free(). */
static struct dnn_buf names(const struct dnn_part *part, size_t n)
{
    struct dnn_buf buf = {0};

    for (size_t i = 0; i < n && i < SHOWN; i++)
        dnn_buf_add(&buf, "%s%.40s", i > 0 ? ", " : "", part[i].name);
    if (n > SHOWN) dnn_buf_add(&buf, " and %zu more", n - SHOWN);
    return buf;
}

/* The part of a name that was given. */
static int find_given(const char *path, const struct dnn_part *part, size_t n,
                      const char *name, int *out, struct dnn_err *err)
{
    char hint[128];

    *out = find(part, n, name);
    if (*out >= 0) return 0;
    if (n == 1 && part[0].name == NULL)
        return dnn_fail(err, DNN_EDATA,
                        "%s: contains a single unnamed array, so the name \"%s\" "
                        "cannot be selected",
                        path, name);
    const char **word = dnn_alloc((n + 1) * sizeof *word);
    for (size_t i = 0; i < n; i++)
        word[i] = part[i].name;
    struct dnn_buf all = names(part, n);
    dnn_text_hint(hint, sizeof hint, name, word);
    dnn_fail(err, DNN_EDATA, "%s: there is no array \"%s\"%s; available: %s", path,
             name, hint, all.text);
    dnn_buf_free(&all);
    dnn_free(word);
    return DNN_EDATA;
}

static int unclear(const char *path, const struct dnn_part *part, size_t n,
                   const struct dnn_import *how, struct dnn_err *err)
{
    struct dnn_buf all = names(part, n);

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

/* By the usual names; *found says how many different answers they give. */
static void find_usual(const struct dnn_part *part, size_t n, const char *split,
                       bool whole, bool as_target, bool both, struct dnn_chosen *out,
                       int *found)
{
    *found = 0;
    for (int i = 0; i < NPAIRS; i++) {
        int in = find(part, n, pairs[i].input), to = find(part, n, pairs[i].target);
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

/* The usual partner of an array, in the column of targets or of inputs; -1: none. */
static int partner(const struct dnn_part *part, size_t n, const char *name, bool input)
{
    for (int i = 0; i < NPAIRS; i++) {
        const char *is = input ? pairs[i].target : pairs[i].input;
        int other = find(part, n, input ? pairs[i].input : pairs[i].target);

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

static int choose(const char *path, const struct dnn_part *part, size_t n,
                  const struct dnn_import *how, const struct dnn_import_side *side,
                  struct dnn_chosen *out, struct dnn_err *err)
{
    bool as_target = side == &how->target;
    bool both = !as_target && how->target.path == NULL;
    const char *target = both ? how->target.name : NULL;
    int found;

    if (target != NULL) DNN_TRY(find_given(path, part, n, target, &out->target, err));
    if (side->name != NULL) {
        DNN_TRY(find_given(path, part, n, side->name, &out->input, err));
        if (both && target == NULL) out->target = partner(part, n, side->name, false);
        return 0;
    }
    if (target != NULL) {
        out->input = n == 2 ? 1 - out->target : partner(part, n, target, true);
        return out->input >= 0 ? 0 : unclear(path, part, n, how, err);
    }
    find_usual(part, n, how->split, how->whole, as_target, both, out, &found);
    if (found == 0 && how->split != NULL) {
        if (!dnn_import_of_split(path, how->split))
            return unclear(path, part, n, how, err);
        find_usual(part, n, NULL, how->whole, as_target, both, out, &found);
    }
    if (found == 1) return 0;
    if (found == 0 && n == 1) {
        out->input = 0;
        return 0;
    }
    if (found > 1 || !how->whole) return unclear(path, part, n, how, err);
    *out = (struct dnn_chosen){.input = -1, .target = -1, .members = true};
    return 0;
}

int dnn_part_choose(const char *path, const struct dnn_part *part, size_t nparts,
                    const struct dnn_import *how, const struct dnn_import_side *side,
                    struct dnn_chosen *out, struct dnn_err *err)
{
    *out = (struct dnn_chosen){.input = -1, .target = -1};
    if (nparts == 0) return dnn_fail(err, DNN_EDATA, "%s: contains no arrays", path);
    /* A file that is one array knows no splits and no names. */
    if (part[0].name == NULL && !dnn_import_of_split(path, how->split))
        return dnn_fail(err, DNN_EDATA,
                        "%s: not part of the split \"%s\": neither a directory nor the "
                        "file name says so",
                        path, how->split);
    if (part[0].name == NULL && side->name == NULL)
        out->input = 0;
    else
        DNN_TRY(choose(path, part, nparts, how, side, out, err));
    for (size_t i = 0; i < nparts; i++)
        if (part[i].wrong != NULL &&
            (out->members || (int)i == out->input || (int)i == out->target))
            return dnn_fail(err, DNN_EDATA, "%s%s%s: %s", path,
                            part[i].name != NULL ? ": " : "",
                            part[i].name != NULL ? part[i].name : "", part[i].wrong);
    return 0;
}
