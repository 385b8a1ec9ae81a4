/* apply.c - applies the steps of a finished dataset to other samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/apply.h"

#include "prepare/prepare_impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct applied {
    struct dnn_source base;
    struct dnn_source_type type;
    struct dnn_prepare *prepare;     /* owned: the steps that are applied          */
    struct dnn_origins origins;      /* owned: the source                          */
    struct dnn_column_states states; /* after all steps                            */
    unsigned whole; /* bit k: steps of column k need the complete sample             */
};

/* ---- columns of the record ---- */

struct recorded {
    const char *name, *type;
    int role, kind;
    int64_t classes;
};
#define AT(f) offsetof(struct recorded, f)
static const struct dnn_field recorded_fields[] = {
    {"name",    DNN_F_TEXT, AT(name),    NULL, 0, 0,        NULL,             "",   NULL},
    {"role",    DNN_F_ENUM, AT(role),    NULL, 0, 0,        dnn_role_choices, "",   NULL},
    {"kind",    DNN_F_ENUM, AT(kind),    NULL, 0, 0,        dnn_kind_choices, "",   NULL},
    {"type",    DNN_F_TEXT, AT(type),    NULL, 0, 0,        NULL,             "",   NULL},
    {"classes", DNN_F_INT,  AT(classes), NULL, 0, INFINITY, NULL,             "",   NULL},
    {NULL,      0,          0,           NULL, 0, 0,        NULL,             NULL, NULL},
};
#undef AT

static int find_state(const struct dnn_column_states *states, const char *name)
{
    for (int k = 0; k < states->n; k++)
        if (strcmp(states->state[k].column.name, name) == 0) return k;
    return -1;
}

/* The samples must be such as the dataset was made from. */
static int check_column(struct applied *a, const struct recorded *want,
                        struct dnn_err *err)
{
    int k = find_state(&a->origins.states, want->name);
    double scale = a->prepare->scale;
    enum dnn_dtype type;

    if (k < 0 && want->role != DNN_ROLE_INPUT) return 0;
    if (k < 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "the dataset was made from samples with an input \"%s\", which "
                        "these samples do not have",
                        want->name);
    struct dnn_column *c = &a->origins.states.state[k].column;
    DNN_TRY(dnn_dtype_find(want->type, &type, err));
    if ((int)c->kind != want->kind)
        return dnn_fail(
            err, DNN_ECONFIG,
            "the column \"%s\" of these samples is of kind %s; those of the "
            "dataset were of kind %s",
            c->name, dnn_choice_name(dnn_kind_choices, (int)c->kind),
            dnn_choice_name(dnn_kind_choices, want->kind));
    if (dnn_origins_scale(c->kind, c->type, scale) !=
        dnn_origins_scale(c->kind, type, scale))
        return dnn_fail(err, DNN_ECONFIG,
                        "the column \"%s\" of these samples is %s and read as %g times "
                        "its elements; that of the dataset was %s and read as %g times "
                        "its elements",
                        c->name, dnn_dtype_name(c->type),
                        dnn_origins_scale(c->kind, c->type, scale), want->type,
                        dnn_origins_scale(c->kind, type, scale));
    if (c->classes > 0 && want->classes > 0 && c->classes != want->classes)
        return dnn_fail(err, DNN_ECONFIG,
                        "the column \"%s\" of these samples has %" PRId64
                        " classes; that of the dataset had %" PRId64,
                        c->name, c->classes, want->classes);
    if (c->classes == 0) c->classes = want->classes;
    return 0;
}

static int check_columns(struct applied *a, const struct dnn_jobj *list,
                         struct dnn_err *err)
{
    for (struct dnn_jobj it = dnn_json_first(list); it.val != NULL;
         it = dnn_json_next(&it)) {
        struct recorded column = {0};

        DNN_TRY(dnn_field_fill(&it, recorded_fields, NULL, &column, err));
        DNN_TRY(check_column(a, &column, err));
    }
    return 0;
}

/* ---- steps ---- */

/* Leaves only those named columns that the samples have; false: the step has none. */
static bool keep_columns(const struct dnn_prepare_step *step,
                         const struct dnn_column_states *states,
                         struct dnn_arena *arena)
{
    struct dnn_list *named = step->cfg;
    const char **kept =
        dnn_arena_alloc(arena, (size_t)(named->count + 1) * sizeof *kept);
    int64_t n = 0;
    bool some = false;

    for (int k = 0; k < states->n && named->count == 0; k++)
        some |= step->type->is_default(&states->state[k]);
    for (int64_t i = 0; i < named->count; i++)
        if (find_state(states, named->texts[i]) >= 0) kept[n++] = named->texts[i];
    named->texts = kept;
    named->count = n;
    return some || n > 0;
}

