/* splits.c - the split of every sample, and its fold if there are folds.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { UNASSIGNED = -2, LEFT_OUT = -1, LIST_LIMIT = 1 << 30 };

struct builder {
    const struct dnn_prepare *prepare;
    const struct dnn_origins *origins;
    const int64_t *class;
    struct dnn_parts *out;
    bool *pool; /* samples to split by shares */
};

static int find(const struct dnn_parts *parts, const char *name)
{
    for (int i = 0; i < parts->n; i++)
        if (strcmp(parts->name[i], name) == 0) return i;
    return -1;
}

static int find_or_add(struct dnn_parts *parts, const char *name, struct dnn_err *err)
{
    int i = find(parts, name);

    if (i >= 0) return i;
    if (parts->n == DNN_MAX_SPLITS)
        return dnn_fail(err, DNN_ECONFIG, "more than %d splits", DNN_MAX_SPLITS);
    snprintf(parts->name[parts->n], sizeof parts->name[0], "%s", name);
    return parts->n++;
}

/* ---- groups as numbers ---- */

struct sample_key {
    char *text;
    int64_t sample;
};

static int by_text(const void *a, const void *b)
{
    const struct sample_key *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    return order != 0 ? order : (x->sample > y->sample) - (x->sample < y->sample);
}

/* The name without directories. */
static void base_name(const struct dnn_origins *origins, int64_t sample,
                      char out[DNN_SAMPLE_NAME])
{
    char text[DNN_SAMPLE_NAME];

    dnn_origins_label(origins, sample, text);
    const char *slash = strrchr(text, '/');
    snprintf(out, DNN_SAMPLE_NAME, "%s", slash == NULL ? text : slash + 1);
}

typedef void key_of(const struct dnn_origins *origins, int64_t sample,
                    char out[DNN_SAMPLE_NAME]);

/* The keys of all samples, sorted; the caller frees them: free_keys(). */
static struct sample_key *sorted_keys(const struct dnn_origins *o, key_of *of)
{
    struct sample_key *key = dnn_alloc((size_t)(o->count + 1) * sizeof *key);
    char text[DNN_SAMPLE_NAME];

    for (int64_t i = 0; i < o->count; i++) {
        of(o, i, text);
        key[i] = (struct sample_key){dnn_strdup(text), i};
    }
    qsort(key, (size_t)o->count, sizeof *key, by_text);
    return key;
}

static void free_keys(struct sample_key *key, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dnn_free(key[i].text);
    dnn_free(key);
}

/* Numbers the groups; a sample without a group gets a number of its own. */
static int64_t *group_numbers(const struct dnn_origins *o, int64_t *ngroups)
{
    struct sample_key *key = sorted_keys(o, dnn_origins_group);
    int64_t *number = dnn_alloc((size_t)(o->count + 1) * sizeof *number);

    *ngroups = 0;
    for (int64_t i = 0; i < o->count; i++) {
        bool same = i > 0 && key[i].text[0] != '\0' &&
                    strcmp(key[i].text, key[i - 1].text) == 0;

        number[key[i].sample] = same ? *ngroups - 1 : (*ngroups)++;
    }
    free_keys(key, o->count);
    return number;
}

/* ---- lists ---- */

/* Assigns all samples with this key to a split; returns how many there are. */
static int64_t assign_key(struct builder *m, const struct sample_key *key,
                          const char *name, int part, const char *path, int line,
                          struct dnn_err *err)
{
    int64_t low = 0, high = m->origins->count, found = 0;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (strcmp(key[middle].text, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < m->origins->count && strcmp(key[low].text, name) == 0; low++) {
        int32_t *p = &m->out->part[key[low].sample];

        if (*p >= 0 && *p != part && !m->pool[key[low].sample])
            return dnn_fail(err, DNN_ECONFIG,
                            "%s:%d: \"%s\" is already in the split \"%s\"", path, line,
                            name, m->out->name[*p]);
        *p = part;
        m->pool[key[low].sample] = false;
        found++;
    }
    return found;
}

/* A line may contain a name, a group, or a name without directories. */
enum { NKEYS = 3 };
static key_of *const key_functions[NKEYS] = {dnn_origins_label, dnn_origins_group,
                                             base_name};

static int read_list(struct builder *m, const char *path, int part,
                     struct sample_key *const *keys, struct dnn_err *err)
{
    char *text = NULL, *save = NULL;
    int line = 0, rc = 0;

