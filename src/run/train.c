/* train.c - the training loop.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/train_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What all ranks are to do after a step. */
enum { GO_ON, SAVE, STOP };

static double rate_now(const struct dnn_trainer *t)
{
    int64_t per = dnn_feed_batches(t->train.feed);
    const struct dnn_schedule_at at = {.step = t->at.step,
                                       .epoch = t->at.epoch,
                                       .per_epoch = per,
                                       .total = per * t->job->num_epochs,
                                       .ranks = dnn_comm_size(t->comm)};

    if (t->hessian != NULL) return NAN; /* steps have a length of their own */
    return dnn_schedule_rate(t->job->schedule, &t->memory,
                             dnn_optim_rate(&t->job->optimizer), &at);
}

/* One update.  *news: GO_ON, SAVE or STOP, the same on all ranks. */
static int step(struct dnn_trainer *t, int *news, struct dnn_err *err)
{
    const struct dnn_batch *batch;
    struct dnn_replica_batch mine;
    double waited, began = dnn_clock_now();
    struct dnn_replica_step s = {.rate = rate_now(t),
                                 .seed = (uint64_t)t->job->seed,
                                 .step = (uint64_t)t->at.step,
                                 .clip_norm = t->job->clip_norm,
                                 .clip_value = t->job->clip_value};

    /* What went wrong since the last step is made known to all ranks by this one. */
    int rc = t->pending.code;
    if (rc < 0) *err = t->pending;
    if (rc == 0) rc = dnn_feed_next(t->train.feed, &batch, NULL, err);
    if (rc == 0) rc = dnn_trainer_make_batch(t, &t->train, batch, &mine, err);
    waited = dnn_clock_now() - began; /* with what it takes to convert numbers */
    int urge = t->root ? dnn_trainer_action(t) : 0;
    double extra[2] = {dnn_stop_asked() != 0 || urge == 2, urge == 1};
    const struct dnn_replica_batch *ours = rc == 0 ? &mine : NULL;
    if (t->hessian != NULL)
        DNN_TRY(dnn_hessian_batch(t, ours, &s, extra, 2, err));
    else
        DNN_TRY(dnn_replica_run(t->replica, ours, &s, extra, 2, err));
    *news = extra[0] > 0 ? STOP : extra[1] > 0 ? SAVE : GO_ON;
    t->at.step++;
    t->at.batch++;
    dnn_trainer_ema_step(t);
    t->sum.loss += s.loss * (double)batch->total;
    t->sum.samples += (double)batch->total;
    t->sum.norm += s.grad_norm;
    t->sum.steps++;
    double took = dnn_clock_now() - began;
    if (took > t->step_time) t->step_time = took;
    const struct train_pace pace = {.data = waited,
                                    .compute = s.compute,
                                    .comm = s.comm,
                                    .straggler =
                                        isfinite(s.straggler) ? s.straggler : 0,
                                    .all = took,
                                    .samples = (double)batch->total,
                                    .steps = 1};
    dnn_trainer_log_step(t, &s, &pace, &t->pending);
    return 0;
}

/* The end of an epoch: evaluate, tell, and let everybody who cares about it know.
 * *stop: a reason to end the run early, or "". */
static int finish_epoch(struct dnn_trainer *t, char stop[256], struct dnn_err *err)
{
    struct train_value value[TRAIN_VALUES];
    struct dnn_named named[TRAIN_VALUES + 1];
    double rate = rate_now(t);
    bool enough = false, unused;
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
    DNN_TRY(dnn_schedule_epoch(t->job->schedule, &t->memory, n + 1, named, err));
    stop[0] = '\0';
    DNN_TRY(dnn_trainer_update_best(t, n + 1, named, err));
    if (t->job->early != NULL)
        DNN_TRY(dnn_stopping_epoch(t->job->early, &t->early, t->at.epoch, n + 1, named,
                                   &enough, &unused, stop, err));
    if (!enough && t->job->goal != NULL)
        DNN_TRY(dnn_stopping_epoch(t->job->goal, &t->goal, t->at.epoch, n + 1, named,
                                   &enough, &unused, stop, err));
    if (enough)
        dnn_trainer_end(t);
    else
        stop[0] = '\0';
    return 0;
}

