/* layer.c - reads a layer; code common to all kinds.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys of every layer ---- */

struct common {
    bool trainable;
};

#define AT(f) offsetof(struct common, f)
static const struct dnn_field fields[] = {
    DNN_LAYER_OTHER("name", "name of the layer"),
    DNN_LAYER_BOOL("trainable", AT(trainable), "true",
                   "false: do not train its weights"),
    DNN_LAYER_OTHER("dtype", "float32"),
    DNN_LAYER_OTHER("activity_regularizer", "regularizer of the output"),
    DNN_LAYER_OTHER("batch_input_shape", "shape of its input, batch first"),
    DNN_LAYER_OTHER("batch_shape", "the same"),
    DNN_LAYER_OTHER("input_shape", "the same without the batch"),
    DNN_LAYER_OTHER("input_dim", "one axis of it"),
    DNN_LAYER_IGNORED("batch_size"),
    DNN_LAYER_IGNORED("input_dtype"),
    DNN_LAYER_IGNORED("input_length"),
    DNN_LAYER_IGNORED("autocast"),
    DNN_LAYER_IGNORED("lora_rank"),
    DNN_LAYER_NEUTRAL("quantization_config", "null"),
    DNN_LAYER_IGNORED("registered_name"),
    DNN_LAYER_IGNORED("build_config"),
    DNN_LAYER_END,
};
#undef AT

struct dnn_jobj dnn_layer_either(const struct dnn_jobj *config, const char *a,
                                 const char *b)
{
    struct dnn_jobj first = dnn_json_sub(config, a);

    if (first.val != NULL || b == NULL) return first;
    struct dnn_jobj second = dnn_json_sub(config, b);
    return second.val != NULL ? second : first;
}

int dnn_layer_read_object(const struct dnn_jobj *at, const char **class_name,
                          struct dnn_jobj *inside, struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];

    if (dnn_json_type(at) == DNN_J_TEXT) {
        *inside = (struct dnn_jobj){.file = at->file, .up = at};
        return dnn_json_string(at, class_name, err);
    }
    if (dnn_json_type(at) != DNN_J_OBJECT)
        return dnn_json_fail(at, err, "must be a name or an object, not %s",
                             dnn_json_quote(quote, at));
    for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
         it = dnn_json_next(&it)) {
        static const char *const words[] = {
            "class_name",       "config",       "module", "registered_name",
            "shared_object_id", "build_config", NULL};
        char hint[96];
        int i = 0;

        while (words[i] != NULL && strcmp(words[i], it.name) != 0)
            i++;
        if (words[i] == NULL)
            return dnn_json_fail(&it, err, "unknown key%s",
                                 dnn_text_hint(hint, sizeof hint, it.name, words));
    }
    struct dnn_jobj name = dnn_json_sub(at, "class_name");
    if (name.val == NULL)
        return dnn_json_fail(at, err, "the key \"class_name\" is missing");
    DNN_TRY(dnn_json_string(&name, class_name, err));
    *inside = dnn_json_sub(at, "config");
    return 0;
}

/* Only float32 is accepted: the configuration file sets the precision. */
static int read_dtype(const struct dnn_layer *layer, const struct dnn_jobj *config,
                      struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(config, "dtype"), inside;
    char quote[DNN_JSON_QUOTE];
    const char *word;

    if (dnn_json_type(&at) <= DNN_J_NULL ||
        strcmp(layer->type->name, "InputLayer") == 0)
        return 0;
    DNN_TRY(dnn_layer_read_object(&at, &word, &inside, err));
    struct dnn_jobj policy = dnn_json_sub(&inside, "name");
    if (policy.val != NULL) DNN_TRY(dnn_json_string(&policy, &word, err));
    if (strcmp(word, "float32") == 0) return 0;
    snprintf(quote, sizeof quote, "%.40s", word);
    return dnn_json_fail(&at, err,
                         "must be \"float32\", not \"%s\": the configuration file "
                         "sets the precision, not the layer",
                         quote);
}

int dnn_layer_read_shape(const struct dnn_jobj *at, struct dnn_shape *out,
                         struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];
    struct dnn_jobj list = *at;

    /* Keras 2.13 to 2.15 wrap tuples in an object. */
    if (dnn_json_type(&list) == DNN_J_OBJECT) list = dnn_json_sub(at, "items");
    if (dnn_json_type(&list) != DNN_J_LIST)
        return dnn_json_fail(at, err, "must be a list of sizes, not %s",
                             dnn_json_quote(quote, at));
    /* Keras 1 and 2 write the shape of a single input also as [[...]]. */
    struct dnn_jobj inner = dnn_json_first(&list);
    if (dnn_json_count(&list) == 1 && dnn_json_type(&inner) == DNN_J_LIST) list = inner;
    *out = (struct dnn_shape){0};
    for (struct dnn_jobj it = dnn_json_first(&list); it.val != NULL;
         it = dnn_json_next(&it)) {
        int64_t extent = DNN_UNKNOWN;

        if (out->ndim == DNN_MAX_DIMS)
            return dnn_json_fail(at, err, "has more than %d axes", DNN_MAX_DIMS);
        if (dnn_json_type(&it) != DNN_J_NULL) {
            DNN_TRY(dnn_json_int(&it, &extent, err));
            if (extent < 1 || extent > DNN_LAYER_AXIS_MAX)
                return dnn_json_fail(&it, err,
                                     "must be null or between 1 and %d, not %" PRId64,
                                     DNN_LAYER_AXIS_MAX, extent);
        }
        out->dim[out->ndim++] = extent;
    }
    if (out->ndim == 0) return dnn_json_fail(at, err, "must not be empty");
    return 0;
}

