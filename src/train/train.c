/* train.c - the training loop.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "stage/stage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* L-BFGS has no learning rate. */
static double rate_now(const struct train_loop *t)
{
    return t->hessian != NULL ? NAN : dnn_train_rate(&t->monitor);
}

/* Compute the update of a batch; NULL: this rank has failed. */
static int update(struct train_loop *t, const struct dnn_replica_batch *batch,
                  struct dnn_replica_step *s, enum train_action *action,
                  struct dnn_err *err)
{
    enum train_action due =
        t->run.root ? dnn_train_action(&t->run, &t->ckpt) : TRAIN_CONTINUE;
    double extra[2] = {dnn_stop_requested() != 0 || due == TRAIN_STOP,
                       due == TRAIN_SAVE};

    if (t->hessian != NULL)
        DNN_TRY(dnn_hessian_batch(t->hessian, batch, s, extra, 2, err));
    else
        DNN_TRY(dnn_replica_run(t->run.stage->replica, batch, s, extra, 2, err));
    *action = extra[0] > 0 ? TRAIN_STOP : extra[1] > 0 ? TRAIN_SAVE : TRAIN_CONTINUE;
    return 0;
}

/* One update.  *action: the next action, the same on all ranks. */
static int step(struct train_loop *t, enum train_action *action, struct dnn_err *err)
{
    const struct dnn_config *config = t->run.config;
    const struct dnn_batch *batch;
    struct dnn_replica_batch mine;
    double began = dnn_clock_now();
    struct dnn_replica_step s = {.rate = rate_now(t),
                                 .seed = (uint64_t)config->seed,
                                 .step = (uint64_t)t->at.step,
                                 .clip_norm = config->clip_norm,
                                 .clip_value = config->clip_value};

    /* All ranks agree in this step on an error since the last one. */
    int rc = t->pending.code;
    if (rc < 0) *err = t->pending;
    if (rc == 0) rc = dnn_feed_next(t->run.stage->train.feed, &batch, NULL, err);
    if (rc == 0) dnn_stage_batch(&t->run.stage->train, batch, &mine);
    double waited = dnn_clock_now() - began;
    DNN_TRY(update(t, rc == 0 ? &mine : NULL, &s, action, err));
    dnn_train_progress_add(&t->at, (double)batch->total, &s);
    dnn_train_ema_step(&t->ema, t->at.step);
    const struct train_timing timing = {.data = waited,
                                        .compute = s.compute,
                                        .comm = s.comm,
                                        .straggler =
                                            isfinite(s.straggler) ? s.straggler : 0,
                                        .all = dnn_clock_now() - began,
                                        .samples = (double)batch->total,
                                        .steps = 1};
    t->ckpt.step_time = fmax(t->ckpt.step_time, timing.all);
    dnn_train_log_step(&t->log, &s, &timing, &t->pending);
    return 0;
}

/* The end of an epoch: evaluate, log, update schedule and early stopping.
 * stop: the reason to end the run early, or "". */
static int finish_epoch(struct train_loop *t, char stop[256], struct dnn_err *err)
{
    struct train_value value[TRAIN_VALUES];
    struct dnn_comm *comm = t->run.comm;
    double rate = rate_now(t), loss;
    int n = 0;

    DNN_TRY(dnn_train_evaluate(t, value, &n, err));
    if (t->pending.code < 0) *err = t->pending;
    DNN_TRY(dnn_comm_agree(comm, t->pending.code, err));
    t->at.epoch++;
    t->at.batch = 0;
    int rc = dnn_train_log_epoch(&t->log, value, n, rate, err);
    DNN_TRY(dnn_comm_agree(comm, rc, err));
    loss = t->at.loss / t->at.samples;
    dnn_train_progress_clear(&t->at);
    return dnn_train_monitor_epoch(&t->monitor, loss, n, value, stop, err);
}

static int save(struct train_loop *t, bool best, struct dnn_err *err)
{
    dnn_hessian_use_best(t->hessian);
    return dnn_train_save(&t->ckpt, best, err);
}

static int stopped(struct train_loop *t, struct dnn_err *err)
{
    int64_t asked = dnn_stop_requested();

    /* Another rank may have got the signal. */
    DNN_TRY(dnn_comm_allreduce(t->run.comm, "signals", &asked, 1, DNN_COMM_I64,
                               DNN_COMM_MAX, err));
    int number = (int)asked;
    DNN_TRY(save(t, false, err));
    DNN_TRY(dnn_ckpt_wait(t->ckpt.ckpts, err));
    dnn_fail(err, DNN_ESTOP,
             "stopped %s%s after %" PRId64 " steps, checkpoint saved; run the same "
             "command again to resume",
             number != 0 ? "by " : "before the time limit",
             number != 0 ? dnn_stop_name(number) : "", t->at.step);
    err->everywhere = true;
    return DNN_ESTOP;
}

int dnn_train_epochs(struct train_loop *t, struct dnn_err *err)
{
    int64_t batches = dnn_feed_batches(t->run.stage->train.feed);
    int64_t order =
        t->hessian == NULL ? t->at.epoch : 0; /* the same order in each epoch */
    struct train_outcome outcome = {.why = dnn_hessian_resumed(t->hessian)};
    char why[256] = "";

    if (outcome.why != NULL) snprintf(why, sizeof why, "%s", outcome.why);
    /* A resumed run may have been stopped between the last batch and the end of its
     * epoch. */
    DNN_TRY(dnn_feed_start(t->run.stage->train.feed, order + t->at.batch / batches,
                           t->at.batch % batches, err));
    while (t->at.epoch < t->run.config->num_epochs && why[0] == '\0' &&
           !dnn_train_ended(&t->monitor)) {
        enum train_action action = TRAIN_CONTINUE;

        while (t->at.batch < batches) {
            DNN_TRY(step(t, &action, err));
            if (action == TRAIN_STOP) return stopped(t, err);
            /* After the last batch the checkpoint is saved when the epoch is logged, so
             * that a resumed run does not log it twice. */
            if (action == TRAIN_SAVE && t->at.batch < batches)
                DNN_TRY(save(t, false, err));
        }
        DNN_TRY(dnn_hessian_next(t->hessian, &outcome, err));
        int rc = outcome.epoch ? finish_epoch(t, why, err) : 0;
        if (rc == DNN_ESTOP) return stopped(t, err);
        if (rc < 0) return rc;
        if (outcome.why != NULL && why[0] == '\0')
            snprintf(why, sizeof why, "%s", outcome.why);
        if (action == TRAIN_SAVE || why[0] != '\0' ||
            (outcome.epoch && (t->monitor.is_best || dnn_train_epoch_due(&t->ckpt))))
            DNN_TRY(save(t, outcome.epoch && t->monitor.is_best, err));
    }
    if (why[0] != '\0' && t->run.root) dnn_log(DNN_INFO, "train", "%s", why);
    return 0;
}
