/* steps.c - the list of steps, and what all of them have in common.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <string.h>

const struct dnn_edit_type *const dnn_edits[] = {
    &dnn_edit_split,
    &dnn_edit_balance,
    &dnn_edit_remap,
    &dnn_edit_resize,
    &dnn_edit_resample,
    &dnn_edit_crop,
    &dnn_edit_pad,
    &dnn_edit_slice,
    &dnn_edit_clip,
    &dnn_edit_normalise,
    &dnn_edit_one_hot,
    &dnn_edit_store,
    NULL,
};

/* ---- reading ---- */

static int find_type(const struct dnn_jobj *at, const char *name,
                     const struct dnn_edit_type **out, struct dnn_err *err)
{
    const char *names[DNN_PREPARE_STEPS] = {NULL};
    char hint[128];

    for (int i = 0; dnn_edits[i] != NULL; i++) {
        names[i] = dnn_edits[i]->name;
        if (strcmp(name, names[i]) != 0) continue;
        *out = dnn_edits[i];
        return 0;
    }
    return dnn_json_fail(at, err, "unknown step \"%s\"%s", name,
                         dnn_text_hint(hint, sizeof hint, name, names));
}

/* All keys at their defaults: where the short form was used. */
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

int dnn_edit_read(const struct dnn_jobj *at, struct dnn_arena *arena,
                  struct dnn_edit *out, struct dnn_err *err)
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
    const struct dnn_edit_type *type = out->type;
    out->cfg = dnn_arena_alloc(arena, type->size);
    if (dnn_json_type(&it) == DNN_J_OBJECT && type->fields != NULL) {
        DNN_TRY(dnn_field_fill(&it, type->fields, arena, out->cfg, err));
    } else {
        DNN_TRY(fill_defaults(type->fields, arena, out->cfg, err));
        DNN_TRY(dnn_field_fill(at, type->brief, arena, out->cfg, err));
    }
    if (type->read != NULL) DNN_TRY(type->read(&it, arena, out->cfg, err));
    /* The blame of a later message, which has no value of the file to point at. */
    struct dnn_err where = {0};
    dnn_json_fail(&it, &where, "%s", "");
    size_t len = strlen(where.text);
    if (len >= 2) where.text[len - 2] = '\0';
    out->where = dnn_arena_strdup(arena, where.text);
    return 0;
}

void dnn_edit_free(struct dnn_edit *step)
{
    dnn_free(step->before);
    dnn_free(step->found);
    step->before = NULL;
    step->found = NULL;
}

/* ---- which columns ---- */

static int find_lane(const struct dnn_edit *step, const struct dnn_lanes *lanes,
                     const char *name, int *out, struct dnn_err *err)
{
    const char *names[DNN_MAX_COLUMNS + 1] = {NULL};
    char hint[128];

    for (int k = 0; k < lanes->n; k++) {
        names[k] = lanes->lane[k].column.name;
        if (strcmp(names[k], name) != 0) continue;
        *out = k;
        return 0;
    }
    return dnn_fail(err, DNN_ECONFIG, "%s: there is no column \"%s\"%s", step->where,
                    name, dnn_text_hint(hint, sizeof hint, name, names));
}

int dnn_edit_place(struct dnn_edit *step, const struct dnn_lanes *lanes,
                   struct dnn_err *err)
{
    const struct dnn_edit_type *type = step->type;
    const struct dnn_list *named = step->cfg;

    dnn_free(step->before);
    step->before = dnn_alloc(sizeof *lanes);
    *step->before = *lanes;
    step->on = 0;
    if (type->takes == NULL) return 0;
    for (int k = 0; k < lanes->n && named->count == 0; k++)
        if (type->takes(&lanes->lane[k])) step->on |= 1u << k;
    for (int64_t i = 0; i < named->count; i++) {
        int k;

        DNN_TRY(find_lane(step, lanes, named->texts[i], &k, err));
        if (!type->can(&lanes->lane[k]))
            return dnn_fail(
                err, DNN_ECONFIG,
                "%s: cannot be applied to the column \"%s\" of kind %s", step->where,
                named->texts[i],
                dnn_choice_name(dnn_kind_choices, (int)lanes->lane[k].column.kind));
        step->on |= 1u << k;
    }
    if (step->on == 0)
        return dnn_fail(err, DNN_ECONFIG, "%s: there is no column to apply it to",
                        step->where);
    return 0;
}

enum dnn_edit_need dnn_edit_needs(const struct dnn_edit *step)
{
    enum dnn_edit_need need = DNN_NEED_NOTHING;

    if (step->type->needs == NULL) return need;
    for (int k = 0; k < step->before->n; k++) {
        if ((step->on >> k & 1) == 0) continue;
        enum dnn_edit_need one = step->type->needs(step->cfg, &step->before->lane[k]);
        if (one > need) need = one;
    }
    return need;
}

int dnn_edit_lanes(const struct dnn_edit *step, struct dnn_lanes *lanes,
                   struct dnn_err *err)
{
    for (int k = 0; k < lanes->n; k++)
        if ((step->on >> k & 1) != 0 && step->type->lane != NULL)
            DNN_TRY(step->type->lane(step, k, &lanes->lane[k], err));
    return 0;
}
