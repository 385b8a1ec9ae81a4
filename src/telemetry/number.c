/* number.c - a record as a list of named values.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry/telemetry_impl.h"

#include <string.h>

static const char *const fixed[] = {
    "epoch", "batch",   "step", "seconds",   "learning_rate", "samples_per_second",
    "data",  "compute", "comm", "straggler", "grad_norm"};
enum { FIXED = sizeof fixed / sizeof fixed[0] };

int dnn_record_count(const struct dnn_record *record)
{
    return FIXED + record->n;
}

const char *dnn_record_number(const struct dnn_record *r, int i, double *value)
{
    if (i >= FIXED) {
        *value = r->value[i - FIXED].value;
        return r->value[i - FIXED].name;
    }
    const double number[FIXED] = {
        (double)r->epoch, (double)r->batch,      (double)r->step, r->seconds,
        r->rate,          r->samples_per_second, r->data,         r->compute,
        r->comm,          r->straggler,          r->grad_norm};
    *value = number[i];
    return fixed[i];
}

const double *dnn_record_find(const struct dnn_record *record, const char *name)
{
    for (int i = 0; i < record->n; i++)
        if (strcmp(record->value[i].name, name) == 0) return &record->value[i].value;
    return NULL;
}

bool dnn_record_kept(const struct dnn_record *record, int64_t every)
{
    if (record->event == DNN_EVENT_EPOCH) return true;
    return record->event == DNN_EVENT_STEP && every > 0 && record->step % every == 0;
}
