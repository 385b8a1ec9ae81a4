/* augment_values.c - transforms of values: normalize, gamma, brightness, contrast,
 * noise.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/augment_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

/* ---- normalize ---- */

enum { MAX_CHANNELS = 64 };

struct norm_opts {
    struct dnn_list mean, std;
};

static const struct dnn_sub channels = {.min = 1, .max = MAX_CHANNELS, .single = true};
#define AT(f) offsetof(struct norm_opts, f)
static const struct dnn_field norm_fields[] = {
    {"mean", DNN_F_REALS, AT(mean), "0",  0, 0, NULL,
     "mean: one number for all channels, or one per channel",               &channels},
    {"std",  DNN_F_REALS, AT(std),  "1",  0, 0, NULL,
     "standard deviation: one number for all channels, or one per channel", &channels},
    {NULL,   0,           0,        NULL, 0, 0, NULL, NULL,                 NULL     },
};
#undef AT

static int check_list(const struct dnn_aug_step *step, const char *key,
                      const struct dnn_list *list, const struct dnn_column *col,
                      struct dnn_err *err)
{
    const int64_t n = col->shape.dim[col->shape.ndim - 1];

    if (list->count == 1 || n == DNN_UNKNOWN || list->count == n) return 0;
    return dnn_aug_fail(
        step, err,
        "'%s' has %" PRId64
        " channel%s; %s must be one number or one per channel, not %" PRId64,
        col->name, n, n == 1 ? "" : "s", key, list->count);
}

static int norm_columns(const struct dnn_aug_step *step, int ncols,
                        struct dnn_column *col, struct dnn_err *err)
{
    const struct norm_opts *o = step->opts;

    for (int64_t k = 0; k < o->std.count; k++)
        if (!(o->std.reals[k] > 0))
            return dnn_aug_fail(step, err, "std must be more than 0, not %g",
                                o->std.reals[k]);
    for (int c = 0; c < ncols; c++) {
        if (step->side == DNN_AUG_TARGETS && col[c].role == DNN_ROLE_TARGET &&
            col[c].kind == DNN_KIND_MASK)
            return dnn_aug_fail(
                step, err,
                "'%s' is a mask; class numbers are not normalized (nor divided by 255)",
                col[c].name);
        if (!dnn_aug_touches(step, &col[c])) continue;
        DNN_TRY(check_list(step, "mean", &o->mean, &col[c], err));
        DNN_TRY(check_list(step, "std", &o->std, &col[c], err));
    }
    return dnn_aug_become_f32(step, ncols, col, err);
}

static int norm_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                      struct dnn_err *err)
{
    const struct norm_opts *o = step->opts;
    const int n = (int)(o->mean.count > o->std.count ? o->mean.count : o->std.count);
    double mean[MAX_CHANNELS], std[MAX_CHANNELS];

    for (int k = 0; k < n; k++) {
        mean[k] = o->mean.reals[o->mean.count == 1 ? 0 : k];
        std[k] = o->std.reals[o->std.count == 1 ? 0 : k];
    }
    for (int c = 0; c < run->ncols; c++)
        if (dnn_aug_touches(step, &run->col[c]))
            DNN_TRY(dnn_standardise(&run->sample->col[c], n, mean, std, err));
    return 0;
}

const struct dnn_aug_kind dnn_aug_normalize = {
    .name = "normalize",
    .params = "{\"mean\": 0.5, \"std\": 0.5}",
    .help = "(x - mean) / std of images, inputs and targets; masks are not changed",
    .scope = DNN_AUG_IMAGES,
    .size = sizeof(struct norm_opts),
    .fields = norm_fields,
    .columns = norm_columns,
    .apply = norm_apply,
};

/* ---- gamma, contrast ---- */

struct range_opts {
    double low, high, p;
};

#define AT(f) offsetof(struct range_opts, f)
#define P {"p", DNN_F_REAL, AT(p), "1", 0, 1, NULL, "probability", NULL}
static const struct dnn_field gamma_fields[] = {
    {"low",  DNN_F_REAL, AT(low),  NULL, 0.01, 100, NULL, "minimum exponent", NULL},
    {"high", DNN_F_REAL, AT(high), NULL, 0.01, 100, NULL, "maximum exponent", NULL},
    P,
    {NULL,   0,          0,        NULL, 0,    0,   NULL, NULL,               NULL},
};
static const struct dnn_field contrast_fields[] = {
    {"low",  DNN_F_REAL, AT(low),  NULL, 0, 100, NULL, "minimum factor", NULL},
    {"high", DNN_F_REAL, AT(high), NULL, 0, 100, NULL, "maximum factor", NULL},
    P,
    {NULL,   0,          0,        NULL, 0, 0,   NULL, NULL,             NULL},
};
#undef AT

static int range_columns(const struct dnn_aug_step *step, int ncols,
                         struct dnn_column *col, struct dnn_err *err)
{
    const struct range_opts *o = step->opts;

    if (o->low > o->high)
        return dnn_aug_fail(step, err, "low (%g) is greater than high (%g)", o->low,
                            o->high);
    return dnn_aug_become_f32(step, ncols, col, err);
}

