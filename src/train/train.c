/* train.c - the training loop.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double rate_now(const struct dnn_trainer *t)
{
    int64_t per = dnn_feed_batches(t->stage->train.feed);
    const struct dnn_schedule_at at = {.step = t->at.step,
                                       .epoch = t->at.epoch,
                                       .per_epoch = per,
                                       .total = per * t->config->num_epochs,
                                       .ranks = dnn_comm_size(t->comm)};

    if (t->hessian != NULL) return NAN; /* L-BFGS has no learning rate */
    return dnn_schedule_rate(t->config->schedule, &t->memory, t->config->optimizer.rate,
                             &at);
}

/* One update.  *action: the next action, the same on all ranks. */
static int step(struct dnn_trainer *t, enum train_action *action, struct dnn_err *err)
{
    const struct dnn_batch *batch;
    struct dnn_replica_batch mine;
    double waited, began = dnn_clock_now();
    struct dnn_replica_step s = {.rate = rate_now(t),
                                 .seed = (uint64_t)t->config->seed,
                                 .step = (uint64_t)t->at.step,
                                 .clip_norm = t->config->clip_norm,
                                 .clip_value = t->config->clip_value};

    /* All ranks agree in this step on an error since the last one. */
    int rc = t->pending.code;
    if (rc < 0) *err = t->pending;
    if (rc == 0) rc = dnn_feed_next(t->stage->train.feed, &batch, NULL, err);
    if (rc == 0) dnn_stage_batch(&t->stage->train, batch, &mine);
    waited = dnn_clock_now() - began;
    enum train_action due = t->root ? dnn_trainer_action(t) : TRAIN_CONTINUE;
    double extra[2] = {dnn_stop_requested() != 0 || due == TRAIN_STOP,
                       due == TRAIN_SAVE};
    const struct dnn_replica_batch *ours = rc == 0 ? &mine : NULL;
    if (t->hessian != NULL)
        DNN_TRY(dnn_hessian_batch(t, ours, &s, extra, 2, err));
    else
        DNN_TRY(dnn_replica_run(t->stage->replica, ours, &s, extra, 2, err));
    *action = extra[0] > 0 ? TRAIN_STOP : extra[1] > 0 ? TRAIN_SAVE : TRAIN_CONTINUE;
    t->at.step++;
    t->at.batch++;
    dnn_trainer_ema_step(t);
    t->sum.loss += s.loss * (double)batch->total;
    t->sum.samples += (double)batch->total;
    t->sum.norm += s.grad_norm;
    t->sum.steps++;
    double took = dnn_clock_now() - began;
    if (took > t->step_time) t->step_time = took;
    const struct train_timing timing = {.data = waited,
                                        .compute = s.compute,
                                        .comm = s.comm,
                                        .straggler =
                                            isfinite(s.straggler) ? s.straggler : 0,
                                        .all = took,
                                        .samples = (double)batch->total,
                                        .steps = 1};
    dnn_trainer_log_step(t, &s, &timing, &t->pending);
    return 0;
}

/* The end of an epoch: evaluate, log, update schedule and early stopping.
 * stop: the reason to end the run early, or "". */
static int finish_epoch(struct dnn_trainer *t, char stop[256], struct dnn_err *err)
{
    struct train_value value[TRAIN_VALUES];
    struct dnn_named named[TRAIN_VALUES + 1];
    double rate = rate_now(t);
    bool ended = false, unused;
    int n = 0;

    DNN_TRY(dnn_trainer_evaluate(t, value, &n, err));
    if (t->pending.code < 0) *err = t->pending;
    DNN_TRY(dnn_comm_agree(t->comm, t->pending.code, err));
    named[0] = (struct dnn_named){"loss", t->sum.loss / t->sum.samples};
    for (int i = 0; i < n; i++)
        named[i + 1] = (struct dnn_named){value[i].name, value[i].value};
    t->at.epoch++;
    t->at.batch = 0;
    DNN_TRY(
        dnn_comm_agree(t->comm, dnn_trainer_log_epoch(t, value, n, rate, err), err));
    t->sum.loss = t->sum.samples = t->sum.norm = t->sum.steps = 0;
    DNN_TRY(dnn_schedule_epoch(t->config->schedule, &t->memory, n + 1, named, err));
    stop[0] = '\0';
    DNN_TRY(dnn_trainer_update_best(t, n + 1, named, err));
    if (t->config->early != NULL)
        DNN_TRY(dnn_stopping_epoch(t->config->early, &t->early, t->at.epoch, n + 1,
                                   named, &ended, &unused, stop, err));
    if (!ended && t->config->goal != NULL)
        DNN_TRY(dnn_stopping_epoch(t->config->goal, &t->goal, t->at.epoch, n + 1, named,
                                   &ended, &unused, stop, err));
    if (ended)
        dnn_trainer_end(t);
    else
        stop[0] = '\0';
    return 0;
}

