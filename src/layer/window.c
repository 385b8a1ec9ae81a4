/* window.c - windows over images: common code of convolutions and pooling.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct dnn_sub dnn_layer_extents = {.min = 1, .max = 3, .single = true};

int dnn_layer_read_extents(const struct dnn_jobj *config, const char *key, int nd,
                           const struct dnn_list *list, int64_t def, int64_t out[3],
                           struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(config, key);

    if (list->count > 1 && list->count != nd)
        return dnn_json_fail(&at, err, "must have %d element%s, not %" PRId64, nd,
                             nd == 1 ? "" : "s", list->count);
    for (int i = 0; i < nd; i++)
        out[i] = list->count == 0 ? def : list->ints[list->count == 1 ? 0 : i];
    for (int i = nd; i < 3; i++)
        out[i] = 1;
    return 0;
}

int dnn_layer_read_format(const struct dnn_jobj *config, struct dnn_err *err)
{
    struct dnn_jobj at = dnn_layer_either(config, "data_format", "dim_ordering");
    char quote[DNN_JSON_QUOTE];
    const char *word;

    if (dnn_json_type(&at) <= DNN_J_NULL) return 0;
    DNN_TRY(dnn_json_string(&at, &word, err));
    if (strcmp(word, "channels_last") == 0 || strcmp(word, "tf") == 0 ||
        strcmp(word, "default") == 0)
        return 0;
    return dnn_json_fail(&at, err,
                         "must be \"channels_last\", not %s: write the network with "
                         "channels as the last axis",
                         dnn_json_quote(quote, &at));
}

int dnn_layer_read_padding(const struct dnn_jobj *config, bool causal,
                           struct dnn_layer_window *window, struct dnn_err *err)
{
    struct dnn_jobj at = dnn_layer_either(config, "padding", "border_mode");
    char quote[DNN_JSON_QUOTE];
    const char *word;

    window->padding = DNN_LAYER_VALID;
    if (dnn_json_type(&at) <= DNN_J_NULL) return 0;
    if (dnn_json_string(&at, &word, NULL) == 0) {
        if (strcmp(word, "valid") == 0) return 0;
        window->padding = DNN_LAYER_SAME;
        if (strcmp(word, "same") == 0) return 0;
        window->padding = DNN_LAYER_CAUSAL;
        if (causal && strcmp(word, "causal") == 0) return 0;
        return dnn_json_fail(&at, err,
                             "must be \"valid\", \"same\"%s or numbers, not %s",
                             causal ? ", \"causal\"" : "", dnn_json_quote(quote, &at));
    }
    bool list = dnn_json_type(&at) == DNN_J_LIST;
    if (list && dnn_json_count(&at) != (size_t)window->nd)
        return dnn_json_fail(&at, err, "must have %d elements, not %zu", window->nd,
                             dnn_json_count(&at));
    window->padding = DNN_LAYER_NUMBERS;
    struct dnn_jobj it = list ? dnn_json_first(&at) : at;
    for (int i = 0; i < window->nd; i++) {
        DNN_TRY(dnn_json_int(&it, &window->pad[i], err));
        if (window->pad[i] < 0 || window->pad[i] > 1 << 20)
            return dnn_json_fail(&it, err, "must be between 0 and %d, not %" PRId64,
                                 1 << 20, window->pad[i]);
        if (list) it = dnn_json_next(&it);
    }
    return 0;
}

int dnn_layer_put_padding(struct dnn_layer_out *out, const struct dnn_layer_window *w,
                          bool pads, struct dnn_err *err)
{
    static const char *const names[] = {[DNN_LAYER_VALID] = "valid",
                                        [DNN_LAYER_SAME] = "same",
                                        [DNN_LAYER_CAUSAL] = "causal",
                                        [DNN_LAYER_NUMBERS] = "valid"};
    bool zero = true;

    for (int i = 0; i < w->nd; i++)
        zero = zero && w->pad[i] == 0;
    if (w->padding == DNN_LAYER_NUMBERS && !zero) {
        if (!pads)
            return dnn_fail(err, DNN_ECONFIG,
                            "Keras has no \"padding\" of numbers; use \"valid\" or "
                            "\"same\"");
        out->npad = w->nd;
        memcpy(out->pad, w->pad, sizeof out->pad);
    }
    dnn_layer_put(out, "\"padding\": \"%s\", \"data_format\": \"channels_last\"",
                  names[w->padding]);
    return 0;
}

int dnn_layer_one_image(int nd, int nin, const struct dnn_shape *in,
                        struct dnn_err *err)
{
    static const char *const what[] = {"", "steps, ", "height, width, ",
                                       "depth, height, width, "};
    char text[DNN_SHAPE_TEXT];

    if (nin != 1) return dnn_fail(err, DNN_ECONFIG, "takes one input, not %d", nin);
    if (in->ndim != nd + 2)
        return dnn_fail(err, DNN_ECONFIG,
                        "takes an input of %d axes (batch, %schannels), not %s", nd + 2,
                        what[nd], dnn_shape_text(text, sizeof text, in));
    if (in->dim[nd + 1] < 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "needs to know the channels of its input, which is %s",
                        dnn_shape_text(text, sizeof text, in));
    return 0;
}

static int64_t effective_size(const struct dnn_layer_window *w, int i)
{
    return (w->size[i] - 1) * w->dilation[i] + 1;
}

/* The padding of one axis. */
static void pads(const struct dnn_layer_window *w, int i, int64_t extent,
                 int64_t *before, int64_t *after)
{
    *before = *after = 0;
    if (w->padding == DNN_LAYER_SAME)
        dnn_op_same(extent, w->size[i], w->stride[i], w->dilation[i], before, after);
    else if (w->padding == DNN_LAYER_CAUSAL)
        *before = effective_size(w, i) - 1;
    else if (w->padding == DNN_LAYER_NUMBERS)
        *before = *after = w->pad[i];
}

int dnn_layer_window_infer(const struct dnn_layer_window *w, const struct dnn_shape *in,
                           struct dnn_shape *out, struct dnn_err *err)
{
    *out = *in;
    for (int i = 0; i < w->nd; i++) {
        int64_t extent = in->dim[i + 1], before, after;

        if (extent < 0) continue;
        pads(w, i, extent, &before, &after);
        int64_t space = extent + before + after - effective_size(w, i);
        if (space < 0) {
            char text[DNN_SHAPE_TEXT];

            return dnn_fail(
                err, DNN_ECONFIG,
                "its window of %" PRId64 " does not fit into axis %d of its input %s",
                effective_size(w, i), i + 1, dnn_shape_text(text, sizeof text, in));
        }
        out->dim[i + 1] = space / w->stride[i] + 1;
    }
    return 0;
}

void dnn_layer_window_pads(const struct dnn_layer_window *w, const struct dnn_shape *in,
                           int64_t before[3], int64_t after[3])
{
    for (int i = 0; i < 3; i++) {
        before[i] = after[i] = 0;
        if (i < w->nd) pads(w, i, in->dim[i + 1], &before[i], &after[i]);
    }
}
