/* dataset_info.c - the description of a dataset, from its attributes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "data/dataset_impl.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Where attributes come from, and the first failure. */
struct eye {
    struct dnn_dataset *d;
    const char *prefix;
    int rc;
    struct dnn_err *err;
};

static void wrong(struct eye *e, const char *name, const char *what)
{
    if (e->rc == 0)
        e->rc = dnn_fail(e->err, DNN_EDATA, "%s: attribute %s/%s: %s", e->d->path,
                         e->prefix, name, what);
}

/* As many as max or fewer; how many there are, 0 if there is none. */
static int64_t reals(struct eye *e, const char *name, double *to, int64_t max)
{
    char *full = dnn_format("%s/%s", e->prefix, name);
    int64_t n;
    double *x = dnn_bp_reals(e->d->bp, full, &n);

    if (n > max) {
        wrong(e, name, "too many values");
        n = 0;
    }
    if (n > 0) memcpy(to, x, (size_t)n * sizeof *to);
    dnn_free(x);
    dnn_free(full);
    return n;
}

/* One whole number; must: it has to be there. */
static int64_t one(struct eye *e, const char *name, bool must, int64_t min)
{
    char *full = dnn_format("%s/%s", e->prefix, name);
    int64_t n, value = 0, *x = dnn_bp_ints(e->d->bp, full, &n);

    if (n == 1) value = x[0];
    if (n != 1 && (must || n != 0)) wrong(e, name, "missing or not a single number");
    if (n == 1 && value < min) wrong(e, name, "too small");
    dnn_free(x);
    dnn_free(full);
    return value;
}

static int word(struct eye *e, const char *name, const struct dnn_choice *choices)
{
    char *full = dnn_format("%s/%s", e->prefix, name);
    char *text = dnn_bp_text(e->d->bp, full);
    int value = 0;

    if (text == NULL || dnn_choice_find(choices, text, &value, NULL) < 0)
        wrong(e, name, "missing or not a known name");
    dnn_free(text);
    dnn_free(full);
    return value;
}

/* NULL, and that is an error, unless there are 1 to max texts. */
static char **names(struct eye *e, const char *name, int64_t max, int64_t *n)
{
    char *full = dnn_format("%s/%s", e->prefix, name);
    char **list = dnn_bp_texts(e->d->bp, full, n);

    if (list == NULL || *n < 1 || *n > max) {
        wrong(e, name, "missing or not a list of names");
        dnn_free(list);
        list = NULL;
        *n = 0;
    }
    dnn_free(full);
    return list;
}

static void short_name(struct eye *e, const char *name, const char *text, char *to,
                       size_t room)
{
    size_t len = strlen(text);

    if (len >= room) {
        wrong(e, name, "contains a name that is too long");
        len = 0;
    }
    memcpy(to, text, len);
    to[len] = '\0';
}

static void class_names(struct eye *e, struct dnn_column *c)
{
    char *full = dnn_format("%s/class_names", e->prefix);
    int64_t n;
    char **list = dnn_bp_texts(e->d->bp, full, &n);

    dnn_free(full);
    if (list == NULL) return;
    if (n != c->classes) {
        wrong(e, "class_names", "must have one name per class");
    } else {
        const char **copy =
            dnn_arena_alloc(e->d->arena, (size_t)(n + 1) * sizeof *copy);
        for (int64_t i = 0; i < n; i++)
            copy[i] = dnn_arena_strdup(e->d->arena, list[i]);
        c->class_name = copy;
    }
    dnn_free(list);
}

static void stats(struct eye *e, struct dnn_stored *s)
{
    struct dnn_stats *x;
    double range[2];
    char *full = dnn_format("%s/stats/count", e->prefix);
    int64_t n, *there = dnn_bp_ints(e->d->bp, full, &n);

    dnn_free(full);
    dnn_free(there);
    if (n == 0) return;
    s->stats = x = dnn_alloc(sizeof *x);
    x->count = one(e, "stats/count", true, 0);
    x->bad = one(e, "stats/bad", true, 0);
    x->nchannels = (int32_t)reals(e, "stats/mean", x->mean, DNN_STATS_CHANNELS);
    if (reals(e, "stats/m2", x->m2, DNN_STATS_CHANNELS) != x->nchannels ||
        reals(e, "stats/min", x->min, DNN_STATS_CHANNELS) != x->nchannels ||
        reals(e, "stats/max", x->max, DNN_STATS_CHANNELS) != x->nchannels)
        wrong(e, "stats", "differ in their number of channels");
    x->whole = one(e, "stats/whole", true, 0) != 0;
    full = dnn_format("%s/stats/good", e->prefix);
    int64_t *good = dnn_bp_ints(e->d->bp, full, &n);
    if (n != x->nchannels)
        wrong(e, "stats/good", "must have one number per channel");
    else if (n > 0)
        memcpy(x->good, good, (size_t)n * sizeof *good);
    dnn_free(good);
    dnn_free(full);
    if (reals(e, "stats/range", range, 2) == 2) {
        x->low = range[0];
        x->high = range[1];
    }
}

