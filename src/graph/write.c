/* write.c - writes a network as Keras 3 JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/graph_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* Keras 3 allows no slash in a name. */
static void put_name(struct dnn_buf *out, const char *name, const char *end)
{
    char *text = dnn_format("%s%s", name, end);

    for (char *c = text; *c != '\0'; c++)
        if (*c == '/') *c = '_';
    dnn_json_quoted(out, text);
    dnn_free(text);
}

static void put_shape(struct dnn_buf *out, const struct dnn_shape *shape)
{
    dnn_buf_add(out, "[null");
    for (int i = 1; i < shape->ndim; i++) {
        if (shape->dim[i] < 0)
            dnn_buf_add(out, ", null");
        else
            dnn_buf_add(out, ", %" PRId64, shape->dim[i]);
    }
    dnn_buf_add(out, "]");
}

static bool is_sequential(const struct graph_layer *l)
{
    return strcmp(l->class_name, "Sequential") == 0;
}

static const struct dnn_shape *ref_shape(const struct graph_model *m,
                                         const struct graph_ref *ref)
{
    return &m->layer[ref->layer].call[ref->call].out[ref->tensor];
}

/* ---- calls ---- */

/* A tensor of the layer with the name name + end. */
static void put_tensor(struct dnn_buf *out, const struct dnn_shape *shape,
                       const char *name, const char *end, int64_t call, int64_t tensor)
{
    dnn_buf_add(out, "{\"class_name\": \"__keras_tensor__\", \"config\": {\"shape\": ");
    put_shape(out, shape);
    dnn_buf_add(out, ", \"dtype\": \"float32\", \"keras_history\": [");
    put_name(out, name, end);
    dnn_buf_add(out, ", %" PRId64 ", %" PRId64 "]}}", call, tensor);
}

/* Whether a layer is different in training. */
static bool depends_on_training(const struct graph_layer *l)
{
    return l->model != NULL || strstr(l->class_name, "Dropout") != NULL ||
           strcmp(l->class_name, "BatchNormalization") == 0 ||
           strcmp(l->class_name, "GaussianNoise") == 0 ||
           strcmp(l->class_name, "StochasticDepth") == 0;
}

static struct dnn_shape padded(struct dnn_shape shape, const struct dnn_layer_out *pad)
{
    for (int i = 0; i < pad->npad; i++)
        if (shape.dim[i + 1] >= 0) shape.dim[i + 1] += 2 * pad->pad[i];
    return shape;
}

/* pad: the call's input is a ZeroPadding layer in front of it; NULL: there is none. */
static void put_call(struct dnn_buf *out, const struct graph_model *m,
                     const struct graph_layer *l, int which,
                     const struct dnn_layer_out *pad)
{
    const struct graph_call *c = &l->call[which];
    bool flat = l->is_op && strcmp(l->class_name, "Concatenate") != 0;
    bool list = c->nrefs > 1 && !flat;
    const char *separator = "";

    dnn_buf_add(out, "{\"args\": [%s", list ? "[" : "");
    if (c->has_number && c->number_first) dnn_buf_add(out, "%.17g, ", c->number);
    for (int i = 0; i < c->nrefs; i++) {
        const struct graph_ref *ref = &c->ref[i];

        dnn_buf_add(out, "%s", separator);
        separator = ", ";
        if (pad == NULL)
            put_tensor(out, ref_shape(m, ref), m->layer[ref->layer].name, "", ref->call,
                       ref->tensor);
        else {
            struct dnn_shape shape = padded(*ref_shape(m, ref), pad);

            put_tensor(out, &shape, l->name, "_pad", which, 0);
        }
    }
    if (c->has_number && !c->number_first) dnn_buf_add(out, ", %.17g", c->number);
    dnn_buf_add(out, "%s], \"kwargs\": {%s}}", list ? "]" : "",
                c->training == 0 && depends_on_training(l) ? "\"training\": false"
                                                           : "");
}

/* "name" and "inbound_nodes", which only layers of a Functional model have; and the
 * closing brace of the layer. */
static void put_calls(struct dnn_buf *out, const struct graph_model *m,
                      const struct graph_layer *l, const char *end, bool functional,
                      const struct dnn_layer_out *pad)
{
    if (functional) {
        dnn_buf_add(out, ", \"name\": ");
        put_name(out, l->name, end);
        dnn_buf_add(out, ", \"inbound_nodes\": [");
        for (int i = 0; i < l->ncalls && !l->is_input; i++) {
            dnn_buf_add(out, "%s", i == 0 ? "" : ", ");
            put_call(out, m, l, i, pad);
        }
        dnn_buf_add(out, "]");
    }
    dnn_buf_add(out, "}");
}

/* ---- layers ---- */

static void put_input(struct dnn_buf *out, const struct graph_layer *l)
{
    const struct dnn_shape *used = &l->call->out[0], *own = &l->layer->input;
    bool fits = l->layer->has_input && own->ndim == used->ndim;

    for (int i = 1; fits && i < own->ndim; i++)
        fits = own->dim[i] < 0 || own->dim[i] == used->dim[i];
    dnn_buf_add(out, "{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", "
                     "\"config\": {\"batch_shape\": ");
    put_shape(out, fits ? own : used);
    dnn_buf_add(out, ", \"dtype\": \"float32\", \"sparse\": false, \"ragged\": false, "
                     "\"name\": ");
    put_name(out, l->name, "");
    dnn_buf_add(out, "}, \"registered_name\": null");
}

