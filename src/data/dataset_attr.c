/* dataset_attr.c - the description of a dataset as attributes, there and back.
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

/* ---- there ---- */

/* Where attributes go, and the first failure: those after it do nothing. */
struct pen {
    struct dnn_bp *bp;
    const char *prefix;
    int rc, rank;
    struct dnn_err *err;
};

static void texts(struct pen *p, const char *name, const char *const *text, int64_t n)
{
    char *full = dnn_format("%s/%s", p->prefix, name);

    if (p->rc == 0) p->rc = dnn_bp_attr_texts(p->bp, full, text, n, p->err);
    dnn_free(full);
}

static void text(struct pen *p, const char *name, const char *value)
{
    char *full = dnn_format("%s/%s", p->prefix, name);

    if (p->rc == 0) p->rc = dnn_bp_attr_text(p->bp, full, value, p->err);
    dnn_free(full);
}

static void ints(struct pen *p, const char *name, const int64_t *value, int64_t n)
{
    char *full = dnn_format("%s/%s", p->prefix, name);

    if (p->rc == 0) p->rc = dnn_bp_attr_ints(p->bp, full, value, n, p->err);
    dnn_free(full);
}

static void reals(struct pen *p, const char *name, const double *value, int64_t n)
{
    char *full = dnn_format("%s/%s", p->prefix, name);

    if (p->rc == 0) p->rc = dnn_bp_attr_reals(p->bp, full, value, n, p->err);
    dnn_free(full);
}

/* A small array beside a column, with its checksum as attribute. */
static void array(struct pen *p, const char *what, const int64_t *value, int64_t n)
{
    struct dnn_shape shape = {.ndim = 1, .dim = {n}};
    char *name = dnn_format("%s.%s", p->prefix, what);
    char *sum = dnn_format("stats/%s.sum", what);
    int64_t bits = (int64_t)XXH3_64bits(value, (size_t)n * sizeof *value);
    int var = -1;

    if (p->rc == 0)
        p->rc = dnn_bp_define(p->bp, name, DNN_I64, &shape, true, &var, p->err);
    if (p->rc == 0 && p->rank == 0) p->rc = dnn_bp_put(p->bp, var, 0, n, value, p->err);
    ints(p, sum, &bits, 1);
    dnn_free(sum);
    dnn_free(name);
}

static void stats(struct pen *p, const struct dnn_stats *s)
{
    double std[DNN_STATS_CHANNELS], range[2] = {s->low, s->high};
    int64_t whole = s->whole;

    ints(p, "stats/count", &s->count, 1);
    ints(p, "stats/bad", &s->bad, 1);
    ints(p, "stats/whole", &whole, 1);
    if (s->nchannels > 0) {
        for (int c = 0; c < s->nchannels; c++)
            std[c] = dnn_stats_std(s, c);
        ints(p, "stats/good", s->good, s->nchannels);
        reals(p, "stats/mean", s->mean, s->nchannels);
        reals(p, "stats/std", std, s->nchannels);
        reals(p, "stats/m2", s->m2, s->nchannels);
        reals(p, "stats/min", s->min, s->nchannels);
        reals(p, "stats/max", s->max, s->nchannels);
    }
    if (s->low != s->high) {
        reals(p, "stats/range", range, 2);
        array(p, "histogram", s->bin, DNN_STATS_BINS);
    }
    if (s->nclasses > 0) array(p, "class_count", s->class_count, s->nclasses);
}

static void column(struct pen *p, const struct dnn_stored *s)
{
    const struct dnn_column *c = &s->column;

    text(p, "role", dnn_choice_name(dnn_role_choices, (int)c->role));
    text(p, "kind", dnn_choice_name(dnn_kind_choices, (int)c->kind));
    if (c->classes > 0) ints(p, "classes", &c->classes, 1);
    if (c->classes > 0 && c->class_name != NULL)
        texts(p, "class_names", c->class_name, c->classes);
    if (s->nscale > 0) {
        reals(p, "scale", s->scale, s->nscale);
        reals(p, "offset", s->offset, s->nscale);
    }
    for (int i = 0; i < DNN_MAX_SPACE; i++)
        if (s->spacing[i] != 0) {
            reals(p, "spacing", s->spacing, DNN_MAX_SPACE);
            break;
        }
    if (s->stats != NULL) stats(p, s->stats);
}

static void split(struct pen *p, const struct dnn_split *s)
{
    const char *names[DNN_MAX_COLUMNS];

    for (int k = 0; k < s->ncols; k++)
        names[k] = s->col[k].column.name;
    p->prefix = s->name;
    texts(p, "columns", names, s->ncols);
    ints(p, "count", &s->count, 1);
    ints(p, "chunk", &s->chunk, 1);
    if (s->folds > 0) ints(p, "folds", &s->folds, 1);
    for (int k = 0; k < s->ncols; k++) {
        char *prefix = dnn_dataset_name(s, names[k], "");

        p->prefix = prefix;
        column(p, &s->col[k]);
        dnn_free(prefix);
    }
}

int dnn_dataset_describe(struct dnn_bp *bp, const struct dnn_dataset_info *info,
                         int rank, struct dnn_err *err)
{
    struct pen p = {.bp = bp, .prefix = "dataset", .rank = rank, .err = err};
    const char *names[DNN_MAX_SPLITS];
    int64_t version = DNN_DATASET_VERSION;

    for (int i = 0; i < info->nsplits; i++)
        names[i] = info->split[i].name;
    text(&p, "format", DNN_DATASET_FORMAT);
    ints(&p, "version", &version, 1);
    texts(&p, "splits", names, info->nsplits);
    if (info->provenance != NULL) text(&p, "provenance", info->provenance);
    for (int i = 0; i < info->nsplits; i++)
        split(&p, &info->split[i]);
    return p.rc;
}