/* The array of a column, or another; its shape is [samples] + shape. */
static int find(struct eye *e, const struct dnn_split *s, const char *column,
                const char *what, enum dnn_dtype type, int64_t rows)
{
    char *name = dnn_dataset_name(s, column, what);
    int var = dnn_bp_find(e->d->bp, name);

    if (var >= 0) {
        const struct dnn_bp_var *v = dnn_bp_var(e->d->bp, var);

        if (v->type != type || v->shape.ndim != 1 ||
            (rows > 0 && v->shape.dim[0] != rows)) {
            wrong(e, column, "unexpected type or shape of its array");
            var = -1;
        }
    }
    dnn_free(name);
    return var;
}

static void column(struct eye *e, int i, int k)
{
    struct dnn_split *s = &e->d->info.split[i];
    struct dnn_stored *x = &s->col[k];
    struct dnn_column *c = &x->column;
    char *prefix = dnn_dataset_name(s, c->name, "");
    int var = dnn_bp_find(e->d->bp, prefix);

    e->prefix = prefix;
    e->d->var[i][k] = var;
    if (var < 0 || dnn_bp_var(e->d->bp, var)->shape.dim[0] != s->count) {
        wrong(e, "", "there is no array of this name with one row per sample");
    } else {
        const struct dnn_bp_var *v = dnn_bp_var(e->d->bp, var);

        c->type = v->type;
        c->shape.ndim = v->shape.ndim - 1;
        for (int d = 0; d < c->shape.ndim; d++)
            c->shape.dim[d] = v->shape.dim[d + 1];
    }
    c->role = (enum dnn_column_role)word(e, "role", dnn_role_choices);
    c->kind = (enum dnn_kind)word(e, "kind", dnn_kind_choices);
    c->classes = one(e, "classes", false, 0);
    class_names(e, c);
    x->nscale = (int)reals(e, "scale", x->scale, DNN_STATS_CHANNELS);
    if (reals(e, "offset", x->offset, DNN_STATS_CHANNELS) != x->nscale)
        wrong(e, "offset", "must have as many values as scale");
    reals(e, "spacing", x->spacing, DNN_MAX_SPACE);
    stats(e, x);
    e->d->sum[i][k] = find(e, s, c->name, ".sum", DNN_U64, s->count);
    if (e->d->sum[i][k] < 0) wrong(e, "", "it has no checksums");
    dnn_free(prefix);
}

static void split(struct eye *e, int i)
{
    struct dnn_split *s = &e->d->info.split[i];
    int64_t n;

    e->prefix = s->name;
    s->count = one(e, "count", true, 1);
    s->chunk = one(e, "chunk", true, 1);
    s->folds = one(e, "folds", false, 0);
    char **list = names(e, "columns", DNN_MAX_COLUMNS, &n);
    s->ncols = (int)n;
    for (int k = 0; k < s->ncols; k++) {
        short_name(e, "columns", list[k], s->col[k].column.name,
                   sizeof s->col[k].column.name);
        if (e->rc == 0) column(e, i, k);
        e->prefix = s->name;
    }
    dnn_free(list);
    if (e->rc < 0) return;
    e->d->of[i].name = find(e, s, "name", "", DNN_U8, 0);
    e->d->of[i].name_end = find(e, s, "name", ".end", DNN_I64, s->count);
    e->d->of[i].about = find(e, s, "name", ".sum", DNN_U64, s->count);
    e->d->of[i].fold = find(e, s, "fold", "", DNN_I32, s->count);
    e->d->of[i].group = find(e, s, "group", "", DNN_U8, 0);
    e->d->of[i].group_end = find(e, s, "group", ".end", DNN_I64, s->count);
    if (e->d->of[i].name_end < 0 || e->d->of[i].about < 0 ||
        (s->folds > 0 && e->d->of[i].fold < 0))
        wrong(e, "name", "arrays are missing");
}

