/* set.c - the metrics of a configuration, with their sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const struct dnn_metric_kind *kind;
    struct dnn_metric_opts opts;
    int64_t at; /* offset of its sums                             */
    bool first; /* false: it shares the sums of an earlier metric */
};

/* The values computed from the sums. */
struct values {
    struct dnn_metric_value *value; /* owned */
    size_t n, cap;
    bool main; /* what put() keeps: the main values, or those per class */
};

struct dnn_metrics {
    struct dnn_arena *arena;
    int64_t classes;
    struct entry *entry;
    size_t n, cap;
    double *sums; /* owned */
    int64_t nsums;
    struct values *values; /* owned */
};

/* ---- reading ---- */

static const struct dnn_metric_kind *find(const char *name)
{
    name = dnn_metric_canonical(name);
    for (int k = 0; dnn_metric_kinds[k] != NULL; k++)
        if (strcmp(dnn_metric_kinds[k]->name, name) == 0) return dnn_metric_kinds[k];
    return NULL;
}

static int unknown(const char *name, struct dnn_err *err)
{
    const char *words[64] = {NULL};
    struct dnn_buf list = {0};
    char hint[128];

    for (int k = 0; dnn_metric_kinds[k] != NULL && k < 63; k++) {
        words[k] = dnn_metric_kinds[k]->name;
        dnn_buf_add(&list, "%s%s", k == 0 ? "" : ", ", words[k]);
    }
    int rc = dnn_fail(err, DNN_ECONFIG, "unknown metric \"%.40s\"%s; use one of %s",
                      name, dnn_text_hint(hint, sizeof hint, name, words), list.text);
    dnn_buf_free(&list);
    return rc;
}

/* A name: an object with defaults.  "top_5" is {"type": "top_k", "k": 5}. */
static int from_name(const char *word, struct dnn_arena *arena,
                     const struct dnn_metric_kind **kind, struct dnn_metric_opts *opts,
                     struct dnn_err *err)
{
    struct dnn_json *json = NULL;
    struct dnn_buf text = {0};
    long long k = 0;

    if (strncmp(word, "top_", 4) == 0 && dnn_text_int(word + 4, &k)) {
        if (k < 1)
            return dnn_fail(err, DNN_ECONFIG, "%.40s: k must be at least 1", word);
        *kind = &dnn_metric_top_k;
        dnn_buf_add(&text, "{\"type\": \"top_k\", \"k\": %lld}", k);
    } else {
        *kind = find(word);
        if (*kind == NULL) return unknown(word, err);
        if (*kind == &dnn_metric_top_k)
            return dnn_fail(err, DNN_ECONFIG,
                            "top_k: k is missing; write \"top_5\" or {\"type\": "
                            "\"top_k\", \"k\": 5}");
        dnn_buf_add(&text, "{\"type\": \"%s\"}", word);
    }
    int rc = dnn_json_text(word, text.text, text.len, &json, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(json);

        rc = dnn_field_fill(&top, (*kind)->fields, arena, opts, err);
    }
    dnn_json_free(json);
    dnn_buf_free(&text);
    return rc;
}

static int from_object(const struct dnn_jobj *at, struct dnn_arena *arena,
                       const struct dnn_metric_kind **kind,
                       struct dnn_metric_opts *opts, struct dnn_err *err)
{
    struct dnn_jobj type = dnn_json_sub(at, "type");
    struct dnn_err why = {0};
    const char *word;

    DNN_TRY(dnn_json_string(&type, &word, err));
    *kind = find(word);
    if (*kind == NULL) {
        unknown(word, &why);
        return dnn_json_fail(&type, err, "%s", why.text);
    }
    return dnn_field_fill(at, (*kind)->fields, arena, opts, err);
}

/* Set and check the options that depend on the output. */
static int finish(struct dnn_metrics *m, const struct dnn_metric_kind *kind,
                  struct dnn_metric_opts *opts, struct dnn_err *err)
{
    char name[32];

