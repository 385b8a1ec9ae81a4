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

int dnn_trainer_mean_make(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_model *m = dnn_replica_model(t->replica);
    /* Trained ones come first in their block, at the offsets of their gradients. */
    size_t bytes = m->plan->bytes[DNN_BLOCK_GRADS];

    if (t->job->ema <= 0 || bytes == 0) return 0;
    t->mean = aligned_alloc(DNN_PLAN_ALIGN, bytes);
    if (t->mean == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "ema: no memory for the mean of the weights, %zu bytes; leave "
                        "it out, or use fewer ranks a node",
                        bytes);
    t->mean_count = (int64_t)(bytes / sizeof *t->mean);
    return 0;
}

void dnn_trainer_mean_start(struct dnn_trainer *t)
{
    if (t->mean == NULL) return;
    memcpy(t->mean, weights(t), (size_t)t->mean_count * sizeof *t->mean);
}

void dnn_trainer_mean_step(struct dnn_trainer *t)
{
    double n = (double)t->at.step, most = (1 + n) / (10 + n);
    float new = (float)(1 - (t->job->ema < most ? t->job->ema : most));
    const float *w = t->mean == NULL ? NULL : weights(t);

    if (t->mean == NULL) return;
#pragma omp parallel for schedule(static) if (t->mean_count > 1 << 15)
    for (int64_t i = 0; i < t->mean_count; i++)
        t->mean[i] += new *(w[i] - t->mean[i]);
}

bool dnn_trainer_mean_use(struct dnn_trainer *t, bool mean)
{
    float *w = t->mean == NULL ? NULL : weights(t);

    if (t->mean == NULL || t->mean_in == mean) return false;
#pragma omp parallel for schedule(static) if (t->mean_count > 1 << 15)
    for (int64_t i = 0; i < t->mean_count; i++) {
        float other = w[i];

        w[i] = t->mean[i];
        t->mean[i] = other;
    }
    t->mean_in = mean;
    dnn_exec_changed(dnn_replica_model(t->replica)->exec);
    return true;
}
