/* sample.c - drawing of an evaluated sample: which arrays are images, and captions.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "picture/figure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Maximum number of values in a caption. */
enum { CAPTION_VALUES = 4, LINE = 128 };

struct drawing {
    const struct dnn_figure_sample *sample;
    struct dnn_view input, target, output;
    struct dnn_figure figure;
    int64_t points; /* of target and output */
    char line[2][LINE];
};

/* The output has the spatial shape of the target. */
static void find_images(struct drawing *d)
{
    const struct dnn_figure_sample *o = d->sample;
    struct dnn_shape s = o->target_shape;
    int64_t space = 1;

    if (o->input != NULL &&
        dnn_figure_view(&o->input_shape, o->input, false, &d->input))
        d->figure.input = &d->input;
    for (int k = 0; k + 1 < s.ndim; k++)
        space *= s.dim[k];
    if (space < 1 || o->count % space != 0) return;
    d->points = space;
    if (s.ndim < 3) return;
    const void *target = o->label != NULL ? (const void *)o->label : o->value;
    if (!dnn_figure_view(&s, target, o->label != NULL, &d->target)) return;
    s.dim[s.ndim - 1] = o->count / space;
    if (!dnn_figure_view(&s, o->output, false, &d->output)) return;
    d->figure.target = &d->target;
    d->figure.output = &d->output;
}

/* ---- captions ---- */

static const char *name_of(const struct dnn_figure_sample *o, int64_t class,
                           char out[32])
{
    if (o->class_name != NULL && class >= 0 && class < o->nclasses)
        return o->class_name[class];
    snprintf(out, 32, "%" PRId64, class);
    return out;
}

/* Pixel accuracy, or root mean square error. */
static void caption_images(struct drawing *d)
{
    const struct dnn_view *a = &d->target, *b = &d->output;
    const int64_t n = a->height * a->width;
    double correct = 0, sum = 0, p;

    for (int64_t i = 0; i < n; i++) {
        const float *y = b->value + i * b->channels;

        if (d->figure.classes) {
            int64_t wanted_class =
                a->class != NULL
                    ? a->class[i]
                    : dnn_figure_class(a->value + i * a->channels, a->channels, &p);
            correct += dnn_figure_class(y, b->channels, &p) == wanted_class;
        } else {
            double e = (double)y[0] - (a->class != NULL ? (double)a->class[i]
                                                        : a->value[i * a->channels]);
            sum += e * e;
        }
    }
    if (d->figure.classes)
        snprintf(d->line[0], LINE, "%.1f %% correct", 100 * correct / (double)n);
    else
        snprintf(d->line[0], LINE, "rms error %.3g", sqrt(sum / (double)n));
}

/* Classes of points that are not an image. */
static void caption_points(struct drawing *d)
{
    const struct dnn_figure_sample *o = d->sample;

    d->target = (struct dnn_view){1, d->points, 1, NULL, o->label};
    d->output = (struct dnn_view){1, d->points, o->count / d->points, o->output, NULL};
    caption_images(d);
}

static void caption_class(struct drawing *d)
{
    const struct dnn_figure_sample *o = d->sample;
    char a[32], b[32];
    double p = 0;
    int64_t wanted_class =
        o->label != NULL ? o->label[0] : dnn_figure_class(o->value, o->count, &p);
    int64_t predicted = dnn_figure_class(o->output, o->count, &p);

    snprintf(d->line[0], LINE, "target %s", name_of(o, wanted_class, a));
    snprintf(d->line[1], LINE, "predicted %s (%.2f)", name_of(o, predicted, b), p);
    d->figure.correct = predicted == wanted_class ? 1 : -1;
}

static void list(char out[LINE], const char *title, const float *x, int64_t n)
{
    int at = snprintf(out, LINE, "%s", title);

    for (int64_t i = 0; i < n && i < CAPTION_VALUES && at < 100; i++)
        at += snprintf(out + at, LINE - (size_t)at, " %.4g", x[i]);
    if (n > CAPTION_VALUES) snprintf(out + at, LINE - (size_t)at, " ...");
}

static void caption_values(struct drawing *d)
{
    const struct dnn_figure_sample *o = d->sample;
    float label = o->label == NULL ? 0 : (float)o->label[0];

    list(d->line[0], "target", o->label == NULL ? o->value : &label,
         o->label == NULL ? o->count : 1);
    list(d->line[1], "predicted", o->output, o->count);
}

int dnn_figure_draw_sample(const struct dnn_figure_sample *sample,
                           struct dnn_canvas *out, char caption[DNN_FIGURE_CAPTION],
                           struct dnn_err *err)
{
    struct drawing d = {
        .sample = sample,
        .figure = {.classes = sample->classes,
                   .nclasses = sample->nclasses,
                   .class_name = sample->class_name}
    };

    find_images(&d);
    if (d.figure.input == NULL && d.figure.output == NULL) return 0;
    if (d.figure.output != NULL)
        caption_images(&d);
    else if (d.figure.classes && d.points > 1 && sample->label != NULL)
        caption_points(&d);
    else if (d.figure.classes)
        caption_class(&d);
    else
        caption_values(&d);
    for (int i = 0; i < 2; i++)
        if (d.line[i][0] != '\0') d.figure.line[i] = d.line[i];
    snprintf(caption, DNN_FIGURE_CAPTION, "%s%s%s", d.line[0],
             d.line[1][0] != '\0' ? ", " : "", d.line[1]);
    return dnn_figure_draw(&d.figure, out, err);
}