static void put_padding(struct dnn_buf *out, const struct graph_model *m,
                        const struct graph_layer *l, const struct dnn_layer_out *pad,
                        bool functional)
{
    dnn_buf_add(out,
                "{\"module\": \"keras.layers\", \"class_name\": \"ZeroPadding%dD\", "
                "\"config\": {\"padding\": %s",
                pad->npad, pad->npad == 1 ? "" : "[");
    for (int i = 0; i < pad->npad; i++)
        dnn_buf_add(out, "%s[%" PRId64 ", %" PRId64 "]", i == 0 ? "" : ", ",
                    pad->pad[i], pad->pad[i]);
    dnn_buf_add(out, "%s, \"name\": ", pad->npad == 1 ? "" : "]");
    put_name(out, l->name, "_pad");
    dnn_buf_add(out, "}, \"registered_name\": null");
    put_calls(out, m, l, "_pad", functional, NULL);
    dnn_buf_add(out, ",\n");
}

static int put_layer(struct dnn_buf *out, const struct graph_model *m,
                     const struct graph_layer *l, bool functional, struct dnn_err *err)
{
    const struct graph_call *c = l->call;
    struct dnn_layer_out is;
    int rc = dnn_layer_write(l->layer, l->name, &is, err);

    if (rc < 0) {
        dnn_buf_free(&is.config);
        return dnn_prefix(err, "layer '%.80s' (%.60s): ", l->full, l->class_name);
    }
    if (is.npad > 0) put_padding(out, m, l, &is, functional);
    dnn_buf_add(out,
                "{\"module\": \"%s\", \"class_name\": \"%s\", \"config\": {%s}, "
                "\"registered_name\": ",
                is.module, is.class_name, is.config.text);
    if (is.registered == NULL)
        dnn_buf_add(out, "null");
    else
        dnn_json_quoted(out, is.registered);
    if (!l->is_op) {
        dnn_buf_add(out, ", \"build_config\": {\"input_shape\": %s",
                    c->nrefs > 1 ? "[" : "");
        for (int i = 0; i < c->nrefs; i++) {
            struct dnn_shape shape = padded(*ref_shape(m, &c->ref[i]), &is);

            dnn_buf_add(out, "%s", i == 0 ? "" : ", ");
            put_shape(out, &shape);
        }
        dnn_buf_add(out, "%s}", c->nrefs > 1 ? "]" : "");
    }
    put_calls(out, m, l, "", functional, is.npad > 0 ? &is : NULL);
    dnn_buf_free(&is.config);
    return 0;
}

/* ---- models ---- */

/* "input_layers" and "output_layers": one directly, several as a list.  In
 * "output_layers" Keras numbers the calls of a nested Functional model from 1. */
static void put_ends(struct dnn_buf *out, const struct graph_model *m, const char *key,
                     int n, const struct graph_ref *ref, bool outputs)
{
    dnn_buf_add(out, ", \"%s\": %s", key, n == 1 ? "" : "[");
    for (int i = 0; i < n; i++) {
        const struct graph_layer *l = &m->layer[ref[i].layer];
        bool from_one = outputs && l->model != NULL && !is_sequential(l);

        dnn_buf_add(out, "%s[", i == 0 ? "" : ", ");
        put_name(out, l->name, "");
        dnn_buf_add(out, ", %" PRId64 ", %" PRId64 "]", ref[i].call + from_one,
                    ref[i].tensor);
    }
    dnn_buf_add(out, "%s", n == 1 ? "" : "]");
}

/* A model up to and including its "build_config". */
static int put_model(struct dnn_buf *out, const struct graph_model *m, const char *name,
                     bool sequential, struct dnn_err *err)
{
    dnn_buf_add(out,
                "{\"module\": \"%s\", \"class_name\": \"%s\", \"config\": {\"name\": ",
                sequential ? "keras" : "keras.src.models.functional",
                sequential ? "Sequential" : "Functional");
    put_name(out, name, "");
    dnn_buf_add(out, ", \"trainable\": true, \"layers\": [\n");
    for (int i = 0; i < m->nlayers; i++) {
        const struct graph_layer *l = &m->layer[m->listed[i]];

        if (i > 0) dnn_buf_add(out, ",\n");
        if (l->is_input) {
            put_input(out, l);
            put_calls(out, m, l, "", !sequential, NULL);
        } else if (l->model == NULL) {
            DNN_TRY(put_layer(out, m, l, !sequential, err));
        } else {
            DNN_TRY(put_model(out, l->model, l->name, is_sequential(l), err));
            put_calls(out, m, l, "", !sequential, NULL);
        }
    }
    dnn_buf_add(out, "]");
    if (sequential) {
        dnn_buf_add(out, ", \"build_input_shape\": ");
        put_shape(out, ref_shape(m, &m->input[0]));
    } else {
        put_ends(out, m, "input_layers", m->ninputs, m->input, false);
        put_ends(out, m, "output_layers", m->noutputs, m->output, true);
    }
    dnn_buf_add(out, "}, \"registered_name\": %s, \"build_config\": {\"input_shape\": ",
                sequential ? "null" : "\"Functional\"");
    if (sequential)
        put_shape(out, ref_shape(m, &m->input[0]));
    else
        dnn_buf_add(out, "null");
    dnn_buf_add(out, "}");
    return 0;
}

int dnn_graph_write(const struct dnn_graph *graph, struct dnn_buf *out,
                    struct dnn_err *err)
{
    DNN_TRY(put_model(out, graph->model, graph->name, graph->model->chain, err));
    dnn_buf_add(out, "}\n");
    return 0;
}
