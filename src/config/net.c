/* net.c - read or make a network.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/net.h"

#include "base/field.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "package/package.h"

#include <inttypes.h>
#include <string.h>

/* Replace spatial sizes and channels in a shape (batch, space..., channels). */
static int resize(const struct dnn_net_size *size, struct dnn_shape *shape,
                  struct dnn_err *err)
{
    struct dnn_shape want;
    int space = shape->ndim - 2;

    if (size->channels > 0) shape->dim[shape->ndim - 1] = size->channels;
    if (size->extents == NULL) return 0;
    if (dnn_shape_parse(size->extents, &want, err) < 0)
        return dnn_prefix(err, "the size \"%.40s\": ", size->extents);
    if (space < 1)
        return dnn_fail(err, DNN_EUSAGE,
                        "the size %.40s: the network's input has no spatial axes",
                        size->extents);
    if (want.ndim != 1 && want.ndim != space)
        return dnn_fail(err, DNN_EUSAGE,
                        "the size %.40s: the network's input has %d spatial axes; give "
                        "as many sizes, or one for all",
                        size->extents, space);
    for (int i = 0; i < space; i++) {
        int64_t extent = want.dim[want.ndim == 1 ? 0 : i];

        if (extent < 1)
            return dnn_fail(err, DNN_EUSAGE, "the size %.40s: sizes must be at least 1",
                            size->extents);
        shape->dim[i + 1] = extent;
    }
    return 0;
}

static bool is_default(const struct dnn_net_size *size)
{
    return size == NULL || (size->extents == NULL && size->channels == 0);
}

static int read_text(const char *name, const char *text, struct dnn_graph **out,
                     struct dnn_err *err)
{
    struct dnn_json *file;

    DNN_TRY(dnn_json_text(name, text, strlen(text), &file, err));
    struct dnn_jobj top = dnn_json_top(file);
    int rc = dnn_graph_read_json(&top, NULL, out, err);
    dnn_json_free(file);
    return rc;
}

/* The network as these options make it. */
static int make(const struct dnn_zoo_opts *opts, struct dnn_net *out,
                struct dnn_err *err)
{
    *out = (struct dnn_net){0};
    DNN_TRY(dnn_zoo_text(opts, &out->text, err));
    int rc = read_text(opts->zoo, out->text, &out->graph, err);
    if (rc < 0) dnn_net_free(out);
    return rc;
}

int dnn_net_zoo(const struct dnn_zoo_opts *opts, const struct dnn_net_size *size,
                struct dnn_net *out, struct dnn_err *err)
{
    struct dnn_zoo_opts sized = *opts;

    if (is_default(size)) return make(opts, out, err);
    /* Made once to find out its number of axes and channels. */
    DNN_TRY(make(opts, out, err));
    struct dnn_shape shape = out->graph->node[out->graph->input[0]].out;
    dnn_net_free(out);
    DNN_TRY(resize(size, &shape, err));
    sized.input = (struct dnn_list){.count = shape.ndim - 1, .ints = shape.dim + 1};
    return make(&sized, out, err);
}

/* A model file, or a Keras file. */
static int read_file(const char *path, const struct dnn_graph_opts *opts,
                     struct dnn_net *out, struct dnn_err *err)
{
    struct dnn_package *p;

    if (!dnn_package_is(path)) return dnn_graph_read(path, opts, &out->graph, err);
    DNN_TRY(dnn_package_open_network(path, &p, err));
    int rc = dnn_package_graph(p, opts, &out->graph, err);
    if (rc == 0) out->text = dnn_strdup(dnn_package_text(p, "network.json"));
    dnn_package_close(p);
    return rc;
}

int dnn_net_file(const char *path, const struct dnn_net_size *size, struct dnn_net *out,
                 struct dnn_err *err)
{
    *out = (struct dnn_net){0};
    DNN_TRY(read_file(path, NULL, out, err));
    if (is_default(size)) return 0;
    struct dnn_graph_opts opts = {.ninputs = out->graph->ninputs};
    struct dnn_shape *shape = dnn_alloc((size_t)opts.ninputs * sizeof *shape);
    int rc = 0;

