/* train_ema.c - the running mean of the weights.
 *
 * After each update mean = d mean + (1 - d) weights, where d is the job's "ema", or
 * (1 + n) / (10 + n) after n updates while that is less: so the mean soon forgets the
 * weights it started from.  Moving statistics are means already and are used as they
 * are.  Every rank makes its own, of the same numbers in the same way.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/train_impl.h"

#include <stdlib.h>
#include <string.h>

static float *weights(const struct dnn_trainer *t)
{
    return dnn_exec_block(dnn_replica_model(t->replica)->exec, DNN_BLOCK_WEIGHTS);
}

int dnn_trainer_ema_make(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_model *m = dnn_replica_model(t->replica);
    /* Trained ones come first in their block, at the offsets of their gradients. */
    size_t bytes = m->plan->bytes[DNN_BLOCK_GRADS];

    if (t->job->ema <= 0 || bytes == 0) return 0;
    t->ema = aligned_alloc(DNN_PLAN_ALIGN, bytes);
    if (t->ema == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "ema: no memory for the mean of the weights, %zu bytes; leave "
                        "it out, or use fewer ranks a node",
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
    double n = (double)t->at.step, most = (1 + n) / (10 + n);
    float new = (float)(1 - (t->job->ema < most ? t->job->ema : most));
    const float *w = t->ema == NULL ? NULL : weights(t);

    if (t->ema == NULL) return;
#pragma omp parallel for schedule(static) if (t->ema_count > 1 << 15)
    for (int64_t i = 0; i < t->ema_count; i++)
        t->ema[i] += new *(w[i] - t->ema[i]);
}

bool dnn_trainer_ema_use(struct dnn_trainer *t, bool mean)
{
    float *w = t->ema == NULL ? NULL : weights(t);

    if (t->ema == NULL || t->ema_in_use == mean) return false;
#pragma omp parallel for schedule(static) if (t->ema_count > 1 << 15)
    for (int64_t i = 0; i < t->ema_count; i++) {
        float other = w[i];

        w[i] = t->ema[i];
        t->ema[i] = other;
    }
    t->ema_in_use = mean;
    dnn_exec_changed(dnn_replica_model(t->replica)->exec);
    return true;
}
