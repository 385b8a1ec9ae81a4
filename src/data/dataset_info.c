/* dataset_info.c - reads the description of a dataset from its attributes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "data/dataset_impl.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Reads attributes and keeps the first error. */
struct attr_reader {
    struct dnn_dataset *d;
    const char *prefix;
    int rc;
    struct dnn_err *err;
};

static void set_error(struct attr_reader *r, const char *name, const char *what)
{
    if (r->rc == 0)
        r->rc = dnn_fail(r->err, DNN_EDATA, "%s: attribute %s/%s: %s", r->d->path,
                         r->prefix, name, what);
}

/* Reads up to max values; returns how many there are, 0 if there is no attribute. */
static int64_t read_reals(struct attr_reader *r, const char *name, double *to,
                          int64_t max)
{
    char *full = dnn_format("%s/%s", r->prefix, name);
    int64_t n;
    double *x = dnn_bp_reals(r->d->bp, full, &n);

    if (n > max) {
        set_error(r, name, "too many values");
        n = 0;
    }
    if (n > 0) memcpy(to, x, (size_t)n * sizeof *to);
    dnn_free(x);
    dnn_free(full);
    return n;
}

/* Reads an integer; required: it must exist. */
static int64_t read_int(struct attr_reader *r, const char *name, bool required,
                        int64_t min)
{
    char *full = dnn_format("%s/%s", r->prefix, name);
    int64_t n, value = 0, *x = dnn_bp_ints(r->d->bp, full, &n);

    if (n == 1) value = x[0];
    if (n != 1 && (required || n != 0))
        set_error(r, name, "missing or not a single number");
    if (n == 1 && value < min) set_error(r, name, "too small");
    dnn_free(x);
    dnn_free(full);
    return value;
}

static int read_choice(struct attr_reader *r, const char *name,
                       const struct dnn_choice *choices)
{
    char *full = dnn_format("%s/%s", r->prefix, name);
    char *text = dnn_bp_text(r->d->bp, full);
    int value = 0;

    if (text == NULL || dnn_choice_find(choices, text, &value, NULL) < 0)
        set_error(r, name, "missing or not a known name");
    dnn_free(text);
    dnn_free(full);
    return value;
}

/* Reads 1 to max names; anything else is an error, and the result NULL. */
static char **read_names(struct attr_reader *r, const char *name, int64_t max,
                         int64_t *n)
{
    char *full = dnn_format("%s/%s", r->prefix, name);
    char **list = dnn_bp_texts(r->d->bp, full, n);

    if (list == NULL || *n < 1 || *n > max) {
        set_error(r, name, "missing or not a list of names");
        dnn_free(list);
        list = NULL;
        *n = 0;
    }
    dnn_free(full);
    return list;
}

static void copy_name(struct attr_reader *r, const char *name, const char *text,
                      char *to, size_t size)
{
    size_t len = strlen(text);

    if (len >= size) {
        set_error(r, name, "contains a name that is too long");
        len = 0;
    }
    memcpy(to, text, len);
    to[len] = '\0';
}

static void read_class_names(struct attr_reader *r, struct dnn_column *c)
{
    char *full = dnn_format("%s/class_names", r->prefix);
    int64_t n;
    char **list = dnn_bp_texts(r->d->bp, full, &n);

    dnn_free(full);
    if (list == NULL) return;
    if (n != c->classes) {
        set_error(r, "class_names", "must have one name per class");
    } else {
        const char **copy =
            dnn_arena_alloc(r->d->arena, (size_t)(n + 1) * sizeof *copy);
        for (int64_t i = 0; i < n; i++)
            copy[i] = dnn_arena_strdup(r->d->arena, list[i]);
        c->class_name = copy;
    }
    dnn_free(list);
}

static void read_stats(struct attr_reader *r, struct dnn_stored *s)
{
    struct dnn_stats *x;
    double range[2];
    char *full = dnn_format("%s/stats/count", r->prefix);
    int64_t n, *there = dnn_bp_ints(r->d->bp, full, &n);

    dnn_free(full);
    dnn_free(there);
    if (n == 0) return;
    s->stats = x = dnn_alloc(sizeof *x);
    x->count = read_int(r, "stats/count", true, 0);
    x->bad = read_int(r, "stats/bad", true, 0);
    x->nchannels = (int32_t)read_reals(r, "stats/mean", x->mean, DNN_STATS_CHANNELS);
    if (read_reals(r, "stats/m2", x->m2, DNN_STATS_CHANNELS) != x->nchannels ||
        read_reals(r, "stats/min", x->min, DNN_STATS_CHANNELS) != x->nchannels ||
        read_reals(r, "stats/max", x->max, DNN_STATS_CHANNELS) != x->nchannels)
        set_error(r, "stats", "differ in their number of channels");
    x->whole = read_int(r, "stats/whole", true, 0) != 0;
    full = dnn_format("%s/stats/good", r->prefix);
    int64_t *good = dnn_bp_ints(r->d->bp, full, &n);
    if (n != x->nchannels)
        set_error(r, "stats/good", "must have one number per channel");
    else if (n > 0)
        memcpy(x->good, good, (size_t)n * sizeof *good);
    dnn_free(good);
    dnn_free(full);
    if (read_reals(r, "stats/range", range, 2) == 2) {
        x->low = range[0];
        x->high = range[1];
    }
}

