/* steps_value.c - steps that change values: clip, normalise.
 *
 * Small integers are normalised by changing only their scale and offset.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"
#include "transform/transform.h"

#include <math.h>

static bool is_measured(const struct dnn_column_state *state)
{
    return state->column.kind == DNN_KIND_IMAGE ||
           state->column.kind == DNN_KIND_VALUES;
}

static bool is_input(const struct dnn_column_state *state)
{
    return state->column.role == DNN_ROLE_INPUT && is_measured(state);
}

#define COLUMNS(at)                                                                    \
    {"columns", DNN_F_TEXTS, at,   "[]",                                               \
     0,         0,           NULL, "columns to apply it to; empty: the inputs",        \
     NULL}
#define END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}

/* ---- clip ---- */

struct clip {
    struct dnn_list columns, range;
};
#define AT(f) offsetof(struct clip, f)
static const struct dnn_sub two = {.min = 0, .max = 2};
static const struct dnn_field clip_fields[] = {
    {"range", DNN_F_REALS, AT(range), "[]", 0, 0, NULL, "lowest and highest value",
     &two},
    COLUMNS(AT(columns)),
    END,
};
static const struct dnn_field clip_brief[] = {
    {"clip", DNN_F_REALS, AT(range), NULL, 0, 0, NULL, "range", &two},
    END,
};
#undef AT

static int clip_read(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                     struct dnn_err *err)
{
    const struct clip *c = cfg;

    (void)arena;
    if (c->range.count != 2 || !(c->range.reals[0] < c->range.reals[1]))
        return dnn_json_fail(at, err, "must be two numbers, the lower one first");
    return 0;
}

static int clip_state(const struct dnn_prepare_step *step, int k,
                      struct dnn_column_state *state, struct dnn_err *err)
{
    (void)step;
    (void)k;
    (void)err;
    if (state->nscale > 0) dnn_column_state_become_values(state);
    return 0;
}

static int clip_apply(const struct dnn_prepare_step *step, int k,
                      struct dnn_array *array, struct dnn_array *other,
                      struct dnn_err *err)
{
    const struct clip *c = step->cfg;
    const struct dnn_column_state *state = &step->before->state[k];

    (void)other;
    if (state->nscale > 0) DNN_TRY(dnn_column_state_values(state, array, err));
    return dnn_clip(array, c->range.reals[0], c->range.reals[1], err);
}

const struct dnn_prepare_step_type dnn_prepare_step_clip = {
    .name = "clip",
    .help = "clip values to a range",
    .size = sizeof(struct clip),
    .fields = clip_fields,
    .brief = clip_brief,
    .read = clip_read,
    .is_default = is_input,
    .is_allowed = is_measured,
    .is_pointwise = dnn_prepare_step_pointwise,
    .state = clip_state,
    .apply = clip_apply,
};

/* ---- normalise ---- */

enum mode { CHANNEL, DATASET, VOLUME, MINMAX, PERCENTILES, GIVEN };
static const struct dnn_choice modes[] = {
    {"channel",     CHANNEL    },
    {"dataset",     DATASET    },
    {"volume",      VOLUME     },
    {"minmax",      MINMAX     },
    {"percentiles", PERCENTILES},
    {"given",       GIVEN      },
    {NULL,          0          }
};

static const struct dnn_choice pers[] = {
    {"dataset", DATASET},
    {"channel", CHANNEL},
    {"volume",  VOLUME },
    {NULL,      0      }
};

struct normalise {
    struct dnn_list columns, mean, std;
    int mode, per;
    double low, high;
};
#define AT(f) offsetof(struct normalise, f)
static const struct dnn_sub channels_sub = {
    .min = 0, .max = DNN_STATS_CHANNELS, .single = true};
static const struct dnn_field normalise_fields[] = {
    {"mode", DNN_F_ENUM,  AT(mode), "channel", 0, 0,        modes,
     "channel, dataset: zero mean and unit standard deviation over the train split; "
     "volume: each channel of each sample separately; minmax: to 0..1; percentiles: "
     "clip, then to 0..1; given: with mean and std below",            NULL         },
    {"per",  DNN_F_ENUM,  AT(per),  "dataset", 0, 0,        pers,
     "minmax, percentiles: computed over the dataset or each volume", NULL         },
    {"low",  DNN_F_REAL,  AT(low),  "1",       0, 100,      NULL,
     "percentiles: percentile mapped to 0",                           NULL         },
    {"high", DNN_F_REAL,  AT(high), "99",      0, 100,      NULL,
     "percentiles: percentile mapped to 1",                           NULL         },
    {"mean", DNN_F_REALS, AT(mean), "[]",      0, 0,        NULL,
     "given: mean, one number or one per channel",                    &channels_sub},
    {"std",  DNN_F_REALS, AT(std),  "[]",      0, INFINITY, NULL,
     "given: standard deviation, one number or one per channel",      &channels_sub},
    COLUMNS(AT(columns)),
    END,
};
static const struct dnn_field normalise_brief[] = {
    {"normalise", DNN_F_ENUM, AT(mode), NULL, 0, 0, modes, "mode", NULL},
    END,
};
#undef AT

