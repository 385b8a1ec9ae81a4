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
#include "train/ema_impl.h"

#include <stdlib.h>
#include <string.h>

static float *weights(const struct train_ema *ema)
{
    return dnn_exec_block(ema->model->exec, DNN_BLOCK_WEIGHTS);
}

int dnn_train_ema_make(struct train_ema *ema, struct dnn_model *model, double decay,
                       struct dnn_err *err)
{
    /* Trainable weights come first in their block, at the offsets of their gradients.
     */
    size_t bytes = model->plan->bytes[DNN_BLOCK_GRADS];

    if (decay <= 0 || bytes == 0) return 0;
    ema->model = model;
    ema->decay = decay;
    ema->average = aligned_alloc(DNN_PLAN_ALIGN, bytes);
    if (ema->average == NULL)
        return dnn_fail(
            err, DNN_ENOMEM,
            "ema: the moving average needs %zu bytes of memory, which is not "
            "available; remove \"ema\" or use fewer ranks per node",
            bytes);
    ema->count = (int64_t)(bytes / sizeof *ema->average);
    return 0;
}

void dnn_train_ema_free(struct train_ema *ema)
{
    free(ema->average);
}

void dnn_train_ema_start(struct train_ema *ema)
{
    if (ema->average == NULL) return;
    memcpy(ema->average, weights(ema), (size_t)ema->count * sizeof *ema->average);
}

void dnn_train_ema_step(struct train_ema *ema, int64_t step)
{
    double n = (double)step, limit = (1 + n) / (10 + n);
    float weight = (float)(1 - (ema->decay < limit ? ema->decay : limit));

    if (ema->average == NULL) return;
    const float *w = weights(ema);
#pragma omp parallel for schedule(static) if (ema->count > 1 << 15)
    for (int64_t i = 0; i < ema->count; i++)
        ema->average[i] += weight * (w[i] - ema->average[i]);
}

bool dnn_train_ema_use(struct train_ema *ema, bool use)
{
    if (ema->average == NULL || ema->in_use == use) return false;
    float *w = weights(ema);
#pragma omp parallel for schedule(static) if (ema->count > 1 << 15)
    for (int64_t i = 0; i < ema->count; i++) {
        float swapped = w[i];

        w[i] = ema->average[i];
        ema->average[i] = swapped;
    }
    ema->in_use = use;
    dnn_exec_changed(ema->model->exec);
    return true;
}
