/* steps_class.c - steps on class numbers: remap, one_hot.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"
#include "transform/transform.h"

#include <inttypes.h>
#include <string.h>

static bool is_class(const struct dnn_column_state *state)
{
    return state->column.kind == DNN_KIND_LABEL || state->column.kind == DNN_KIND_MASK;
}

#define COLUMNS(at)                                                                    \
    {"columns", DNN_F_TEXTS,                                                           \
     at,        "[]",                                                                  \
     0,         0,                                                                     \
     NULL,      "columns to apply it to; empty: all labels and masks",                 \
     NULL}
#define END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}

/* ---- remap ---- */

/* Class numbers beyond the table always become "other". */
enum { TABLE = 65536 };

struct pair {
    const char *old;
    int64_t new;
};

struct remap {
    struct dnn_list columns, table, names;
    int64_t other, npairs;
    struct pair *pair;
    struct dnn_arena *arena;
    int64_t *made[DNN_MAX_COLUMNS], nmade[DNN_MAX_COLUMNS]; /* table of each column */
};
#define AT(f) offsetof(struct remap, f)
static const struct dnn_field remap_fields[] = {
    {"table", DNN_F_INTS,  AT(table), "[]", -1, DNN_STATS_CLASSES - 1, NULL,
     "new class numbers of classes 0, 1, 2, ...; -1: must not occur",                                    NULL},
    {"map",   DNN_F_OTHER, 0,         "{}", 0,  0,                     NULL,
     "instead of a table: {\"old\": new, ...}; old is a class number or name",                           NULL},
    {"other", DNN_F_INT,   AT(other), "-1", -1, DNN_STATS_CLASSES - 1, NULL,
     "new number of all other classes; -1: must not occur",                                              NULL},
    {"names", DNN_F_TEXTS, AT(names), "[]", 0,  0,                     NULL, "names of the new classes",
     NULL                                                                                                    },
    COLUMNS(AT(columns)),
    END,
};
static const struct dnn_field remap_brief[] = {
    {"remap", DNN_F_INTS, AT(table), NULL, -1, DNN_STATS_CLASSES - 1, NULL, "table",
     NULL},
    END,
};
#undef AT

static int read_map(const struct dnn_jobj *at, struct remap *c, struct dnn_arena *arena,
                    struct dnn_err *err)
{
    struct dnn_jobj map = dnn_json_sub(at, "map");
    char quote[DNN_JSON_QUOTE];

    if (dnn_json_type(&map) == DNN_J_ABSENT) return 0;
    if (dnn_json_type(&map) != DNN_J_OBJECT)
        return dnn_json_fail(&map, err, "must be an object {\"old\": new, ...}, not %s",
                             dnn_json_quote(quote, &map));
    c->pair = dnn_arena_alloc(arena, (dnn_json_count(&map) + 1) * sizeof *c->pair);
    for (struct dnn_jobj it = dnn_json_first(&map); it.val != NULL;
         it = dnn_json_next(&it)) {
        struct pair *p = &c->pair[c->npairs++];

        p->old = dnn_arena_strdup(arena, it.name);
        DNN_TRY(dnn_json_int(&it, &p->new, err));
        if (p->new < 0 || p->new >= DNN_STATS_CLASSES)
            return dnn_json_fail(&it, err, "must be between 0 and %d, not %s",
                                 DNN_STATS_CLASSES - 1, dnn_json_quote(quote, &it));
    }
    return 0;
}

static int remap_read(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                      struct dnn_err *err)
{
    struct remap *c = cfg;

    c->arena = arena;
    DNN_TRY(read_map(at, c, arena, err));
    if ((c->table.count > 0) == (c->npairs > 0))
        return dnn_json_fail(at, err, "give either a table or a map");
    return 0;
}

/* The class number that a key of the map stands for: a name or a number. */
static int find_old(const struct dnn_prepare_step *step,
                    const struct dnn_column *column, const char *old, int64_t *out,
                    struct dnn_err *err)
{
    long long number;
    char hint[128] = "";

    for (int64_t i = 0; column->class_name != NULL && i < column->classes; i++)
        if (strcmp(column->class_name[i], old) == 0) {
            *out = i;
            return 0;
        }
    if (dnn_text_int(old, &number) && number >= 0 && number < TABLE) {
        *out = number;
        return 0;
    }
    if (column->class_name != NULL) {
        const char **names = dnn_alloc(((size_t)column->classes + 1) * sizeof *names);

        memcpy(names, column->class_name, (size_t)column->classes * sizeof *names);
        dnn_text_hint(hint, sizeof hint, old, names);
        dnn_free(names);
    }
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: \"%s\" is neither a class number nor a class of the column "
                    "\"%s\"%s",
                    step->where, old, column->name, hint);
}

static int make_table(const struct dnn_prepare_step *step, int k, struct dnn_err *err)
{
    struct remap *c = step->cfg;
    int64_t n = c->other >= 0 || c->npairs > 0 ? TABLE : c->table.count;
    int64_t *table = dnn_arena_alloc(c->arena, (size_t)n * sizeof *table);

    for (int64_t i = 0; i < n; i++)
        table[i] =
            i < c->table.count && c->table.ints[i] >= 0 ? c->table.ints[i] : c->other;
    for (int64_t i = 0; i < c->npairs; i++) {
        int64_t old = 0;

        DNN_TRY(
            find_old(step, &step->before->state[k].column, c->pair[i].old, &old, err));
        table[old] = c->pair[i].new;
    }
    c->made[k] = table;
    c->nmade[k] = n;
    return 0;
}