    DNN_TRY(dnn_file_read_text(path, LIST_LIMIT, &text, err));
    for (char *at = text; at != NULL && rc == 0; at = save) {
        save = strchr(at, '\n');
        if (save != NULL) *save++ = '\0';
        line++;
        size_t len = strcspn(at, "\r");
        at[len] = '\0';
        if (len == 0 || at[0] == '#') continue;
        int64_t found = 0;
        for (int w = 0; found == 0 && w < NKEYS; w++)
            found = assign_key(m, keys[w], at, part, path, line, err);
        if (found == 0)
            rc = dnn_fail(err, DNN_ECONFIG,
                          "%s:%d: there is no sample or group \"%s\"; the first sample "
                          "is \"%s\"",
                          path, line, at, keys[0][0].text);
        if (found < 0) rc = (int)found;
    }
    dnn_free(text);
    return rc;
}

static int read_lists(struct builder *m, struct dnn_err *err)
{
    const struct dnn_split_cfg *c = m->prepare->split;
    struct sample_key *keys[NKEYS] = {NULL};
    int rc = 0;

    for (int p = 0; rc >= 0 && p < DNN_PREPARE_PARTS; p++) {
        if (c->list[p] == NULL) continue;
        for (int w = 0; w < NKEYS; w++)
            if (keys[w] == NULL) keys[w] = sorted_keys(m->origins, key_functions[w]);
        rc = find_or_add(m->out, dnn_prepare_parts[p], err);
        if (rc >= 0) rc = read_list(m, c->list[p], rc, keys, err);
    }
    for (int w = 0; w < NKEYS; w++)
        if (keys[w] != NULL) free_keys(keys[w], m->origins->count);
    return rc < 0 ? rc : 0;
}

/* ---- shares and folds ---- */

/* Assigns the samples i with set[i]; to[i] becomes the part. */
static void assign_set(struct builder *m, const bool *set, int nparts,
                       const double *share, uint64_t seed, bool stratify, int32_t *to)
{
    int64_t n = 0, ngroups = 0, nclasses = 1, count = m->origins->count;
    int64_t *sample = dnn_alloc((size_t)(count + 1) * sizeof *sample);
    int64_t *group = NULL, *class = NULL, *all = NULL;

    if (m->origins->groups) all = group_numbers(m->origins, &ngroups);
    for (int64_t i = 0; i < count; i++)
        if (set[i]) sample[n++] = i;
    if (all != NULL) group = dnn_alloc((size_t)(n + 1) * sizeof *group);
    if (stratify) class = dnn_alloc((size_t)(n + 1) * sizeof *class);
    for (int64_t i = 0; i < n; i++) {
        if (group != NULL) group[i] = all[sample[i]];
        if (class == NULL) continue;
        class[i] = m->class[sample[i]];
        if (class[i] >= nclasses) nclasses = class[i] + 1;
    }
    struct dnn_partition in = {n, group, class, ngroups, nclasses, nparts, share, seed};
    int32_t *part = dnn_alloc((size_t)(n + 1) * sizeof *part);
    dnn_partition(&in, part);
    for (int64_t i = 0; i < n; i++)
        to[sample[i]] = part[i];
    dnn_free(part);
    dnn_free(class);
    dnn_free(group);
    dnn_free(all);
    dnn_free(sample);
}

static uint64_t seed_of(const struct dnn_prepare *p)
{
    return (uint64_t)(p->split->seed >= 0 ? p->split->seed : p->seed);
}

static int split_by_shares(struct builder *m, struct dnn_err *err)
{
    const struct dnn_split_cfg *c = m->prepare->split;
    int part[DNN_PREPARE_PARTS], n = 0;
    double share[DNN_PREPARE_PARTS];

    for (int p = 0; p < DNN_PREPARE_PARTS; p++) {
        if (c->share[p] <= 0) continue;
        share[n] = c->share[p];
        part[n] = find_or_add(m->out, dnn_prepare_parts[p], err);
        if (part[n] < 0) return part[n];
        n++;
    }
    if (n == 0) return 0;
    int32_t *to = dnn_alloc((size_t)(m->origins->count + 1) * sizeof *to);
    assign_set(m, m->pool, n, share, seed_of(m->prepare), c->stratify, to);
    for (int64_t i = 0; i < m->origins->count; i++)
        if (m->pool[i]) m->out->part[i] = to[i] < 0 ? LEFT_OUT : part[to[i]];
    dnn_free(to);
    return 0;
}

static int make_folds(struct builder *m, struct dnn_err *err)
{
    const struct dnn_split_cfg *c = m->prepare->split;
    int64_t count = m->origins->count;
    int train = find(m->out, "train");

    if (c->folds == 0) return 0;
    if (train < 0) return dnn_fail(err, DNN_ECONFIG, "\"folds\" needs a train split");
    bool *set = dnn_alloc((size_t)count + 1);
    double *share = dnn_alloc((size_t)c->folds * sizeof *share);
    m->out->folds = c->folds;
    m->out->fold = dnn_alloc((size_t)(count + 1) * sizeof *m->out->fold);
    for (int64_t f = 0; f < c->folds; f++)
        share[f] = 1.0 / (double)c->folds;
    for (int64_t i = 0; i < count; i++) {
        set[i] = m->out->part[i] == train;
        m->out->fold[i] = -1;
    }
    assign_set(m, set, (int)c->folds, share, seed_of(m->prepare) + 1, c->stratify,
               m->out->fold);
    dnn_free(share);
    dnn_free(set);
    return 0;
}

/* ---- everything ---- */

/* Sets the splits given by the sources, and which samples the step splits. */
static int begin(struct builder *m, struct dnn_err *err)
{
    const struct dnn_split_cfg *c = m->prepare->split;

    for (int o = 0; o < m->origins->n; o++) {
        const struct dnn_origin *at = &m->origins->at[o];
        bool in_pool = c != NULL && (at->split[0] == '\0' || c->again ||
                                     strcmp(at->split, "train") == 0);
        int own = UNASSIGNED;

        if (at->split[0] != '\0' && !(c != NULL && c->again)) {
            own = find_or_add(m->out, at->split, err);
            if (own < 0) return own;
        }
        for (int p = 0; c != NULL && !in_pool && p < DNN_PREPARE_PARTS; p++)
            if (c->share[p] > 0 && strcmp(at->split, dnn_prepare_parts[p]) == 0)
                return dnn_fail(err, DNN_ECONFIG,
                                "the files already define a split \"%s\"; remove it "
                                "from the fractions, or set \"again\": true in the "
                                "step \"split\" to split all samples anew",
                                at->split);
        for (int64_t i = 0; i < at->source->count; i++) {
            m->out->part[at->first + i] = own;
            m->pool[at->first + i] = in_pool;
        }
    }
    return 0;
}

/* Assigns the remaining samples. */
static int finish(struct builder *m, struct dnn_err *err)
{
    const struct dnn_split_cfg *c = m->prepare->split;
    struct dnn_parts *out = m->out;
    char label[DNN_SAMPLE_NAME];
    int rest = UNASSIGNED;
    bool whole =
        c == NULL || (c->share[0] + c->share[1] + c->share[2] <= 0 &&
                      c->list[0] == NULL && c->list[1] == NULL && c->list[2] == NULL);

    for (int64_t i = 0; i < m->origins->count; i++) {
        if (out->part[i] >= 0) continue;
        if (out->part[i] == UNASSIGNED && whole && rest == UNASSIGNED && out->n == 0) {
            rest = find_or_add(out, c == NULL ? "all" : "train", err);
            if (rest < 0) return rest;
        }
        dnn_origins_label(m->origins, i, label);
        if (out->part[i] == UNASSIGNED && rest >= 0)
            out->part[i] = rest;
        else if (c != NULL && c->partial)
            out->part[i] = LEFT_OUT;
        else
            return dnn_fail(
                err, DNN_ECONFIG,
                "the sample \"%s\" is in no split; give its source a split, or set "
                "\"partial\": true in the step \"split\" to leave it out",
                label);
    }
    int64_t count[DNN_MAX_SPLITS] = {0};
    for (int64_t i = 0; i < m->origins->count; i++)
        if (out->part[i] >= 0) count[out->part[i]]++;
    for (int p = 0; p < out->n; p++)
        if (count[p] == 0)
            return dnn_fail(
                err, DNN_ECONFIG,
                "the split \"%s\" would be empty: it gets none of the %" PRId64
                " samples",
                out->name[p], m->origins->count);
    return 0;
}

int dnn_parts_make(const struct dnn_prepare *prepare, const struct dnn_origins *origins,
                   const int64_t *class, struct dnn_parts *out, struct dnn_err *err)
{
    struct builder m = {prepare, origins, class, out, NULL};
    int rc;

    memset(out, 0, sizeof *out);
    if (prepare->split != NULL && prepare->split->group && !origins->groups)
        return dnn_fail(err, DNN_ECONFIG,
                        "the step \"split\" needs groups, but no source has any; set "
                        "\"group\" under \"from\"");
    out->part = dnn_alloc((size_t)(origins->count + 1) * sizeof *out->part);
    m.pool = dnn_alloc((size_t)origins->count + 1);
    rc = begin(&m, err);
    if (rc == 0 && prepare->split != NULL) {
        rc = read_lists(&m, err);
        if (rc == 0) rc = split_by_shares(&m, err);
    }
    if (rc == 0) rc = finish(&m, err);
    if (rc == 0 && prepare->split != NULL) rc = make_folds(&m, err);
    dnn_free(m.pool);
    return rc;
}

void dnn_parts_free(struct dnn_parts *parts)
{
    dnn_free(parts->part);
    dnn_free(parts->fold);
    memset(parts, 0, sizeof *parts);
}
