/* pictures.c - pictures of evaluated samples, and the confusion matrix.
 *
 * Pictures are drawn during the evaluation, so that no samples need to be stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/log_impl.h"

#include "base/mem.h"
#include "stage/eval.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Maximum number of classes in a matrix. */
enum { MAX_CLASSES = 50 };

bool dnn_train_classes(const struct train_run *run)
{
    const char *const *metrics = dnn_loss_metrics(run->config->loss);

    return metrics[0] != NULL &&
           (strcmp(metrics[0], "accuracy") == 0 || strcmp(metrics[0], "dice") == 0);
}

int dnn_train_pictures_open(struct train_pictures *p, const struct train_run *run,
                            struct dnn_err *err)
{
    static const char *const matrix[] = {"confusion", NULL};
    int64_t classes, channels, positions;

    p->run = run;
    if (run->root) p->wanted = (int)run->config->telemetry->pictures;
    p->picture = dnn_alloc(((size_t)p->wanted + 1) * sizeof *p->picture);
    if (run->metrics == NULL || !run->config->telemetry->report ||
        !dnn_train_classes(run))
        return 0;
    dnn_stage_extents(run->stage, &channels, &positions);
    if (channels > MAX_CLASSES || dnn_metrics_confusion(run->metrics, &classes) != NULL)
        return 0;
    return dnn_metrics_read(NULL, matrix, channels, &p->matrix, err);
}

static void free_pictures(struct train_pictures *p)
{
    for (int i = 0; i < p->n; i++)
        dnn_canvas_free(&p->picture[i].canvas);
    p->n = 0;
}

void dnn_train_pictures_close(struct train_pictures *p)
{
    free_pictures(p);
    dnn_free(p->picture);
    dnn_metrics_free(p->matrix);
}

/* ---- during the evaluation ---- */

void dnn_train_pictures_start(struct train_pictures *p)
{
    free_pictures(p);
    p->evaluated = false;
    if (p->matrix != NULL) dnn_metrics_start(p->matrix);
}

/* Draw sample i of those that were evaluated, if it has an image. */
static int add_sample(struct train_pictures *p, const struct dnn_stage_seen *s,
                      int64_t i, struct dnn_err *err)
{
    struct train_picture *picture = &p->picture[p->n];
    struct dnn_figure_sample sample;
    char caption[DNN_FIGURE_CAPTION];
    float *input = NULL;

    int rc = dnn_stage_figure(p->run->stage, &p->run->stage->eval, s, i, &sample,
                              &input, err);
    sample.classes = dnn_train_classes(p->run);
    if (rc == 0) rc = dnn_figure_draw_sample(&sample, &picture->canvas, caption, err);
    if (rc == 0 && picture->canvas.rgb != NULL) {
        snprintf(picture->caption, sizeof picture->caption, "sample %" PRId64 ": %s",
                 s->batch->sample[s->skip + i], caption);
        p->n++;
    }
    dnn_free(input);
    return rc;
}

int dnn_train_pictures_add(struct train_pictures *p, const struct dnn_stage_seen *s,
                           struct dnn_err *err)
{
    if (p->matrix != NULL) DNN_TRY(dnn_metrics_add(p->matrix, &s->view, err));
    for (int64_t i = 0; i < s->n && p->n < p->wanted; i++)
        DNN_TRY(add_sample(p, s, i, err));
    return 0;
}

int dnn_train_pictures_end(struct train_pictures *p, struct dnn_err *err)
{
    int64_t n;

    p->evaluated = true;
    if (p->matrix == NULL) return 0;
    double *sums = dnn_metrics_sums(p->matrix, &n);
    return dnn_comm_allreduce(p->run->comm, "confusion", sums, n, DNN_COMM_F64,
                              DNN_COMM_SUM, err);
}