static int read_numbers(const struct dnn_jobj *at, const char *key, int *n, double *out,
                        struct dnn_err *err)
{
    struct dnn_jobj list = dnn_json_sub(at, key);

    *n = 0;
    for (struct dnn_jobj it = dnn_json_first(&list); it.val != NULL;
         it = dnn_json_next(&it)) {
        if (*n == DNN_STATS_CHANNELS)
            return dnn_json_fail(&list, err, "at most %d numbers are possible",
                                 DNN_STATS_CHANNELS);
        DNN_TRY(dnn_json_real(&it, &out[(*n)++], err));
    }
    if (*n == 0) return dnn_json_fail(at, err, "\"%s\" must be a list of numbers", key);
    return 0;
}

/* What step number i of the record took from the statistics of a column. */
static int read_fit(const struct dnn_jobj *top, int64_t i,
                    const struct dnn_prepare_step *step, const char *column,
                    struct dnn_step_fit *out, struct dnn_err *err)
{
    struct dnn_jobj list = dnn_json_sub(top, "fitted");
    const char *const *name = step->type->fit_name;

    for (struct dnn_jobj it = dnn_json_first(&list); it.val != NULL;
         it = dnn_json_next(&it)) {
        struct dnn_jobj number = dnn_json_sub(&it, "step"),
                        of = dnn_json_sub(&it, "column");
        const char *text;
        int64_t at;
        int n;

        DNN_TRY(dnn_json_int(&number, &at, err));
        DNN_TRY(dnn_json_string(&of, &text, err));
        if (at != i || strcmp(text, column) != 0) continue;
        DNN_TRY(read_numbers(&it, name[0], &out->n, out->first, err));
        if (name[1] == NULL) return 0;
        DNN_TRY(read_numbers(&it, name[1], &n, out->second, err));
        if (n == out->n) return 0;
        return dnn_json_fail(&it, err, "%s and %s have different lengths", name[0],
                             name[1]);
    }
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: the dataset's record has no statistics of the column \"%s\"; "
                    "it cannot be applied to other samples",
                    step->where, column);
}

static int fit_column(struct applied *a, const struct dnn_jobj *top, int64_t i,
                      struct dnn_prepare_step *step, int k, struct dnn_err *err)
{
    const struct dnn_column_state *state = &a->states.state[k];
    int64_t channels = dnn_column_state_channels(state);
    struct dnn_step_fit *fit = &step->fit[k];

    DNN_TRY(read_fit(top, i, step, state->column.name, fit, err));
    if (fit->n == 1 || channels == fit->n || channels == DNN_UNKNOWN) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: the column \"%s\" of these samples has %" PRId64
                    " channels; that of the dataset had %d",
                    step->where, state->column.name, channels, fit->n);
}

static int plan_step(struct applied *a, const struct dnn_jobj *top, int64_t i,
                     struct dnn_prepare_step *step, struct dnn_err *err)
{
    DNN_TRY(dnn_prepare_step_select(step, &a->states, err));
    if (dnn_prepare_step_needs(step) != DNN_NEED_NOTHING)
        step->fit = dnn_alloc((size_t)a->states.n * sizeof *step->fit);
    for (int k = 0; k < a->states.n; k++)
        if (dnn_prepare_step_needs_for(step, k) != DNN_NEED_NOTHING)
            DNN_TRY(fit_column(a, top, i, step, k, err));
    return dnn_prepare_step_states(step, &a->states, err);
}

static bool is_pointwise(const struct dnn_prepare_step *step)
{
    return step->type->is_pointwise != NULL && step->type->is_pointwise(step->cfg);
}

/* Plans the steps and removes those that are left out. */
static int plan_steps(struct applied *a, const struct dnn_jobj *top,
                      struct dnn_err *err)
{
    struct dnn_prepare *p = a->prepare;
    struct dnn_arena *arena = dnn_json_arena(p->file);
    int n = p->nsteps;
    bool cut = false;

    a->states = a->origins.states;
    p->nsteps = 0;
    for (int i = 0; i < n; i++) {
        struct dnn_prepare_step *step = &p->step[p->nsteps];
        const struct dnn_prepare_step_type *type = p->step[i].type;

        *step = p->step[i];
        cut |= type == &dnn_prepare_step_slice;
        if (type->apply == NULL || !keep_columns(step, &a->states, arena)) continue;
        if (cut && !is_pointwise(step))
            return dnn_fail(
                err, DNN_ECONFIG,
                "%s: the dataset's samples are slices of volumes; this step was "
                "applied to each slice and cannot be applied to whole volumes",
                step->where);
        p->nsteps++;
        DNN_TRY(plan_step(a, top, i, step, err));
        if (!is_pointwise(step)) a->whole |= step->columns;
    }
    p->slice = -1;
    return 0;
}

