/* schedule_run.c - print the learning rates of a run, for tests/peer/torch_schedule.py.
 *
 * schedule_run JSON RATE UPDATES EPOCHS [VAL_LOSS...]: the rate of each of UPDATES
 * updates in each of EPOCHS epochs, after each of which val_loss has the next value.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

static int rates(const struct dnn_schedule *s, double base, int64_t updates,
                 int64_t epochs, char **loss, struct dnn_err *err)
{
    struct dnn_schedule_state memory = {0};
    struct dnn_schedule_at at = {.per_epoch = updates, .total = updates * epochs};

    for (; at.epoch < epochs; at.epoch++) {
        for (int64_t i = 0; i < updates; i++, at.step++)
            printf("%.17g\n", dnn_schedule_rate(s, &memory, base, &at));
        if (*loss == NULL) continue;
        const struct dnn_named named = {"val_loss", atof(*loss++)};
        DNN_TRY(dnn_schedule_epoch(s, &memory, 1, &named, err));
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct dnn_schedule *schedule = NULL;
    struct dnn_json *file = NULL;
    struct dnn_err err;

    if (argc < 5) return 2;
    int rc = dnn_json_text("schedule", argv[1], strlen(argv[1]), &file, &err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);
        rc = dnn_schedule_read(&top, &schedule, &err);
    }
    if (rc == 0)
        rc = rates(schedule, atof(argv[2]), atoll(argv[3]), atoll(argv[4]), argv + 5,
                   &err);
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    dnn_schedule_free(schedule);
    dnn_json_free(file);
    return rc < 0 ? 3 : 0;
}
