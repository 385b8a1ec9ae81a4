/* tiles.c - whether samples are cut into tiles, and the network at the extents of a
 * tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/volume_impl.h"

#include "base/mem.h"
#include "engine/load.h"

#include <string.h>

/* ---- whether there are tiles ---- */

static bool differs(const struct dnn_shape *data, const struct dnn_shape *net)
{
    bool differs = false;

    if (data->ndim != net->ndim - 1 || data->ndim < 2) return false;
    if (data->dim[data->ndim - 1] != net->dim[net->ndim - 1]) return false;
    for (int d = 0; d + 1 < data->ndim; d++)
        differs = differs || data->dim[d] != net->dim[d + 1];
    return differs;
}

/* Whether each output has the spatial extents of the input. */
static bool is_dense(const struct dnn_graph *graph)
{
    const struct dnn_shape *in = &graph->node[graph->input[0]].out;

    for (int k = 0; k < graph->noutputs; k++) {
        const struct dnn_shape *out = &graph->node[graph->output[k]].out;

        if (out->ndim != in->ndim) return false;
        for (int d = 1; d + 1 < in->ndim; d++)
            if (out->dim[d] != in->dim[d]) return false;
    }
    return graph->ninputs == 1 && in->ndim >= 3 && in->ndim <= DNN_WINDOW_DIMS + 2;
}

static int samples_differ(const struct dnn_config *config, bool *out,
                          struct dnn_err *err)
{
    const struct dnn_graph *graph = config->net.graph;
    const struct dnn_shape *net = &graph->node[graph->input[0]].out;
    struct infer_input *input;
    struct infer_about about;
    int rc = 0;

    DNN_TRY(dnn_infer_input_open(config, &input, err));
    const struct dnn_shape *all = &dnn_infer_input_column(input)->shape;
    *out = dnn_shape_known(all) && differs(all, net);
    /* Files of which each has its own extents. */
    int64_t n = dnn_shape_known(all) ? 0 : dnn_infer_input_count(input);
    for (int64_t i = 0; i < n && rc == 0 && !*out; i++) {
        rc = dnn_infer_input_about(input, i, &about, err);
        *out = rc == 0 && differs(&about.shape, net);
    }
    dnn_infer_input_close(input);
    return rc;
}

/* What forbids tiles, or NULL. */
static const char *obstacle(const struct dnn_config *config)
{
    if (!is_dense(config->net.graph))
        return "needs a network with one input and outputs of the same spatial size as "
               "the input";
    if (config->data == NULL || dnn_config_test_mode(config) == DNN_CONFIG_NOTHING)
        return "there is no test data; set data.test_input_path or data.test_dataset";
    if (config->data->slicers.count > 0) return "cannot be combined with data.slicers";
    return NULL;
}

int dnn_infer_needs_tiles(const struct dnn_config *config, struct dnn_session *session,
                          bool *out, struct dnn_err *err)
{
    const struct dnn_config_infer *how = config->infer;
    const char *wanted = how->flips.count > 0           ? "flips"
                         : how->tile.count > 0          ? "tile"
                         : how->tiles != DNN_TILES_AUTO ? "tiles"
                                                        : NULL;
    const char *why = obstacle(config);
    bool tiles = wanted != NULL;
    int rc = 0;

    *out = false;
    if (tiles && why != NULL)
        rc = dnn_fail(err, DNN_ECONFIG, "inference.%s: %s", wanted, why);
    else if (!tiles && why == NULL)
        rc = samples_differ(config, &tiles, err);
    DNN_TRY(dnn_comm_agree(session->comm, rc, err));
    /* Ranks that see other files must not go another way. */
    DNN_TRY(dnn_comm_bcast(session->comm, "tiles", &tiles, sizeof tiles, 0, err));
    *out = tiles;
    return 0;
}

/* ---- the network ---- */