/* ---- samples ---- */

/* Whether values differ from elements.  Integers of an image are always converted, so
 * that nobody scales them again. */
static bool becomes_values(const struct dnn_column_state *state)
{
    enum dnn_dtype t = state->column.type;
    bool real = t == DNN_F32 || t == DNN_F64 || t == DNN_F16 || t == DNN_BF16;

    return state->nscale > 0 || (state->column.kind == DNN_KIND_IMAGE && !real);
}

/* Small integers become values as a reader of the dataset computes them, in f32. */
static int make_values(const struct dnn_column_state *state, struct dnn_array *array,
                       struct dnn_err *err)
{
    int n = state->nscale;
    bool narrow = n > 0 && dnn_dtype_size(array->type) <= 2;

    if (!becomes_values(state)) return 0;
    if (!narrow) return dnn_column_state_values(state, array, err);
    DNN_TRY(dnn_array_convert(array, DNN_F32, false, err));

    float *x = array->data;
    int64_t count = dnn_array_count(array);
    for (int64_t i = 0; i < count; i++) {
        int c = n == 1 ? 0 : (int)(i % n);

        x[i] = x[i] * (float)state->scale[c] + (float)state->offset[c];
    }
    return 0;
}

static int check_channels(const struct dnn_column_state *state,
                          const struct dnn_array *array, struct dnn_err *err)
{
    const struct dnn_shape *s = &array->shape;
    int64_t channels = s->ndim == 0 ? 1 : s->dim[s->ndim - 1];

    if (state->nscale <= 1 || channels == state->nscale) return 0;
    return dnn_fail(err, DNN_EDATA, "%s: has %" PRId64 " channels, expected %d",
                    state->column.name, channels, state->nscale);
}

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    const struct applied *a = (const struct applied *)source;
    struct dnn_pipeline pipeline;

    dnn_pipeline_start(&pipeline, a->prepare, &a->origins, a->prepare->nsteps);
    pipeline.whole = *out; /* its memory is used again */
    int rc = dnn_pipeline_load(&pipeline, i, err);
    for (int k = 0; rc == 0 && k < a->states.n; k++) {
        rc = check_channels(&a->states.state[k], &pipeline.whole.col[k], err);
        if (rc == 0) rc = make_values(&a->states.state[k], &pipeline.whole.col[k], err);
    }
    *out = pipeline.whole;
    memset(&pipeline.whole, 0, sizeof pipeline.whole);
    dnn_pipeline_stop(&pipeline);
    return rc;
}

static const struct dnn_source *from_of(const struct dnn_source *source)
{
    return ((const struct applied *)source)->origins.at[0].source;
}

/* ---- parts of samples ---- */

/* Follows a column of a sample through the steps, without reading it.  Those that act
 * on each point alone keep its extents. */
static int follow(const struct applied *a, int64_t i, int c,
                  struct dnn_column_state *state, struct dnn_err *err)
{
    const struct dnn_source *from = a->origins.at[0].source;
    const struct dnn_prepare *p = a->prepare;

    *state = a->origins.states.state[c];
    int rc = dnn_source_try_shape(from, i, c, &state->column.shape, err);
    if (rc == 0 && (a->whole >> c & 1) != 0)
        rc = dnn_source_position(from, i, c, &state->position, err);
    for (int k = 0; k < p->nsteps && rc == 0; k++)
        if ((p->step[k].columns >> c & 1) != 0 && !is_pointwise(&p->step[k]))
            rc = p->step[k].type->state(&p->step[k], c, state, err);
    return rc;
}

static int shape_of(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_shape *out, struct dnn_err *err)
{
    struct dnn_column_state state;
    int rc = follow((const struct applied *)source, i, c, &state, err);

    if (rc != 0) return rc;
    *out = source->col[c].shape;
    for (int d = 0; d < out->ndim && d < state.column.shape.ndim; d++)
        if (out->dim[d] == DNN_UNKNOWN) out->dim[d] = state.column.shape.dim[d];
    return dnn_shape_known(out) ? 0 : DNN_SOURCE_WHOLE;
}

static int position(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_position *out, struct dnn_err *err)
{
    const struct applied *a = (const struct applied *)source;
    struct dnn_column_state state;

    if ((a->whole >> c & 1) == 0)
        return dnn_source_position(from_of(source), i, c, out, err);
    int rc = follow(a, i, c, &state, err);
    *out = rc == 0 ? state.position : (struct dnn_position){0};
    return rc < 0 ? rc : 0;
}

/* The steps on a box of column c. */
static int prepare_box(const struct applied *a, int64_t i, int c,
                       struct dnn_array *array, struct dnn_err *err)
{
    const struct dnn_prepare *p = a->prepare;
    struct dnn_array other = {0};