/* Finds an array of one axis and rows elements (0: any number); -1 if there is none. */
static int find_array(struct attr_reader *r, const struct dnn_split *s,
                      const char *column, const char *what, enum dnn_dtype type,
                      int64_t rows)
{
    char *name = dnn_dataset_name(s, column, what);
    int var = dnn_bp_find(r->d->bp, name);

    if (var >= 0) {
        const struct dnn_bp_var *v = dnn_bp_var(r->d->bp, var);

        if (v->type != type || v->shape.ndim != 1 ||
            (rows > 0 && v->shape.dim[0] != rows)) {
            set_error(r, column, "unexpected type or shape of its array");
            var = -1;
        }
    }
    dnn_free(name);
    return var;
}

static void read_column(struct attr_reader *r, int i, int k)
{
    struct dnn_split *s = &r->d->info.split[i];
    struct dnn_stored *x = &s->col[k];
    struct dnn_column *c = &x->column;
    char *prefix = dnn_dataset_name(s, c->name, "");
    int var = dnn_bp_find(r->d->bp, prefix);

    r->prefix = prefix;
    r->d->var[i][k] = var;
    if (var < 0 || dnn_bp_var(r->d->bp, var)->shape.dim[0] != s->count) {
        set_error(r, "", "there is no array of this name with one row per sample");
    } else {
        const struct dnn_bp_var *v = dnn_bp_var(r->d->bp, var);

        c->type = v->type;
        c->shape.ndim = v->shape.ndim - 1;
        for (int d = 0; d < c->shape.ndim; d++)
            c->shape.dim[d] = v->shape.dim[d + 1];
    }
    c->role = (enum dnn_column_role)read_choice(r, "role", dnn_role_choices);
    c->kind = (enum dnn_kind)read_choice(r, "kind", dnn_kind_choices);
    if (c->kind == DNN_KIND_LABEL && c->shape.ndim != 0)
        set_error(r, "kind", "label, but its array has more than one axis");
    c->classes = read_int(r, "classes", false, 0);
    read_class_names(r, c);
    x->nscale = (int)read_reals(r, "scale", x->scale, DNN_STATS_CHANNELS);
    if (read_reals(r, "offset", x->offset, DNN_STATS_CHANNELS) != x->nscale)
        set_error(r, "offset", "must have as many values as scale");
    read_reals(r, "spacing", x->spacing, DNN_MAX_SPACE);
    read_stats(r, x);
    r->d->sum[i][k] = find_array(r, s, c->name, ".sum", DNN_U64, s->count);
    if (r->d->sum[i][k] < 0) set_error(r, "", "it has no checksums");
    dnn_free(prefix);
}

static void read_split(struct attr_reader *r, int i)
{
    struct dnn_split *s = &r->d->info.split[i];
    int64_t n;

    r->prefix = s->name;
    s->count = read_int(r, "count", true, 1);
    s->chunk = read_int(r, "chunk", true, 1);
    s->folds = read_int(r, "folds", false, 0);
    char **list = read_names(r, "columns", DNN_MAX_COLUMNS, &n);
    s->ncols = (int)n;
    for (int k = 0; k < s->ncols; k++) {
        copy_name(r, "columns", list[k], s->col[k].column.name,
                  sizeof s->col[k].column.name);
        if (r->rc == 0) read_column(r, i, k);
        r->prefix = s->name;
    }
    dnn_free(list);
    if (r->rc < 0) return;
    r->d->meta[i].name = find_array(r, s, "name", "", DNN_U8, 0);
    r->d->meta[i].name_end = find_array(r, s, "name", ".end", DNN_I64, s->count);
    r->d->meta[i].sum = find_array(r, s, "name", ".sum", DNN_U64, s->count);
    r->d->meta[i].fold = find_array(r, s, "fold", "", DNN_I32, s->count);
    r->d->meta[i].group = find_array(r, s, "group", "", DNN_U8, 0);
    r->d->meta[i].group_end = find_array(r, s, "group", ".end", DNN_I64, s->count);
    if (r->d->meta[i].name_end < 0 || r->d->meta[i].sum < 0 ||
        (s->folds > 0 && r->d->meta[i].fold < 0))
        set_error(r, "name", "arrays are missing");
}

