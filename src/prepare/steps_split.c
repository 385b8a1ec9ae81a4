/* steps_split.c - steps that determine the samples: split, balance, slice.
 *
 * Here are only their settings; splits.c, split_order.c and pipeline.c apply them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <math.h>
#include <string.h>

#define END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}

/* ---- split ---- */

const char *const dnn_prepare_parts[] = {"train", "validation", "test", NULL};

#define AT(f) offsetof(struct dnn_split_cfg, f)
static const struct dnn_field split_fields[] = {
    {"train",      DNN_F_OTHER, 0,            "0",     0,  0,        NULL,
     "fraction (such as 0.8) of the samples that are in no list, or a file with names "
     "of samples or groups, one per line",                                                            NULL},
    {"validation", DNN_F_OTHER, 0,            "0",     0,  0,        NULL, "the same",                NULL},
    {"test",       DNN_F_OTHER, 0,            "0",     0,  0,        NULL, "the same",                NULL},
    {"stratify",   DNN_F_BOOL,  AT(stratify), "false", 0,  0,        NULL,
     "stratified: same class distribution in each split",                                             NULL},
    {"group",      DNN_F_BOOL,  AT(group),    "false", 0,  0,        NULL,
     "require groups; samples of one group always stay together",                                     NULL},
    {"folds",      DNN_F_INT,   AT(folds),    "0",     0,  1000,     NULL,
     "number of cross-validation folds of the train split (or of all samples, without "
     "fractions)",                                                                                    NULL},
    {"partial",    DNN_F_BOOL,  AT(partial),  "false", 0,  0,        NULL,
     "leave out samples that are in no split; otherwise this is an error",                            NULL},
    {"again",      DNN_F_BOOL,  AT(again),    "false", 0,  0,        NULL,
     "also split samples whose files already define a split",                                         NULL},
    {"seed",       DNN_F_INT,   AT(seed),     "-1",    -1, INFINITY, NULL, "-1: the configuration's",
     NULL                                                                                                 },
    END,
};
#undef AT
static const struct dnn_field split_brief[] = {
    {"split", DNN_F_OTHER, 0, NULL, 0, 0, NULL, "an object", NULL},
    END,
};

static int read_part(const struct dnn_jobj *at, int p, struct dnn_arena *arena,
                     struct dnn_split_cfg *c, struct dnn_err *err)
{
    struct dnn_jobj part = dnn_json_sub(at, dnn_prepare_parts[p]);
    char quote[DNN_JSON_QUOTE];

    if (dnn_json_type(&part) == DNN_J_TEXT) {
        DNN_TRY(dnn_json_string(&part, &c->list[p], err));
        c->list[p] = dnn_arena_strdup(arena, c->list[p]);
        return 0;
    }
    if (dnn_json_type(&part) == DNN_J_ABSENT) return 0;
    if (dnn_json_type(&part) == DNN_J_NUMBER)
        DNN_TRY(dnn_json_real(&part, &c->share[p], err));
    if (dnn_json_type(&part) != DNN_J_NUMBER || c->share[p] < 0 || c->share[p] > 1)
        return dnn_json_fail(
            &part, err, "must be a fraction between 0 and 1, or a file name, not %s",
            dnn_json_quote(quote, &part));
    return 0;
}

static int split_read(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                      struct dnn_err *err)
{
    struct dnn_split_cfg *c = cfg;
    char quote[DNN_JSON_QUOTE];
    double sum = 0;
    bool lists = false;

    if (dnn_json_type(at) != DNN_J_OBJECT)
        return dnn_json_fail(
            at, err,
            "must be an object such as {\"train\": 0.9, \"test\": 0.1}, not %s",
            dnn_json_quote(quote, at));
    for (int p = 0; p < DNN_PREPARE_PARTS; p++) {
        DNN_TRY(read_part(at, p, arena, c, err));
        sum += c->share[p];
        lists = lists || c->list[p] != NULL;
    }
    if (sum > 1 + 1e-9)
        return dnn_json_fail(at, err, "the fractions add up to %g, more than 1", sum);
    if (sum > 0 && sum < 1 - 1e-9 && !c->partial)
        return dnn_json_fail(at, err,
                             "the fractions add up to %g, not 1; set \"partial\": true "
                             "to leave the remaining samples out",
                             sum);
    if (sum <= 0 && !lists && c->folds == 0)
        return dnn_json_fail(at, err, "needs fractions, lists or folds");
    if (c->folds == 1) return dnn_json_fail(at, err, "needs at least 2 folds");
    return 0;
}

