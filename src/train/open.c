/* open.c - set-up of a run: network, metrics, files.
 *
 * All ranks agree on the result of each phase before the next one begins.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/file.h"
#include "base/mem.h"
#include "engine/load.h"
#include "stage/eval.h"

/* The parts that do not communicate. */
static int open_local(struct train_loop *t, struct dnn_err *err)
{
    struct train_run *run = &t->run;
    const struct dnn_config *config = run->config;
    struct dnn_model *m = dnn_train_model(run);

    if (run->stage->eval.role == DNN_MODEL_EVALUATE) {
        DNN_TRY(dnn_stage_eval_make(run->stage, &run->eval, err));
        run->metrics = dnn_stage_metrics(run->eval);
    }
    DNN_TRY(dnn_train_monitor_open(&t->monitor, run, &t->at, err));
    DNN_TRY(dnn_train_ema_make(&t->ema, m, config->ema, err));
    if (run->root) DNN_TRY(dnn_config_network(config, &run->network, err));
    DNN_TRY(dnn_hessian_open(run, &t->at, &t->hessian, err));
    DNN_TRY(dnn_exec_init(m->exec, (uint64_t)config->seed, err));
    if (!run->root) return 0;
    DNN_TRY(dnn_file_make_dirs(dnn_config_dir(config), err));
    return dnn_stage_debug(run->stage, err);
}

static int open_ckpt(struct train_loop *t, struct dnn_err *err)
{
    struct train_state *state = &t->ckpt.state;

    dnn_train_state_model(state, dnn_train_model(&t->run), t->ema.average);
    dnn_hessian_state(t->hessian, state);
    dnn_train_progress_state(&t->at, state);
    dnn_train_monitor_state(&t->monitor, state);
    return dnn_train_ckpt_open(&t->ckpt, err);
}

/* The weights that a run starts from. */
static int open_weights(struct train_loop *t, struct dnn_err *err)
{
    const struct train_run *run = &t->run;
    const char *load = run->config->ckpt->load;
    int64_t step = -1;

    DNN_TRY(dnn_train_resume(&t->ckpt, &step, err));
    if (step >= 0) return 0;
    if (load != NULL)
        DNN_TRY(dnn_load_weights(dnn_train_model(run), run->comm,
                                 dnn_config_path(run->config, load), false, err));
    dnn_train_ema_start(&t->ema);
    return 0;
}

int dnn_train_open(struct train_loop *t, struct dnn_err *err)
{
    struct train_run *run = &t->run;
    const struct dnn_stage_cfg cfg = {.config = run->config,
                                      .session = run->session,
                                      .backend = run->opts->backend,
                                      .kernels = run->opts->kernels};

    t->ckpt.at = &t->at;
    t->ckpt.monitor = &t->monitor;
    DNN_TRY(dnn_stage_open(&cfg, &run->stage, err));
    t->ckpt.config = run->config;
    t->ckpt.comm = run->comm;
    t->ckpt.replica = run->stage->replica;
    DNN_TRY(dnn_comm_agree(run->comm, open_local(t, err), err));
    DNN_TRY(open_ckpt(t, err));
    DNN_TRY(open_weights(t, err));
    return dnn_comm_agree(run->comm, dnn_train_log_open(&t->log, run, &t->at, err),
                          err);
}

void dnn_train_close(struct train_loop *t, bool failed)
{
    dnn_train_log_close(&t->log);
    dnn_train_ckpt_close(&t->ckpt, failed);
    dnn_hessian_close(t->hessian);
    dnn_train_ema_free(&t->ema);
    dnn_stage_eval_free(t->run.eval);
    dnn_stage_close(t->run.stage);
    dnn_free(t->run.network);
}
