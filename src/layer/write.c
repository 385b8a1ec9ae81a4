/* write.c - writes a layer as Keras 3 JSON; functions shared by the kinds.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dnn_layer_put(struct dnn_layer_out *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = dnn_alloc((size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    dnn_buf_add(&out->config, "%s%s", out->config.len == 0 ? "" : ", ", text);
    dnn_free(text);
}

void dnn_layer_put_int(struct dnn_layer_out *out, const char *key, int64_t x)
{
    dnn_layer_put(out, "\"%s\": %" PRId64, key, x);
}

void dnn_layer_put_ints(struct dnn_layer_out *out, const char *key, int64_t n,
                        const int64_t *x)
{
    dnn_layer_put(out, "\"%s\": [", key);
    for (int64_t i = 0; i < n; i++)
        dnn_buf_add(&out->config, "%s%" PRId64, i == 0 ? "" : ", ", x[i]);
    dnn_buf_add(&out->config, "]");
}

void dnn_layer_put_reals(struct dnn_layer_out *out, const char *key, int64_t n,
                         const double *x)
{
    dnn_layer_put(out, "\"%s\": %s", key, n == 1 ? "" : "[");
    for (int64_t i = 0; i < n; i++)
        dnn_buf_add(&out->config, "%s%.17g", i == 0 ? "" : ", ", x[i]);
    dnn_buf_add(&out->config, "%s", n == 1 ? "" : "]");
}

void dnn_layer_put_bool(struct dnn_layer_out *out, const char *key, bool yes)
{
    dnn_layer_put(out, "\"%s\": %s", key, yes ? "true" : "false");
}

/* "key": {"module", "class_name", "config", "registered_name"} */
static void put_object(struct dnn_layer_out *out, const char *key, const char *module,
                       const char *class_name, const char *config)
{
    dnn_layer_put(out,
                  "\"%s\": {\"module\": \"%s\", \"class_name\": \"%s\", \"config\": "
                  "{%s}, \"registered_name\": null}",
                  key, module, class_name, config);
}

static void put_reg(struct dnn_layer_out *out, const char *key,
                    const struct dnn_regularizer *reg)
{
    char config[96];

    if (reg->l1 == 0 && reg->l2 == 0) {
        dnn_layer_put(out, "\"%s\": null", key);
        return;
    }
    snprintf(config, sizeof config, "\"l1\": %.17g, \"l2\": %.17g", reg->l1, reg->l2);
    put_object(out, key, "keras.regularizers", "L1L2", config);
}

void dnn_layer_put_init(struct dnn_layer_out *out, const char *key,
                        const struct dnn_init *init)
{
    static const struct {
        const char *class_name, *a, *b;
    } kinds[] = {
        [DNN_INIT_ZEROS] = {"Zeros",           NULL,     NULL    },
        [DNN_INIT_ONES] = {"Ones",            NULL,     NULL    },
        [DNN_INIT_CONSTANT] = {"Constant",        "value",  NULL    },
        [DNN_INIT_UNIFORM] = {"RandomUniform",   "minval", "maxval"},
        [DNN_INIT_NORMAL] = {"RandomNormal",    "mean",   "stddev"},
        [DNN_INIT_TRUNCATED_NORMAL] = {"TruncatedNormal", "mean",   "stddev"},
        [DNN_INIT_VARIANCE_SCALING] = {"VarianceScaling", "scale",  NULL    },
        [DNN_INIT_ORTHOGONAL] = {"Orthogonal",      "gain",   NULL    },
        [DNN_INIT_IDENTITY] = {"Identity",        "gain",   NULL    },
    };
    static const char *const modes[] = {
        [DNN_FAN_IN] = "fan_in", [DNN_FAN_OUT] = "fan_out", [DNN_FAN_AVG] = "fan_avg"};
    static const char *const dists[] = {
        [DNN_DIST_TRUNCATED_NORMAL] = "truncated_normal",
        [DNN_DIST_UNTRUNCATED_NORMAL] = "untruncated_normal",
        [DNN_DIST_UNIFORM] = "uniform"};
    struct dnn_layer_out in = {0};

    if (kinds[init->kind].a != NULL)
        dnn_layer_put_reals(&in, kinds[init->kind].a, 1, &init->a);
    if (kinds[init->kind].b != NULL)
        dnn_layer_put_reals(&in, kinds[init->kind].b, 1, &init->b);
    if (init->kind == DNN_INIT_VARIANCE_SCALING)
        dnn_layer_put(&in, "\"mode\": \"%s\", \"distribution\": \"%s\"",
                      modes[init->mode], dists[init->dist]);
    if (init->seed != 0) dnn_layer_put(&in, "\"seed\": %" PRIu64, init->seed);
    put_object(out, key, "keras.initializers", kinds[init->kind].class_name,
               in.config.text == NULL ? "" : in.config.text);
    dnn_buf_free(&in.config);
}

