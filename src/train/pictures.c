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

bool dnn_trainer_classes(const struct dnn_trainer *t)
{
    const char *const *metrics = dnn_loss_metrics(t->config->loss);

    return metrics[0] != NULL &&
           (strcmp(metrics[0], "accuracy") == 0 || strcmp(metrics[0], "dice") == 0);
}

int dnn_trainer_pictures_open(struct dnn_trainer *t, struct dnn_err *err)
{
    static const char *const matrix[] = {"confusion", NULL};
    struct train_log *log = t->log;
    int64_t classes, channels, positions;

    if (t->root) log->wanted = (int)t->config->telemetry->pictures;
    log->picture = dnn_alloc(((size_t)log->wanted + 1) * sizeof *log->picture);
    if (t->metrics == NULL || !t->config->telemetry->report || !dnn_trainer_classes(t))
        return 0;
    dnn_stage_extents(t->stage, &channels, &positions);
    if (channels > MAX_CLASSES ||
        dnn_metrics_confusion(t->metrics, &classes) != NULL)
        return 0;
    return dnn_metrics_read(NULL, matrix, channels, &log->matrix, err);
}

static void free_pictures(struct train_log *log)
{
    for (int i = 0; i < log->npictures; i++)
        dnn_canvas_free(&log->picture[i].canvas);
    log->npictures = 0;
}

void dnn_trainer_pictures_close(struct dnn_trainer *t)
{
    free_pictures(t->log);
    dnn_free(t->log->picture);
    dnn_metrics_free(t->log->matrix);
}

/* ---- one sample ---- */

struct sample {
    struct dnn_trainer *t;
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
    const struct dnn_stage_data *d = &o->t->stage->eval;
    const struct dnn_model *m = dnn_replica_model(o->t->stage->replica);
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

static int draw(struct sample *o, struct dnn_err *err)
{
    struct train_log *log = o->t->log;
    struct train_picture *p = &log->picture[log->npictures];
    int64_t channels, positions;

    dnn_stage_extents(o->t->stage, &channels, &positions);
    o->figure.classes = dnn_trainer_classes(o->t);
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
    log->npictures++;
    return 0;
}

/* ---- during the evaluation ---- */

void dnn_trainer_pictures_start(struct dnn_trainer *t)
{
    if (t->log == NULL) return;
    free_pictures(t->log);
    t->log->evaluated = false;
    if (t->log->matrix != NULL) dnn_metrics_start(t->log->matrix);
}

int dnn_trainer_pictures_add(struct dnn_trainer *t, const struct dnn_stage_seen *s,
                             struct dnn_err *err)
{
    const struct dnn_metric_batch *seen = &s->view;
    struct train_log *log = t->log;
    const struct dnn_column *col;

    if (log == NULL) return 0;
    if (log->matrix != NULL) DNN_TRY(dnn_metrics_add(log->matrix, seen, err));
    dnn_feed_columns(t->stage->eval.feed, &col);
    for (int64_t i = 0; i < s->n && log->npictures < log->wanted; i++) {
        struct sample o = {.t = t,
                           .col = &col[t->stage->eval.target[0]],
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
        if (rc == 0 && (o.figure.input != NULL || o.figure.output != NULL))
            rc = draw(&o, err);
        dnn_free(o.pixels);
        DNN_TRY(rc);
    }
    return 0;
}

int dnn_trainer_pictures_end(struct dnn_trainer *t, struct dnn_err *err)
{
    int64_t n;

    if (t->log == NULL) return 0;
    t->log->evaluated = true;
    if (t->log->matrix == NULL) return 0;
    double *sums = dnn_metrics_sums(t->log->matrix, &n);
    return dnn_comm_allreduce(t->comm, "confusion", sums, n, DNN_COMM_F64, DNN_COMM_SUM,
                              err);
}
