/* spec.c - initializers, regularizers and constraints as Keras 1, 2 and 3 write them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A name or an object whose config is an object too. */
static int read_named(const struct dnn_jobj *at, const char **name,
                      struct dnn_jobj *inside, struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];

    DNN_TRY(dnn_layer_read_object(at, name, inside, err));
    if (dnn_json_type(inside) <= DNN_J_NULL || dnn_json_type(inside) == DNN_J_OBJECT)
        return 0;
    return dnn_json_fail(inside, err, "must be an object, not %s",
                         dnn_json_quote(quote, inside));
}

/* ---- initializers ---- */

static const struct dnn_choice modes[] = {
    {"fan_in",  DNN_FAN_IN },
    {"fan_out", DNN_FAN_OUT},
    {"fan_avg", DNN_FAN_AVG},
    {NULL,      0          }
};
static const struct dnn_choice dists[] = {
    {"truncated_normal",   DNN_DIST_TRUNCATED_NORMAL  },
    {"normal",             DNN_DIST_TRUNCATED_NORMAL  },
    {"untruncated_normal", DNN_DIST_UNTRUNCATED_NORMAL},
    {"uniform",            DNN_DIST_UNIFORM           },
    {NULL,                 0                          }
};

/* Names in Keras 1, and the current names. */
static const struct {
    const char *old, *current;
} renamed[] = {
    {"normal",   "RandomNormal" },
    {"uniform",  "RandomUniform"},
    {"zero",     "Zeros"        },
    {"one",      "Ones"         },
    {"gaussian", "RandomNormal" },
    {NULL,       NULL           }
};

static bool find_init(const char *name, struct dnn_init *out)
{
    if (dnn_init_find(name, out)) return true;
    for (int i = 0; renamed[i].old != NULL; i++)
        if (strcmp(renamed[i].old, name) == 0)
            return dnn_init_find(renamed[i].current, out);
    return false;
}

static int read_seed(const struct dnn_jobj *at, uint64_t *out, struct dnn_err *err)
{
    int64_t seed;

    /* An object is a generator of Keras 3, whose numbers cannot be reproduced. */
    if (dnn_json_type(at) != DNN_J_NUMBER) return 0;
    DNN_TRY(dnn_json_int(at, &seed, err));
    *out = (uint64_t)seed;
    return 0;
}

static int read_number(const struct dnn_jobj *at, double *out, struct dnn_err *err)
{
    DNN_TRY(dnn_json_real(at, out, err));
    if (!isfinite(*out) || fabs(*out) > 1e30)
        return dnn_json_fail(at, err, "must be between -1e30 and 1e30");
    return 0;
}

static int read_choice(const struct dnn_jobj *at, const struct dnn_choice *choices,
                       int *out, struct dnn_err *err)
{
    struct dnn_err why;
    const char *word;

    DNN_TRY(dnn_json_string(at, &word, err));
    if (dnn_choice_find(choices, word, out, &why) < 0)
        return dnn_json_fail(at, err, "%s", why.text);
    return 0;
}

/* One key of an initializer's config. */
static int init_key(const struct dnn_jobj *it, struct dnn_init *out,
                    struct dnn_err *err)
{
    static const struct {
        const char *key;
        enum dnn_init_kind kind;
        int b; /* stored in b, else in a */
    } keys[] = {
        {"value",  DNN_INIT_CONSTANT,         0},
        {"minval", DNN_INIT_UNIFORM,          0},
        {"maxval", DNN_INIT_UNIFORM,          1},
        {"mean",   DNN_INIT_NORMAL,           0},
        {"stddev", DNN_INIT_NORMAL,           1},
        {"mean",   DNN_INIT_TRUNCATED_NORMAL, 0},
        {"stddev", DNN_INIT_TRUNCATED_NORMAL, 1},
        {"scale",  DNN_INIT_VARIANCE_SCALING, 0},
        {"gain",   DNN_INIT_ORTHOGONAL,       0},
        {"gain",   DNN_INIT_IDENTITY,         0},
        {NULL,     0,                         0}
    };
    int word;

    if (strcmp(it->name, "dtype") == 0) return 0;
    if (strcmp(it->name, "seed") == 0) return read_seed(it, &out->seed, err);
    if (strcmp(it->name, "input_axes") == 0 || strcmp(it->name, "output_axes") == 0)
        return dnn_json_type(it) == DNN_J_NULL
                   ? 0
                   : dnn_json_fail(it, err, "must be null: the usual axes are used");
    for (int i = 0; keys[i].key != NULL; i++)
        if (keys[i].kind == out->kind && strcmp(keys[i].key, it->name) == 0)
            return read_number(it, keys[i].b ? &out->b : &out->a, err);
    if (out->kind == DNN_INIT_VARIANCE_SCALING && strcmp(it->name, "mode") == 0) {
        DNN_TRY(read_choice(it, modes, &word, err));
        out->mode = (enum dnn_init_mode)word;
        return 0;
    }
    if (out->kind == DNN_INIT_VARIANCE_SCALING &&
        strcmp(it->name, "distribution") == 0) {
        DNN_TRY(read_choice(it, dists, &word, err));
        out->dist = (enum dnn_init_dist)word;
        return 0;
    }
    return dnn_json_fail(it, err, "unknown key");
}

