/* pairs.c - inputs and their targets, joined by name or by order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/import_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 3 }; /* names without a partner that a message lists */

struct pair {
    struct dnn_source base;
    struct dnn_source *input, *target;
    int64_t *partner; /* index of the target of each input; NULL: the same index */
    const char **file;
};

/* ---- names ---- */

struct named {
    char *key;
    int64_t index;
};

static int by_key(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static struct named *sorted_keys(const struct dnn_source *source)
{
    struct named *all = dnn_alloc(((size_t)source->count + 1) * sizeof *all);
    char name[DNN_SAMPLE_NAME], key[DNN_SAMPLE_NAME];

    for (int64_t i = 0; i < source->count; i++) {
        dnn_source_label(source, i, name);
        dnn_import_key(name, key);
        all[i] = (struct named){dnn_strdup(key), i};
    }
    if (source->count > 0) qsort(all, (size_t)source->count, sizeof *all, by_key);
    return all;
}

static void free_keys(struct named *all, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dnn_free(all[i].key);
    dnn_free(all);
}

/* Names of samples must be unique within inputs and within targets. */
static int check_unique(const struct dnn_source *source, const struct named *all,
                        struct dnn_err *err)
{
    char a[DNN_SAMPLE_NAME], b[DNN_SAMPLE_NAME];

    for (int64_t i = 1; i < source->count; i++) {
        if (strcmp(all[i - 1].key, all[i].key) != 0) continue;
        dnn_source_label(source, all[i - 1].index, a);
        dnn_source_label(source, all[i].index, b);
        return dnn_fail(err, DNN_EDATA,
                        "%s and %s differ only in their suffix, so inputs and targets "
                        "cannot be paired by name",
                        a, b);
    }
    return 0;
}

/* Samples of one side that have no partner. */
struct unpaired {
    struct dnn_buf names;
    int64_t n;
};

static void add_unpaired(struct unpaired *unpaired, const struct dnn_source *source,
                         int64_t i)
{
    char name[DNN_SAMPLE_NAME];

    if (unpaired->n++ >= SHOWN) return;
    dnn_source_label(source, i, name);
    dnn_buf_add(&unpaired->names, "%s%.100s", unpaired->n == 1 ? "" : ", ", name);
}

static void end_unpaired(struct unpaired *unpaired)
{
    if (unpaired->n > SHOWN)
        dnn_buf_add(&unpaired->names, " and %" PRId64 " more", unpaired->n - SHOWN);
}

static int join_names(struct pair *pair, const struct named *in, const struct named *to,
                      struct dnn_err *err)
{
    struct unpaired inputs = {0}, targets = {0};
    int64_t i = 0, k = 0;
    int rc = 0;

    while (i < pair->input->count || k < pair->target->count) {
        int order = i == pair->input->count    ? 1
                    : k == pair->target->count ? -1
                                               : strcmp(in[i].key, to[k].key);

        if (order == 0)
            pair->partner[in[i++].index] = to[k++].index;
        else if (order < 0)
            add_unpaired(&inputs, pair->input, in[i++].index);
        else
            add_unpaired(&targets, pair->target, to[k++].index);
    }
    end_unpaired(&inputs);
    end_unpaired(&targets);
    if (inputs.n > 0 && targets.n > 0)
        rc =
            dnn_fail(err, DNN_EDATA,
                     "inputs without a target of the same name: %s; targets without an "
                     "input: %s",
                     inputs.names.text, targets.names.text);
    else if (inputs.n > 0)
        rc = dnn_fail(err, DNN_EDATA, "inputs without a target of the same name: %s",
                      inputs.names.text);
    else if (targets.n > 0)
        rc = dnn_fail(err, DNN_EDATA, "targets without an input of the same name: %s",
                      targets.names.text);
    dnn_buf_free(&inputs.names);
    dnn_buf_free(&targets.names);
    return rc;
}

static int join_by_name(struct pair *pair, struct dnn_err *err)
{
    struct named *in = sorted_keys(pair->input), *to = sorted_keys(pair->target);
    int rc = check_unique(pair->input, in, err);

    if (rc == 0) rc = check_unique(pair->target, to, err);
    pair->partner = dnn_alloc(((size_t)pair->input->count + 1) * sizeof *pair->partner);
    if (rc == 0) rc = join_names(pair, in, to, err);
    free_keys(in, pair->input->count);
    free_keys(to, pair->target->count);
    return rc;
}

/* ---- columns ---- */

static int join_columns(struct pair *pair, struct dnn_err *err)
{
    struct dnn_source *base = &pair->base;

    base->ncols = pair->input->ncols;
    memcpy(base->col, pair->input->col, sizeof base->col);
    for (int k = 0; k < pair->target->ncols; k++) {
        if (base->ncols == DNN_MAX_COLUMNS)
            return dnn_fail(
                err, DNN_EDATA,
                "inputs and targets have %d columns in total; at most %d are supported",
                pair->input->ncols + pair->target->ncols, DNN_MAX_COLUMNS);
        struct dnn_column *col = &base->col[base->ncols];
        *col = pair->target->col[k];
        if (col->role == DNN_ROLE_INPUT) col->role = DNN_ROLE_TARGET;
        if (strcmp(col->name, "input") == 0) strcpy(col->name, "target");
        for (int j = 0; j < base->ncols; j++) {
            if (strcmp(base->col[j].name, col->name) != 0) continue;
            /* Both sides may have extra columns of the same name (an affine matrix). */
            if (col->role == DNN_ROLE_EXTRA && strlen(col->name) < 56) {
                char name[sizeof col->name];

                snprintf(name, sizeof name, "target_%.55s", col->name);
                strcpy(col->name, name);
                j = -1;
                continue;
            }
            return dnn_fail(err, DNN_EDATA,
                            "the column \"%s\" is in both inputs and targets",
                            col->name);
        }
        base->ncols++;
    }
    return 0;
}

static void join_files(struct pair *pair)
{
    int64_t n = pair->input->nfiles, m = pair->target->nfiles;

    pair->file = dnn_alloc(((size_t)(n + m) + 1) * sizeof *pair->file);
    for (int64_t i = 0; i < n; i++)
        pair->file[i] = pair->input->file[i];
    for (int64_t i = 0; i < m; i++)
        pair->file[n + i] = pair->target->file[i];
    pair->base.nfiles = n + m;
    pair->base.ninputs = n;
    pair->base.file = pair->file;
}

/* ---- the source ---- */

static int64_t partner(const struct pair *pair, int64_t i)
{
    return pair->partner == NULL ? i : pair->partner[i];
}

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    const struct pair *pair = (const struct pair *)source;
    int n = pair->input->ncols, m = pair->target->ncols;
    struct dnn_sample to = {0};
    int rc;

    DNN_TRY(dnn_source_read(pair->input, i, out, err));
    /* Reuse the memory of the target columns. */
    for (int k = 0; k < m; k++)
        dnn_array_swap(&to.col[k], &out->col[n + k]);
    rc = dnn_source_read(pair->target, partner(pair, i), &to, err);
    for (int k = 0; k < m; k++)
        dnn_array_swap(&to.col[k], &out->col[n + k]);
    dnn_sample_free(&to);
    out->ncols = n + m;
    return rc;
}

