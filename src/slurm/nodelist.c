/* nodelist.c - Slurm's short forms, "n[1-3,7]" and "2(x3),1", written out.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "slurm/slurm.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 255 }; /* as long as a host name may be */

struct work {
    const char *list; /* the whole text, for messages */
    struct dnn_slurm_nodes out;
    size_t cap;
    struct dnn_err *err;
};

static int bad(const struct work *w, const char *at, const char *what)
{
    return dnn_fail(w->err, DNN_EUSAGE, "node list \"%.200s\", character %d: %s",
                    w->list, (int)(at - w->list) + 1, what);
}

/* Digits into *out.  Nine are enough for any node and never overflow. */
static int digits(const struct work *w, const char **at, int *out)
{
    const char *start = *at;
    int n = 0;

    while (isdigit((unsigned char)**at)) {
        if (*at - start == 9) return bad(w, start, "this number is too large");
        n = n * 10 + (*(*at)++ - '0');
    }
    if (*at == start) return bad(w, start, "a number is missing here");
    *out = n;
    return 0;
}

static int push(struct work *w, const char *name, const char *at)
{
    if (w->out.count == DNN_SLURM_MAX_NODES)
        return bad(w, at, "more than 65536 nodes; no cluster has so many");
    w->out.name =
        dnn_grow(w->out.name, &w->cap, (size_t)w->out.count + 1, sizeof *w->out.name);
    w->out.name[w->out.count++] = dnn_strdup(name);
    return 0;
}

static int expand(struct work *w, char *name, size_t len, const char *at);

/* "[1-3,7]" at at; name holds the len characters before it, end is behind it. */
static int ranges(struct work *w, char *name, size_t len, const char *at,
                  const char *end)
{
    do {
        const char *low_at = ++at;
        int low, high;

        DNN_TRY(digits(w, &at, &low));
        int width = (int)(at - low_at); /* leading zeros are part of a name */
        high = low;
        if (*at == '-') {
            at++;
            DNN_TRY(digits(w, &at, &high));
        }
        if (high < low) return bad(w, low_at, "this range runs backwards");
        if (*at != ',' && *at != ']')
            return bad(w, at, "expected a comma or the closing bracket");
        for (int n = low; n <= high; n++) {
            int add = snprintf(name + len, MAX_NAME + 1 - len, "%0*d", width, n);

            if (add < 0 || len + (size_t)add > MAX_NAME)
                return bad(w, low_at, "this name is longer than 255 characters");
            DNN_TRY(expand(w, name, len + (size_t)add, end));
        }
    } while (*at == ',');
    return 0;
}

/* The rest of one name from at on, for every number in its brackets. */
static int expand(struct work *w, char *name, size_t len, const char *at)
{
    while (*at != '\0' && *at != ',' && *at != '[') {
        if (*at == ']') return bad(w, at, "this bracket was never opened");
        if (isspace((unsigned char)*at) || !isprint((unsigned char)*at))
            return bad(w, at, "no node name has this character");
        if (len == MAX_NAME)
            return bad(w, at, "this name is longer than 255 characters");
        name[len++] = *at++;
    }
    if (*at == '[') {
        const char *close = strchr(at, ']');

        if (close == NULL) return bad(w, at, "this bracket is never closed");
        return ranges(w, name, len, at, close + 1);
    }
    if (len == 0) return bad(w, at, "a name is missing here");
    name[len] = '\0';
    return push(w, name, at);
}

/* Past the name at at: to the comma outside brackets, or the end. */
static const char *past(const char *at)
{
    bool inside = false;

    for (; *at != '\0' && (inside || *at != ','); at++)
        if (*at == '[' || *at == ']') inside = *at == '[';
    return at;
}

int dnn_slurm_expand_nodes(const char *list, struct dnn_slurm_nodes *out,
                           struct dnn_err *err)
{
    struct work w = {.list = list, .err = err};
    char name[MAX_NAME + 1];
    const char *at = list;
    int rc = expand(&w, name, 0, at);

    while (rc == 0 && *(at = past(at)) == ',')
        rc = expand(&w, name, 0, ++at);
    if (rc < 0) {
        dnn_slurm_free_nodes(&w.out);
        return rc;
    }
    *out = w.out;
    return 0;
}

void dnn_slurm_free_nodes(struct dnn_slurm_nodes *nodes)
{
    for (int i = 0; i < nodes->count; i++)
        dnn_free(nodes->name[i]);
    dnn_free(nodes->name);
    *nodes = (struct dnn_slurm_nodes){0};
}

/* At most nine digits at *at, so that an int holds them. */
static bool whole(const char **at, int *out)
{
    const char *start = *at;

    for (*out = 0; isdigit((unsigned char)**at) && *at - start < 9; (*at)++)
        *out = *out * 10 + (**at - '0');
    return *at > start;
}

/* "2" or "2(x3)" at *at: how often which number. */
static bool count(const char **at, int *number, int *times)
{
    *times = 1;
    if (!whole(at, number)) return false;
    if (**at != '(') return true;
    if (*++*at != 'x') return false;
    ++*at;
    return whole(at, times) && *times > 0 && *(*at)++ == ')';
}

int dnn_slurm_expand_tasks(const char *list, int **tasks, int *ntasks,
                           struct dnn_err *err)
{
    int *out = NULL, n = 0;
    size_t cap = 0;
    const char *at = list, *why = NULL;

    do {
        int number, times;

        if (!count(&at, &number, &times) || (*at != ',' && *at != '\0'))
            why = "it must look like 2(x3),1";
        else if (times > DNN_SLURM_MAX_NODES - n)
            why = "more than 65536 nodes; no cluster has so many";
        else
            out = dnn_grow(out, &cap, (size_t)(n + times), sizeof *out);
        for (int i = 0; why == NULL && i < times; i++)
            out[n++] = number;
    } while (why == NULL && *at++ == ',');
    if (why != NULL) {
        dnn_free(out);
        return dnn_fail(err, DNN_EUSAGE, "tasks per node \"%.200s\": %s", list, why);
    }
    *tasks = out;
    *ntasks = n;
    return 0;
}