int dnn_layer_read_init(const struct dnn_jobj *at, const char *def,
                        struct dnn_init *out, struct dnn_err *err)
{
    static const char *const names[] = {"Zeros",           "Ones",
                                        "Constant",        "RandomUniform",
                                        "RandomNormal",    "TruncatedNormal",
                                        "VarianceScaling", "Orthogonal",
                                        "Identity",        "GlorotUniform",
                                        "GlorotNormal",    "HeUniform",
                                        "HeNormal",        "LecunUniform",
                                        "LecunNormal",     NULL};
    struct dnn_jobj inside = {0};
    const char *name = def;
    char hint[96];

    if (dnn_json_type(at) > DNN_J_NULL) DNN_TRY(read_named(at, &name, &inside, err));
    if (!find_init(name, out))
        return dnn_json_fail(at, err, "there is no initializer \"%.60s\"%s", name,
                             dnn_text_hint(hint, sizeof hint, name, names));
    if (dnn_json_type(&inside) != DNN_J_OBJECT) return 0;
    for (struct dnn_jobj it = dnn_json_first(&inside); it.val != NULL;
         it = dnn_json_next(&it))
        DNN_TRY(init_key(&it, out, err));
    if ((out->kind == DNN_INIT_NORMAL || out->kind == DNN_INIT_TRUNCATED_NORMAL) &&
        out->b < 0)
        return dnn_json_fail(&inside, err, "\"stddev\" must not be negative");
    if (out->kind == DNN_INIT_VARIANCE_SCALING && out->a <= 0)
        return dnn_json_fail(&inside, err, "\"scale\" must be above 0");
    if (out->kind == DNN_INIT_UNIFORM && out->a > out->b)
        return dnn_json_fail(&inside, err, "\"minval\" must not be above \"maxval\"");
    return 0;
}

/* ---- regularizers ---- */

/* Keras 1 wrote {"name": "WeightRegularizer", "l1": 0.0, "l2": 0.01}. */
static int read_amounts(const struct dnn_jobj *at, bool keras1,
                        struct dnn_regularizer *out, struct dnn_err *err)
{
    for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
         it = dnn_json_next(&it)) {
        double *to = strcmp(it.name, "l1") == 0   ? &out->l1
                     : strcmp(it.name, "l2") == 0 ? &out->l2
                                                  : NULL;

        if (to == NULL && keras1 && strcmp(it.name, "name") == 0) continue;
        if (to == NULL) return dnn_json_fail(&it, err, "unknown key");
        if (dnn_json_type(&it) == DNN_J_NULL) {
            *to = 0;
            continue;
        }
        DNN_TRY(read_number(&it, to, err));
        if (*to < 0) return dnn_json_fail(&it, err, "must not be negative");
    }
    return 0;
}

int dnn_layer_read_reg(const struct dnn_jobj *at, struct dnn_regularizer *out,
                       struct dnn_err *err)
{
    struct dnn_jobj inside;
    const char *name;

    *out = (struct dnn_regularizer){0};
    if (dnn_json_type(at) <= DNN_J_NULL) return 0;
    if (dnn_json_type(at) == DNN_J_OBJECT &&
        dnn_json_sub(at, "class_name").val == NULL &&
        dnn_json_sub(at, "name").val != NULL)
        return read_amounts(at, true, out, err);
    DNN_TRY(read_named(at, &name, &inside, err));
    if (strcasecmp(name, "l1") == 0)
        out->l1 = 0.01;
    else if (strcasecmp(name, "l2") == 0)
        out->l2 = 0.01;
    else if (strcasecmp(name, "l1l2") == 0 || strcasecmp(name, "l1_l2") == 0) {
        /* The name alone sets both; an object has its own values. */
        if (inside.val == NULL) out->l1 = out->l2 = 0.01;
    } else
        return dnn_json_fail(
            at, err, "the regularizer must be L1, L2 or L1L2, not \"%.60s\"", name);
    return inside.val == NULL ? 0 : read_amounts(&inside, false, out, err);
}

/* ---- constraints ---- */

