/* worst.c - pictures of the worst samples of an evaluation.
 *
 * They are not needed for the results, so failures are only warnings.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/infer_impl.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "picture/png.h"

#include <unistd.h>

char *dnn_infer_worst_path(const struct infer_result *r, int i)
{
    return dnn_format("%s/pictures/worst-%02d.png", dnn_config_dir(r->config), i + 1);
}

int dnn_infer_worst_find(const struct infer_worst *w, int64_t sample)
{
    for (int i = 0; i < w->n; i++)
        if (w->list[i].sample == sample) return i;
    return -1;
}

void dnn_infer_worst_save(struct infer_worst *w, int i,
                          const struct dnn_figure_sample *sample)
{
    struct dnn_figure_sample with = *sample;
    char caption[DNN_FIGURE_CAPTION];
    struct dnn_canvas canvas = {0};
    struct dnn_err err = {0};

    with.classes = w->r->task != DNN_EVALUATE_VALUES;
    with.nclasses = w->r->classes;
    with.class_name = w->r->class_name;
    int rc = dnn_figure_draw_sample(&with, &canvas, caption, &err);
    if (rc == 0 && canvas.rgb != NULL) {
        char *path = dnn_infer_worst_path(w->r, i);

        rc = dnn_png_save(path, DNN_PNG_RGB, canvas.width, canvas.height, canvas.rgb,
                          &err);
        w->drawn[i] = rc == 0;
        dnn_free(path);
    }
    if (rc < 0 && w->why.code == 0) w->why = err;
    dnn_canvas_free(&canvas);
}

/* Remove the pictures of an earlier evaluation. */
static int prepare(const struct infer_worst *w, struct dnn_err *err)
{
    char *dir = dnn_format("%s/pictures", dnn_config_dir(w->r->config));

    for (int i = 0; i < INFER_WORST; i++) {
        char *path = dnn_infer_worst_path(w->r, i);

        unlink(path);
        dnn_free(path);
    }
    int rc = w->n > 0 ? dnn_file_make_dirs(dir, err) : 0;
    dnn_free(dir);
    return rc;
}

void dnn_infer_worst_draw(const struct infer_result *r, const struct infer_found *found,
                          struct infer_worst *w)
{
    struct dnn_comm *comm = r->session->comm;
    bool root = dnn_comm_rank(comm) == 0;
    struct dnn_err err = {0}, lost = {0};

    *w = (struct infer_worst){.r = r};
    w->n = dnn_evaluate_worst(r->evaluation, &w->list);
    w->drawn = dnn_alloc((size_t)(w->n + 1) * sizeof *w->drawn);
    int rc = dnn_comm_agree(comm, root ? prepare(w, &err) : 0, &err);
    if (rc == 0 && w->n > 0) rc = found->draw(found->arg, w, &err);
    if (rc == 0) {
        err = w->why;
        rc = dnn_comm_agree(comm, err.code, &err);
    }
    if (dnn_comm_allreduce(comm, "pictures", w->drawn, w->n, DNN_COMM_I64, DNN_COMM_MAX,
                           &lost) < 0)
        w->n = 0;
    if (rc < 0 && root)
        dnn_log(DNN_WARN, "infer", "pictures of the worst samples are not written: %s",
                rc == DNN_ESTOP ? "stopped" : err.text);
}

void dnn_infer_worst_free(struct infer_worst *w)
{
    dnn_free(w->drawn);
}
