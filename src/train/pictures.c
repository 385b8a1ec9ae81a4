/* pictures.c - pictures of evaluated samples, and the confusion matrix.
 *
 * Pictures are drawn during the evaluation, so that no samples need to be stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/log_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Maximum number of classes in a matrix, of values in a caption. */
enum { MAX_CLASSES = 50, CAPTION_VALUES = 4 };

bool dnn_trainer_classes(const struct train_run *run)
{
    const char *const *metrics = dnn_loss_metrics(run->config->loss);

    return metrics[0] != NULL &&
           (strcmp(metrics[0], "accuracy") == 0 || strcmp(metrics[0], "dice") == 0);
}

int dnn_trainer_pictures_open(struct train_pictures *p, const struct train_run *run,
                              struct dnn_err *err)
{
    static const char *const matrix[] = {"confusion", NULL};
    int64_t classes, channels, positions;

    p->run = run;
    if (run->root) p->wanted = (int)run->config->telemetry->pictures;
    p->picture = dnn_alloc(((size_t)p->wanted + 1) * sizeof *p->picture);
    if (run->metrics == NULL || !run->config->telemetry->report ||
        !dnn_trainer_classes(run))
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

void dnn_trainer_pictures_close(struct train_pictures *p)
{
    free_pictures(p);
    dnn_free(p->picture);
    dnn_metrics_free(p->matrix);
}

/* ---- one sample ---- */

struct sample {
    const struct train_run *run;
    const struct dnn_column *col; /* of the target */
    int64_t number;
    const int32_t *label; /* or NULL */
    const float *value;   /* or NULL */
    const float *output;
    int64_t count; /* elements of the output */
    float *pixels; /* owned: of the input    */
    struct dnn_view input, target, result;
    struct dnn_figure figure;
    char line[2][128];
};

/* Find the first input that is an image, of sample i of this rank. */
static int find_input(struct sample *o, int64_t i, struct dnn_err *err)
{
    const struct dnn_stage_data *d = &o->run->stage->eval;
    const struct dnn_model *m = dnn_trainer_model(o->run);
    const struct dnn_column *col;
    int64_t count;

    dnn_feed_columns(d->feed, &col);
    for (int k = 0; k < m->ninputs; k++) {
        const struct dnn_column *c = &col[d->input[k]];

        if (c->type != DNN_F32) continue;
        DNN_TRY(dnn_shape_count(&c->shape, &count, err));
        dnn_free(o->pixels);
        o->pixels = dnn_alloc((size_t)(count + 1) * sizeof *o->pixels);
        DNN_TRY(dnn_feed_values(d->feed, d->batch, d->input[k], i, 1, o->pixels, err));
        if (!dnn_figure_view(&c->shape, o->pixels, false, &o->input)) continue;
        o->figure.input = &o->input;
        break;
    }
    return 0;
}

/* Find the views of target and output, if they are images.  The output has the spatial
 * shape of the target. */
static void find_images(struct sample *o)
{
    struct dnn_shape s = o->col->shape;
    int64_t space = 1;

    for (int k = 0; k + 1 < s.ndim; k++)
        space *= s.dim[k];
    if (s.ndim < 3 || space < 1 || o->count % space != 0) return;
    const void *target = o->label != NULL ? (const void *)o->label : o->value;
    if (!dnn_figure_view(&s, target, o->label != NULL, &o->target)) return;
    s.dim[s.ndim - 1] = o->count / space;
    if (!dnn_figure_view(&s, o->output, false, &o->result)) return;
    o->figure.target = &o->target;
    o->figure.output = &o->result;
}

/* ---- captions ---- */

static const char *name_of(const struct sample *o, int64_t class, char out[32])
{
    if (o->col->class_name != NULL && class >= 0 && class < o->col->classes)
        return o->col->class_name[class];
    snprintf(out, 32, "%" PRId64, class);
    return out;
}

/* Caption for images: pixel accuracy, or root mean square error. */
static void caption_images(struct sample *o)
{
    const struct dnn_view *a = &o->target, *b = &o->result;
    const int64_t n = a->height * a->width;
    double correct = 0, sum = 0, p;

    for (int64_t i = 0; i < n; i++) {
        const float *y = b->value + i * b->channels;

        if (o->figure.classes) {
            int64_t wanted_class =
                a->class != NULL
                    ? a->class[i]
                    : dnn_figure_class(a->value + i * a->channels, a->channels, &p);
            correct += dnn_figure_class(y, b->channels, &p) == wanted_class;
        } else {
            double d = (double)y[0] - (a->class != NULL ? (double)a->class[i]
                                                        : a->value[i * a->channels]);
            sum += d * d;
        }
    }
    if (o->figure.classes)
        snprintf(o->line[0], sizeof o->line[0], "%.1f %% correct",
                 100 * correct / (double)n);
    else
        snprintf(o->line[0], sizeof o->line[0], "rms error %.3g",
                 sqrt(sum / (double)n));
    o->figure.line[0] = o->line[0];
}

static void caption_class(struct sample *o)
{
    char a[32], b[32];
    double p = 0;
    int64_t wanted_class =
        o->label != NULL ? o->label[0] : dnn_figure_class(o->value, o->count, &p);
    int64_t predicted = dnn_figure_class(o->output, o->count, &p);

    snprintf(o->line[0], sizeof o->line[0], "target %s", name_of(o, wanted_class, a));
    snprintf(o->line[1], sizeof o->line[1], "predicted %s (%.2f)",
             name_of(o, predicted, b), p);
    o->figure.correct = predicted == wanted_class ? 1 : -1;
    o->figure.line[0] = o->line[0];
    o->figure.line[1] = o->line[1];
}

static void list(char out[128], const char *title, const float *x, int64_t n)
{
    int at = snprintf(out, 128, "%s", title);

    for (int64_t i = 0; i < n && i < CAPTION_VALUES && at < 100; i++)
        at += snprintf(out + at, 128 - (size_t)at, " %.4g", x[i]);
    if (n > CAPTION_VALUES) snprintf(out + at, 128 - (size_t)at, " ...");
}

static void caption_values(struct sample *o)
{
    float label = o->label == NULL ? 0 : (float)o->label[0];

    list(o->line[0], "target", o->label == NULL ? o->value : &label,
         o->label == NULL ? o->count : 1);
    list(o->line[1], "predicted", o->output, o->count);
    o->figure.line[0] = o->line[0];
    o->figure.line[1] = o->line[1];
}

static int draw(struct sample *o, struct train_picture *p, struct dnn_err *err)
{
    int64_t channels, positions;

    dnn_stage_extents(o->run->stage, &channels, &positions);
    o->figure.classes = dnn_trainer_classes(o->run);
    o->figure.nclasses = o->col->classes > 0 ? o->col->classes : channels;
    o->figure.class_name = o->col->classes > 0 ? o->col->class_name : NULL;
    if (o->figure.output != NULL)
        caption_images(o);
    else if (o->figure.classes)
        caption_class(o);
    else
        caption_values(o);
    DNN_TRY(dnn_figure_draw(&o->figure, &p->canvas, err));
    snprintf(p->caption, sizeof p->caption, "sample %" PRId64 ": %s%s%s", o->number,
             o->line[0], o->line[1][0] != '\0' ? ", " : "", o->line[1]);
    return 0;
}

/* ---- during the evaluation ---- */

void dnn_trainer_pictures_start(struct train_pictures *p)
{
    free_pictures(p);
    p->evaluated = false;
    if (p->matrix != NULL) dnn_metrics_start(p->matrix);
}

/* Draw sample i of those that were evaluated, if it has an image. */
static int add_sample(struct train_pictures *p, const struct dnn_stage_seen *s,
                      int64_t i, struct dnn_err *err)
{
    const struct dnn_metric_batch *seen = &s->view;
    const struct dnn_stage_data *eval = &p->run->stage->eval;
    const struct dnn_column *col;

    dnn_feed_columns(eval->feed, &col);
    struct sample o = {.run = p->run,
                       .col = &col[eval->target[0]],
                       .number = s->batch->sample[s->skip + i],
                       .count = seen->positions * seen->channels};
    int64_t each = seen->positions * (seen->labels != NULL ? 1 : seen->channels);

    o.output = seen->output + i * o.count;
    if (seen->labels != NULL)
        o.label = seen->labels + i * each;
    else
        o.value = seen->values + i * each;
    int rc = find_input(&o, s->skip + i, err);
    if (rc == 0) find_images(&o);
    if (rc == 0 && (o.figure.input != NULL || o.figure.output != NULL)) {
        rc = draw(&o, &p->picture[p->n], err);
        if (rc == 0) p->n++;
    }
    dnn_free(o.pixels);
    return rc;
}

int dnn_trainer_pictures_add(struct train_pictures *p, const struct dnn_stage_seen *s,
                             struct dnn_err *err)
{
    if (p->matrix != NULL) DNN_TRY(dnn_metrics_add(p->matrix, &s->view, err));
    for (int64_t i = 0; i < s->n && p->n < p->wanted; i++)
        DNN_TRY(add_sample(p, s, i, err));
    return 0;
}

int dnn_trainer_pictures_end(struct train_pictures *p, struct dnn_err *err)
{
    int64_t n;

    p->evaluated = true;
    if (p->matrix == NULL) return 0;
    double *sums = dnn_metrics_sums(p->matrix, &n);
    return dnn_comm_allreduce(p->run->comm, "confusion", sums, n, DNN_COMM_F64,
                              DNN_COMM_SUM, err);
}