    opts->classes = m->classes;
    opts->ratio = kind->ratio;
    if (opts->scores == DNN_SCORES_AUTO)
        opts->scores = m->classes > 1 ? DNN_SCORES_CLASSES : DNN_SCORES_BINARY;
    if (kind->tally == dnn_metric_mse.tally) opts->scores = DNN_SCORES_VALUES;
    if (opts->name == NULL) {
        if (kind == &dnn_metric_top_k)
            snprintf(name, sizeof name, "top_%" PRId64, opts->k);
        else
            snprintf(name, sizeof name, "%s", kind->name);
        opts->name = dnn_arena_strdup(m->arena, name);
    }
    if (opts->name[0] == '\0' || strlen(opts->name) > 32)
        return dnn_fail(err, DNN_ECONFIG,
                        "the name of a metric must have 1 to 32 bytes, not \"%.40s\"",
                        opts->name);
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->entry[i].opts.name, opts->name) == 0)
            return dnn_fail(err, DNN_ECONFIG,
                            "metric \"%s\" is given twice; give one of them another "
                            "\"name\"",
                            opts->name);
    if (opts->scores == DNN_SCORES_CLASSES && m->classes < 2)
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: scores \"classes\" need one channel per class, but the "
                        "output has only one channel",
                        opts->name);
    if (kind->check == NULL || kind->check(opts, err) == 0) return 0;
    return dnn_prefix(err, "%s: ", opts->name);
}

static void append(struct dnn_metrics *m, const struct dnn_metric_kind *kind,
                   const struct dnn_metric_opts *opts)
{
    struct entry e = {kind, *opts, m->nsums, true};

    for (size_t i = 0; i < m->n && e.first; i++)
        if (m->entry[i].kind->tally == kind->tally &&
            kind->tally->same(&m->entry[i].opts, opts)) {
            e.at = m->entry[i].at;
            e.first = false;
        }
    if (e.first) m->nsums += kind->tally->nsums(opts);
    m->entry = dnn_grow(m->entry, &m->cap, m->n + 1, sizeof *m->entry);
    m->entry[m->n++] = e;
}

static int read_one(struct dnn_metrics *m, const struct dnn_jobj *at, const char *word,
                    struct dnn_err *err)
{
    const struct dnn_metric_kind *kind = NULL;
    struct dnn_metric_opts opts = {.ignore = -1, .background = -1};
    struct dnn_err why = {0};
    char quote[DNN_JSON_QUOTE];
    int rc;

    if (at != NULL && dnn_json_type(at) == DNN_J_OBJECT)
        DNN_TRY(from_object(at, m->arena, &kind, &opts, err));
    else if (at != NULL && dnn_json_type(at) != DNN_J_TEXT)
        return dnn_json_fail(at, err,
                             "must be the name of a metric or an object with its "
                             "\"type\", not %s",
                             dnn_json_quote(quote, at));
    rc = kind != NULL ? 0 : from_name(word, m->arena, &kind, &opts, &why);
    if (rc == 0) rc = finish(m, kind, &opts, &why);
    if (rc < 0)
        return at != NULL ? dnn_json_fail(at, err, "%s", why.text)
                          : dnn_fail(err, rc, "metrics: %s", why.text);
    append(m, kind, &opts);
    return 0;
}

static int read_item(struct dnn_metrics *m, const struct dnn_jobj *at,
                     struct dnn_err *err)
{
    const char *word = NULL;

    if (dnn_json_type(at) == DNN_J_TEXT) DNN_TRY(dnn_json_string(at, &word, err));
    return read_one(m, at, word, err);
}

static int read_all(struct dnn_metrics *m, const struct dnn_jobj *list,
                    const char *const *defaults, struct dnn_err *err)
{
    if (list == NULL || dnn_json_type(list) == DNN_J_ABSENT) {
        for (int i = 0; defaults != NULL && defaults[i] != NULL; i++)
            DNN_TRY(read_one(m, NULL, defaults[i], err));
        return 0;
    }
    if (dnn_json_type(list) != DNN_J_LIST) return read_item(m, list, err);
    for (struct dnn_jobj it = dnn_json_first(list); it.val != NULL;
         it = dnn_json_next(&it))
        DNN_TRY(read_item(m, &it, err));
    return 0;
}

