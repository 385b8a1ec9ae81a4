/* progress.c - how far a run is.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/run_impl.h"

#include "base/clock.h"
#include "replica/replica.h"
#include "train/state_impl.h"

void dnn_train_progress_state(struct train_progress *at, struct train_state *state)
{
    const struct train_field field[] = {
        TRAIN_NUMBER("epoch", &at->epoch),     TRAIN_NUMBER("batch", &at->batch),
        TRAIN_NUMBER("step", &at->step),       TRAIN_NUMBER("loss", &at->loss),
        TRAIN_NUMBER("samples", &at->samples), TRAIN_NUMBER("norm", &at->norm),
        TRAIN_NUMBER("steps", &at->steps),     TRAIN_NUMBER("seconds", &at->seconds),
    };

    dnn_train_state_fields(state, "run", sizeof field / sizeof *field, field);
}

void dnn_train_progress_add(struct train_progress *at, double samples,
                            const struct dnn_replica_step *step)
{
    at->step++;
    at->batch++;
    at->loss += step->loss * samples;
    at->samples += samples;
    at->norm += step->grad_norm;
    at->steps++;
}

void dnn_train_progress_clear(struct train_progress *at)
{
    at->loss = at->samples = at->norm = at->steps = 0;
}

double dnn_train_seconds(const struct train_progress *at)
{
    return at->seconds + dnn_clock_now() - at->began;
}