/* The network of the configuration, or the same for other extents. */
static int make_graph(struct infer_net *n, const int64_t *tile, struct dnn_err *err)
{
    const struct dnn_graph *own = n->config->net.graph;
    const struct dnn_shape *in = &own->node[own->input[0]].out;
    int64_t extents[DNN_MAX_DIMS];
    struct dnn_list list = {.count = in->ndim - 1, .ints = extents};
    bool same = true;

    for (int d = 0; d < n->ndim; d++) {
        same = same && in->dim[d + 1] == tile[d];
        extents[d] = n->tile[d] = tile[d];
    }
    extents[n->ndim] = in->dim[n->ndim + 1];
    n->graph = own;
    if (same) return 0;
    DNN_TRY(dnn_config_net(n->config, &list, &n->net, err));
    n->graph = n->net.graph;
    return 0;
}

/* All outputs must have a value for each point of the tile. */
static int check_outputs(struct infer_net *n, struct dnn_err *err)
{
    const struct dnn_model *m = n->model;
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];

    for (int k = 0; k < m->noutputs; k++) {
        const struct dnn_shape *in = dnn_prog_shape(m->prog, m->input[0]);
        const struct dnn_shape *out = dnn_prog_shape(m->prog, m->output[k]);
        bool same = out->ndim == in->ndim;

        for (int d = 1; d <= n->ndim && same; d++)
            same = out->dim[d] == in->dim[d];
        if (!same)
            return dnn_fail(
                err, DNN_ECONFIG,
                "output '%s' of the network has shape %s for an input of %s; "
                "samples can be computed in tiles only if each output has "
                "the spatial extents of the input",
                n->graph->node[n->graph->output[k]].name,
                dnn_shape_text(a, sizeof a, out), dnn_shape_text(b, sizeof b, in));
        n->channels[k] = out->dim[n->ndim + 1];
    }
    return 0;
}

static int make_model(struct infer_net *n, const struct dnn_stage_cfg *cfg,
                      int64_t batch, struct infer_net *owner, struct dnn_err *err)
{
    struct dnn_model_opts opts;

    DNN_TRY(dnn_stage_model_opts(cfg, &opts, &n->cache, err));
    opts.role = DNN_MODEL_INFER;
    opts.batch = batch;
    opts.recompute = DNN_RECOMPUTE_NEVER;
    if (owner != NULL) {
        opts.owner = owner->model;
        opts.allocated = dnn_model_bytes(owner->model).all;
    }
    DNN_TRY(dnn_model_make(n->graph, &opts, &n->model, err));
    DNN_TRY(check_outputs(n, err));
    return dnn_model_start(n->model, err);
}

int dnn_infer_net_open(const struct dnn_stage_cfg *cfg, const int64_t *tile,
                       int64_t batch, struct infer_net *owner, struct infer_net **out,
                       struct dnn_err *err)
{
    struct infer_net *n = dnn_alloc(sizeof *n);
    const struct dnn_graph *own = cfg->config->net.graph;

    n->config = cfg->config;
    n->batch = batch;
    n->ndim = own->node[own->input[0]].out.ndim - 2;
    int rc = make_graph(n, tile, err);
    if (rc == 0) rc = make_model(n, cfg, batch, owner, err);
    if (rc < 0)
        dnn_infer_net_close(n);
    else
        *out = n;
    return rc;
}

void dnn_infer_net_close(struct infer_net *net)
{
    if (net == NULL) return;
    dnn_model_free(net->model);
    dnn_net_free(&net->net);
    dnn_free(net->cache);
    dnn_free(net);
}

int dnn_infer_net_run(struct infer_net *net, dnn_exec_filler *fill, void *arg,
                      struct dnn_err *err)
{
    static const struct dnn_now now = {0};
    struct dnn_model *m = net->model;

    DNN_TRY(dnn_exec_fill(m->exec, m->input[0], fill, arg, err));
    return dnn_exec_run(m->exec, 0, m->prog->nops, &now, err);
}