int dnn_metrics_read(const struct dnn_jobj *list, const char *const *defaults,
                     int64_t classes, struct dnn_metrics **out, struct dnn_err *err)
{
    struct dnn_metrics *m;

    if (classes < 1 || classes > INT32_MAX)
        return dnn_fail(err, DNN_ECONFIG,
                        "metrics: an output with %" PRId64 " channels is not supported",
                        classes);
    m = dnn_alloc(sizeof *m);
    m->arena = dnn_arena_make();
    m->values = dnn_alloc(sizeof *m->values);
    m->classes = classes;
    int rc = read_all(m, list, defaults, err);
    if (rc < 0) {
        dnn_metrics_free(m);
        return rc;
    }
    m->sums = dnn_alloc((size_t)(m->nsums + 1) * sizeof *m->sums);
    *out = m;
    return 0;
}

void dnn_metrics_free(struct dnn_metrics *metrics)
{
    if (metrics == NULL) return;
    dnn_arena_free(metrics->arena);
    dnn_free(metrics->entry);
    dnn_free(metrics->sums);
    dnn_free(metrics->values->value);
    dnn_free(metrics->values);
    dnn_free(metrics);
}

/* ---- sums ---- */

void dnn_metrics_start(struct dnn_metrics *metrics)
{
    memset(metrics->sums, 0, (size_t)metrics->nsums * sizeof *metrics->sums);
}

int dnn_metrics_add(struct dnn_metrics *metrics, const struct dnn_metric_batch *batch,
                    struct dnn_err *err)
{
    for (size_t i = 0; i < metrics->n; i++) {
        const struct entry *e = &metrics->entry[i];
        struct dnn_view view;

        if (!e->first) continue;
        int rc = dnn_view_make(&e->opts, batch, &view, err);
        if (rc == 0 && view.rows > 0)
            rc = e->kind->tally->add(&view, metrics->sums + e->at, err);
        if (rc < 0) return dnn_prefix(err, "metric %s: ", e->opts.name);
    }
    return 0;
}

double *dnn_metrics_sums(struct dnn_metrics *metrics, int64_t *n)
{
    *n = metrics->nsums;
    return metrics->sums;
}

/* ---- values ---- */

static void put(void *arg, const char *name, int64_t c, double value)
{
    struct values *values = arg;

    if (values->main != (c < 0)) return;
    values->value =
        dnn_grow(values->value, &values->cap, values->n + 1, sizeof *values->value);
    struct dnn_metric_value *v = &values->value[values->n++];
    memset(v, 0, sizeof *v);
    if (c < 0)
        snprintf(v->name, sizeof v->name, "%.32s", name);
    else
        snprintf(v->name, sizeof v->name, "%.32s_%" PRId32, name, (int32_t)c);
    v->value = value;
    v->main = values->main;
}

int dnn_metrics_values(const struct dnn_metrics *metrics,
                       const struct dnn_metric_value **out)
{
    struct values *values = metrics->values;
    const struct dnn_metric_out to = {put, values};

    values->n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < metrics->n; i++) {
            const struct entry *e = &metrics->entry[i];

            values->main = pass == 0;
            e->kind->values(&e->opts, metrics->sums + e->at, &to);
        }
    *out = values->value;
    return (int)values->n;
}

const double *dnn_metrics_confusion(const struct dnn_metrics *metrics, int64_t *classes)
{
    for (size_t i = 0; i < metrics->n; i++) {
        const struct entry *e = &metrics->entry[i];

        if (e->kind != &dnn_metric_confusion) continue;
        *classes = metrics->classes > 1 ? metrics->classes : 2;
        return metrics->sums + e->at;
    }
    *classes = 0;
    return NULL;
}