static int remap_state(const struct dnn_prepare_step *step, int k,
                       struct dnn_column_state *state, struct dnn_err *err)
{
    struct remap *c = step->cfg;
    int64_t classes = c->other + 1;

    DNN_TRY(make_table(step, k, err));
    for (int64_t i = 0; i < c->table.count; i++)
        if (c->table.ints[i] >= classes) classes = c->table.ints[i] + 1;
    for (int64_t i = 0; i < c->npairs; i++)
        if (c->pair[i].new >= classes) classes = c->pair[i].new + 1;
    if (c->names.count > 0 && c->names.count < classes)
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: %" PRId64 " names given for %" PRId64 " classes",
                        step->where, c->names.count, classes);
    state->column.classes = c->names.count > 0 ? c->names.count : classes;
    state->column.class_name = c->names.count > 0 ? c->names.texts : NULL;
    return 0;
}

static int remap_apply(const struct dnn_prepare_step *step, int k,
                       struct dnn_array *array, struct dnn_array *other,
                       struct dnn_err *err)
{
    const struct remap *c = step->cfg;

    (void)other;
    return dnn_remap(array, c->made[k], c->nmade[k], err);
}

const struct dnn_prepare_step_type dnn_prepare_step_remap = {
    .name = "remap",
    .help = "change class numbers",
    .size = sizeof(struct remap),
    .fields = remap_fields,
    .brief = remap_brief,
    .read = remap_read,
    .is_default = is_class,
    .is_allowed = is_class,
    .is_pointwise = dnn_prepare_step_pointwise,
    .state = remap_state,
    .apply = remap_apply,
};

/* ---- one_hot ---- */

struct one_hot {
    struct dnn_list columns;
    int64_t classes;
};
#define AT(f) offsetof(struct one_hot, f)
static const struct dnn_field one_hot_fields[] = {
    {"classes", DNN_F_INT, AT(classes), "0", 0, DNN_STATS_CLASSES, NULL,
     "number of classes; 0: as the column says, or as found in the data", NULL},
    COLUMNS(AT(columns)),
    END,
};
static const struct dnn_field one_hot_brief[] = {
    {"one_hot", DNN_F_OTHER, 0, NULL, 0, 0, NULL, "true, or the number of classes",
     NULL},
    END,
};
#undef AT

static int one_hot_read(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                        struct dnn_err *err)
{
    struct one_hot *c = cfg;
    bool yes = true;

    (void)arena;
    if (dnn_json_type(at) == DNN_J_OBJECT) return 0;
    if (dnn_json_type(at) != DNN_J_BOOL) {
        DNN_TRY(dnn_json_int(at, &c->classes, err));
        yes = c->classes > 0 && c->classes <= DNN_STATS_CLASSES;
    } else {
        DNN_TRY(dnn_json_bool(at, &yes, err));
    }
    if (!yes)
        return dnn_json_fail(at, err,
                             "must be true or a number of classes from 1 to %d",
                             DNN_STATS_CLASSES);
    return 0;
}

static enum dnn_prepare_step_need one_hot_needs(const void *cfg,
                                                const struct dnn_column_state *state)
{
    const struct one_hot *c = cfg;

    return c->classes > 0 || state->column.classes > 0 ? DNN_NEED_NOTHING
                                                       : DNN_NEED_ALL;
}

static int64_t classes_of(const struct dnn_prepare_step *step, int k)
{
    const struct one_hot *c = step->cfg;
    int64_t known = step->before->state[k].column.classes;

    if (c->classes > 0) return c->classes;
    if (known > 0) return known;
    return step->fit == NULL ? DNN_UNKNOWN : (int64_t)step->fit[k].first[0];
}

/* The highest class that occurs. */
static int one_hot_fit(const struct dnn_prepare_step *step, int k,
                       const struct dnn_stats *stats, struct dnn_step_fit *out,
                       struct dnn_err *err)
{
    int n = DNN_STATS_CLASSES;

    (void)step;
    (void)k;
    (void)err;
    while (n > 1 && stats->class_count[n - 1] == 0)
        n--;
    out->n = 1;
    out->first[0] = n;
    return 0;
}

static int one_hot_state(const struct dnn_prepare_step *step, int k,
                         struct dnn_column_state *state, struct dnn_err *err)
{
    struct dnn_shape *shape = &state->column.shape;
    bool label = state->column.kind == DNN_KIND_LABEL;

    (void)err;
    state->column.kind = label ? DNN_KIND_VALUES : DNN_KIND_IMAGE;
    if (label) shape->ndim = 1;
    shape->dim[shape->ndim - 1] = classes_of(step, k);
    state->column.type = DNN_F32;
    state->column.classes = 0;
    state->column.class_name = NULL;
    return 0;
}

static int one_hot_apply(const struct dnn_prepare_step *step, int k,
                         struct dnn_array *array, struct dnn_array *other,
                         struct dnn_err *err)
{
    DNN_TRY(dnn_one_hot(array, classes_of(step, k), other, err));
    dnn_array_swap(array, other);
    return 0;
}

const struct dnn_prepare_step_type dnn_prepare_step_one_hot = {
    .name = "one_hot",
    .help = "one-hot encode class numbers",
    .size = sizeof(struct one_hot),
    .fields = one_hot_fields,
    .brief = one_hot_brief,
    .read = one_hot_read,
    .is_default = is_class,
    .is_allowed = is_class,
    .needs = one_hot_needs,
    .fit = one_hot_fit,
    .fit_name = {"classes"},
    .is_pointwise = dnn_prepare_step_pointwise,
    .state = one_hot_state,
    .apply = one_hot_apply,
};
