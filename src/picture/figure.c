/* figure.c - drawing of one evaluated sample: input, target and prediction side
 * by side.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "picture/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_SIDE = 192,  /* smaller images are enlarged to this number of pixels */
    MAX_SIDE = 512,  /* larger images are reduced to this number of pixels */
    GAP = 10,        /* between panels, and margin */
    ROW = 20,        /* height of a line of text */
    MIN_WIDTH = 320, /* minimum width */
    LEGEND = 16,     /* maximum number of classes in the legend */
    SAMPLED = 4096   /* number of values from which the colour range is estimated */
};
#define BACKGROUND 0xFFFFFF
#define TEXT 0x1F2733
#define GREY_TEXT 0x64707F
#define CORRECT 0x15803D
#define WRONG 0xB91C1C
#define NOT_FINITE 0x808080 /* NaN */

/* ---- views ---- */

bool dnn_figure_view(const struct dnn_shape *shape, const void *data, bool classes,
                     struct dnn_view *out)
{
    const int n = shape->ndim;

    if (n < 3 || n > 4) return false;
    *out = (struct dnn_view){.height = shape->dim[n - 3],
                             .width = shape->dim[n - 2],
                             .channels = shape->dim[n - 1]};
    if (out->height < 2 || out->width < 2 || out->channels < 1) return false;
    if (data == NULL) return true;
    int64_t at =
        n == 4 ? shape->dim[0] / 2 * out->height * out->width * out->channels : 0;
    if (classes)
        out->class = (const int32_t *)data + at;
    else
        out->value = (const float *)data + at;
    return true;
}

/* The probability of class best: the scores are probabilities, log-probabilities or
 * logits. */
static double probability(const float *score, int64_t n, int64_t best)
{
    double sum = 0, exp_sum = 0, softmax_sum = 0;
    bool in_unit = true, negative = true;

    for (int64_t i = 0; i < n; i++) {
        sum += score[i];
        exp_sum += exp(score[i]);
        softmax_sum += exp((double)score[i] - score[best]);
        in_unit = in_unit && score[i] >= 0 && score[i] <= 1;
        negative = negative && score[i] <= 0;
    }
    if (in_unit && fabs(sum - 1) < 1e-2) return score[best];
    if (negative && fabs(exp_sum - 1) < 1e-2) return exp(score[best]);
    return 1 / softmax_sum;
}

int64_t dnn_figure_class(const float *score, int64_t n, double *p)
{
    int64_t best = 0;

    if (n == 1) {
        double positive = score[0];

        if (positive < 0 || positive > 1) positive = 1 / (1 + exp(-positive));
        *p = positive > 0.5 ? positive : 1 - positive;
        return positive > 0.5;
    }
    for (int64_t i = 1; i < n; i++)
        if (score[i] > score[best]) best = i;
    *p = probability(score, n, best);
    return best;
}

/* ---- colours ---- */

struct range {
    double low, high;
};

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Range of the values; a fraction share of them is cut off at both ends. */
static struct range range_of(const struct dnn_view *v, int64_t channels, double share)
{
    float sample[SAMPLED];
    int64_t points = v->height * v->width, n = 0;
    int64_t step = points * channels / SAMPLED + 1;

    for (int64_t i = 0; i < points * channels && n < SAMPLED; i += step) {
        float x = v->value[i / channels * v->channels + i % channels];

        if (isfinite(x)) sample[n++] = x;
    }
    if (n == 0) return (struct range){0, 1};
    qsort(sample, (size_t)n, sizeof *sample, compare);
    int64_t skipped = (int64_t)(share * (double)(n - 1));
    struct range r = {sample[skipped], sample[n - 1 - skipped]};
    if (!(r.low < r.high)) r = (struct range){sample[0], sample[n - 1]};
    if (!(r.low < r.high)) r = (struct range){r.low - 0.5, r.low + 0.5};
    return r;
}

