/* names.c - unique names of datasets and files.
 *
 * A name that is taken gets "~2" at its end, before the suffix of a file.  A name is
 * also taken if it is a directory of another name, and a directory if it is a name.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include "import/import.h"

#include <string.h>
#include <xxhash.h>

/* ---- sets of names ---- */

enum { LEAF = 'f', GROUP = 'd' }; /* the first byte of a name in the set */

struct names {
    char **slot; /* owned; a power of two, at most half of them in use; NULL: free  */
    size_t n, cap;
};

static char **find(const struct names *set, const char *name, size_t len)
{
    size_t at = (size_t)XXH3_64bits(name, len) & (set->cap - 1);

    while (set->slot[at] != NULL && (strncmp(set->slot[at] + 1, name, len) != 0 ||
                                     set->slot[at][1 + len] != '\0'))
        at = (at + 1) & (set->cap - 1);
    return &set->slot[at];
}

/* LEAF, GROUP or 0. */
static int kind_of(const struct names *set, const char *name, size_t len)
{
    char *there = *find(set, name, len);

    return there == NULL ? 0 : there[0];
}

static void grow(struct names *set)
{
    struct names old = *set;

    set->cap = old.cap == 0 ? 64 : 2 * old.cap;
    set->slot = dnn_alloc(set->cap * sizeof *set->slot);
    for (size_t i = 0; i < old.cap; i++)
        if (old.slot[i] != NULL)
            *find(set, old.slot[i] + 1, strlen(old.slot[i] + 1)) = old.slot[i];
    dnn_free(old.slot);
}

static void add(struct names *set, int kind, const char *name, size_t len)
{
    if (kind_of(set, name, len) != 0) return;
    if (2 * (set->n + 1) > set->cap) grow(set);
    *find(set, name, len) = dnn_format("%c%.*s", kind, (int)len, name);
    set->n++;
}

static void free_names(struct names *set)
{
    for (size_t i = 0; i < set->cap; i++)
        dnn_free(set->slot[i]);
    dnn_free(set->slot);
}

/* Replace *name, of which the first done bytes are directories, by one whose next
 * component is not used as something else. */
static size_t settle(struct names *set, struct dnn_buf *name, const char *component,
                     size_t len, const char *suffix, bool leaf)
{
    size_t done = name->len;

    for (int i = 1;; i++) {
        char count[16] = "";

        if (i > 1) snprintf(count, sizeof count, "~%d", i);
        name->len = done;
        dnn_buf_add(name, "%.*s%s%s", (int)len, component, count, suffix);
        int kind = kind_of(set, name->text, name->len);
        if (kind == 0 || (!leaf && kind == GROUP)) break;
    }
    add(set, leaf ? LEAF : GROUP, name->text, name->len);
    return name->len;
}

/* The unique name made from name and suffix; in the arena. */
static const char *unique(struct names *set, struct dnn_arena *arena, const char *name,
                          const char *suffix)
{
    struct dnn_buf made = {0};

    if (set->cap == 0) grow(set);
    for (const char *slash; (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        settle(set, &made, name, (size_t)(slash - name), "", false);
        dnn_buf_add(&made, "/");
    }
    settle(set, &made, name, strlen(name), suffix, true);
    const char *copy = dnn_arena_strdup(arena, made.text);
    dnn_buf_free(&made);
    return copy;
}

/* ---- names of samples ---- */

/* Without the directory of the inputs. */
static const char *without_from(const char *from, const char *name)
{
    size_t len = from == NULL ? 0 : strlen(from);
    const char *slash = NULL;

    if (len == 0 || strncmp(name, from, len) != 0) return name;
    if (name[len] == '/') return name + len + 1;
    for (size_t i = 0; i < len; i++)
        if (name[i] == '/') slash = name + i;
    return slash == NULL ? name : slash + 1;
}

char *dnn_output_relative(const struct dnn_output *out, const char *name)
{
    struct dnn_buf made = {0};

    for (const char *at = without_from(out->o.from, name); *at != '\0';) {
        size_t len = strcspn(at, "/");
        bool dots =
            (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.');

        if (len > 0 && !dots)
            dnn_buf_add(&made, "%s%.*s", made.len == 0 ? "" : "/", (int)len, at);
        at += len + (at[len] == '/');
    }
    if (made.len == 0) dnn_buf_add(&made, "sample");
    return made.text;
}

/* With the output's name as directory if there are several. */
static char *with_output(const struct dnn_output *out, int k, const char *name,
                         const char *mark)
{
    if (out->o.noutputs == 1) return dnn_format("%s%s", name, mark);
    return dnn_format("%s/%s%s", out->o.output_name[k], name, mark);
}

static const char *name_of(struct dnn_output *out, const struct output_sample *s,
                           const struct output_part *p, struct names *datasets,
                           struct names *files)
{
    char key[DNN_SAMPLE_NAME];

    if (p->suffix != NULL)
        dnn_import_key(s->name, key);
    else
        snprintf(key, sizeof key, "%s", s->label);
    char *wanted = with_output(out, p->k, key, p->mark);
    const char *made = p->suffix != NULL ? unique(files, out->arena, wanted, p->suffix)
                                         : unique(datasets, out->arena, wanted, "");
    dnn_free(wanted);
    return made;
}

static int check_length(const char *name, struct dnn_err *err)
{
    enum { MOST = 255 };

    for (const char *at = name; *at != '\0';) {
        size_t len = strcspn(at, "/");

        if (len > MOST)
            return dnn_fail(err, DNN_EDATA,
                            "the file name %.100s... has %zu bytes; %d are possible",
                            at, len, MOST);
        at += len + (at[len] == '/');
    }
    return 0;
}

int dnn_output_name(struct dnn_output *out, struct dnn_err *err)
{
    struct names hdf5 = {0}, bp = {0}, files = {0};
    size_t n = (size_t)out->nparts;
    int rc = 0;

    out->final = dnn_alloc(((size_t)out->o.nsamples * n + 1) * sizeof *out->final);
    for (int64_t i = 0; i < out->o.nsamples && rc == 0; i++)
        for (int p = 0; p < out->nparts && rc == 0; p++) {
            const struct output_part *part = &out->part[p];
            const char *name;

            if (part->what == OUTPUT_INPUT || part->format == DNN_OUTPUT_CSV) continue;
            name = name_of(out, &out->sample[i], part,
                           part->format == DNN_OUTPUT_BP5 ? &bp : &hdf5, &files);
            if (part->suffix != NULL) rc = check_length(name, err);
            out->final[(size_t)i * n + (size_t)p] = name;
        }
    free_names(&hdf5);
    free_names(&bp);
    free_names(&files);
    return rc;
}