const struct dnn_prepare_step_type dnn_prepare_step_split = {
    .name = "split",
    .help = "split the samples (before slicing) into train, validation and test by "
            "fractions, lists or folds; depends on the seed only",
    .size = sizeof(struct dnn_split_cfg),
    .fields = split_fields,
    .brief = split_brief,
    .read = split_read,
};

/* ---- balance ---- */

static const struct dnn_choice balances[] = {
    {"over",  DNN_BALANCE_OVER },
    {"under", DNN_BALANCE_UNDER},
    {NULL,    0                }
};
#define AT(f) offsetof(struct dnn_balance_cfg, f)
static const struct dnn_field balance_fields[] = {
    {"how",   DNN_F_ENUM, AT(how),   "over",  0, 0, balances,
     "over: oversample rare classes; under: undersample common classes",          NULL},
    {"split", DNN_F_TEXT, AT(split), "train", 0, 0, NULL,     "split to balance", NULL},
    END,
};
#undef AT
static const struct dnn_field balance_brief[] = {
    {"balance", DNN_F_OTHER, 0, NULL, 0, 0, NULL, "true", NULL},
    END,
};

static int balance_read(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                        struct dnn_err *err)
{
    bool yes = true;

    (void)arena;
    (void)cfg;
    if (dnn_json_type(at) == DNN_J_OBJECT) return 0;
    DNN_TRY(dnn_json_bool(at, &yes, err));
    if (!yes) return dnn_json_fail(at, err, "must be true; remove the step instead");
    return 0;
}

const struct dnn_prepare_step_type dnn_prepare_step_balance = {
    .name = "balance",
    .help = "balance the classes of a split",
    .size = sizeof(struct dnn_balance_cfg),
    .fields = balance_fields,
    .brief = balance_brief,
    .read = balance_read,
};

/* ---- slice ---- */

static const struct dnn_sub sets_sub = {.fields = dnn_slicer_fields,
                                        .size = sizeof(struct dnn_slicer),
                                        .min = 1,
                                        .max = DNN_PREPARE_SETS,
                                        .single = true};
static const struct dnn_field slice_brief[] = {
    {"slice", DNN_F_OBJECTS, offsetof(struct dnn_slice_cfg, sets), NULL, 0, 0, NULL,
     "a set of boxes, or a list of sets", &sets_sub},
    END,
};

static bool has_space(const struct dnn_column_state *state)
{
    return dnn_column_state_space(state) > 0;
}

/* Extents of a box do not depend on those of the volume, as long as it fits. */
static int slice_state(const struct dnn_prepare_step *step, int k,
                       struct dnn_column_state *state, struct dnn_err *err)
{
    const struct dnn_slice_cfg *c = step->cfg;
    const struct dnn_slicer *how = c->sets.objects;
    int space = dnn_column_state_space(state);
    struct dnn_shape first = {0}, shape;
    int64_t full[DNN_MAX_SPACE];
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];

    (void)k;
    for (int64_t i = 0; i < c->sets.count; i++) {
        struct dnn_slices slices;

        for (int d = 0; d < space; d++) {
            full[d] = state->column.shape.dim[d];
            if (full[d] == DNN_UNKNOWN)
                full[d] = d < how[i].sizes.count ? how[i].sizes.ints[d] : 1;
        }
        if (dnn_slices_make(&how[i], space, full, &slices, err) < 0)
            return dnn_prefix(err, "%s: ", step->where);
        dnn_slices_shape(&slices, dnn_column_state_channels(state), &shape);
        if (i == 0) first = shape;
        if (!dnn_shape_equal(&shape, &first))
            return dnn_fail(err, DNN_ECONFIG,
                            "%s: boxes of the first set are %s, but of set %lld %s; "
                            "all samples of a dataset must have the same shape",
                            step->where, dnn_shape_text(a, sizeof a, &first),
                            (long long)i + 1, dnn_shape_text(b, sizeof b, &shape));
    }
    state->column.shape = first;
    return 0;
}

const struct dnn_prepare_step_type dnn_prepare_step_slice = {
    .name = "slice",
    .help = "cut each sample into boxes (slices); boxes of one sample form a group",
    .size = sizeof(struct dnn_slice_cfg),
    .brief = slice_brief,
    .is_default = has_space,
    .is_allowed = has_space,
    .state = slice_state,
};