/* Number of channels that are drawn: red, green and blue, or only the first one. */
static int64_t count_channels(const struct dnn_view *v)
{
    return v->channels == 3 || v->channels == 4 ? 3 : 1;
}

static double fraction(double x, struct range r)
{
    x = (x - r.low) / (r.high - r.low);
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* Colour map from dark blue over green to yellow; lighter colours are larger values. */
static uint32_t colour_map(double x)
{
    static const unsigned char stop[6][3] = {
        {26,  20,  80 },
        {38,  70,  140},
        {30,  120, 140},
        {40,  165, 110},
        {140, 205, 60 },
        {250, 232, 50 }
    };
    int i = x >= 1 ? 4 : (int)(x * 5);
    double f = x * 5 - i;
    uint32_t colour = 0;

    for (int c = 0; c < 3; c++)
        colour = colour << 8 |
                 (uint32_t)(stop[i][c] + f * (stop[i + 1][c] - stop[i][c]) + 0.5);
    return colour;
}

struct colouring {
    bool classes, use_map; /* class colours; colour map; else grey or RGB */
    struct range range;
};

static uint32_t colour_at(const struct dnn_view *v, const struct colouring *how,
                          int64_t point)
{
    const float *x = v->value + point * v->channels;
    uint32_t colour = 0;
    double p;

    if (how->classes)
        return dnn_canvas_class(
            v->class != NULL ? v->class[point] : dnn_figure_class(x, v->channels, &p));
    for (int64_t c = 0; c < 3; c++) {
        float one = x[count_channels(v) == 3 ? c : 0];

        if (!isfinite(one)) return NOT_FINITE;
        if (how->use_map) return colour_map(fraction(one, how->range));
        colour = colour << 8 | (uint32_t)(255 * fraction(one, how->range) + 0.5);
    }
    return colour;
}

/* ---- panels ---- */

struct scale {
    int64_t zoom, skip; /* pixels per point; only every skip-th point is drawn      */
    int width, height;  /* in pixels                                                */
};

static struct scale scale_of(const struct dnn_view *v)
{
    int64_t max = v->height > v->width ? v->height : v->width;
    struct scale s = {.zoom = max < MIN_SIDE ? (MIN_SIDE + max - 1) / max : 1,
                      .skip = (max + MAX_SIDE - 1) / MAX_SIDE};

    s.width = (int)((v->width + s.skip - 1) / s.skip * s.zoom);
    s.height = (int)((v->height + s.skip - 1) / s.skip * s.zoom);
    return s;
}

static void draw_panel(const struct dnn_view *v, const struct colouring *how,
                       struct dnn_canvas *canvas, int x, int y)
{
    const struct scale s = scale_of(v);

    for (int64_t i = 0; i * s.skip < v->height; i++)
        for (int64_t j = 0; j * s.skip < v->width; j++)
            dnn_canvas_fill(canvas, x + (int)(j * s.zoom), y + (int)(i * s.zoom),
                            (int)s.zoom, (int)s.zoom,
                            colour_at(v, how, i * s.skip * v->width + j * s.skip));
}

/* ---- legend ---- */

static void draw_classes(const struct dnn_figure *figure, struct dnn_canvas *canvas,
                         int y)
{
    int x = GAP;

    for (int64_t c = 0; c < figure->nclasses && c < LEGEND; c++) {
        char number[32];
        const char *text = number;

        snprintf(number, sizeof number, "%lld", (long long)c);
        if (figure->class_name != NULL) text = figure->class_name[c];
        int text_width = (int)strlen(text) * 2 * DNN_FONT_WIDTH;
        if (x + 20 + text_width > canvas->width - GAP) break;
        dnn_canvas_fill(canvas, x, y, 14, 14, dnn_canvas_class(c));
        dnn_canvas_text(canvas, x + 20, y, canvas->width, 2, text, GREY_TEXT);
        x += 20 + text_width + 12;
    }
}

static void draw_scale(struct range r, struct dnn_canvas *canvas, int y)
{
    enum { BAR_WIDTH = 120 };
    char text[32];
    int x = GAP;

    snprintf(text, sizeof text, "%.3g", r.low);
    x += dnn_canvas_text(canvas, x, y, canvas->width, 2, text, GREY_TEXT) + 6;
    for (int i = 0; i < BAR_WIDTH; i++)
        dnn_canvas_fill(canvas, x + i, y, 1, 14,
                        colour_map((double)i / (BAR_WIDTH - 1)));
    snprintf(text, sizeof text, "%.3g", r.high);
    dnn_canvas_text(canvas, x + BAR_WIDTH + 8, y, canvas->width, 2, text, GREY_TEXT);
}

/* ---- figure ---- */

struct panels {
    int n, width, height;
    const struct dnn_view *view[3];
    const char *title[3];
};

static void add_panel(struct panels *p, const struct dnn_view *v, const char *title)
{
    if (v == NULL) return;
    struct scale s = scale_of(v);
    p->view[p->n] = v;
    p->title[p->n++] = title;
    p->width += s.width + (p->n > 1 ? GAP : 0);
    if (s.height > p->height) p->height = s.height;
}

/* Target and output have the same colour range. */
static struct colouring colouring_of(const struct dnn_figure *figure)
{
    struct colouring p = {.classes = figure->classes, .use_map = true};
    const struct dnn_view *v = figure->target != NULL && figure->target->value != NULL
                                   ? figure->target
                                   : figure->output;

    if (p.classes || v == NULL) return p;
    p.use_map = count_channels(v) == 1;
    p.range = range_of(v, count_channels(v), 0);
    return p;
}

int dnn_figure_draw(const struct dnn_figure *figure, struct dnn_canvas *out,
                    struct dnn_err *err)
{
    struct panels p = {0};
    const struct colouring colouring = colouring_of(figure);
    bool fields = figure->target != NULL || figure->output != NULL;
    int x = GAP, y = GAP + ROW;

    add_panel(&p, figure->input, "input");
    add_panel(&p, figure->target, "target");
    add_panel(&p, figure->output, "prediction");
    int width = p.width > MIN_WIDTH ? p.width : MIN_WIDTH;
    for (int i = 0; i < 2; i++) {
        int needed = figure->line[i] == NULL
                         ? 0
                         : (int)strlen(figure->line[i]) * 2 * DNN_FONT_WIDTH;

        if (needed > width) width = needed > 2 * MIN_WIDTH ? 2 * MIN_WIDTH : needed;
    }
    int rows = fields + (figure->line[0] != NULL) + (figure->line[1] != NULL);
    DNN_TRY(dnn_canvas_make(out, width + 2 * GAP, y + p.height + GAP + rows * ROW,
                            BACKGROUND, err));
    for (int i = 0; i < p.n; i++) {
        const struct dnn_view *v = p.view[i];
        struct colouring how = colouring;

        if (v == figure->input)
            how = (struct colouring){.range = range_of(v, count_channels(v), 0.01)};
        dnn_canvas_text(out, x, GAP, out->width, 2, p.title[i], GREY_TEXT);
        draw_panel(v, &how, out, x, y);
        x += scale_of(v).width + GAP;
    }
    y += p.height + GAP;
    if (fields && figure->classes) draw_classes(figure, out, y);
    if (fields && !figure->classes && colouring.use_map)
        draw_scale(colouring.range, out, y);
    y += fields ? ROW : 0;
    for (int i = 0; i < 2; i++) {
        if (figure->line[i] == NULL) continue;
        dnn_canvas_text(out, GAP, y, width, 2, figure->line[i],
                        i == 0 || figure->correct == 0 ? TEXT
                        : figure->correct > 0          ? CORRECT
                                                       : WRONG);
        y += ROW;
    }
    return 0;
}
