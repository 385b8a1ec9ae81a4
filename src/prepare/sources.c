/* sources.c - opens the sources of samples, and checks each sample that is read.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include "generate/generate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- opening ---- */

/* Takes the generator's object from the configuration, so that errors have its line. */
static int open_generator(const struct dnn_prepare *p, const struct dnn_origin_cfg *cfg,
                          struct dnn_source **out, struct dnn_err *err)
{
    struct dnn_jobj top = dnn_json_top(p->file), generate;

    if (cfg->index < 0) {
        generate = dnn_json_sub(&top, "generate");
        return dnn_generate_open(&generate, out, err);
    }
    struct dnn_jobj list = dnn_json_sub(&top, "sources");
    struct dnn_jobj it = dnn_json_first(&list);
    for (int i = 0; i < cfg->index; i++)
        it = dnn_json_next(&it);
    generate = dnn_json_sub(&it, "generate");
    return dnn_generate_open(&generate, out, err);
}

static void add(struct dnn_origins *o, struct dnn_source *source, const char *split)
{
    struct dnn_origin *at = &o->at[o->n++];

    *at = (struct dnn_origin){.source = source, .first = o->count};
    if (split == NULL) split = source->split;
    if (split != NULL) snprintf(at->split, sizeof at->split, "%s", split);
    o->count += source->count;
    o->groups = o->groups || source->type->group != NULL;
}

/* Files of several splits (IDX, CIFAR, directories named after splits) are opened once
 * per split, if the splits contain all samples. */
static int open_splits(const struct dnn_import *how, const struct dnn_source *all,
                       struct dnn_origins *o)
{
    struct dnn_source *part[DNN_PREPARE_PARTS] = {NULL};
    int64_t count = 0;
    int found = 0;

    for (int i = 0; i < DNN_PREPARE_PARTS; i++) {
        struct dnn_import one = *how;
        struct dnn_err why;

        one.split = dnn_prepare_parts[i];
        if (dnn_import_open(&one, &part[i], &why) < 0) continue;
        count += part[i]->count;
        found += part[i]->split != NULL && strcmp(part[i]->split, one.split) == 0;
    }
    bool good = found >= 2 && count == all->count;
    for (int i = 0; i < DNN_PREPARE_PARTS; i++)
        if (good && part[i] != NULL)
            add(o, part[i], dnn_prepare_parts[i]);
        else
            dnn_source_close(part[i]);
    return good;
}

static int open_one(const struct dnn_prepare *p, const struct dnn_origin_cfg *cfg,
                    struct dnn_origins *o, struct dnn_err *err)
{
    struct dnn_source *source = NULL;

    if (cfg->generated) {
        DNN_TRY(open_generator(p, cfg, &source, err));
    } else {
        DNN_TRY(dnn_import_open(&cfg->how, &source, err));
        if (cfg->split == NULL && cfg->how.split == NULL && source->split == NULL &&
            open_splits(&cfg->how, source, o)) {
            dnn_source_close(source);
            return 0;
        }
    }
    add(o, source, cfg->split);
    return 0;
}

/* ---- columns common to all sources ---- */

static int wrong_column(const struct dnn_column *a, const struct dnn_column *b, int i,
                        struct dnn_err *err)
{
    char x[DNN_SHAPE_TEXT], y[DNN_SHAPE_TEXT];

    return dnn_fail(
        err, DNN_EDATA,
        "the column \"%s\" of source %d has kind %s (%s %s, %" PRId64
        " classes), but in the first source it is \"%s\" of kind %s (%s %s, %" PRId64
        " classes)",
        b->name, i, dnn_choice_name(dnn_kind_choices, (int)b->kind),
        dnn_dtype_name(b->type), dnn_shape_text(y, sizeof y, &b->shape), b->classes,
        a->name, dnn_choice_name(dnn_kind_choices, (int)a->kind),
        dnn_dtype_name(a->type), dnn_shape_text(x, sizeof x, &a->shape), a->classes);
}