static int normalise_read(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                          struct dnn_err *err)
{
    struct normalise *c = cfg;

    (void)arena;
    if (c->mean.count + c->std.count > 0) {
        struct dnn_jobj mode = dnn_json_sub(at, "mode");

        if (dnn_json_type(&mode) != DNN_J_ABSENT && c->mode != GIVEN)
            return dnn_json_fail(at, err, "mean and std are for the mode \"given\"");
        c->mode = GIVEN;
    }
    if (c->mode == GIVEN && (c->mean.count == 0 || c->mean.count != c->std.count))
        return dnn_json_fail(at, err,
                             "needs mean and std, with the same number of values");
    for (int64_t i = 0; i < c->std.count; i++)
        if (!(c->std.reals[i] > 0))
            return dnn_json_fail(at, err, "std must be above 0");
    if (!(c->low < c->high)) return dnn_json_fail(at, err, "low must be below high");
    if (c->mode == PERCENTILES && c->per == CHANNEL)
        return dnn_json_fail(at, err,
                             "percentiles can be computed per dataset or per volume");
    return 0;
}

static bool by_sample(const struct normalise *c)
{
    return c->mode == VOLUME ||
           ((c->mode == MINMAX || c->mode == PERCENTILES) && c->per == VOLUME);
}

static bool normalise_is_pointwise(const void *cfg)
{
    return !by_sample(cfg);
}

static enum dnn_prepare_step_need normalise_needs(const void *cfg,
                                                  const struct dnn_column_state *state)
{
    const struct normalise *c = cfg;

    (void)state;
    return c->mode == GIVEN || by_sample(c) ? DNN_NEED_NOTHING : DNN_NEED_TRAIN;
}

/* Whether stored elements are kept and only scale and offset change. */
static bool keeps_stored(const struct normalise *c,
                         const struct dnn_column_state *state)
{
    enum dnn_dtype t = state->column.type;

    if (by_sample(c) || c->mode == PERCENTILES) return false;
    return t == DNN_U8 || t == DNN_I8 || t == DNN_U16 || t == DNN_I16;
}

/* Mean and standard deviation of all channels together. */
static void pool_channels(const struct dnn_stats *s, double *mean, double *std)
{
    double sum = 0, square = 0;

    for (int i = 0; i < s->nchannels; i++)
        sum += s->mean[i];
    *mean = sum / s->nchannels;
    for (int i = 0; i < s->nchannels; i++)
        square +=
            s->m2[i] / (double)s->good[i] + (s->mean[i] - *mean) * (s->mean[i] - *mean);
    *std = sqrt(square / s->nchannels);
}

static bool by_channel(const struct normalise *c)
{
    return c->mode == CHANNEL || c->mode == VOLUME ||
           (c->mode == MINMAX && c->per != DATASET);
}

/* Values to subtract (mean) and to divide by (std); returns how many of each. */
static int coefficients(const struct normalise *c, const struct dnn_stats *s,
                        double *mean, double *std)
{
    bool each = by_channel(c);
    int n = each ? s->nchannels : 1;

    if (c->mode == DATASET) pool_channels(s, mean, std);
    if (c->mode == PERCENTILES) {
        mean[0] = dnn_stats_quantile(s, c->low / 100);
        std[0] = dnn_stats_quantile(s, c->high / 100) - mean[0];
    }
    if (c->mode == CHANNEL || c->mode == VOLUME)
        for (int i = 0; i < n; i++) {
            mean[i] = s->mean[i];
            std[i] = dnn_stats_std(s, i);
        }
    if (c->mode == MINMAX) {
        double low = s->min[0], high = s->max[0];

        for (int i = 0; i < s->nchannels; i++) {
            if (s->min[i] < low) low = s->min[i];
            if (s->max[i] > high) high = s->max[i];
            mean[i] = s->min[i];
            std[i] = s->max[i] - s->min[i];
        }
        if (!each) {
            mean[0] = low;
            std[0] = high - low;
        }
    }
    return n;
}

static int too_many(const struct dnn_prepare_step *step, const char *column,
                    int64_t channels, struct dnn_err *err)
{
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: the column \"%s\" has %lld channels; for more than %d use the "
                    "mode \"dataset\"",
                    step->where, column, (long long)channels, DNN_STATS_CHANNELS);
}

