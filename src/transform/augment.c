/* augment.c - read lists of transforms, and apply them to samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/augment_impl.h"

#include "base/text.h"

#include <string.h>

enum { STREAM = 0x61756700, PARTNER_STREAM = 0x61757000 };

struct dnn_augment {
    struct dnn_arena *arena;
    struct dnn_aug_step *step;
    size_t nsteps, cap;
    size_t mix; /* index of the mixup step; nsteps: none */
};

/* ---- reading ---- */

static const struct dnn_aug_kind *find(const char *name)
{
    for (int k = 0; dnn_aug_kinds[k] != NULL; k++)
        if (strcmp(dnn_aug_kinds[k]->name, name) == 0) return dnn_aug_kinds[k];
    return NULL;
}

static int unknown(const struct dnn_jobj *at, const char *name, struct dnn_err *err)
{
    const char *names[64] = {NULL};
    struct dnn_buf list = {0};
    char hint[128];

    for (int k = 0; dnn_aug_kinds[k] != NULL && k < 63; k++) {
        names[k] = dnn_aug_kinds[k]->name;
        dnn_buf_add(&list, "%s%s", k == 0 ? "" : ", ", names[k]);
    }
    int rc = dnn_json_fail(at, err, "unknown transform \"%.40s\"%s; known: %s", name,
                           dnn_text_hint(hint, sizeof hint, name, names), list.text);
    dnn_buf_free(&list);
    return rc;
}

static int nfields(const struct dnn_field *fields)
{
    int n = 0;

    while (fields[n].key != NULL)
        n++;
    return n;
}

/* Read a value that is not an object, {"rotate": 15}: with the table of the object, but
 * the name of the transform instead of its main key. */
static int fill_main(const struct dnn_aug_kind *kind, const struct dnn_jobj *item,
                     const struct dnn_jobj *value, struct dnn_arena *arena, void *opts,
                     struct dnn_err *err)
{
    struct dnn_field table[16] = {{0}};
    int n = nfields(kind->fields);

    if (kind->main == NULL)
        return dnn_json_fail(value, err, "must be an object: %s", kind->params);
    memcpy(table, kind->fields, (size_t)n * sizeof table[0]);
    for (int k = 0; k < n; k++)
        if (strcmp(table[k].key, kind->main) == 0) table[k].key = kind->name;
    return dnn_field_fill(item, table, arena, opts, err);
}

/* A name without parameters: all keys have their defaults. */
static int fill_defaults(const struct dnn_aug_kind *kind, const struct dnn_jobj *item,
                         struct dnn_arena *arena, void *opts, struct dnn_err *err)
{
    struct dnn_json *empty = NULL;

    for (const struct dnn_field *f = kind->fields; f->key != NULL; f++)
        if (f->def == NULL)
            return dnn_json_fail(item, err, "%s needs parameters: {\"%s\": %s}",
                                 kind->name, kind->name, kind->params);
    DNN_TRY(dnn_json_text("nothing", "{}", 2, &empty, err));
    struct dnn_jobj top = dnn_json_top(empty);
    int rc = dnn_field_fill(&top, kind->fields, arena, opts, err);
    dnn_json_free(empty);
    return rc;
}

/* "train.json:4: transforms[2].rotate: ", also for a name without parameters. */
static const char *location_of(const struct dnn_jobj *at, const char *name,
                               struct dnn_arena *arena)
{
    struct dnn_err text;

    dnn_json_fail(at, &text, "%s%s", name == NULL ? "" : name,
                  name == NULL ? "" : ": ");
    return dnn_arena_strdup(arena, text.text);
}

static int read_step(struct dnn_augment *a, const struct dnn_jobj *item,
                     enum dnn_aug_side side, struct dnn_err *err)
{
    const bool name_only = dnn_json_type(item) == DNN_J_TEXT;
    const char *name = NULL;
    char quote[DNN_JSON_QUOTE];
    struct dnn_jobj value = *item;