static int stopped(struct dnn_trainer *t, struct dnn_err *err)
{
    int64_t asked = dnn_stop_requested();

    /* Another rank may have got the signal. */
    DNN_TRY(dnn_comm_allreduce(t->comm, "signals", &asked, 1, DNN_COMM_I64,
                               DNN_COMM_MAX, err));
    int number = (int)asked;
    DNN_TRY(dnn_trainer_save(t, false, err));
    if (t->ckpts != NULL) DNN_TRY(dnn_ckpt_wait(t->ckpts, err));
    dnn_fail(err, DNN_ESTOP,
             "stopped %s%s after %" PRId64 " steps, checkpoint saved; run the same "
             "command again to resume",
             number != 0 ? "by " : "before the time limit",
             number != 0 ? dnn_stop_name(number) : "", t->at.step);
    err->everywhere = true;
    return DNN_ESTOP;
}

static int epochs(struct dnn_trainer *t, struct dnn_err *err)
{
    int64_t batches = dnn_feed_batches(t->stage->train.feed);
    int64_t order =
        t->hessian == NULL ? t->at.epoch : 0; /* the same order in each epoch */
    struct train_outcome outcome = {.why = dnn_hessian_resumed(t)};
    char why[256] = "";

    if (outcome.why != NULL) snprintf(why, sizeof why, "%s", outcome.why);
    /* A resumed run may have been stopped between the last batch and the end of its
     * epoch. */
    DNN_TRY(dnn_feed_start(t->stage->train.feed, order + t->at.batch / batches,
                           t->at.batch % batches, err));
    while (t->at.epoch < t->config->num_epochs && why[0] == '\0' &&
           !dnn_trainer_ended(t)) {
        enum train_action action = TRAIN_CONTINUE;

        while (t->at.batch < batches) {
            DNN_TRY(step(t, &action, err));
            if (action == TRAIN_STOP) return stopped(t, err);
            /* After the last batch the checkpoint is saved when the epoch is logged, so
             * that a resumed run does not log it twice. */
            if (action == TRAIN_SAVE && t->at.batch < batches)
                DNN_TRY(dnn_trainer_save(t, false, err));
        }
        DNN_TRY(dnn_hessian_next(t, &outcome, err));
        int rc = outcome.epoch ? finish_epoch(t, why, err) : 0;
        if (rc == DNN_ESTOP) return stopped(t, err);
        if (rc < 0) return rc;
        if (outcome.why != NULL && why[0] == '\0')
            snprintf(why, sizeof why, "%s", outcome.why);
        if (action == TRAIN_SAVE || why[0] != '\0' ||
            (outcome.epoch && (t->is_best || dnn_trainer_epoch_due(t))))
            DNN_TRY(dnn_trainer_save(t, outcome.epoch && t->is_best, err));
    }
    if (why[0] != '\0' && t->root) dnn_log(DNN_INFO, "train", "%s", why);
    return 0;
}

static int run(struct dnn_trainer *t, struct dnn_err *err)
{
    struct train_value value[TRAIN_VALUES];
    int n;

    DNN_TRY(dnn_comm_agree(t->comm, dnn_trainer_open(t, err), err));
    t->began = t->last_ckpt = dnn_clock_now();
    if (t->stage->mode != DNN_CONFIG_TRAIN) return dnn_trainer_test(t, err);
    DNN_TRY(epochs(t, err));
    if (t->ckpts != NULL) DNN_TRY(dnn_ckpt_wait(t->ckpts, err));
    DNN_TRY(dnn_trainer_restore_best(t, err));
    dnn_trainer_ema_use(t, true);
    DNN_TRY(dnn_trainer_write_model(t, err));
    DNN_TRY(dnn_trainer_outputs(t, t->at.epoch, value, &n, err));
    return dnn_comm_agree(t->comm, dnn_trainer_log_end(t, err), err);
}

int dnn_train_run(const struct dnn_config *config, struct dnn_session *session,
                  const struct dnn_train_opts *opts, struct dnn_err *err)
{
    struct dnn_trainer t = {.config = config,
                            .opts = opts,
                            .session = session,
                            .comm = session->comm,
                            .root = dnn_comm_rank(session->comm) == 0};

    int rc = run(&t, err);
    dnn_trainer_log_finish(&t, rc, err);
    /* The error occurred within a step and on this rank only: the other ranks wait for
     * this one in the step, so no other collective call is possible. */
    if (rc < 0 && !err->everywhere && dnn_comm_size(t.comm) > 1) {
        dnn_log_all(DNN_ERROR, "train", "%s", err->text);
        dnn_comm_abort(t.comm, rc);
    }
    dnn_trainer_close(&t);
    return rc;
}
