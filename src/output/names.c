/* names.c - unique names of datasets and files.
 *
 * A name that is taken gets "~2" at its end, before "_classes" and the suffix of a
 * file. A name is also taken if it is a directory of another name, and a directory if
 * it is a name.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include "import/import.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* The names of a sample's datasets or files: they have the same stem. */
struct wanted {
    const char *end; /* "_classes.npy"                                               */
    const char **to; /* receives the name                                            */
};

/* Append a component that is not used as something else, and is new if it is the stem
 * of names (n > 0). */
static void append(struct names *set, struct dnn_buf *name, const char *component,
                   size_t len, const struct wanted *wanted, int n)
{
    size_t done = name->len;
    bool taken = true;

    for (int i = 1; taken; i++) {
        char count[16] = "";

        if (i > 1) snprintf(count, sizeof count, "~%d", i);
        name->len = done;
        dnn_buf_add(name, "%.*s%s", (int)len, component, count);
        size_t stem = name->len;
        taken = n == 0 && kind_of(set, name->text, stem) == LEAF;
        for (int k = 0; k < n && !taken; k++) {
            name->len = stem;
            dnn_buf_add(name, "%s", wanted[k].end);
            taken = kind_of(set, name->text, name->len) != 0;
        }
        name->len = stem;
        name->text[stem] = '\0';
    }
}