/* The minimum and the maximum do not change. */
static void apply_gamma(float *x, int64_t n, double gamma)
{
    double low = INFINITY, high = -INFINITY;

    for (int64_t k = 0; k < n; k++) {
        if (x[k] < low) low = x[k];
        if (x[k] > high) high = x[k];
    }
    if (!(high > low) || isinf(high - low)) return;
    for (int64_t k = 0; k < n; k++)
        x[k] = (float)(low +
                       (high - low) * pow(((double)x[k] - low) / (high - low), gamma));
}

static void apply_contrast(float *x, int64_t n, double factor)
{
    double mean = 0;

    for (int64_t k = 0; k < n; k++)
        mean += x[k];
    if (n > 0) mean /= (double)n;
    for (int64_t k = 0; k < n; k++)
        x[k] = (float)(mean + factor * ((double)x[k] - mean));
}

static int range_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                       struct dnn_err *err)
{
    const struct range_opts *o = step->opts;
    const bool active = dnn_draw_real(&run->draw, 0, 1) < o->p;
    const double by = dnn_draw_real(&run->draw, o->low, o->high);

    for (int c = 0; c < run->ncols; c++) {
        int64_t n;
        float *x;

        if (!dnn_aug_touches(step, &run->col[c])) continue;
        DNN_TRY(dnn_aug_floats(run, c, &x, &n, err));
        if (!active) continue;
        if (step->kind == &dnn_aug_gamma)
            apply_gamma(x, n, by);
        else
            apply_contrast(x, n, by);
    }
    return 0;
}

const struct dnn_aug_kind dnn_aug_gamma = {
    .name = "gamma",
    .params = "{\"low\": 0.7, \"high\": 1.5, \"p\": 0.3}",
    .help = "random gamma of the inputs; minimum and maximum stay the same",
    .scope = DNN_AUG_INPUT_IMAGES,
    .random = true,
    .size = sizeof(struct range_opts),
    .fields = gamma_fields,
    .columns = range_columns,
    .apply = range_apply,
};

const struct dnn_aug_kind dnn_aug_contrast = {
    .name = "contrast",
    .params = "{\"low\": 0.75, \"high\": 1.25, \"p\": 0.3}",
    .help = "random contrast: scale the inputs around their mean by a random factor",
    .scope = DNN_AUG_INPUT_IMAGES,
    .random = true,
    .size = sizeof(struct range_opts),
    .fields = contrast_fields,
    .columns = range_columns,
    .apply = range_apply,
};

/* ---- brightness, noise ---- */

struct add_opts {
    double amount, p;
};

#define AT(f) offsetof(struct add_opts, f)
static const struct dnn_field bright_fields[] = {
    {"amount", DNN_F_REAL, AT(amount), NULL, 0, INFINITY, NULL, "maximum change", NULL},
    P,
    {NULL,     0,          0,          NULL, 0, 0,        NULL, NULL,             NULL},
};
static const struct dnn_field noise_fields[] = {
    {"std", DNN_F_REAL, AT(amount), NULL, 0, INFINITY, NULL, "standard deviation",
     NULL                                                                              },
    P,
    {NULL,  0,          0,          NULL, 0, 0,        NULL, NULL,                 NULL},
};
#undef AT

static int bright_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                        struct dnn_err *err)
{
    const struct add_opts *o = step->opts;
    const bool active = dnn_draw_real(&run->draw, 0, 1) < o->p;
    const double by = dnn_draw_real(&run->draw, -o->amount, o->amount);

    for (int c = 0; c < run->ncols; c++) {
        int64_t n;
        float *x;

        if (!dnn_aug_touches(step, &run->col[c])) continue;
        DNN_TRY(dnn_aug_floats(run, c, &x, &n, err));
        for (int64_t k = 0; active && k < n; k++)
            x[k] = (float)(x[k] + by);
    }
    return 0;
}

const struct dnn_aug_kind dnn_aug_brightness = {
    .name = "brightness",
    .params = "amount",
    .help = "random brightness: add a random number of at most this size to the inputs",
    .main = "amount",
    .scope = DNN_AUG_INPUT_IMAGES,
    .random = true,
    .size = sizeof(struct add_opts),
    .fields = bright_fields,
    .columns = dnn_aug_become_f32,
    .apply = bright_apply,
};

static int noise_apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                       struct dnn_err *err)
{
    const struct add_opts *o = step->opts;
    const bool active = dnn_draw_real(&run->draw, 0, 1) < o->p && o->amount > 0;

    for (int c = 0; c < run->ncols; c++) {
        double two[2];
        int64_t n;
        float *x;

        if (!dnn_aug_touches(step, &run->col[c])) continue;
        DNN_TRY(dnn_aug_floats(run, c, &x, &n, err));
        for (int64_t k = 0; active && k < n; k += 2) {
            dnn_rng_normals(&run->draw.rng, run->draw.at, two);
            run->draw.at.index++;
            x[k] = (float)(x[k] + o->amount * two[0]);
            if (k + 1 < n) x[k + 1] = (float)(x[k + 1] + o->amount * two[1]);
        }
    }
    return 0;
}

const struct dnn_aug_kind dnn_aug_noise = {
    .name = "noise",
    .params = "std",
    .help = "add Gaussian noise to the inputs",
    .main = "std",
    .scope = DNN_AUG_INPUT_IMAGES,
    .random = true,
    .size = sizeof(struct add_opts),
    .fields = noise_fields,
    .columns = dnn_aug_become_f32,
    .apply = noise_apply,
};