    for (int i = 0; i < opts.ninputs && rc == 0; i++) {
        shape[i] = out->graph->node[out->graph->input[i]].out;
        rc = resize(size, &shape[i], err);
    }
    dnn_net_free(out);
    opts.input = shape;
    if (rc == 0) rc = read_file(path, &opts, out, err);
    dnn_free(shape);
    return rc;
}

/* A file below dir, or the layers themselves. */
static int read_layers(const struct dnn_jobj *at, const char *dir,
                       const struct dnn_graph_opts *opts, struct dnn_net *out,
                       struct dnn_err *err)
{
    const char *path;

    if (dnn_json_type(at) != DNN_J_TEXT)
        return dnn_graph_read_json(at, opts, &out->graph, err);
    DNN_TRY(dnn_json_string(at, &path, err));
    char *whole = dnn_format("%s%s", path[0] == '/' ? "" : dir, path);
    int rc = read_file(whole, opts, out, err);
    dnn_free(whole);
    return rc;
}

static int read_zoo(const struct dnn_jobj *at, const struct dnn_list *input,
                    struct dnn_net *out, struct dnn_err *err)
{
    struct dnn_zoo_opts opts;

    DNN_TRY(dnn_field_fill(at, dnn_zoo_fields, NULL, &opts, err));
    if (input->count > 0) opts.input = *input;
    if (dnn_net_zoo(&opts, NULL, out, err) < 0)
        return dnn_prefix(err, "%s:%zu: ", dnn_json_name(at->file), dnn_json_line(at));
    return 0;
}

/* Whether the shape of every input is known, except for the batch. */
static int check_inputs(const struct dnn_graph *graph, struct dnn_err *err)
{
    for (int i = 0; i < graph->ninputs; i++) {
        const struct dnn_graph_node *node = &graph->node[graph->input[i]];
        char text[DNN_SHAPE_TEXT];
        struct dnn_shape shape = node->out;

        shape.dim[0] = 1;
        if (dnn_shape_known(&shape)) continue;
        struct dnn_buf example = {0};
        for (int k = 1; k < shape.ndim; k++)
            dnn_buf_add(&example, "%s%" PRId64, k == 1 ? "" : ", ",
                        shape.dim[k] >= 0    ? shape.dim[k]
                        : k + 1 < shape.ndim ? 64
                                             : 1);
        int rc = dnn_fail(err, DNN_ECONFIG,
                          "%s:%d: the input '%.80s' is %s; give its shape without "
                          "the batch in the configuration, such as \"input\": [%s]",
                          graph->file, node->line, node->name,
                          dnn_shape_text(text, sizeof text, &node->out), example.text);
        dnn_buf_free(&example);
        return rc;
    }
    return 0;
}

int dnn_net_layers(const struct dnn_jobj *at, const char *dir,
                   const struct dnn_list *input, struct dnn_net *out,
                   struct dnn_err *err)
{
    struct dnn_jobj zoo = dnn_json_sub(at, "zoo");
    struct dnn_shape shape = {.ndim = (int)input->count + 1, .dim = {DNN_UNKNOWN}};
    const struct dnn_graph_opts opts = {.ninputs = input->count > 0, .input = &shape};

    *out = (struct dnn_net){0};
    if (dnn_json_type(&zoo) != DNN_J_ABSENT) return read_zoo(at, input, out, err);
    for (int64_t i = 0; i < input->count; i++)
        shape.dim[i + 1] = input->ints[i];
    int rc = read_layers(at, dir, &opts, out, err);
    if (rc == 0) rc = check_inputs(out->graph, err);
    if (rc < 0) dnn_net_free(out);
    return rc;
}

void dnn_net_free(struct dnn_net *net)
{
    dnn_graph_free(net->graph);
    dnn_free(net->text);
    *net = (struct dnn_net){0};
}