static int normalise_fit(const struct dnn_prepare_step *step, int k,
                         const struct dnn_stats *stats, struct dnn_step_fit *out,
                         struct dnn_err *err)
{
    const struct dnn_column_state *state = &step->before->state[k];

    if (by_channel(step->cfg) && stats->share > 1)
        return too_many(step, state->column.name, dnn_column_state_channels(state),
                        err);
    out->n = coefficients(step->cfg, stats, out->first, out->second);
    return 0;
}

/* The same, from the settings or from statistics. */
static int step_coefficients(const struct dnn_prepare_step *step, int k, double *mean,
                             double *std)
{
    const struct normalise *c = step->cfg;

    bool given = c->mode == GIVEN;
    int n = given ? (int)c->mean.count : step->fit[k].n;

    for (int i = 0; i < n; i++) {
        mean[i] = given ? c->mean.reals[i] : step->fit[k].first[i];
        std[i] = given ? c->std.reals[i] : step->fit[k].second[i];
    }
    return n;
}

static int normalise_state(const struct dnn_prepare_step *step, int k,
                           struct dnn_column_state *state, struct dnn_err *err)
{
    const struct normalise *c = step->cfg;
    double mean[DNN_STATS_CHANNELS], std[DNN_STATS_CHANNELS];
    int64_t channels = dnn_column_state_channels(state);

    if (by_channel(c) && channels > DNN_STATS_CHANNELS)
        return too_many(step, state->column.name, channels, err);
    if (!by_sample(c) && (c->mode == GIVEN || step->fit != NULL)) {
        int n = step_coefficients(step, k, mean, std);

        if (n > 1 && channels != n && channels != DNN_UNKNOWN)
            return dnn_fail(err, DNN_ECONFIG,
                            "%s: the column \"%s\" has %lld channels, expected %d",
                            step->where, state->column.name, (long long)channels, n);
        for (int i = 0; i < n; i++)
            if (!(std[i] > 0) || !isfinite(std[i]) || !isfinite(mean[i]))
                return dnn_fail(err, DNN_EDATA,
                                "%s: channel %d of the column \"%s\" is constant (%g) "
                                "and cannot be normalised",
                                step->where, i, state->column.name, mean[i]);
        if (keeps_stored(c, state)) {
            dnn_column_state_standardise(state, n, mean, std);
            return 0;
        }
    }
    if (!keeps_stored(c, state)) dnn_column_state_become_values(state);
    return 0;
}

/* Normalises a sample by its own statistics; a constant channel becomes 0. */
static int normalise_sample(const struct normalise *c,
                            const struct dnn_column_state *state,
                            struct dnn_array *array, struct dnn_err *err)
{
    double mean[DNN_STATS_CHANNELS], std[DNN_STATS_CHANNELS];
    struct dnn_column column = state->column;
    struct dnn_stats *s = dnn_alloc(sizeof *s);

    column.type = DNN_F32;
    column.shape = array->shape;
    dnn_stats_start(s, &column);
    int rc = dnn_stats_add(s, &column, array, err);
    if (rc == 0) {
        int n = coefficients(c, s, mean, std);

        if (c->mode == PERCENTILES)
            rc = dnn_clip(array, mean[0], mean[0] + std[0], err);
        for (int i = 0; i < n; i++)
            if (!(std[i] > 0)) std[i] = 1;
        if (rc == 0) rc = dnn_standardise(array, n, mean, std, err);
    }
    dnn_free(s);
    return rc;
}

static int normalise_apply(const struct dnn_prepare_step *step, int k,
                           struct dnn_array *array, struct dnn_array *other,
                           struct dnn_err *err)
{
    const struct normalise *c = step->cfg;
    const struct dnn_column_state *state = &step->before->state[k];
    double mean[DNN_STATS_CHANNELS], std[DNN_STATS_CHANNELS];

    (void)other;
    if (keeps_stored(c, state)) return 0;
    DNN_TRY(dnn_column_state_values(state, array, err));
    if (by_sample(c)) return normalise_sample(c, state, array, err);
    int n = step_coefficients(step, k, mean, std);
    if (c->mode == PERCENTILES)
        DNN_TRY(dnn_clip(array, mean[0], mean[0] + std[0], err));
    return dnn_standardise(array, n, mean, std, err);
}

const struct dnn_prepare_step_type dnn_prepare_step_normalise = {
    .name = "normalise",
    .help = "normalise values; statistics are computed over the train split",
    .size = sizeof(struct normalise),
    .fields = normalise_fields,
    .brief = normalise_brief,
    .read = normalise_read,
    .is_default = is_input,
    .is_allowed = is_measured,
    .needs = normalise_needs,
    .fit = normalise_fit,
    .fit_name = {"mean", "std"},
    .is_pointwise = normalise_is_pointwise,
    .state = normalise_state,
    .apply = normalise_apply,
};
