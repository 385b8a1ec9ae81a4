/* augment.c - lists of transforms: read, and applied to samples.
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
    size_t mix; /* which step mixes; nsteps: none */
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
    const char *words[64] = {NULL};
    struct dnn_buf list = {0};
    char hint[128];

    for (int k = 0; dnn_aug_kinds[k] != NULL && k < 63; k++) {
        words[k] = dnn_aug_kinds[k]->name;
        dnn_buf_add(&list, "%s%s", k == 0 ? "" : ", ", words[k]);
    }
    int rc = dnn_json_fail(at, err, "unknown transform \"%.40s\"%s; known: %s", name,
                           dnn_text_hint(hint, sizeof hint, name, words), list.text);
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

/* A value in place of an object, {"rotate": 15}, is read by the same table, in which
 * the transform's name stands for the key that is meant. */
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

/* A word alone: everything has its default. */
static int fill_nothing(const struct dnn_aug_kind *kind, const struct dnn_jobj *item,
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

/* "job.json:4: transforms[2].rotate: ", also of a word. */
static const char *place_of(const struct dnn_jobj *at, const char *word,
                            struct dnn_arena *arena)
{
    struct dnn_err text;

    dnn_json_fail(at, &text, "%s%s", word == NULL ? "" : word,
                  word == NULL ? "" : ": ");
    return dnn_arena_strdup(arena, text.text);
}

static int read_step(struct dnn_augment *a, const struct dnn_jobj *item,
                     enum dnn_aug_side side, struct dnn_err *err)
{
    const bool word = dnn_json_type(item) == DNN_J_TEXT;
    const char *name = NULL;
    char quote[DNN_JSON_QUOTE];
    struct dnn_jobj value = *item;

    if (word) {
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
    if (word)
        DNN_TRY(fill_nothing(kind, item, a->arena, opts, err));
    else if (dnn_json_type(&value) == DNN_J_OBJECT)
        DNN_TRY(dnn_field_fill(&value, kind->fields, a->arena, opts, err));
    else
        DNN_TRY(fill_main(kind, item, &value, a->arena, opts, err));
    a->step = dnn_grow(a->step, &a->cap, a->nsteps + 1, sizeof *a->step);
    a->step[a->nsteps] =
        (struct dnn_aug_step){.kind = kind,
                              .side = side,
                              .opts = opts,
                              .where = place_of(&value, word ? name : NULL, a->arena),
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
        if (step->kind->reach == DNN_AUG_ALL) continue;
        if (col[c].shape.ndim < 2 || col[c].shape.ndim > DNN_MAX_SPACE + 1)
            return dnn_aug_fail(step, err,
                                "'%s' has %d axes; an image or mask must have 1 to 3 "
                                "spatial axes and a channel axis",
                                col[c].name, col[c].shape.ndim);
    }
    /* Without targets, as in inference, there is nothing to do for them. */
    if (touched == 0 && step->side != DNN_AUG_TARGETS)
        return dnn_aug_fail(step, err, "there is no %s to apply it to",
                            step->kind->reach == DNN_AUG_SPACE ? "image or mask"
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

/* Any other sample. */
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

/* Whose numbers: of which sample, and of which list of streams. */
struct who {
    uint64_t seed, stream;
    int64_t epoch, index;
};

/* The columns say what the arrays are; where the shapes are unknown, or were another
 * sample's, the arrays know. */
static int run_steps(const struct dnn_augment *a, size_t from, size_t to,
                     const struct who *who, struct dnn_aug_run *run,
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
        run->draw = dnn_draw_make(who->seed, who->stream + step->stream,
                                  (uint64_t)who->epoch, (uint64_t)who->index);
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
    const struct who who = {seed, STREAM, epoch, index};
    const struct who other = {seed, PARTNER_STREAM, epoch, index};
    const size_t mix = augment->mix, n = augment->nsteps;
    struct dnn_aug_run run = {.ncols = ncols, .sample = sample, .scratch = scratch};

    for (int c = 0; c < ncols; c++)
        run.col[c] = cols[c];
    struct dnn_aug_run second = run;
    DNN_TRY(run_steps(augment, 0, mix, &who, &run, err));
    if (mix == n) return 0;
    if (partner == NULL)
        return dnn_aug_fail(&augment->step[mix], err, "a second sample is needed");
    second.sample = partner;
    DNN_TRY(run_steps(augment, 0, mix, &other, &second, err));
    run.partner = partner;
    return run_steps(augment, mix, n, &who, &run, err);
}