static bool same_names(const struct dnn_column *a, const struct dnn_column *b)
{
    if (a->class_name == NULL || b->class_name == NULL) return true;
    if (a->classes != b->classes) return false;
    for (int64_t i = 0; i < a->classes; i++)
        if (strcmp(a->class_name[i], b->class_name[i]) != 0) return false;
    return true;
}

static int merge_column(struct dnn_column *a, const struct dnn_column *b, int i,
                        struct dnn_err *err)
{
    if (strcmp(a->name, b->name) != 0 || a->role != b->role || a->kind != b->kind ||
        a->type != b->type || a->shape.ndim != b->shape.ndim)
        return wrong_column(a, b, i, err);
    if (!same_names(a, b))
        return dnn_fail(err, DNN_EDATA,
                        "the class names of the column \"%s\" in source %d (%" PRId64
                        " classes) differ from those of the first source (%" PRId64 ")",
                        a->name, i, b->classes, a->classes);
    for (int d = 0; d < a->shape.ndim; d++)
        if (a->shape.dim[d] != b->shape.dim[d]) a->shape.dim[d] = DNN_UNKNOWN;
    if (b->classes > a->classes) a->classes = b->classes;
    if (a->class_name == NULL && a->classes == b->classes)
        a->class_name = b->class_name;
    return 0;
}

double dnn_origins_scale(enum dnn_kind kind, enum dnn_dtype type, double scale)
{
    bool whole =
        type != DNN_F32 && type != DNN_F64 && type != DNN_F16 && type != DNN_BF16;

    if (kind != DNN_KIND_IMAGE || !whole) return 1;
    if (scale > 0) return scale;
    return type == DNN_U8 ? 1.0 / 255 : 1;
}

/* The columns of the first source. */
static void start_states(struct dnn_origins *o, double scale)
{
    const struct dnn_source *first = o->at[0].source;

    o->states.n = first->ncols;
    for (int k = 0; k < first->ncols; k++) {
        struct dnn_column_state *state = &o->states.state[k];
        const struct dnn_column *c = &first->col[k];

        state->column = *c;
        state->scale[0] = dnn_origins_scale(c->kind, c->type, scale);
        state->nscale = state->scale[0] != 1;
    }
}

static int make_states(struct dnn_origins *o, double scale, struct dnn_err *err)
{
    const struct dnn_source *first = o->at[0].source;

    start_states(o, scale);
    for (int i = 1; i < o->n; i++) {
        const struct dnn_source *s = o->at[i].source;

        if (s->ncols != first->ncols)
            return dnn_fail(err, DNN_EDATA,
                            "source %d has %d columns, but the first has %d", i,
                            s->ncols, first->ncols);
        for (int k = 0; k < s->ncols; k++)
            DNN_TRY(merge_column(&o->states.state[k].column, &s->col[k], i, err));
    }
    return 0;
}

int dnn_origins_open(const struct dnn_prepare *prepare, struct dnn_origins *out,
                     struct dnn_err *err)
{
    memset(out, 0, sizeof *out);
    out->at =
        dnn_alloc((size_t)prepare->norigins * DNN_PREPARE_PARTS * sizeof *out->at);
    for (int i = 0; i < prepare->norigins; i++)
        DNN_TRY(open_one(prepare, &prepare->origin[i], out, err));
    return make_states(out, prepare->scale, err);
}

void dnn_origins_wrap(struct dnn_source *source, double scale, struct dnn_origins *out)
{
    memset(out, 0, sizeof *out);
    out->at = dnn_alloc(sizeof *out->at);
    add(out, source, NULL);
    start_states(out, scale);
}

void dnn_origins_close(struct dnn_origins *origins)
{
    for (int i = 0; i < origins->n; i++)
        dnn_source_close(origins->at[i].source);
    dnn_free(origins->at);
    memset(origins, 0, sizeof *origins);
}

