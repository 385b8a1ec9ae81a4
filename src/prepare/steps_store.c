/* steps_store.c - the step "type": dtype on disk.
 *
 * Real values can be stored as small integers with a scale and an offset, which the
 * dataset contains; a reader converts them back.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <math.h>
#include <string.h>

struct store {
    struct dnn_list columns, range;
    const char *as;
    enum dnn_dtype type;
};
#define AT(f) offsetof(struct store, f)
static const struct dnn_sub range_sub = {.min = 0, .max = 2};
static const struct dnn_field store_fields[] = {
    {"as",      DNN_F_TEXT,  AT(as),      "f32", 0, 0, NULL,
     "u8, i8, u16, i16, f16, bf16, f32 or f64; class numbers also u32, i32, i64", NULL      },
    {"range",   DNN_F_REALS, AT(range),   "[]",  0, 0, NULL,
     "integer types: values mapped to the lowest and highest integer, clipped beyond; "
     "empty: minimum and maximum of the data",                                    &range_sub},
    {"columns", DNN_F_TEXTS, AT(columns), "[]",  0, 0, NULL,
     "columns to apply it to; empty: the inputs",                                 NULL      },
    {NULL,      0,           0,           NULL,  0, 0, NULL, NULL,                NULL      },
};
static const struct dnn_field store_brief[] = {
    {"type", DNN_F_TEXT, AT(as), NULL, 0, 0, NULL, "as", NULL},
    {NULL,   0,          0,      NULL, 0, 0, NULL, NULL, NULL},
};
#undef AT

static bool is_class(const struct dnn_column_state *state)
{
    return state->column.kind == DNN_KIND_LABEL || state->column.kind == DNN_KIND_MASK;
}

static bool is_input(const struct dnn_column_state *state)
{
    return state->column.role == DNN_ROLE_INPUT && !is_class(state);
}

static bool any(const struct dnn_column_state *state)
{
    (void)state;
    return true;
}

static bool is_real(enum dnn_dtype t)
{
    return t == DNN_F16 || t == DNN_BF16 || t == DNN_F32 || t == DNN_F64;
}

/* The range of integers of up to 16 bits, which can represent real values. */
static bool range_of(enum dnn_dtype t, double *low, double *high)
{
    switch (t) {
    case DNN_U8:
        *low = 0, *high = 255;
        return true;
    case DNN_I8:
        *low = -128, *high = 127;
        return true;
    case DNN_U16:
        *low = 0, *high = 65535;
        return true;
    case DNN_I16:
        *low = -32768, *high = 32767;
        return true;
    default:
        return false;
    }
}

static int store_read(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                      struct dnn_err *err)
{
    struct store *c = cfg;
    struct dnn_err why = {0};

    (void)arena;
    if (dnn_dtype_find(c->as, &c->type, &why) < 0)
        return dnn_json_fail(at, err, "%s", why.text);
    if (c->type == DNN_BOOL || c->type == DNN_U64)
        return dnn_json_fail(at, err, "datasets cannot store %s", c->as);
    if (c->range.count == 1 ||
        (c->range.count == 2 && !(c->range.reals[0] < c->range.reals[1])))
        return dnn_json_fail(at, err, "range must be two numbers, the lower one first");
    return 0;
}

/* Integers that fit into the new type are kept, with their scale. */
static bool fits(const struct store *c, const struct dnn_column_state *state)
{
    double low, high, to_low, to_high;

    if (c->range.count > 0) return false;
    return range_of(state->column.type, &low, &high) &&
           range_of(c->type, &to_low, &to_high) && low >= to_low && high <= to_high;
}

static enum dnn_prepare_step_need store_needs(const void *cfg,
                                              const struct dnn_column_state *state)
{
    const struct store *c = cfg;

    if (is_class(state) || is_real(c->type) || fits(c, state) || c->range.count > 0)
        return DNN_NEED_NOTHING;
    return DNN_NEED_ALL;
}

/* Scale and offset that map [low, high] to the range of the integers. */
static void map_range(const struct store *c, double low, double high, double *scale,
                      double *offset)
{
    double first = 0, last = 1;

    range_of(c->type, &first, &last);
    *scale = high > low ? (high - low) / (last - first) : 1;
    *offset = high > low ? low - first * *scale : low;
}

static int store_fit(const struct dnn_prepare_step *step, int k,
                     const struct dnn_stats *s, struct dnn_step_fit *out,
                     struct dnn_err *err)
{
    const struct store *c = step->cfg;
    bool each = s->share <= 1;
    double low = s->min[0], high = s->max[0];