static int stopped(struct dnn_trainer *t, struct dnn_err *err)
{
    int64_t asked = dnn_stop_asked();

    /* Perhaps not of this rank. */
    DNN_TRY(dnn_comm_allreduce(t->comm, "signals", &asked, 1, DNN_COMM_I64,
                               DNN_COMM_MAX, err));
    int number = (int)asked;
    DNN_TRY(dnn_trainer_save(t, false, err));
    if (t->ckpts != NULL) DNN_TRY(dnn_ckpt_wait(t->ckpts, err));
    dnn_fail(err, DNN_ESTOP,
             "stopped %s%s after %" PRId64 " steps; a checkpoint is written: run the "
             "same command again to continue",
             number != 0 ? "by " : "before the time limit",
             number != 0 ? dnn_stop_name(number) : "", t->at.step);
    err->everywhere = true;
    return DNN_ESTOP;
}

static int epochs(struct dnn_trainer *t, struct dnn_err *err)
{
    int64_t batches = dnn_feed_batches(t->train.feed);
    int64_t order = t->hessian == NULL ? t->at.epoch : 0; /* always the same one */
    struct train_outcome turn = {.why = dnn_hessian_resumed(t)};
    char why[256] = "";

    if (turn.why != NULL) snprintf(why, sizeof why, "%s", turn.why);
    /* A run may have been stopped between the last batch and the end of its epoch. */
    DNN_TRY(dnn_feed_start(t->train.feed, order + t->at.batch / batches,
                           t->at.batch % batches, err));
    while (t->at.epoch < t->job->num_epochs && why[0] == '\0' &&
           !dnn_trainer_ended(t)) {
        int news = GO_ON;

        while (t->at.batch < batches) {
            DNN_TRY(step(t, &news, err));
            if (news == STOP) return stopped(t, err);
            /* After the last batch only once the epoch is log about, so that a run
             * that goes on from there does not tell it twice. */
            if (news == SAVE && t->at.batch < batches)
                DNN_TRY(dnn_trainer_save(t, false, err));
        }
        DNN_TRY(dnn_hessian_next(t, &turn, err));
        int rc = turn.epoch ? finish_epoch(t, why, err) : 0;
        if (rc == DNN_ESTOP) return stopped(t, err);
        if (rc < 0) return rc;
        if (turn.why != NULL && why[0] == '\0')
            snprintf(why, sizeof why, "%s", turn.why);
        if (news == SAVE || why[0] != '\0' ||
            (turn.epoch && (t->best_so_far || dnn_trainer_epoch_due(t))))
            DNN_TRY(dnn_trainer_save(t, turn.epoch && t->best_so_far, err));
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
    if (t->mode != DNN_JOB_TRAIN) return dnn_trainer_test(t, err);
    DNN_TRY(epochs(t, err));
    if (t->ckpts != NULL) DNN_TRY(dnn_ckpt_wait(t->ckpts, err));
    DNN_TRY(dnn_trainer_restore_best(t, err));
    dnn_trainer_ema_use(t, true);
    DNN_TRY(dnn_trainer_write_model(t, err));
    DNN_TRY(dnn_trainer_outputs(t, t->at.epoch, value, &n, err));
    return dnn_comm_agree(t->comm, dnn_trainer_log_end(t, err), err);
}

int dnn_train_run(const struct dnn_job *job, struct dnn_session *session,
                  const struct dnn_train_opts *opts, struct dnn_err *err)
{
    struct dnn_trainer t = {.job = job,
                            .opts = opts,
                            .session = session,
                            .comm = session->comm,
                            .root = dnn_comm_rank(session->comm) == 0};

    int rc = run(&t, err);
    dnn_trainer_log_finish(&t, rc, err);
    /* In the middle of a step, on this rank alone: the others wait for it in vain, and
     * nothing that takes all ranks can be done any more. */
    if (rc < 0 && !err->everywhere && dnn_comm_size(t.comm) > 1) {
        dnn_log_all(DNN_ERROR, "train", "%s", err->text);
        dnn_comm_abort(t.comm, rc);
    }
    dnn_trainer_close(&t);
    return rc;
}
