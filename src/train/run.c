/* run.c - a training run: set-up, the training loop, and what is done with the result.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "infer/infer.h"
#include "stage/stage.h"

struct dnn_model *dnn_train_model(const struct train_run *run)
{
    return dnn_replica_model(run->stage->replica);
}

int64_t dnn_train_eval_samples(const struct train_run *run)
{
    return run->stage->eval.feed == NULL ? 0 : dnn_feed_count(run->stage->eval.feed);
}

static int run(struct train_loop *t, struct dnn_err *err)
{
    const struct dnn_infer_opts how = {.progress = t->run.opts->progress};

    DNN_TRY(dnn_comm_agree(t->run.comm, dnn_train_open(t, err), err));
    t->at.began = t->ckpt.last = dnn_clock_now();
    DNN_TRY(dnn_train_epochs(t, err));
    DNN_TRY(dnn_ckpt_wait(t->ckpt.ckpts, err));
    DNN_TRY(dnn_train_restore_best(&t->ckpt, err));
    dnn_train_ema_use(&t->ema, true);
    DNN_TRY(dnn_train_write_model(&t->run, &t->log.record, t->ema.in_use, err));
    DNN_TRY(dnn_infer_outputs(t->run.stage, t->at.epoch, &how, err));
    return dnn_comm_agree(t->run.comm, dnn_train_log_end(&t->log, err), err);
}

int dnn_train_run(const struct dnn_config *config, struct dnn_session *session,
                  const struct dnn_train_opts *opts, struct dnn_err *err)
{
    const struct dnn_infer_opts how = {.progress = opts->progress,
                                       .json = opts->json,
                                       .kernels = opts->kernels,
                                       .backend = opts->backend,
                                       .command = opts->command};
    struct train_loop t = {
        .run = {.config = config,
                .opts = opts,
                .session = session,
                .comm = session->comm,
                .root = dnn_comm_rank(session->comm) == 0}
    };

    if (dnn_config_mode(config) != DNN_CONFIG_TRAIN)
        return dnn_infer_run(config, session, &how, err);
    int rc = run(&t, err);
    dnn_train_log_finish(&t.log, rc, err);
    /* The error occurred within a step and on this rank only: the other ranks wait for
     * this one in the step, so no other collective call is possible. */
    if (rc < 0 && !err->everywhere && dnn_comm_size(session->comm) > 1) {
        dnn_log_all(DNN_ERROR, "train", "%s", err->text);
        dnn_comm_abort(session->comm, rc);
    }
    dnn_train_close(&t, rc < 0 && rc != DNN_ESTOP);
    return rc;
}
