/* schedules.c - the list of all kinds of schedules.  To add one: a file, its line in
 * schedule_impl.h, a row here.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

static const struct schedule_kind *const kinds[] = {
    &dnn_schedule_constant,    &dnn_schedule_step,       &dnn_schedule_multistep,
    &dnn_schedule_exponential, &dnn_schedule_warmup,     &dnn_schedule_cosine,
    &dnn_schedule_polynomial,  &dnn_schedule_one_cycle,  &dnn_schedule_plateau,
    &dnn_schedule_warm_up,     &dnn_schedule_on_plateau, &dnn_schedule_every_nepochs,
    &dnn_schedule_scale_up,
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

const struct schedule_kind *dnn_schedule_kind(int index)
{
    return index >= 0 && index < KINDS ? kinds[index] : NULL;
}

const char *dnn_schedule_info(int index, const char **help,
                              const struct dnn_field **fields)
{
    const struct schedule_kind *kind = dnn_schedule_kind(index);

    if (kind == NULL) return NULL;
    *help = kind->help;
    *fields = kind->fields;
    return kind->name;
}
