/* dataset_attr.c - writes the description of a dataset as attributes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "data/dataset_impl.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

char *dnn_dataset_name(const struct dnn_split *split, const char *column,
                       const char *what)
{
    return dnn_format("%s/%s%s", split->name, column, what);
}

/* Writes attributes until the first error; later calls do nothing. */
struct attr_writer {
    struct dnn_bp *bp;
    const char *prefix;
    int rc, rank;
    struct dnn_err *err;
};

static void put_texts(struct attr_writer *w, const char *name, const char *const *text,
                      int64_t n)
{
    char *full = dnn_format("%s/%s", w->prefix, name);

    if (w->rc == 0) w->rc = dnn_bp_attr_texts(w->bp, full, text, n, w->err);
    dnn_free(full);
}

static void put_text(struct attr_writer *w, const char *name, const char *value)
{
    char *full = dnn_format("%s/%s", w->prefix, name);

    if (w->rc == 0) w->rc = dnn_bp_attr_text(w->bp, full, value, w->err);
    dnn_free(full);
}

static void put_ints(struct attr_writer *w, const char *name, const int64_t *value,
                     int64_t n)
{
    char *full = dnn_format("%s/%s", w->prefix, name);

    if (w->rc == 0) w->rc = dnn_bp_attr_ints(w->bp, full, value, n, w->err);
    dnn_free(full);
}

static void put_reals(struct attr_writer *w, const char *name, const double *value,
                      int64_t n)
{
    char *full = dnn_format("%s/%s", w->prefix, name);

    if (w->rc == 0) w->rc = dnn_bp_attr_reals(w->bp, full, value, n, w->err);
    dnn_free(full);
}

/* An array that belongs to a column, with its checksum as attribute. */
static void put_array(struct attr_writer *w, const char *what, const int64_t *value,
                      int64_t n)
{
    struct dnn_shape shape = {.ndim = 1, .dim = {n}};
    char *name = dnn_format("%s.%s", w->prefix, what);
    char *sum = dnn_format("stats/%s.sum", what);
    int64_t bits = (int64_t)XXH3_64bits(value, (size_t)n * sizeof *value);
    int var = -1;

    if (w->rc == 0)
        w->rc = dnn_bp_define(w->bp, name, DNN_I64, &shape, true, &var, w->err);
    if (w->rc == 0 && w->rank == 0) w->rc = dnn_bp_put(w->bp, var, 0, n, value, w->err);
    put_ints(w, sum, &bits, 1);
    dnn_free(sum);
    dnn_free(name);
}

static void put_stats(struct attr_writer *w, const struct dnn_stats *s)
{
    double std[DNN_STATS_CHANNELS], range[2] = {s->low, s->high};
    int64_t whole = s->whole;

    put_ints(w, "stats/count", &s->count, 1);
    put_ints(w, "stats/bad", &s->bad, 1);
    put_ints(w, "stats/whole", &whole, 1);
    if (s->nchannels > 0) {
        for (int c = 0; c < s->nchannels; c++)
            std[c] = dnn_stats_std(s, c);
        put_ints(w, "stats/good", s->good, s->nchannels);
        put_reals(w, "stats/mean", s->mean, s->nchannels);
        put_reals(w, "stats/std", std, s->nchannels);
        put_reals(w, "stats/m2", s->m2, s->nchannels);
        put_reals(w, "stats/min", s->min, s->nchannels);
        put_reals(w, "stats/max", s->max, s->nchannels);
    }
    if (s->low != s->high) {
        put_reals(w, "stats/range", range, 2);
        put_array(w, "histogram", s->bin, DNN_STATS_BINS);
    }
    if (s->nclasses > 0) put_array(w, "class_count", s->class_count, s->nclasses);
}

static void put_column(struct attr_writer *w, const struct dnn_stored *s)
{
    const struct dnn_column *c = &s->column;

    put_text(w, "role", dnn_choice_name(dnn_role_choices, (int)c->role));
    put_text(w, "kind", dnn_choice_name(dnn_kind_choices, (int)c->kind));
    if (c->classes > 0) put_ints(w, "classes", &c->classes, 1);
    if (c->classes > 0 && c->class_name != NULL)
        put_texts(w, "class_names", c->class_name, c->classes);
    if (s->nscale > 0) {
        put_reals(w, "scale", s->scale, s->nscale);
        put_reals(w, "offset", s->offset, s->nscale);
    }
    for (int i = 0; i < DNN_MAX_SPACE; i++)
        if (s->spacing[i] != 0) {
            put_reals(w, "spacing", s->spacing, DNN_MAX_SPACE);
            break;
        }
    if (s->stats != NULL) put_stats(w, s->stats);
}

static void put_split(struct attr_writer *w, const struct dnn_split *s)
{
    const char *names[DNN_MAX_COLUMNS];

    for (int k = 0; k < s->ncols; k++)
        names[k] = s->col[k].column.name;
    w->prefix = s->name;
    put_texts(w, "columns", names, s->ncols);
    put_ints(w, "count", &s->count, 1);
    put_ints(w, "chunk", &s->chunk, 1);
    if (s->folds > 0) put_ints(w, "folds", &s->folds, 1);
    for (int k = 0; k < s->ncols; k++) {
        char *prefix = dnn_dataset_name(s, names[k], "");

        w->prefix = prefix;
        put_column(w, &s->col[k]);
        dnn_free(prefix);
    }
}

int dnn_dataset_describe(struct dnn_bp *bp, const struct dnn_dataset_info *info,
                         int rank, struct dnn_err *err)
{
    struct attr_writer w = {.bp = bp, .prefix = "dataset", .rank = rank, .err = err};
    const char *names[DNN_MAX_SPLITS];
    int64_t version = DNN_DATASET_VERSION;

    for (int i = 0; i < info->nsplits; i++)
        names[i] = info->split[i].name;
    put_text(&w, "format", DNN_DATASET_FORMAT);
    put_ints(&w, "version", &version, 1);
    put_texts(&w, "splits", names, info->nsplits);
    if (info->provenance != NULL) put_text(&w, "provenance", info->provenance);
    for (int i = 0; i < info->nsplits; i++)
        put_split(&w, &info->split[i]);
    return w.rc;
}