static int read_axis(const struct dnn_jobj *at, unsigned *bits, struct dnn_err *err)
{
    int64_t axis;

    DNN_TRY(dnn_json_int(at, &axis, err));
    if (axis < 0 || axis >= DNN_MAX_DIMS)
        return dnn_json_fail(at, err, "must be between 0 and %d, not %" PRId64,
                             DNN_MAX_DIMS - 1, axis);
    *bits |= 1u << axis;
    return 0;
}

static int constraint_key(const struct dnn_jobj *it, struct dnn_constraint *out,
                          struct dnn_err *err)
{
    bool both = out->kind == DNN_MIN_MAX_NORM;

    if (strcmp(it->name, "axis") == 0 && out->kind != DNN_NON_NEG) {
        out->axes = 0;
        if (dnn_json_type(it) != DNN_J_LIST) return read_axis(it, &out->axes, err);
        for (struct dnn_jobj a = dnn_json_first(it); a.val != NULL;
             a = dnn_json_next(&a))
            DNN_TRY(read_axis(&a, &out->axes, err));
        return 0;
    }
    double *to = NULL;
    if (both && strcmp(it->name, "min_value") == 0) to = &out->min;
    if (both && strcmp(it->name, "rate") == 0) to = &out->rate;
    if ((both || out->kind == DNN_MAX_NORM) &&
        (strcmp(it->name, "max_value") == 0 || strcmp(it->name, "m") == 0))
        to = &out->max;
    if (to == NULL) return dnn_json_fail(it, err, "unknown key");
    DNN_TRY(read_number(it, to, err));
    if (*to < 0) return dnn_json_fail(it, err, "must not be negative");
    return 0;
}

static int read_constraint(const struct dnn_jobj *at, struct dnn_constraint *out,
                           struct dnn_err *err)
{
    static const struct dnn_choice kinds[] = {
        {"MaxNorm",      DNN_MAX_NORM    },
        {"max_norm",     DNN_MAX_NORM    },
        {"maxnorm",      DNN_MAX_NORM    },
        {"NonNeg",       DNN_NON_NEG     },
        {"non_neg",      DNN_NON_NEG     },
        {"nonneg",       DNN_NON_NEG     },
        {"UnitNorm",     DNN_UNIT_NORM   },
        {"unit_norm",    DNN_UNIT_NORM   },
        {"unitnorm",     DNN_UNIT_NORM   },
        {"MinMaxNorm",   DNN_MIN_MAX_NORM},
        {"min_max_norm", DNN_MIN_MAX_NORM},
        {NULL,           0               }
    };
    struct dnn_jobj inside;
    const char *name;
    int kind;

    *out = (struct dnn_constraint){.kind = DNN_CONSTRAIN_NONE};
    if (dnn_json_type(at) <= DNN_J_NULL) return 0;
    DNN_TRY(read_named(at, &name, &inside, err));
    if (dnn_choice_find(kinds, name, &kind, NULL) < 0)
        return dnn_json_fail(at, err,
                             "the constraint must be MaxNorm, NonNeg, UnitNorm or "
                             "MinMaxNorm, not \"%.60s\"",
                             name);
    out->kind = (enum dnn_constraint_kind)kind;
    out->axes = 1;
    out->rate = 1;
    out->max = kind == DNN_MAX_NORM ? 2 : 1;
    for (struct dnn_jobj it = dnn_json_first(&inside); it.val != NULL;
         it = dnn_json_next(&it))
        DNN_TRY(constraint_key(&it, out, err));
    return 0;
}

/* ---- all keys of one weight ---- */

int dnn_layer_read_spec(const struct dnn_jobj *config, const char *prefix,
                        const char *init1, const char *letter1, const char *def,
                        struct dnn_layer_spec *out, struct dnn_err *err)
{
    char init[64], reg[64], constraint[64], reg1[64], constraint1[64];
    const char *old = letter1 == NULL ? prefix : letter1;

    snprintf(init, sizeof init, "%s_initializer", prefix);
    snprintf(reg, sizeof reg, "%s_regularizer", prefix);
    snprintf(constraint, sizeof constraint, "%s_constraint", prefix);
    snprintf(reg1, sizeof reg1, "%s_regularizer", old);
    snprintf(constraint1, sizeof constraint1, "%s_constraint", old);
    struct dnn_jobj at = dnn_layer_either(config, init, init1);
    DNN_TRY(dnn_layer_read_init(&at, def, &out->init, err));
    at = dnn_layer_either(config, reg, reg1);
    DNN_TRY(dnn_layer_read_reg(&at, &out->reg, err));
    at = dnn_layer_either(config, constraint, constraint1);
    return read_constraint(&at, &out->constraint, err);
}