    if (name_only) {
        DNN_TRY(dnn_json_string(item, &name, err));
    } else if (dnn_json_type(item) == DNN_J_OBJECT && dnn_json_count(item) == 1) {
        value = dnn_json_first(item);
        name = value.name;
    } else {
        return dnn_json_fail(item, err,
                             "must be an object with one key, the name of a transform, "
                             "not %s",
                             dnn_json_type(item) == DNN_J_OBJECT
                                 ? "an object with no key or several"
                                 : dnn_json_quote(quote, item));
    }
    const struct dnn_aug_kind *kind = find(name);
    if (kind == NULL) return unknown(item, name, err);
    void *opts = dnn_arena_alloc(a->arena, kind->size);
    if (name_only)
        DNN_TRY(fill_defaults(kind, item, a->arena, opts, err));
    else if (dnn_json_type(&value) == DNN_J_OBJECT)
        DNN_TRY(dnn_field_fill(&value, kind->fields, a->arena, opts, err));
    else
        DNN_TRY(fill_main(kind, item, &value, a->arena, opts, err));
    a->step = dnn_grow(a->step, &a->cap, a->nsteps + 1, sizeof *a->step);
    a->step[a->nsteps] = (struct dnn_aug_step){
        .kind = kind,
        .side = side,
        .opts = opts,
        .where = location_of(&value, name_only ? name : NULL, a->arena),
        .stream = a->nsteps};
    a->nsteps++;
    return 0;
}

static int read_list(struct dnn_augment *a, const struct dnn_jobj *list,
                     enum dnn_aug_side side, struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];

    if (list == NULL || dnn_json_type(list) == DNN_J_ABSENT) return 0;
    if (dnn_json_type(list) != DNN_J_LIST)
        return dnn_json_fail(list, err, "must be a list of transforms, not %s",
                             dnn_json_quote(quote, list));
    for (struct dnn_jobj it = dnn_json_first(list); it.val != NULL;
         it = dnn_json_next(&it))
        DNN_TRY(read_step(a, &it, side, err));
    return 0;
}

static int find_mix(struct dnn_augment *a, struct dnn_err *err)
{
    a->mix = a->nsteps;
    for (size_t k = 0; k < a->nsteps; k++) {
        if (a->step[k].kind != &dnn_aug_mixup) continue;
        if (a->mix != a->nsteps)
            return dnn_aug_fail(&a->step[k], err, "mixup is listed twice: %s",
                                "remove one of them");
        a->mix = k;
    }
    return 0;
}

int dnn_augment_read(const struct dnn_jobj *both, const struct dnn_jobj *inputs,
                     const struct dnn_jobj *targets, struct dnn_augment **out,
                     struct dnn_err *err)
{
    struct dnn_augment *a = dnn_alloc(sizeof *a);

    a->arena = dnn_arena_make();
    int rc = read_list(a, both, DNN_AUG_BOTH, err);
    if (rc == 0) rc = read_list(a, inputs, DNN_AUG_INPUTS, err);
    if (rc == 0) rc = read_list(a, targets, DNN_AUG_TARGETS, err);
    if (rc == 0) rc = find_mix(a, err);
    if (rc < 0) {
        dnn_augment_free(a);
        return rc;
    }
    *out = a;
    return 0;
}

void dnn_augment_free(struct dnn_augment *augment)
{
    if (augment == NULL) return;
    dnn_arena_free(augment->arena);
    dnn_free(augment->step);
    dnn_free(augment);
}

const char *dnn_augment_info(int index, const char **params, const char **help)
{
    if (index < 0) return NULL;
    for (int k = 0; dnn_aug_kinds[k] != NULL; k++)
        if (k == index) {
            if (params != NULL) *params = dnn_aug_kinds[k]->params;
            if (help != NULL) *help = dnn_aug_kinds[k]->help;
            return dnn_aug_kinds[k]->name;
        }
    return NULL;
}

const struct dnn_field *dnn_augment_fields(int index)
{
    return dnn_augment_info(index, NULL, NULL) == NULL ? NULL
                                                       : dnn_aug_kinds[index]->fields;
}

/* ---- columns ---- */

static int step_columns(const struct dnn_aug_step *step, int ncols,
                        struct dnn_column *col, struct dnn_err *err)
{
    int touched = 0;

    for (int c = 0; c < ncols; c++) {
        if (!dnn_aug_touches(step, &col[c])) continue;
        touched++;
        if (step->kind->scope == DNN_AUG_ALL) continue;
        if (col[c].shape.ndim < 2 || col[c].shape.ndim > DNN_MAX_SPACE + 1)
            return dnn_aug_fail(step, err,
                                "'%s' has %d axes; an image or mask must have 1 to 3 "
                                "spatial axes and a channel axis",
                                col[c].name, col[c].shape.ndim);
    }
    /* There may be no targets, as in inference. */
    if (touched == 0 && step->side != DNN_AUG_TARGETS)
        return dnn_aug_fail(step, err, "there is no %s to apply it to",
                            step->kind->scope == DNN_AUG_SPACE ? "image or mask"
                                                               : "image");
    if (step->kind->columns == NULL) return 0;
    return step->kind->columns(step, ncols, col, err);
}