/* The source of column c, its number there, and that of sample i. */
static const struct dnn_source *side_of(const struct pair *pair, int *c, int64_t *i)
{
    if (*c < pair->input->ncols) return pair->input;
    *c -= pair->input->ncols;
    *i = partner(pair, *i);
    return pair->target;
}

static int shape_of(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_shape *out, struct dnn_err *err)
{
    const struct dnn_source *side = side_of((const struct pair *)source, &c, &i);

    return dnn_source_try_shape(side, i, c, out, err);
}

static int read_box(const struct dnn_source *source, int64_t i, int c,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    const struct dnn_source *side = side_of((const struct pair *)source, &c, &i);

    return dnn_source_try_box(side, i, c, start, extent, out, err);
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    dnn_source_label(((const struct pair *)source)->input, i, out);
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    const struct pair *pair = (const struct pair *)source;

    if (pair->target->type->class_of == NULL) return -1;
    return pair->target->type->class_of(pair->target, partner(pair, i));
}

static void close_pair(struct dnn_source *source)
{
    struct pair *pair = (struct pair *)source;

    dnn_source_close(pair->input);
    dnn_source_close(pair->target);
    dnn_free(pair->partner);
    dnn_free(pair->file);
    dnn_free(pair);
}

static const struct dnn_source_type pair_type = {
    .name = "pairs",
    .read = read_sample,
    .label = label,
    .class_of = class_of,
    .close = close_pair,
    .shape = shape_of,
    .read_box = read_box,
};

int dnn_import_pair(struct dnn_source *input, struct dnn_source *target, int pairing,
                    struct dnn_source **out, struct dnn_err *err)
{
    struct pair *pair = dnn_alloc(sizeof *pair);
    int rc;

    pair->base.type = &pair_type;
    pair->input = input;
    pair->target = target;
    pair->base.count = input->count;
    pair->base.split = input->split;
    if (pairing == DNN_PAIR_AUTO)
        pairing = dnn_import_is_series(input) && dnn_import_is_series(target)
                      ? DNN_PAIR_NAME
                      : DNN_PAIR_ORDER;
    join_files(pair);
    rc = join_columns(pair, err);
    if (rc == 0 && pairing == DNN_PAIR_NAME)
        rc = join_by_name(pair, err);
    else if (rc == 0 && input->count != target->count)
        rc = dnn_fail(err, DNN_EDATA, "%" PRId64 " inputs, but %" PRId64 " targets",
                      input->count, target->count);
    if (rc < 0)
        close_pair(&pair->base);
    else
        *out = &pair->base;
    return rc;
}
