/* evaluate_run.c - evaluate raw arrays, for evaluate.py.  Each line on stdin is
 *
 *   TASK CLASSES LOGITS N Z Y X SPACING SPACING SPACING OUTPUT TARGET
 *
 * TASK is labels, masks or values; N samples of Z Y X points, channels last; OUTPUT is
 * f32, TARGET i32 or f32.  Prints the results as JSON, and an empty line.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "evaluate/evaluate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct job {
    struct dnn_evaluate_cfg cfg;
    int64_t n;
    struct dnn_evaluate_part part;
    char *output, *target; /* owned */
};

static int read_job(struct job *j, const char *line, struct dnn_err *err)
{
    static const char *const tasks[] = {"labels", "masks", "values"};
    char task[16], path[2][512];
    int logits;
    int64_t *full = j->part.full;
    double *spacing = j->part.spacing;
    size_t len;

    if (sscanf(line,
               "%15s %" SCNd64 " %d %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
               " %lf %lf %lf %511s %511s",
               task, &j->cfg.classes, &logits, &j->n, &full[0], &full[1], &full[2],
               &spacing[0], &spacing[1], &spacing[2], path[0], path[1]) != 12)
        return dnn_fail(err, DNN_EUSAGE, "cannot be read: %s", line);
    while (strcmp(tasks[j->cfg.task], task) != 0)
        j->cfg.task++;
    j->cfg.channels = j->cfg.classes;
    j->cfg.logits = logits != 0;
    memcpy(j->part.extent, full, sizeof j->part.extent);
    DNN_TRY(dnn_file_read(path[0], (size_t)1 << 30, &j->output, &len, err));
    return dnn_file_read(path[1], (size_t)1 << 30, &j->target, &len, err);
}

static int run(struct job *j, struct dnn_comm *comm, struct dnn_err *err)
{
    const int64_t *full = j->part.full;
    const int64_t points =
        j->cfg.task == DNN_EVALUATE_LABELS ? 1 : full[0] * full[1] * full[2];
    struct dnn_evaluation *e = NULL;
    struct dnn_buf out = {0};
    int rc = dnn_evaluate_open(&j->cfg, &e, err);

    for (int64_t i = 0; i < j->n && rc == 0; i++) {
        const int64_t at = i * points;

        j->part.sample = i;
        j->part.output = (const float *)j->output + at * j->cfg.channels;
        j->part.labels = (const int32_t *)j->target + at;
        j->part.values = j->cfg.task == DNN_EVALUATE_VALUES
                             ? (const float *)j->target + at * j->cfg.channels
                             : NULL;
        rc = dnn_evaluate_add(e, &j->part, err);
    }
    if (rc == 0) rc = dnn_evaluate_combine(e, comm, err);
    if (rc == 0) {
        dnn_evaluate_json(e, &out);
        printf("%s\n", out.text);
    }
    dnn_buf_free(&out);
    dnn_evaluate_close(e);
    return rc;
}

int main(void)
{
    struct dnn_comm_cfg self = {.kind = DNN_COMM_SELF};
    struct dnn_comm *comm = NULL;
    struct dnn_err err = {0};
    char line[2048];
    int rc = dnn_comm_open(&self, &comm, &err);

    while (rc == 0 && fgets(line, sizeof line, stdin) != NULL) {
        struct job j = {
            .cfg = {.ignore = -1,
                    .background = -1,
                    .surfaces = true,
                    .ndim = 3,
                    .bins = 15}
        };

        rc = read_job(&j, line, &err);
        if (rc == 0) rc = run(&j, comm, &err);
        dnn_free(j.output);
        dnn_free(j.target);
    }
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    dnn_comm_close(comm);
    return dnn_exit_status(rc);
}