/* The input shape of a first layer, under any of its keys. */
static int read_input(struct dnn_layer *layer, const struct dnn_jobj *config,
                      struct dnn_err *err)
{
    struct dnn_jobj full = dnn_layer_either(config, "batch_input_shape", "batch_shape");
    struct dnn_jobj no_batch = dnn_layer_either(config, "input_shape", "shape");
    struct dnn_jobj dim = dnn_json_sub(config, "input_dim");

    if (dnn_json_type(&full) > DNN_J_NULL) {
        layer->has_input = true;
        return dnn_layer_read_shape(&full, &layer->input, err);
    }
    if (dnn_json_type(&no_batch) > DNN_J_NULL) {
        struct dnn_shape s;

        DNN_TRY(dnn_layer_read_shape(&no_batch, &s, err));
        if (s.ndim == DNN_MAX_DIMS)
            return dnn_json_fail(&no_batch, err, "has more than %d axes",
                                 DNN_MAX_DIMS - 1);
        layer->has_input = true;
        layer->input = (struct dnn_shape){.ndim = s.ndim + 1, .dim = {DNN_UNKNOWN}};
        memcpy(layer->input.dim + 1, s.dim, (size_t)s.ndim * sizeof s.dim[0]);
    } else if (dnn_json_type(&dim) == DNN_J_NUMBER) {
        int64_t n;

        DNN_TRY(dnn_json_int(&dim, &n, err));
        if (n < 1 || n > DNN_LAYER_AXIS_MAX)
            return dnn_json_fail(&dim, err, "must be between 1 and %d, not %" PRId64,
                                 DNN_LAYER_AXIS_MAX, n);
        layer->has_input = true;
        layer->input = (struct dnn_shape){
            .ndim = 2, .dim = {DNN_UNKNOWN, n}
        };
    }
    return 0;
}

int dnn_layer_error_at(const struct dnn_jobj *config, const char *name,
                       const char *class_name, struct dnn_err *err)
{
    const char *file = dnn_json_name(config->file);
    size_t at = strlen(file);
    struct dnn_err old;
    int digits = 0;

    if (err == NULL) return DNN_ECONFIG;
    old = *err;
    if (strncmp(old.text, file, at) != 0 || old.text[at] != ':') return err->code;
    digits = (int)strspn(old.text + at + 1, "0123456789");
    at += 1 + (size_t)digits;
    if (strncmp(old.text + at, ": ", 2) != 0) return err->code;
    return dnn_fail(err, old.code, "%.*s: layer '%.80s' (%.60s): %s", (int)at, old.text,
                    name, class_name, old.text + at + 2);
}

static int unknown(const char *class_name, const struct dnn_jobj *config,
                   struct dnn_err *err)
{
    const char *words[256];
    char hint[128];
    int n = 0;

    for (int i = 0; dnn_layer_at(i) != NULL && n < 255; i++)
        words[n++] = dnn_layer_at(i)->name;
    words[n] = NULL;
    return dnn_json_fail(config, err, "unknown layer class%s",
                         dnn_text_hint(hint, sizeof hint, class_name, words));
}

int dnn_layer_read_keys(struct dnn_layer *layer, const struct dnn_jobj *config,
                        struct dnn_err *err)
{
    static const struct dnn_field none[] = {DNN_LAYER_END};
    const struct dnn_layer_type *type = layer->type;
    struct common common;
    void *cfg = dnn_arena_alloc(layer->arena, type->size == 0 ? 1 : type->size);
    const struct dnn_field *own = type->fields;
    struct dnn_jobj activity = dnn_json_sub(config, "activity_regularizer");

    if (layer->keras == 1 && type->keras1 != NULL) own = type->keras1;
    const struct dnn_fill fills[] = {
        {own == NULL ? none : own, cfg    },
        {fields,                   &common}
    };
    DNN_TRY(dnn_field_fill_all(config, fills, 2, layer->arena, err));
    layer->trainable = common.trainable;
    layer->cfg = cfg;
    DNN_TRY(read_dtype(layer, config, err));
    DNN_TRY(dnn_layer_read_reg(&activity, &layer->activity, err));
    DNN_TRY(read_input(layer, config, err));
    return type->read == NULL ? 0 : type->read(layer, cfg, config, err);
}

