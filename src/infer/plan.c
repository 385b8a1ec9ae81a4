/* plan.c - which tiles and units the samples have.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/volume_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* ---- windows ---- */

int dnn_infer_plan_window(const struct infer_plan *p, int64_t sample,
                          struct dnn_window **out, struct dnn_err *err)
{
    const struct dnn_config_infer *how = p->config->infer;
    struct dnn_window_cfg cfg = {.ndim = p->ndim,
                                 .blend = (enum dnn_window_blend)how->blend,
                                 .sigma = how->sigma};

    for (int d = 0; d < p->ndim; d++) {
        cfg.full[d] = p->sample[sample].extent[d];
        cfg.tile[d] = p->tile[d] == 0 ? cfg.full[d] : p->tile[d];
        cfg.overlap[d] = how->overlap.reals[how->overlap.count > d ? d : 0];
    }
    return dnn_window_make(&cfg, out, err);
}

static int check_axes(const char *key, const struct dnn_list *list, int ndim,
                      struct dnn_err *err)
{
    if (list->count <= 1 || list->count == ndim) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "inference.%s: has %" PRId64 " numbers, but the network has %d "
                    "spatial axes; give one number, or one for each axis",
                    key, list->count, ndim);
}

int dnn_infer_plan_open(struct infer_plan *p, const struct dnn_config *config,
                        struct dnn_err *err)
{
    const struct dnn_config_infer *how = config->infer;
    const struct dnn_graph *graph = config->net.graph;

    *p = (struct infer_plan){.config = config};
    p->ndim = graph->node[graph->input[0]].out.ndim - 2;
    DNN_TRY(check_axes("tile", &how->tile, p->ndim, err));
    DNN_TRY(check_axes("overlap", &how->overlap, p->ndim, err));
    for (int64_t i = 0; i < how->flips.count; i++)
        if (how->flips.ints[i] >= p->ndim)
            return dnn_fail(err, DNN_ECONFIG,
                            "inference.flips: axis %" PRId64 " does not exist; the "
                            "network has the spatial axes 0 to %d",
                            how->flips.ints[i], p->ndim - 1);
    for (int d = 0; d < p->ndim; d++)
        p->tile[d] = how->tile.count > 0 ? how->tile.ints[how->tile.count > d ? d : 0]
                                         : graph->node[graph->input[0]].out.dim[d + 1];
    return 0;
}

/* ---- the plan ---- */

static int64_t points(const struct infer_sample_plan *s, int ndim)
{
    int64_t n = 1;

    for (int d = 0; d < ndim; d++)
        n *= s->extent[d];
    return n;
}

int64_t dnn_infer_plan_largest(const struct infer_plan *p)
{
    int64_t largest = 0;

    for (int64_t i = 1; i < p->count; i++)
        if (points(&p->sample[i], p->ndim) > points(&p->sample[largest], p->ndim))
            largest = i;
    return largest;
}

bool dnn_infer_plan_evaluated(const struct infer_plan *p,
                              const struct infer_input *input)
{
    return dnn_infer_target_column(input) != NULL &&
           dnn_config_test_mode(p->config) == DNN_CONFIG_EVAL;
}

/* A batch has at most the tiles of a sample. */
static int find_batch(struct infer_plan *p, struct dnn_err *err)
{
    int64_t most = 1;

    for (int64_t i = 0; i < p->count; i++) {
        struct dnn_window *w;

        DNN_TRY(dnn_infer_plan_window(p, i, &w, err));
        if (dnn_window_tiles(w) > most) most = dnn_window_tiles(w);
        dnn_window_free(w);
    }
    p->batch = p->config->infer->batch < most ? p->config->infer->batch : most;
    if (p->config->infer->tiles == DNN_TILES_WHOLE) p->batch = 1;
    return 0;
}

int dnn_infer_plan_read(struct infer_plan *p, struct infer_input *input,
                        struct dnn_err *err)
{
    const struct dnn_graph *graph = p->config->net.graph;
    const struct dnn_shape *net = &graph->node[graph->input[0]].out;
    const struct dnn_shape *out = &graph->node[graph->output[0]].out;
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];
    struct infer_about about;

    p->count = dnn_infer_input_count(input);
    p->sample = dnn_alloc((size_t)(p->count + 1) * sizeof *p->sample);
    for (int64_t i = 0; i < p->count; i++) {
        DNN_TRY(dnn_infer_input_about(input, i, &about, err));
        if (about.shape.ndim != p->ndim + 1 ||
            about.shape.dim[p->ndim] != net->dim[p->ndim + 1])
            return dnn_fail(
                err, DNN_EDATA,
                "%s: the input has shape %s, but the network expects %s (the "
                "first extent is the batch, the last one the channels)",
                about.name, dnn_shape_text(a, sizeof a, &about.shape),
                dnn_shape_text(b, sizeof b, net));
        memcpy(p->sample[i].extent, about.shape.dim, (size_t)p->ndim * sizeof(int64_t));
        if (dnn_infer_plan_evaluated(p, input))
            DNN_TRY(dnn_infer_target_check(input, i, out->dim[out->ndim - 1], err));
    }
    return find_batch(p, err);
}

int dnn_infer_plan_units(struct infer_plan *p, struct dnn_err *err)
{
    for (int64_t i = 0; i < p->count; i++) {
        struct dnn_window *w;

        DNN_TRY(dnn_infer_plan_window(p, i, &w, err));
        p->sample[i].first = p->units;
        p->sample[i].units = dnn_window_units(w);
        p->units += p->sample[i].units;
        p->tiles += dnn_window_tiles(w);
        dnn_window_free(w);
    }
    return 0;
}

int dnn_infer_plan_sums(const struct infer_plan *p, const struct infer_result *r,
                        const struct infer_net *net, size_t *out, struct dnn_err *err)
{
    size_t most = 0, limit = (size_t)p->config->infer->memory;
    char a[32], b[32];

    for (int64_t i = 0; i < p->count; i++) {
        struct dnn_window *w;
        size_t bytes = 0;

        DNN_TRY(dnn_infer_plan_window(p, i, &w, err));
        for (int k = 0; k < r->noutputs; k++)
            bytes += dnn_blend_estimate(w, net->channels[k], r->bounded[k]);
        dnn_window_free(w);
        if (bytes > most) most = bytes;
    }
    *out = most;
    if (limit == 0 || most <= limit) return 0;
    return dnn_fail(err, DNN_ENOMEM,
                    "summing overlapping tiles needs %s, but inference.memory is %s; "
                    "smaller tiles along the first axis, less overlap or a shorter "
                    "last axis need less",
                    dnn_text_bytes(a, sizeof a, (double)most),
                    dnn_text_bytes(b, sizeof b, (double)limit));
}

void dnn_infer_plan_close(struct infer_plan *p)
{
    dnn_free(p->sample);
    *p = (struct infer_plan){0};
}