/* ---- samples ---- */

const struct dnn_origin *dnn_origins_find(const struct dnn_origins *origins,
                                          int64_t sample)
{
    int i = 0;

    while (i + 1 < origins->n && sample >= origins->at[i + 1].first)
        i++;
    return &origins->at[i];
}

void dnn_origins_label(const struct dnn_origins *origins, int64_t sample,
                       char out[DNN_SAMPLE_NAME])
{
    const struct dnn_origin *o = dnn_origins_find(origins, sample);

    dnn_source_label(o->source, sample - o->first, out);
}

void dnn_origins_group(const struct dnn_origins *origins, int64_t sample,
                       char out[DNN_SAMPLE_NAME])
{
    const struct dnn_origin *o = dnn_origins_find(origins, sample);

    out[0] = '\0';
    if (o->source->type->group != NULL)
        o->source->type->group(o->source, sample - o->first, out);
}

enum { BLOCK = 1024 };

static int check_values(const struct dnn_array *a, struct dnn_err *err)
{
    size_t size = dnn_dtype_size(a->type);
    int64_t n = dnn_array_count(a);
    double x[BLOCK];

    if (a->type != DNN_F32 && a->type != DNN_F64 && a->type != DNN_F16 &&
        a->type != DNN_BF16)
        return 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;

        DNN_TRY(dnn_convert((const char *)a->data + (size_t)i * size, a->type, x,
                            DNN_F64, m, false, err));
        for (int64_t j = 0; j < m; j++)
            if (!isfinite(x[j]))
                return dnn_fail(err, DNN_EDATA,
                                "value %" PRId64
                                " is %s; set \"allow_nan\": true to accept it",
                                i + j, isnan(x[j]) ? "NaN" : "infinite");
    }
    return 0;
}

static int check_classes(const struct dnn_array *a, int64_t classes,
                         struct dnn_err *err)
{
    size_t size = dnn_dtype_size(a->type);
    int64_t n = dnn_array_count(a), x[BLOCK];

    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;

        DNN_TRY(dnn_convert((const char *)a->data + (size_t)i * size, a->type, x,
                            DNN_I64, m, true, err));
        for (int64_t j = 0; j < m; j++)
            if (x[j] < 0 || (classes > 0 && x[j] >= classes))
                return classes > 0
                           ? dnn_fail(err, DNN_EDATA,
                                      "class %" PRId64 ", but there are %" PRId64
                                      " classes (0 to %" PRId64 ")",
                                      x[j], classes, classes - 1)
                           : dnn_fail(err, DNN_EDATA,
                                      "class %" PRId64
                                      "; class numbers must be 0 or more",
                                      x[j]);
    }
    return 0;
}

int dnn_origins_check(const struct dnn_origins *origins, bool allow_nan, int64_t sample,
                      int k, const struct dnn_array *array, struct dnn_err *err)
{
    const struct dnn_column *c = &origins->states.state[k].column;
    char label[DNN_SAMPLE_NAME];
    int rc = 0;

    if (c->kind == DNN_KIND_LABEL || c->kind == DNN_KIND_MASK)
        rc = check_classes(array, c->classes, err);
    else if (!allow_nan)
        rc = check_values(array, err);
    if (rc == 0) return 0;
    dnn_origins_label(origins, sample, label);
    return dnn_prefix(err, "%s: %s: ", label, c->name);
}

int dnn_origins_read(const struct dnn_origins *origins, bool allow_nan, int64_t sample,
                     struct dnn_sample *out, struct dnn_err *err)
{
    const struct dnn_origin *o = dnn_origins_find(origins, sample);

    DNN_TRY(dnn_source_read(o->source, sample - o->first, out, err));
    for (int k = 0; k < origins->states.n; k++)
        DNN_TRY(dnn_origins_check(origins, allow_nan, sample, k, &out->col[k], err));
    return 0;
}