bool dnn_dataset_is(struct dnn_bp *bp)
{
    char *format = dnn_bp_text(bp, "dataset/format");
    bool is = format != NULL && strcmp(format, DNN_DATASET_FORMAT) == 0;

    dnn_free(format);
    return is;
}

static int check_format(struct dnn_dataset *d, struct dnn_err *err)
{
    int64_t n, *version = dnn_bp_ints(d->bp, "dataset/version", &n);
    int rc = 0;

    if (!dnn_dataset_is(d->bp))
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: is a BP file, but not a prepared dataset (the attribute "
                      "dataset/format is not \"%s\")",
                      d->path, DNN_DATASET_FORMAT);
    else if (!dnn_bp_complete(d->bp))
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
    dnn_free(version);
    return rc;
}

int dnn_dataset_attributes(struct dnn_dataset *d, struct dnn_err *err)
{
    struct attr_reader r = {.d = d, .prefix = "dataset", .err = err};
    int64_t n;

    DNN_TRY(check_format(d, err));
    char *hash = dnn_bp_text(d->bp, "dataset/hash");
    if (hash == NULL || strlen(hash) != 32) set_error(&r, "hash", "missing");
    snprintf(d->info.hash, sizeof d->info.hash, "%s", hash == NULL ? "" : hash);
    dnn_free(hash);
    d->info.provenance = dnn_bp_text(d->bp, "dataset/provenance");
    char **list = read_names(&r, "splits", DNN_MAX_SPLITS, &n);
    for (int i = 0; i < n && r.rc == 0; i++) {
        struct dnn_split *s = &d->info.split[i];

        copy_name(&r, "splits", list[i], s->name, sizeof s->name);
        d->info.nsplits = i + 1;
        read_split(&r, i);
        r.prefix = "dataset";
    }
    dnn_free(list);
    return r.rc;
}

/* Reads an array that belongs to a column; returns its length. */
static int64_t read_array(struct attr_reader *r, const struct dnn_split *s,
                          const char *column, const char *what, int64_t *to,
                          int64_t max)
{
    char *dotted = dnn_format(".%s", what), *sum = dnn_format("stats/%s.sum", what);
    int var = find_array(r, s, column, dotted, DNN_I64, 0);
    int64_t n = var < 0 ? 0 : dnn_bp_var(r->d->bp, var)->shape.dim[0];

    if (n > max) {
        set_error(r, dotted, "too long");
        n = 0;
    }
    if (n > 0 && r->rc == 0) {
        r->rc = dnn_bp_request(r->d->bp, var, 0, n, to, r->err);
        if (r->rc == 0) r->rc = dnn_bp_fetch(r->d->bp, r->err);
        if (r->rc == 0 && (int64_t)XXH3_64bits(to, (size_t)n * sizeof *to) !=
                              read_int(r, sum, true, INT64_MIN))
            set_error(r, dotted, "checksum mismatch; the file is damaged");
    }
    dnn_free(sum);
    dnn_free(dotted);
    return n;
}

static void read_all_stats(struct attr_reader *r)
{
    for (int i = 0; i < r->d->info.nsplits; i++) {
        struct dnn_split *s = &r->d->info.split[i];

        for (int k = 0; k < s->ncols; k++) {
            struct dnn_stats *x = s->col[k].stats;
            const char *name = s->col[k].column.name;
            char *prefix = dnn_dataset_name(s, name, "");

            r->prefix = prefix;
            if (x != NULL) {
                read_array(r, s, name, "histogram", x->bin, DNN_STATS_BINS);
                x->nclasses = (int32_t)read_array(r, s, name, "class_count",
                                                  x->class_count, DNN_STATS_CLASSES);
            }
            dnn_free(prefix);
        }
    }
}

int dnn_dataset_stats(struct dnn_dataset *d, struct dnn_comm *comm, struct dnn_err *err)
{
    struct attr_reader r = {.d = d, .prefix = "", .err = err};
    bool several = comm != NULL && dnn_comm_size(comm) > 1;

    if (!several || dnn_comm_rank(comm) == 0) read_all_stats(&r);
    if (!several) return r.rc;
    DNN_TRY(dnn_comm_agree(comm, r.rc, err));
    for (int i = 0; i < d->info.nsplits; i++)
        for (int k = 0; k < d->info.split[i].ncols; k++) {
            struct dnn_stats *x = d->info.split[i].col[k].stats;

            if (x != NULL)
                DNN_TRY(dnn_comm_bcast(comm, "statistics", x, sizeof *x, 0, err));
        }
    return 0;
}
