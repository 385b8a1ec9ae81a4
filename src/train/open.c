/* open.c - set-up of a run: network, metrics, files.
 *
 * All ranks agree on the result of each phase before the next one begins.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- files ---- */

char *dnn_trainer_ckpt_dir(const struct dnn_trainer *t)
{
    const char *save = t->config->ckpt->save;

    return save != NULL ? dnn_strdup(dnn_config_path(t->config, save))
                        : dnn_format("%s/checkpoints", dnn_config_dir(t->config));
}

/* "debug": write the network as a graph (DOT), as rmldnn does. */
static int write_dot(const struct dnn_trainer *t, const char *dir, struct dnn_err *err)
{
    struct dnn_buf text = {0};
    char *path = dnn_format("%s/network.dot", dir);

    dnn_graph_dot(t->config->net.graph, &text);
    int rc = dnn_file_write(path, text.text, text.len, err);
    dnn_buf_free(&text);
    dnn_free(path);
    return rc;
}

static int open_files(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_config_ckpt *how = t->config->ckpt;
    const char *dir = dnn_config_dir(t->config);
    char *ckpts = dnn_trainer_ckpt_dir(t);
    const struct dnn_ckpt_cfg cfg = {ckpts, how->keep == 0 ? INT_MAX : (int)how->keep,
                                     true};

    int rc = t->root ? dnn_file_make_dirs(dir, err) : 0;
    if (rc == 0 && t->root && t->config->debug) rc = write_dot(t, dir, err);
    rc = dnn_comm_agree(t->comm, rc, err);
    if (rc == 0 && t->stage->mode == DNN_CONFIG_TRAIN)
        rc = dnn_ckpt_open(t->comm, &cfg, &t->ckpts, err);
    dnn_free(ckpts);
    return rc;
}

static int open_telemetry(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_config_telemetry *how = t->config->telemetry;
    bool training = t->stage->mode == DNN_CONFIG_TRAIN;
    const struct dnn_telemetry_cfg cfg = {
        .dir = dnn_config_dir(t->config),
        .outfile = dnn_config_path(t->config, t->config->outfile),
        .tests = !training,
        .csv = training && how->csv,
        .jsonl = training && how->jsonl,
        .tensorboard = training && how->tensorboard,
        .progress = training && t->opts->progress,
        .json_to_stdout = t->opts->json,
        .resumed_step = t->at.step,
        .interval = how->interval,
        .every = how->steps};

    return t->root ? dnn_telemetry_open(&cfg, &t->telemetry, err) : 0;
}

/* ---- open ---- */

static int open_local(struct dnn_trainer *t, struct dnn_err *err)
{
    struct dnn_model *m = dnn_replica_model(t->stage->replica);

    if (t->stage->eval.targets) {
        DNN_TRY(dnn_stage_eval_make(t->stage, &t->eval, err));
        t->metrics = dnn_stage_metrics(t->eval);
    }
    if (t->stage->mode == DNN_CONFIG_TRAIN) DNN_TRY(dnn_trainer_check_metrics(t, err));
    DNN_TRY(dnn_trainer_ema_make(t, err));
    if (t->root) DNN_TRY(dnn_config_network(t->config, &t->network, err));
    DNN_TRY(dnn_hessian_open(t, err));
    return dnn_exec_init(m->exec, (uint64_t)t->config->seed, err);
}

int dnn_trainer_open(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_stage_cfg cfg = {.config = t->config,
                                      .session = t->session,
                                      .backend = t->opts->backend,
                                      .kernels = t->opts->kernels};

    DNN_TRY(dnn_stage_open(&cfg, &t->stage, err));
    DNN_TRY(dnn_comm_agree(t->comm, open_local(t, err), err));
    DNN_TRY(open_files(t, err));
    if (t->stage->mode == DNN_CONFIG_TRAIN) DNN_TRY(dnn_trainer_arrays(t, err));
    if (t->stage->mode == DNN_CONFIG_TRAIN || t->config->ckpt->load != NULL)
        DNN_TRY(dnn_trainer_resume(t, err));
    else
        DNN_TRY(dnn_trainer_load_newest(t, err));
    DNN_TRY(dnn_comm_agree(t->comm, open_telemetry(t, err), err));
    return dnn_comm_agree(t->comm, dnn_trainer_log_open(t, err), err);
}

void dnn_trainer_close(struct dnn_trainer *t)
{
    struct dnn_err err = {0};

    dnn_trainer_log_close(t);
    dnn_telemetry_close(t->telemetry);
    if (t->ckpts != NULL && dnn_ckpt_close(t->ckpts, &err) < 0)
        dnn_log(DNN_ERROR, "train", "%s", err.text);
    for (int i = 0; i < t->narrays; i++)
        dnn_free((void *)(uintptr_t)t->array[i].name);
    dnn_free(t->array);
    dnn_hessian_close(t);
    dnn_stage_eval_free(t->eval);
    dnn_stage_close(t->stage);
    dnn_free(t->network);
    free(t->ema);
}