    (void)k;
    (void)err;
    for (int i = 0; i < s->nchannels; i++) {
        if (each) map_range(c, s->min[i], s->max[i], &out->first[i], &out->second[i]);
        if (s->min[i] < low) low = s->min[i];
        if (s->max[i] > high) high = s->max[i];
    }
    out->n = each ? s->nchannels : 1;
    if (!each) map_range(c, low, high, out->first, out->second);
    return 0;
}

static int scales(const struct dnn_prepare_step *step, int k, double *scale,
                  double *offset)
{
    const struct store *c = step->cfg;

    if (c->range.count > 0) {
        map_range(c, c->range.reals[0], c->range.reals[1], scale, offset);
        return 1;
    }
    const struct dnn_step_fit *fit = &step->fit[k];
    memcpy(scale, fit->first, (size_t)fit->n * sizeof *scale);
    memcpy(offset, fit->second, (size_t)fit->n * sizeof *offset);
    return fit->n;
}

static int store_state(const struct dnn_prepare_step *step, int k,
                       struct dnn_column_state *state, struct dnn_err *err)
{
    const struct store *c = step->cfg;
    double low, high;

    if (is_class(state) || fits(c, state)) {
        if (is_class(state) && is_real(c->type))
            return dnn_fail(
                err, DNN_ECONFIG,
                "%s: class numbers (column \"%s\") must be stored as integers",
                step->where, state->column.name);
        state->column.type = c->type;
        return 0;
    }
    if (is_real(c->type)) {
        dnn_column_state_become_values(state);
        state->column.type = c->type;
        return 0;
    }
    if (!range_of(c->type, &low, &high))
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: values (column \"%s\") must be stored as u8, i8, u16, "
                        "i16, f16, bf16, f32 or f64, not as %s",
                        step->where, state->column.name, c->as);
    state->column.type = c->type;
    state->nscale = 0;
    if (c->range.count > 0 || step->fit != NULL)
        state->nscale = scales(step, k, state->scale, state->offset);
    return 0;
}

static int to_integers(const struct dnn_prepare_step *step, int k,
                       struct dnn_array *array, struct dnn_err *err)
{
    double scale[DNN_STATS_CHANNELS], offset[DNN_STATS_CHANNELS];
    int n = scales(step, k, scale, offset);
    float *x = array->data;
    int64_t count = dnn_array_count(array);

    for (int64_t i = 0; i < count; i++) {
        int64_t ch = n == 1 ? 0 : i % n;

        if (isnan(x[i]))
            return dnn_fail(err, DNN_EDATA,
                            "contains NaN, which integers cannot represent");
        x[i] = (float)(((double)x[i] - offset[ch]) / scale[ch]);
    }
    return 0;
}

/* Finite values must not become infinite. */
static int check_range(const struct dnn_array *before, enum dnn_dtype as,
                       struct dnn_err *err)
{
    const float *x = before->data;
    int64_t n = dnn_array_count(before);

    if (as != DNN_F16) return 0;
    for (int64_t i = 0; i < n; i++)
        if (fabsf(x[i]) >= 65520.0f && isfinite(x[i]))
            return dnn_fail(err, DNN_EDATA,
                            "%g is too large for f16 (at most 65504); normalise first",
                            (double)x[i]);
    return 0;
}

static int store_apply(const struct dnn_prepare_step *step, int k,
                       struct dnn_array *array, struct dnn_array *other,
                       struct dnn_err *err)
{
    const struct store *c = step->cfg;
    const struct dnn_column_state *state = &step->before->state[k];

    (void)other;
    if (is_class(state) || fits(c, state))
        return dnn_array_convert(array, c->type, true, err);
    if (c->type == DNN_F64 && state->column.type == DNN_F64 && state->nscale == 0)
        return 0;
    DNN_TRY(dnn_column_state_values(state, array, err));
    if (!is_real(c->type)) DNN_TRY(to_integers(step, k, array, err));
    DNN_TRY(check_range(array, c->type, err));
    return dnn_array_convert(array, c->type, false, err);
}

const struct dnn_prepare_step_type dnn_prepare_step_store = {
    .name = "type",
    .help = "dtype on disk; integers get a scale and an offset",
    .size = sizeof(struct store),
    .fields = store_fields,
    .brief = store_brief,
    .read = store_read,
    .is_default = is_input,
    .is_allowed = any,
    .needs = store_needs,
    .fit = store_fit,
    .fit_name = {"scale", "offset"},
    .is_pointwise = dnn_prepare_step_pointwise,
    .state = store_state,
    .apply = store_apply,
};
