/* infer.c - an inference run: finds out which samples there are, and loads the weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/infer_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "base/text.h"
#include "ckpt/ckpt.h"
#include "engine/load.h"

#include <inttypes.h>
#include <unistd.h>

static const double margin = 15; /* seconds before the time limit */

bool dnn_infer_stops(const struct dnn_session *session, double longest)
{
    return dnn_stop_requested() != 0 ||
           dnn_session_time_left(session) < margin + 2 * longest;
}

/* ---- weights ---- */

/* The newest checkpoint of the run directory, if there is one. */
static int load_newest(const struct dnn_config *config, struct dnn_session *session,
                       struct dnn_model *model, struct dnn_err *err)
{
    const char *dir = dnn_config_ckpt_dir(config);
    char *found = NULL;
    bool look = dnn_comm_rank(session->comm) == 0 && access(dir, F_OK) == 0;
    int rc = look ? dnn_ckpt_find(dir, NULL, &found, err) : 0;
    int64_t exists = look && rc == 0;

    if (rc == DNN_EDATA) { /* there is none */
        *err = (struct dnn_err){0};
        rc = 0;
    }
    rc = dnn_comm_agree(session->comm, rc, err);
    if (rc == 0)
        rc = dnn_comm_bcast(session->comm, "search for a checkpoint", &exists,
                            sizeof exists, 0, err);

    dnn_free(found);
    if (rc == 0 && exists != 0)
        rc = dnn_load_weights(model, session->comm, dir, true, err);
    else if (rc == 0 && dnn_comm_rank(session->comm) == 0)
        dnn_log(
            DNN_WARN, "infer",
            "the network is not trained: checkpoints.load is not set, and there is no "
            "checkpoint in %s",
            dir);
    return rc;
}

int dnn_infer_load(const struct dnn_config *config, struct dnn_session *session,
                   struct dnn_model *model, struct dnn_err *err)
{
    const char *load = config->ckpt->load;
    int rc = dnn_exec_init(model->exec, (uint64_t)config->seed, err);

    DNN_TRY(dnn_comm_agree(session->comm, rc, err));
    if (load == NULL) return load_newest(config, session, model, err);
    return dnn_load_weights(model, session->comm, dnn_config_path(config, load), true,
                            err);
}

/* ---- the run ---- */

static void log_header(const struct dnn_stage *stage)
{
    const struct dnn_config *config = stage->config;

    dnn_session_report(stage->session);
    dnn_log(DNN_INFO, "infer", "%s: parameters: %" PRId64, config->net.graph->name,
            config->net.graph->params);
    dnn_log(DNN_INFO, "infer", "test samples: %" PRId64 ", batch size %" PRId64,
            dnn_feed_count(stage->eval.feed), config->data->test_batch_size);
    dnn_log(DNN_INFO, "infer", "run directory: %s", dnn_config_dir(config));
}

static int run_stage(const struct dnn_config *config, struct dnn_session *session,
                     const struct dnn_infer_opts *opts, struct dnn_err *err)
{
    const struct dnn_stage_cfg cfg = {.config = config,
                                      .session = session,
                                      .backend = opts->backend,
                                      .kernels = opts->kernels,
                                      .test = true};
    struct dnn_stage *stage = NULL;

    int rc = dnn_stage_open(&cfg, &stage, err);
    if (rc == 0)
        rc = dnn_infer_load(config, session, dnn_replica_model(stage->replica), err);
    if (rc == 0 && dnn_comm_rank(session->comm) == 0) {
        log_header(stage);
        rc = dnn_stage_debug(stage, err);
    }
    if (rc == 0 || stage != NULL) rc = dnn_comm_agree(session->comm, rc, err);
    if (rc == 0) rc = dnn_infer_samples(stage, opts, 1, true, err);
    dnn_stage_close(stage);
    return rc;
}

int dnn_infer_run(const struct dnn_config *config, struct dnn_session *session,
                  const struct dnn_infer_opts *opts, struct dnn_err *err)
{
    bool tiles = false;

    int rc = dnn_infer_needs_tiles(config, session, &tiles, err);
    if (rc == 0 && tiles)
        rc = dnn_infer_volumes(config, session, opts, err);
    else if (rc == 0)
        rc = run_stage(config, session, opts, err);
    /* Only this rank failed: the others wait for it in a collective call. */
    if (rc < 0 && !err->everywhere && dnn_comm_size(session->comm) > 1) {
        dnn_log_all(DNN_ERROR, "infer", "%s", err->text);
        dnn_comm_abort(session->comm, rc);
    }
    return rc;
}

int dnn_infer_outputs(struct dnn_stage *stage, int64_t number,
                      const struct dnn_infer_opts *opts, struct dnn_err *err)
{
    return stage->test == NULL ? 0 : dnn_infer_samples(stage, opts, number, false, err);
}
