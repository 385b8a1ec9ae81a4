/* when.c - when a run saves a checkpoint, and when it stops before the time limit.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/ckpt_impl.h"

#include "base/clock.h"
#include "stage/stage.h"

#include <math.h>

/* Whether a multiple of the checkpoint interval lies between before and now, which are
 * numbers of epochs. */
static bool due(const struct dnn_config_ckpt *how, double now, double before)
{
    double interval = how->interval, tolerance = 1e-9;

    return interval > 0 &&
           floor(now / interval + tolerance) > floor(before / interval + tolerance);
}

enum train_action dnn_train_action(const struct train_run *run,
                                   const struct train_ckpt *c)
{
    const struct dnn_config_ckpt *how = c->config->ckpt;
    /* Time for two steps and two checkpoints, because durations vary. */
    double need = 2 * c->step_time + 2 * c->save_time + 15;

    if (dnn_session_time_left(run->session) < need) return TRAIN_STOP;
    double each = 1 / (double)dnn_feed_batches(run->stage->train.feed);
    double at = (double)c->at->epoch + (double)c->at->batch * each;
    if (due(how, at + each, at)) return TRAIN_SAVE;
    if (how->steps > 0 && (c->at->step + 1) % how->steps == 0) return TRAIN_SAVE;
    return how->minutes > 0 && dnn_clock_now() - c->last >= 60 * how->minutes
               ? TRAIN_SAVE
               : TRAIN_CONTINUE;
}

bool dnn_train_epoch_due(const struct train_ckpt *c)
{
    double at = (double)c->at->epoch;

    return c->at->epoch == c->config->num_epochs || due(c->config->ckpt, at, at - 1);
}
