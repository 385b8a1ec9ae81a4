/* by.c - progress of a run, in epochs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

const struct dnn_choice dnn_schedule_bys[] = {
    {"epoch", SCHEDULE_BY_EPOCH},
    {"step",  SCHEDULE_BY_STEP },
    {NULL,    0                }
};

double dnn_schedule_done(const struct schedule_progress *at, int by)
{
    if (by == SCHEDULE_BY_EPOCH) return (double)at->epoch;
    return (double)at->step / (double)at->per_epoch;
}

double dnn_schedule_length(const struct schedule_progress *at, int64_t epochs)
{
    return epochs > 0 ? (double)epochs : (double)at->total / (double)at->per_epoch;
}