static int check_format(struct dnn_dataset *d, struct dnn_err *err)
{
    char *format = dnn_bp_text(d->bp, "dataset/format");
    int64_t n, *version = dnn_bp_ints(d->bp, "dataset/version", &n);
    int rc = 0;

    if (format == NULL || strcmp(format, DNN_DATASET_FORMAT) != 0)
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: is a BP file, but not a prepared dataset (the attribute "
                      "dataset/format is not \"%s\")",
                      d->path, DNN_DATASET_FORMAT);
    else if (!dnn_bp_whole(d->bp))
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: incomplete dataset: the file dnn.idx, which is written "
                      "last, is missing; prepare it again",
                      d->path);
    else if (n != 1 || version[0] != DNN_DATASET_VERSION)
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: dataset format version %lld is not supported; this program "
                      "reads version %d",
                      d->path, n == 1 ? (long long)version[0] : 0LL,
                      DNN_DATASET_VERSION);
    dnn_free(format);
    dnn_free(version);
    return rc;
}

int dnn_dataset_attributes(struct dnn_dataset *d, struct dnn_err *err)
{
    struct eye e = {.d = d, .prefix = "dataset", .err = err};
    int64_t n;

    DNN_TRY(check_format(d, err));
    char *hash = dnn_bp_text(d->bp, "dataset/hash");
    if (hash == NULL || strlen(hash) != 32) wrong(&e, "hash", "missing");
    snprintf(d->info.hash, sizeof d->info.hash, "%s", hash == NULL ? "" : hash);
    dnn_free(hash);
    d->info.provenance = dnn_bp_text(d->bp, "dataset/provenance");
    char **list = names(&e, "splits", DNN_MAX_SPLITS, &n);
    for (int i = 0; i < n && e.rc == 0; i++) {
        struct dnn_split *s = &d->info.split[i];

        short_name(&e, "splits", list[i], s->name, sizeof s->name);
        d->info.nsplits = i + 1;
        split(&e, i);
        e.prefix = "dataset";
    }
    dnn_free(list);
    return e.rc;
}

/* A small array beside a column; returns how many numbers it has. */
static int64_t array(struct eye *e, const struct dnn_split *s, const char *column,
                     const char *what, int64_t *to, int64_t max)
{
    char *dotted = dnn_format(".%s", what), *sum = dnn_format("stats/%s.sum", what);
    int var = find(e, s, column, dotted, DNN_I64, 0);
    int64_t n = var < 0 ? 0 : dnn_bp_var(e->d->bp, var)->shape.dim[0];

    if (n > max) {
        wrong(e, dotted, "too long");
        n = 0;
    }
    if (n > 0 && e->rc == 0) {
        e->rc = dnn_bp_ask(e->d->bp, var, 0, n, to, e->err);
        if (e->rc == 0) e->rc = dnn_bp_fetch(e->d->bp, e->err);
        if (e->rc == 0 && (int64_t)XXH3_64bits(to, (size_t)n * sizeof *to) !=
                              one(e, sum, true, INT64_MIN))
            wrong(e, dotted, "checksum mismatch; the file is damaged");
    }
    dnn_free(sum);
    dnn_free(dotted);
    return n;
}

static void read_stats(struct eye *e)
{
    for (int i = 0; i < e->d->info.nsplits; i++) {
        struct dnn_split *s = &e->d->info.split[i];

        for (int k = 0; k < s->ncols; k++) {
            struct dnn_stats *x = s->col[k].stats;
            const char *name = s->col[k].column.name;
            char *prefix = dnn_dataset_name(s, name, "");

            e->prefix = prefix;
            if (x != NULL) {
                array(e, s, name, "histogram", x->bin, DNN_STATS_BINS);
                x->nclasses = (int32_t)array(e, s, name, "class_count", x->class_count,
                                             DNN_STATS_CLASSES);
            }
            dnn_free(prefix);
        }
    }
}

int dnn_dataset_stats(struct dnn_dataset *d, struct dnn_comm *comm, struct dnn_err *err)
{
    struct eye e = {.d = d, .prefix = "", .err = err};
    bool several = comm != NULL && dnn_comm_size(comm) > 1;

    if (!several || dnn_comm_rank(comm) == 0) read_stats(&e);
    if (!several) return e.rc;
    DNN_TRY(dnn_comm_agree(comm, e.rc, err));
    for (int i = 0; i < d->info.nsplits; i++)
        for (int k = 0; k < d->info.split[i].ncols; k++) {
            struct dnn_stats *x = d->info.split[i].col[k].stats;

            if (x != NULL)
                DNN_TRY(dnn_comm_bcast(comm, "statistics", x, sizeof *x, 0, err));
        }
    return 0;
}
