/* tiles.c - the network at the extents of a tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/volume_impl.h"

#include "base/mem.h"
#include "engine/load.h"

#include <string.h>

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
    opts.owner = owner == NULL ? NULL : owner->model;
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
