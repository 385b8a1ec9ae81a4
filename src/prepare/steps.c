/* steps.c - the list of steps, and what all of them have in common.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <string.h>

const struct dnn_prepare_step_type *const dnn_prepare_steps[] = {
    &dnn_prepare_step_split,
    &dnn_prepare_step_balance,
    &dnn_prepare_step_remap,
    &dnn_prepare_step_resize,
    &dnn_prepare_step_resample,
    &dnn_prepare_step_crop,
    &dnn_prepare_step_pad,
    &dnn_prepare_step_slice,
    &dnn_prepare_step_clip,
    &dnn_prepare_step_normalise,
    &dnn_prepare_step_one_hot,
    &dnn_prepare_step_store,
    NULL,
};

/* ---- reading ---- */

static int find_type(const struct dnn_jobj *at, const char *name,
                     const struct dnn_prepare_step_type **out, struct dnn_err *err)
{
    const char *names[DNN_PREPARE_STEPS] = {NULL};
    char hint[128];

    for (int i = 0; dnn_prepare_steps[i] != NULL; i++) {
        names[i] = dnn_prepare_steps[i]->name;
        if (strcmp(name, names[i]) != 0) continue;
        *out = dnn_prepare_steps[i];
        return 0;
    }
    return dnn_json_fail(at, err, "unknown step \"%s\"%s", name,
                         dnn_text_hint(hint, sizeof hint, name, names));
}

/* Sets all keys to their defaults, for the short form. */
static int fill_defaults(const struct dnn_field *fields, struct dnn_arena *arena,
                         void *cfg, struct dnn_err *err)
{
    struct dnn_json *none = NULL;

    if (fields == NULL) return 0;
    DNN_TRY(dnn_json_text("defaults", "{}", 2, &none, err));
    struct dnn_jobj top = dnn_json_top(none);
    int rc = dnn_field_fill(&top, fields, arena, cfg, err);
    dnn_json_free(none);
    return rc;
}

int dnn_prepare_step_read(const struct dnn_jobj *at, struct dnn_arena *arena,
                          struct dnn_prepare_step *out, struct dnn_err *err)
{
    struct dnn_jobj it = dnn_json_first(at);
    char quote[DNN_JSON_QUOTE];

    if (dnn_json_type(at) != DNN_J_OBJECT || dnn_json_count(at) != 1)
        return dnn_json_fail(at, err,
                             "must be an object with one key, the name of the step, "
                             "such as {\"resize\": [64, 64]}, not %s",
                             dnn_json_type(at) == DNN_J_OBJECT
                                 ? "an object with another number of keys"
                                 : dnn_json_quote(quote, at));
    memset(out, 0, sizeof *out);
    DNN_TRY(find_type(&it, it.name, &out->type, err));
    const struct dnn_prepare_step_type *type = out->type;
    out->cfg = dnn_arena_alloc(arena, type->size);
    if (dnn_json_type(&it) == DNN_J_OBJECT && type->fields != NULL) {
        DNN_TRY(dnn_field_fill(&it, type->fields, arena, out->cfg, err));
    } else {
        DNN_TRY(fill_defaults(type->fields, arena, out->cfg, err));
        DNN_TRY(dnn_field_fill(at, type->brief, arena, out->cfg, err));
    }
    if (type->read != NULL) DNN_TRY(type->read(&it, arena, out->cfg, err));
    /* The location of later messages, which are made without the JSON value. */
    struct dnn_err where = {0};
    dnn_json_fail(&it, &where, "%s", "");
    size_t len = strlen(where.text);
    if (len >= 2) where.text[len - 2] = '\0';
    out->where = dnn_arena_strdup(arena, where.text);
    return 0;
}

void dnn_prepare_step_free(struct dnn_prepare_step *step)
{
    dnn_free(step->before);
    dnn_free(step->fit);
    step->before = NULL;
    step->fit = NULL;
}

bool dnn_prepare_step_pointwise(const void *cfg)
{
    (void)cfg;
    return true;
}

/* ---- which columns ---- */

static int find_column(const struct dnn_prepare_step *step,
                       const struct dnn_column_states *states, const char *name,
                       int *out, struct dnn_err *err)
{
    const char *names[DNN_MAX_COLUMNS + 1] = {NULL};
    char hint[128];

    for (int k = 0; k < states->n; k++) {
        names[k] = states->state[k].column.name;
        if (strcmp(names[k], name) != 0) continue;
        *out = k;
        return 0;
    }
    return dnn_fail(err, DNN_ECONFIG, "%s: there is no column \"%s\"%s", step->where,
                    name, dnn_text_hint(hint, sizeof hint, name, names));
}

int dnn_prepare_step_select(struct dnn_prepare_step *step,
                            const struct dnn_column_states *states, struct dnn_err *err)
{
    const struct dnn_prepare_step_type *type = step->type;
    const struct dnn_list *named = step->cfg;

    dnn_free(step->before);
    step->before = dnn_alloc(sizeof *states);
    *step->before = *states;
    step->columns = 0;
    if (type->is_default == NULL) return 0;
    for (int k = 0; k < states->n && named->count == 0; k++)
        if (type->is_default(&states->state[k])) step->columns |= 1u << k;
    for (int64_t i = 0; i < named->count; i++) {
        int k;

        DNN_TRY(find_column(step, states, named->texts[i], &k, err));
        if (!type->is_allowed(&states->state[k]))
            return dnn_fail(
                err, DNN_ECONFIG,
                "%s: cannot be applied to the column \"%s\" of kind %s", step->where,
                named->texts[i],
                dnn_choice_name(dnn_kind_choices, (int)states->state[k].column.kind));
        step->columns |= 1u << k;
    }
    if (step->columns == 0)
        return dnn_fail(err, DNN_ECONFIG, "%s: there is no column to apply it to",
                        step->where);
    return 0;
}

enum dnn_prepare_step_need
dnn_prepare_step_needs_for(const struct dnn_prepare_step *step, int k)
{
    if (step->type->needs == NULL || (step->columns >> k & 1) == 0)
        return DNN_NEED_NOTHING;
    return step->type->needs(step->cfg, &step->before->state[k]);
}

enum dnn_prepare_step_need dnn_prepare_step_needs(const struct dnn_prepare_step *step)
{
    enum dnn_prepare_step_need need = DNN_NEED_NOTHING;

    for (int k = 0; k < step->before->n; k++) {
        enum dnn_prepare_step_need one = dnn_prepare_step_needs_for(step, k);

        if (one > need) need = one;
    }
    return need;
}

int dnn_prepare_step_states(const struct dnn_prepare_step *step,
                            struct dnn_column_states *states, struct dnn_err *err)
{
    for (int k = 0; k < states->n; k++)
        if ((step->columns >> k & 1) != 0 && step->type->state != NULL)
            DNN_TRY(step->type->state(step, k, &states->state[k], err));
    return 0;
}