    int rc = dnn_origins_check(&a->origins, p->allow_nan, i, c, array, err);
    for (int k = 0; k < p->nsteps && rc == 0; k++)
        if ((p->step[k].columns >> c & 1) != 0)
            rc = p->step[k].type->apply(&p->step[k], c, array, &other, err);
    if (rc == 0) rc = check_channels(&a->states.state[c], array, err);
    if (rc == 0) rc = make_values(&a->states.state[c], array, err);
    dnn_array_free(&other);
    return rc;
}

/* Reads all channels of the points, because steps can make other channels of them. */
static int read_box(const struct dnn_source *source, int64_t i, int c,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    const struct applied *a = (const struct applied *)source;
    int64_t first[DNN_MAX_DIMS] = {0};
    int space = dnn_column_state_space(&a->states.state[c]);
    struct dnn_shape shape;
    struct dnn_err why = {0};

    if ((a->whole >> c & 1) != 0) return DNN_SOURCE_WHOLE;
    int rc = dnn_source_try_shape(from_of(source), i, c, &shape, err);
    if (rc != 0) return rc;
    memcpy(first, start, (size_t)space * sizeof *start);
    memcpy(shape.dim, extent, (size_t)space * sizeof *extent);
    rc = dnn_source_try_box(from_of(source), i, c, first, shape.dim, out, err);
    if (rc != 0) return rc;
    /* A complete read finds the place of an invalid value in the sample. */
    if (prepare_box(a, i, c, out, &why) < 0) return DNN_SOURCE_WHOLE;
    bool all = out->shape.ndim == source->col[c].shape.ndim;
    for (int d = 0; d < out->shape.ndim && all; d++)
        all = out->shape.dim[d] == extent[d];
    return all ? 0 : DNN_SOURCE_WHOLE;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    dnn_source_label(from_of(source), i, out);
}

static void group(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    from_of(source)->type->group(from_of(source), i, out);
}

static void close_applied(struct dnn_source *source)
{
    struct applied *a = (struct applied *)source;

    dnn_prepare_free(a->prepare);
    dnn_origins_close(&a->origins);
    dnn_free(a);
}

/* ---- opening ---- */

static int need_part(const struct dnn_jobj *top, const char *key, enum dnn_jtype type,
                     struct dnn_jobj *out, struct dnn_err *err)
{
    *out = dnn_json_sub(top, key);
    if (dnn_json_type(out) == type) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "the dataset's record of its preparation has no \"%s\"; it was not "
                    "made by this version of dnn-prepare: prepare it again",
                    key);
}

static int read_record(struct dnn_prepare *p, const char *record, size_t len,
                       struct dnn_err *err)
{
    struct dnn_jobj config;

    DNN_TRY(dnn_json_text("preparation of the dataset", record, len, &p->file, err));
    struct dnn_jobj top = dnn_json_top(p->file);
    struct dnn_arena *arena = dnn_json_arena(p->file);
    DNN_TRY(need_part(&top, "config", DNN_J_OBJECT, &config, err));
    DNN_TRY(dnn_field_fill(&config, dnn_prepare_fields, arena, p, err));
    return dnn_prepare_read_steps(&config, arena, p, err);
}

static int plan(struct applied *a, struct dnn_err *err)
{
    struct dnn_jobj top = dnn_json_top(a->prepare->file), columns;

    DNN_TRY(need_part(&top, "columns", DNN_J_LIST, &columns, err));
    DNN_TRY(check_columns(a, &columns, err));
    return plan_steps(a, &top, err);
}

int dnn_prepare_apply(const char *record, size_t len, struct dnn_source *from,
                      struct dnn_source **out, struct dnn_err *err)
{
    struct applied *a = dnn_alloc(sizeof *a);

    a->type =
        (struct dnn_source_type){.name = from->type->name,
                                 .read = read_sample,
                                 .label = label,
                                 .group = from->type->group == NULL ? NULL : group,
                                 .close = close_applied,
                                 .shape = shape_of,
                                 .read_box = read_box,
                                 .position = position};
    a->base = dnn_source_like(from, &a->type);
    a->prepare = dnn_alloc(sizeof *a->prepare);
    int rc = read_record(a->prepare, record, len, err);
    dnn_origins_wrap(from, a->prepare->scale, &a->origins);
    if (rc == 0) rc = plan(a, err);
    if (rc < 0) {
        close_applied(&a->base);
        return rc;
    }
    for (int k = 0; k < a->states.n; k++) {
        a->base.col[k] = a->states.state[k].column;
        if (becomes_values(&a->states.state[k])) a->base.col[k].type = DNN_F32;
    }
    *out = &a->base;
    return 0;
}