int dnn_layer_read(const char *class_name, const char *name,
                   const struct dnn_jobj *config, int keras, struct dnn_arena *arena,
                   const struct dnn_layer **out, struct dnn_err *err)
{
    struct dnn_layer *layer = dnn_arena_alloc(arena, sizeof *layer);
    struct dnn_jobj at = *config;
    int rc;

    /* Paths in messages begin here: messages name the layer, not the list indices
     * that lead to it. */
    at.up = NULL;
    at.name = NULL;
    layer->type = dnn_layer_find(class_name);
    layer->name = name;
    layer->keras = keras;
    layer->arena = arena;
    if (layer->type == NULL)
        rc = unknown(class_name, &at, err);
    else
        rc = dnn_layer_read_keys(layer, &at, err);
    if (rc < 0) return dnn_layer_error_at(config, name, class_name, err);
    *out = layer;
    return 0;
}

/* ---- shapes and weights ---- */

/* The product of the known extents; saturates. */
static int64_t known_count(const struct dnn_shape *shape, int first)
{
    int64_t count = 1;

    for (int i = first; i < shape->ndim; i++)
        if (shape->dim[i] > 0 && __builtin_mul_overflow(count, shape->dim[i], &count))
            return INT64_MAX;
    return count;
}

/* Fails if a weight is too large, or does not fit its initializer or constraint. */
static int check_weight(const struct dnn_layer_weight *w, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];

    dnn_shape_text(text, sizeof text, &w->shape);
    if (known_count(&w->shape, 0) > DNN_LAYER_COUNT_MAX)
        return dnn_fail(err, DNN_ECONFIG, "its %s would be %s, too large to train",
                        w->name, text);
    if (w->init.kind == DNN_INIT_IDENTITY && w->shape.ndim != 2)
        return dnn_fail(err, DNN_ECONFIG,
                        "its %s is %s: the initializer Identity needs a matrix",
                        w->name, text);
    if (w->init.kind == DNN_INIT_ORTHOGONAL && w->shape.ndim < 2)
        return dnn_fail(
            err, DNN_ECONFIG,
            "its %s is %s: the initializer Orthogonal needs two axes or more", w->name,
            text);
    if (w->constraint.kind != DNN_CONSTRAIN_NONE && w->constraint.axes >> w->shape.ndim)
        return dnn_fail(
            err, DNN_ECONFIG,
            "its %s is %s: the constraint is over an axis that it does not have",
            w->name, text);
    return 0;
}

int dnn_layer_infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                    struct dnn_shape *out, struct dnn_err *err)
{
    struct dnn_layer_weight weight[DNN_LAYER_WEIGHTS];
    char text[DNN_SHAPE_TEXT];

    DNN_TRY(layer->type->infer(layer, nin, in, out, err));
    for (int i = 1; i < out->ndim; i++)
        if (out->dim[i] > DNN_LAYER_AXIS_MAX)
            return dnn_fail(err, DNN_ECONFIG,
                            "its output would be %s, too large an axis",
                            dnn_shape_text(text, sizeof text, out));
    if (known_count(out, 1) > DNN_LAYER_COUNT_MAX)
        return dnn_fail(err, DNN_ECONFIG,
                        "its output would be %s, too large to compute",
                        dnn_shape_text(text, sizeof text, out));
    int n = dnn_layer_weights(layer, nin, in, weight);
    for (int i = 0; i < n; i++)
        DNN_TRY(check_weight(&weight[i], err));
    return 0;
}

int dnn_layer_weights(const struct dnn_layer *layer, int nin,
                      const struct dnn_shape *in,
                      struct dnn_layer_weight out[DNN_LAYER_WEIGHTS])
{
    int n = 0;

    if (layer->type->weights != NULL) n = layer->type->weights(layer, nin, in, out);
    for (int i = 0; i < n; i++) {
        out[i].state = !out[i].trainable;
        if (!layer->trainable) out[i].trainable = false;
    }
    return n;
}

void dnn_layer_add_weight(struct dnn_layer_weight *out, int *n, const char *name,
                          struct dnn_shape shape, bool trainable,
                          const struct dnn_layer_spec *spec)
{
    out[(*n)++] = (struct dnn_layer_weight){.name = name,
                                            .shape = shape,
                                            .trainable = trainable,
                                            .init = spec->init,
                                            .reg = spec->reg,
                                            .constraint = spec->constraint};
}

struct dnn_shape dnn_layer_shape(int ndim, int64_t a, int64_t b, int64_t c, int64_t d,
                                 int64_t e)
{
    return (struct dnn_shape){
        .ndim = ndim, .dim = {a, b, c, d, e}
    };
}

int dnn_layer_one(int nin, const struct dnn_shape *in, int min, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];

    if (nin != 1) return dnn_fail(err, DNN_ECONFIG, "takes one input, not %d", nin);
    if (in->ndim < min)
        return dnn_fail(err, DNN_ECONFIG,
                        "takes an input of %d or more axes (the batch is one), not %s",
                        min, dnn_shape_text(text, sizeof text, in));
    return 0;
}

int dnn_layer_axis(int64_t axis, int ndim, int *out, struct dnn_err *err)
{
    if (axis < -ndim || axis >= ndim)
        return dnn_fail(
            err, DNN_ECONFIG,
            "\"axis\" must be between %d and %d for this input, not %" PRId64, -ndim,
            ndim - 1, axis);
    *out = (int)(axis < 0 ? axis + ndim : axis);
    return 0;
}