/* Make unique names of a name and the ends; in the arena. */
static void make_unique(struct names *set, struct dnn_arena *arena, const char *name,
                        const struct wanted *wanted, int n)
{
    struct dnn_buf made = {0};

    for (const char *slash; (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        append(set, &made, name, (size_t)(slash - name), NULL, 0);
        add(set, GROUP, made.text, made.len);
        dnn_buf_add(&made, "/");
    }
    append(set, &made, name, strlen(name), wanted, n);
    size_t stem = made.len;
    for (int k = 0; k < n; k++) {
        made.len = stem;
        dnn_buf_add(&made, "%s", wanted[k].end);
        add(set, LEAF, made.text, made.len);
        *wanted[k].to = dnn_arena_strdup(arena, made.text);
    }
    dnn_buf_free(&made);
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

/* Without "..", "." and empty components; instead: if nothing is left. */
static char *clean(const char *name, const char *instead)
{
    struct dnn_buf made = {0};

    for (const char *at = name; *at != '\0';) {
        size_t len = strcspn(at, "/");
        bool dots =
            (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.');

        if (len > 0 && !dots)
            dnn_buf_add(&made, "%s%.*s", made.len == 0 ? "" : "/", (int)len, at);
        at += len + (at[len] == '/');
    }
    if (made.len == 0) dnn_buf_add(&made, "%s", instead);
    return made.text;
}

char *dnn_output_relative(const struct dnn_output *out, const char *name)
{
    return clean(without_from(out->o.from, name), "sample");
}

/* Outputs have names of layers, which may contain anything and be equal. */
static void name_directories(struct dnn_output *out)
{
    const char **name =
        dnn_arena_alloc(out->arena, (size_t)out->o.noutputs * sizeof *name);
    struct names set = {0};

    grow(&set);
    for (int k = 0; k < out->o.noutputs; k++) {
        const struct wanted wanted = {"", &name[k]};
        char *made = clean(out->o.output_name[k], "output");

        make_unique(&set, out->arena, made, &wanted, 1);
        dnn_free(made);
    }
    free_names(&set);
    out->o.output_name = name;
}

/* What has unique names: datasets of two files, and files. */
enum { HDF5, BP, FILES, SPACES };

static int space_of(const struct output_part *p)
{
    if (p->suffix != NULL) return FILES;
    return p->format == DNN_OUTPUT_BP5 ? BP : HDF5;
}

/* Name what is stored of output k of a sample in one of these; with the output's name
 * as directory if there are several. */
static void name_output(struct dnn_output *out, int64_t sample, int k, int space,
                        struct names *set)
{
    const struct output_sample *s = &out->sample[sample];
    struct wanted wanted[OUTPUT_PARTS / DNN_OUTPUT_MAX];
    char end[OUTPUT_PARTS / DNN_OUTPUT_MAX][32], key[DNN_SAMPLE_NAME];
    int n = 0;

    for (int p = 0; p < out->nparts; p++) {
        const struct output_part *part = &out->part[p];

        if (part->k != k || space_of(part) != space || part->what == OUTPUT_INPUT ||
            part->format == DNN_OUTPUT_CSV)
            continue;
        snprintf(end[n], sizeof end[n], "%s%s", part->mark,
                 part->suffix == NULL ? "" : part->suffix);
        wanted[n] = (struct wanted){end[n], &out->final[sample * out->nparts + p]};
        n++;
    }
    if (n == 0) return;
    if (space == FILES)
        dnn_import_key(s->name, key);
    else
        snprintf(key, sizeof key, "%s", s->name);
    char *name = out->o.noutputs == 1 ? dnn_strdup(key)
                                      : dnn_format("%s/%s", out->o.output_name[k], key);
    make_unique(set, out->arena, name, wanted, n);
    dnn_free(name);
}

static int check_length(const char *name, struct dnn_err *err)
{
    enum { MOST = 255 };

    for (const char *at = name; *at != '\0';) {
        size_t len = strcspn(at, "/");

        if (len > MOST)
            return dnn_fail(err, DNN_EDATA,
                            "%.300s: a name in the path of this output has %zu bytes; "
                            "at most %d are possible",
                            name, len, MOST);
        at += len + (at[len] == '/');
    }
    return 0;
}

int dnn_output_name(struct dnn_output *out, struct dnn_err *err)
{
    struct names set[SPACES] = {{0}};
    int64_t n = out->o.nsamples * out->nparts;
    int rc = 0;

    if (out->o.noutputs > 1) name_directories(out);
    out->final = dnn_alloc((size_t)(n + 1) * sizeof *out->final);
    for (int space = 0; space < SPACES; space++) {
        grow(&set[space]);
        for (int64_t i = 0; i < out->o.nsamples; i++)
            for (int k = 0; k < out->o.noutputs; k++)
                name_output(out, i, k, space, &set[space]);
        free_names(&set[space]);
    }
    for (int64_t i = 0; i < n && rc == 0; i++)
        if (out->part[i % out->nparts].suffix != NULL)
            rc = check_length(out->final[i], err);
    return rc;
}

/* ---- inputs ---- */

struct file {
    dev_t device;
    ino_t inode;
    const char *path;
};

static int compare(const void *a, const void *b)
{
    const struct file *x = a, *y = b;

    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

static bool find_file(const char *path, struct file *out)
{
    struct stat st;

    if (path == NULL || stat(path, &st) != 0) return false;
    *out = (struct file){st.st_dev, st.st_ino, path};
    return true;
}

/* Takes ownership of path, which may be NULL. */
static int check_path(char *path, const struct file *input, size_t n,
                      struct dnn_err *err)
{
    struct file key;
    const struct file *same =
        find_file(path, &key) ? bsearch(&key, input, n, sizeof *input, compare) : NULL;

    dnn_free(path);
    if (same == NULL) return 0;
    return dnn_fail(err, DNN_EUSAGE,
                    "%s: an output would replace this input; give another output "
                    "directory",
                    same->path);
}

int dnn_output_protect(const struct dnn_output *out, struct dnn_err *err)
{
    const struct dnn_output_options *o = &out->o;
    struct file *input = dnn_alloc((size_t)(o->ninputs + 1) * sizeof *input), dir;
    int64_t files = find_file(o->dir, &dir) ? o->nsamples * out->nparts : 0;
    size_t n = 0;
    int rc = 0;

    for (int64_t i = 0; i < o->ninputs; i++)
        n += find_file(o->input[i], &input[n]);
    qsort(input, n, sizeof *input, compare);
    for (int i = 0; out->path[i] != NULL && rc == 0; i++)
        rc = check_path(dnn_strdup(out->path[i]), input, n, err);
    for (int k = 0; k < o->noutputs; k++) {
        if (rc == 0 && (o->formats & DNN_OUTPUT_CSV))
            rc = check_path(dnn_output_shared(out, k, ".csv"), input, n, err);
        if (rc == 0 && (o->formats & DNN_OUTPUT_JSON))
            rc = check_path(dnn_output_shared(out, k, ".json"), input, n, err);
    }
    for (int64_t i = 0; i < files && n > 0 && rc == 0; i++)
        if (out->part[i % out->nparts].suffix != NULL)
            rc = check_path(dnn_format("%s/%s", o->dir, out->final[i]), input, n, err);
    dnn_free(input);
    return rc;
}