int dnn_augment_columns(const struct dnn_augment *augment, int ncols,
                        const struct dnn_column *in, struct dnn_column *out,
                        struct dnn_err *err)
{
    for (int c = 0; c < ncols; c++)
        out[c] = in[c];
    for (size_t k = 0; k < augment->nsteps; k++)
        DNN_TRY(step_columns(&augment->step[k], ncols, out, err));
    return 0;
}

bool dnn_augment_random(const struct dnn_augment *augment)
{
    for (size_t k = 0; k < augment->nsteps; k++)
        if (augment->step[k].kind->random) return true;
    return false;
}

void dnn_augment_drop_random(struct dnn_augment *augment)
{
    size_t n = 0;

    for (size_t k = 0; k < augment->nsteps; k++)
        if (!augment->step[k].kind->random) augment->step[n++] = augment->step[k];
    augment->nsteps = augment->mix = n; /* mixup is random */
}

bool dnn_augment_mixes(const struct dnn_augment *augment)
{
    return augment->mix < augment->nsteps;
}

/* A random sample other than index. */
int64_t dnn_augment_partner(const struct dnn_augment *augment, uint64_t seed,
                            int64_t epoch, int64_t index, int64_t count)
{
    struct dnn_draw draw =
        dnn_draw_make(seed, PARTNER_STREAM - 1, (uint64_t)epoch, (uint64_t)index);

    if (!dnn_augment_mixes(augment) || count < 2) return index;
    return (index + 1 + dnn_draw_below(&draw, count - 1)) % count;
}

/* ---- samples ---- */

struct dnn_augment_scratch *dnn_augment_scratch_make(void)
{
    return dnn_alloc(sizeof(struct dnn_augment_scratch));
}

void dnn_augment_scratch_free(struct dnn_augment_scratch *scratch)
{
    if (scratch == NULL) return;
    dnn_array_free(&scratch->spare);
    for (int k = 0; k < 2; k++)
        dnn_array_free(&scratch->field[k]);
    dnn_free(scratch);
}

/* Selects the random numbers: the sample, and the first of its streams. */
struct rng_key {
    uint64_t seed, stream;
    int64_t epoch, index;
};

/* Apply steps from (included) to to (excluded).  Types and shapes are those of the
 * arrays, as those of the columns may be unknown or differ between samples. */
static int run_steps(const struct dnn_augment *a, size_t from, size_t to,
                     const struct rng_key *rng_key, struct dnn_aug_run *run,
                     struct dnn_err *err)
{
    struct dnn_column next[DNN_MAX_COLUMNS];

    for (size_t k = from; k < to; k++) {
        const struct dnn_aug_step *step = &a->step[k];
        bool any = false;

        for (int c = 0; c < run->ncols; c++) {
            run->col[c].shape = run->sample->col[c].shape;
            run->col[c].type = run->sample->col[c].type;
            next[c] = run->col[c];
            any = any || dnn_aug_touches(step, &run->col[c]);
        }
        DNN_TRY(step_columns(step, run->ncols, next, err));
        if (!any) continue;
        run->draw = dnn_draw_make(rng_key->seed, rng_key->stream + step->stream,
                                  (uint64_t)rng_key->epoch, (uint64_t)rng_key->index);
        DNN_TRY(step->kind->apply(step, run, err));
        for (int c = 0; c < run->ncols; c++)
            run->col[c] = next[c];
    }
    return 0;
}

int dnn_augment_apply(const struct dnn_augment *augment, int ncols,
                      const struct dnn_column *cols, uint64_t seed, int64_t epoch,
                      int64_t index, struct dnn_sample *sample,
                      struct dnn_sample *partner, struct dnn_augment_scratch *scratch,
                      struct dnn_err *err)
{
    const struct rng_key rng_key = {seed, STREAM, epoch, index};
    const struct rng_key other = {seed, PARTNER_STREAM, epoch, index};
    const size_t mix = augment->mix, n = augment->nsteps;
    struct dnn_aug_run run = {.ncols = ncols, .sample = sample, .scratch = scratch};

    for (int c = 0; c < ncols; c++)
        run.col[c] = cols[c];
    struct dnn_aug_run second = run;
    DNN_TRY(run_steps(augment, 0, mix, &rng_key, &run, err));
    if (mix == n) return 0;
    if (partner == NULL)
        return dnn_aug_fail(&augment->step[mix], err, "a second sample is needed");
    second.sample = partner;
    DNN_TRY(run_steps(augment, 0, mix, &other, &second, err));
    run.partner = partner;
    return run_steps(augment, mix, n, &rng_key, &run, err);
}
