/* explain.c - what a run would do.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/volume_impl.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* Samples in tiles: the plan, and the network at their extents. */
struct tiles {
    struct dnn_stage_cfg stage;
    struct infer_plan plan;    /* owned */
    struct infer_input *input; /* owned */
    struct infer_net *net;     /* owned */
};

/* As a whole if the largest sample fits, else in tiles. */
static int open_net(struct tiles *t, struct dnn_err *err)
{
    struct infer_plan *plan = &t->plan;

    if (t->stage.config->infer->tiles == DNN_TILES_WHOLE) {
        const int64_t *extent = plan->sample[dnn_infer_plan_largest(plan)].extent;
        int rc = dnn_infer_net_open(&t->stage, extent, 1, NULL, &t->net, err);

        if (rc == 0) memset(plan->tile, 0, sizeof plan->tile);
        if (rc != DNN_ENOMEM) return rc;
    }
    return dnn_infer_net_open(&t->stage, plan->tile, plan->batch, NULL, &t->net, err);
}

static int explain_tiles(struct tiles *t, int ranks, FILE *where, struct dnn_err *err)
{
    const struct dnn_config *config = t->stage.config;
    struct infer_plan *plan = &t->plan;
    struct dnn_shape tile = {0};
    struct infer_result r;
    char text[DNN_SHAPE_TEXT], cut[DNN_SHAPE_TEXT + 64], a[32], b[32];
    size_t sums;

    DNN_TRY(dnn_infer_plan_open(plan, config, err));
    DNN_TRY(dnn_infer_input_open(config, &t->input, err));
    DNN_TRY(dnn_infer_plan_read(plan, t->input, err));
    DNN_TRY(open_net(t, err));
    DNN_TRY(dnn_infer_plan_units(plan, err));
    DNN_TRY(dnn_infer_result_make(&r, config, t->stage.session, t->net->model, err));
    DNN_TRY(dnn_infer_plan_sums(plan, &r, t->net, &sums, err));
    tile.ndim = plan->ndim;
    memcpy(tile.dim, plan->tile, (size_t)plan->ndim * sizeof *plan->tile);
    if (plan->tile[0] == 0)
        snprintf(cut, sizeof cut, "as a whole, or in tiles if they do not fit");
    else
        snprintf(cut, sizeof cut, "in %" PRId64 " tiles of %s", plan->tiles,
                 dnn_shape_text(text, sizeof text, &tile));
    fprintf(where,
            "%d rank%s, backend %s%s\n%" PRId64 " samples %s; %" PRId64
            " parts, of which each rank computes about %.1f\n"
            "memory per rank: network %s, overlapping tiles at most %s\n\n",
            ranks, ranks == 1 ? "" : "s", t->net->model->backend.name,
            config->deterministic ? ", deterministic" : "", plan->count, cut,
            plan->units, (double)plan->units / (double)ranks,
            dnn_text_bytes(a, sizeof a, (double)dnn_model_bytes(t->net->model).all),
            dnn_text_bytes(b, sizeof b, (double)sums));
    dnn_model_print_steps(t->net->model, where);
    dnn_model_print_memory(t->net->model, where);
    return 0;
}

int dnn_infer_explain(const struct dnn_config *config,
                      const struct dnn_infer_opts *opts, int ranks, FILE *where,
                      struct dnn_err *err)
{
    struct dnn_stage_explain what = {
        .stage = {.config = config,
                  .backend = opts->backend,
                  .kernels = opts->kernels,
                  .test = true},
        .ranks = ranks,
        .where = where
    };
    struct tiles t = {.stage = what.stage};
    struct dnn_session session;
    bool tiles = false;

    DNN_TRY(dnn_session_pretend((int)config->threads, ranks, &session, err));
    t.stage.session = &session;
    t.stage.dry_run = true;
    int rc = dnn_infer_needs_tiles(config, &session, &tiles, err);
    if (rc == 0 && tiles) rc = explain_tiles(&t, ranks, where, err);
    dnn_infer_net_close(t.net);
    dnn_infer_input_close(t.input);
    dnn_infer_plan_close(&t.plan);
    dnn_session_close(&session);
    if (tiles || (rc < 0 && rc != DNN_EIO)) return rc;
    /* Data that cannot be read: explain the network alone. */
    *err = (struct dnn_err){0};
    return dnn_stage_explain(&what, err);
}