static void put_constraint(struct dnn_layer_out *out, const char *key,
                           const struct dnn_constraint *c)
{
    static const char *const names[] = {[DNN_MAX_NORM] = "MaxNorm",
                                        [DNN_NON_NEG] = "NonNeg",
                                        [DNN_UNIT_NORM] = "UnitNorm",
                                        [DNN_MIN_MAX_NORM] = "MinMaxNorm"};
    struct dnn_layer_out in = {0};
    int64_t axis[DNN_MAX_DIMS], n = 0;

    if (c->kind == DNN_CONSTRAIN_NONE) {
        dnn_layer_put(out, "\"%s\": null", key);
        return;
    }
    for (int i = 0; i < DNN_MAX_DIMS; i++)
        if ((c->axes >> i & 1) != 0) axis[n++] = i;
    if (c->kind == DNN_MIN_MAX_NORM)
        dnn_layer_put(&in, "\"min_value\": %.17g, \"rate\": %.17g", c->min, c->rate);
    if (c->kind == DNN_MAX_NORM || c->kind == DNN_MIN_MAX_NORM)
        dnn_layer_put_reals(&in, "max_value", 1, &c->max);
    if (c->kind != DNN_NON_NEG) dnn_layer_put_ints(&in, "axis", n, axis);
    put_object(out, key, "keras.constraints", names[c->kind],
               in.config.text == NULL ? "" : in.config.text);
    dnn_buf_free(&in.config);
}

void dnn_layer_put_spec(struct dnn_layer_out *out, const char *prefix,
                        const struct dnn_layer_spec *spec)
{
    char key[64];

    snprintf(key, sizeof key, "%s_initializer", prefix);
    dnn_layer_put_init(out, key, &spec->init);
    snprintf(key, sizeof key, "%s_regularizer", prefix);
    put_reg(out, key, &spec->reg);
    snprintf(key, sizeof key, "%s_constraint", prefix);
    put_constraint(out, key, &spec->constraint);
}

int dnn_layer_put_act(struct dnn_layer_out *out, const struct dnn_layer_act *act,
                      struct dnn_err *err)
{
    const char *name = dnn_layer_act_name(act);
    struct dnn_layer_out in = {0};

    if (name != NULL) {
        dnn_layer_put(out, "\"activation\": \"%s\"", name);
        return 0;
    }
    int rc = dnn_layer_write_act(act, &in, err);
    if (rc == 0)
        put_object(out, "activation", "keras.layers", in.class_name, in.config.text);
    dnn_buf_free(&in.config);
    return rc;
}

int dnn_layer_write(const struct dnn_layer *layer, const char *name,
                    struct dnn_layer_out *out, struct dnn_err *err)
{
    const struct dnn_layer_type *type = layer->type;

    *out = (struct dnn_layer_out){.class_name = type->name, .module = "keras.layers"};
    if (layer->op != NULL) {
        const char *text = layer->op->config; /* "{...}" */

        out->class_name = out->registered = layer->op->class_name;
        out->module = layer->op->module;
        dnn_buf_bytes(&out->config, text + 1, strlen(text) - 2);
        return 0;
    }
    dnn_buf_add(&out->config, "\"name\": ");
    dnn_json_quoted(&out->config, name);
    dnn_layer_put_bool(out, "trainable", layer->trainable);
    put_object(out, "dtype", "keras", "DTypePolicy", "\"name\": \"float32\"");
    if (layer->activity.l1 != 0 || layer->activity.l2 != 0)
        put_reg(out, "activity_regularizer", &layer->activity);
    return type->write == NULL ? 0 : type->write(layer, out, err);
}
