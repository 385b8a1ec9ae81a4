/* ema.c - exponential moving average (EMA) of the weights.
 *
 * After each update ema = d ema + (1 - d) weights.  The decay d is the smaller one of
 * "ema" and (1 + n) / (10 + n) after n updates, so that the initial weights lose
 * influence quickly.  Moving statistics of batch norm are not averaged.  Every rank
 * computes the same EMA.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include <stdlib.h>
#include <string.h>

static float *weights(const struct dnn_trainer *t)
{
    return dnn_exec_block(dnn_replica_model(t->stage->replica)->exec, DNN_BLOCK_WEIGHTS);
}

int dnn_trainer_ema_make(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_model *m = dnn_replica_model(t->stage->replica);
    /* Trainable weights come first in their block, at the offsets of their gradients.
     */
    size_t bytes = m->plan->bytes[DNN_BLOCK_GRADS];

    if (t->config->ema <= 0 || bytes == 0) return 0;
    t->ema = aligned_alloc(DNN_PLAN_ALIGN, bytes);
    if (t->ema == NULL)
        return dnn_fail(
            err, DNN_ENOMEM,
            "ema: the moving average needs %zu bytes of memory, which is not "
            "available; remove \"ema\" or use fewer ranks per node",
            bytes);
    t->ema_count = (int64_t)(bytes / sizeof *t->ema);
    return 0;
}

void dnn_trainer_ema_start(struct dnn_trainer *t)
{
    if (t->ema == NULL) return;
    memcpy(t->ema, weights(t), (size_t)t->ema_count * sizeof *t->ema);
}

void dnn_trainer_ema_step(struct dnn_trainer *t)
{
    double n = (double)t->at.step, limit = (1 + n) / (10 + n);
    float weight = (float)(1 - (t->config->ema < limit ? t->config->ema : limit));
    const float *w = t->ema == NULL ? NULL : weights(t);

    if (t->ema == NULL) return;
#pragma omp parallel for schedule(static) if (t->ema_count > 1 << 15)
    for (int64_t i = 0; i < t->ema_count; i++)
        t->ema[i] += weight * (w[i] - t->ema[i]);
}

bool dnn_trainer_ema_use(struct dnn_trainer *t, bool ema)
{
    float *w = t->ema == NULL ? NULL : weights(t);

    if (t->ema == NULL || t->ema_in_use == ema) return false;
#pragma omp parallel for schedule(static) if (t->ema_count > 1 << 15)
    for (int64_t i = 0; i < t->ema_count; i++) {
        float swapped = w[i];

        w[i] = t->ema[i];
        t->ema[i] = swapped;
    }
    t->ema_in_use = ema;
    dnn_exec_changed(dnn_replica_model(t->stage->replica)->exec);
    return true;
}
