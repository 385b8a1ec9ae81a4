/* train_figure.c - how an evaluated sample is drawn: input, target and output side by
 * side.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/train_log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE = 192,    /* points a panel should have, if its image is smaller            */
    LARGE = 512,   /* and at most                                                    */
    GAP = 10,      /* between panels, and around                                     */
    ROW = 20,      /* of a line of text                                              */
    LEAST = 320,   /* width                                                          */
    LEGEND = 16,   /* classes that are explained                                     */
    SAMPLED = 4096 /* numbers that black and white are chosen from                   */
};
#define PAPER 0xFFFFFF
#define INK 0x1F2733
#define DIM 0x64707F
#define GOOD 0x15803D
#define BAD 0xB91C1C
#define NOTHING 0x808080 /* what is no number */

/* ---- what is seen ---- */

bool dnn_figure_view(const struct dnn_shape *shape, const void *data, bool classes,
                     struct train_view *out)
{
    const int n = shape->ndim;

    if (n < 3 || n > 4) return false;
    *out = (struct train_view){.height = shape->dim[n - 3],
                               .width = shape->dim[n - 2],
                               .channels = shape->dim[n - 1]};
    if (out->height < 2 || out->width < 2 || out->channels < 1) return false;
    int64_t at =
        n == 4 ? shape->dim[0] / 2 * out->height * out->width * out->channels : 0;
    if (classes)
        out->class = (const int32_t *)data + at;
    else
        out->value = (const float *)data + at;
    return true;
}

/* Scores as they are if they are probabilities, else by exp() or softmax. */
static double probability(const float *score, int64_t n, int64_t best)
{
    double sum = 0, exps = 0, soft = 0;
    bool unit = true, below = true;

    for (int64_t i = 0; i < n; i++) {
        sum += score[i];
        exps += exp(score[i]);
        soft += exp((double)score[i] - score[best]);
        unit = unit && score[i] >= 0 && score[i] <= 1;
        below = below && score[i] <= 0;
    }
    if (unit && fabs(sum - 1) < 1e-2) return score[best];
    if (below && fabs(exps - 1) < 1e-2) return exp(score[best]);
    return 1 / soft;
}

int64_t dnn_figure_class(const float *score, int64_t n, double *p)
{
    int64_t best = 0;

    if (n == 1) {
        double yes = score[0];

        if (yes < 0 || yes > 1) yes = 1 / (1 + exp(-yes));
        *p = yes > 0.5 ? yes : 1 - yes;
        return yes > 0.5;
    }
    for (int64_t i = 1; i < n; i++)
        if (score[i] > score[best]) best = i;
    *p = probability(score, n, best);
    return best;
}

/* ---- numbers as colours ---- */

struct range {
    double low, high;
};

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* All but this share at both ends. */
static struct range range_of(const struct train_view *v, int64_t channels, double share)
{
    float some[SAMPLED];
    int64_t points = v->height * v->width, n = 0;
    int64_t step = points * channels / SAMPLED + 1;

    for (int64_t i = 0; i < points * channels && n < SAMPLED; i += step) {
        float x = v->value[i / channels * v->channels + i % channels];

        if (isfinite(x)) some[n++] = x;
    }
    if (n == 0) return (struct range){0, 1};
    qsort(some, (size_t)n, sizeof *some, compare);
    int64_t off = (int64_t)(share * (double)(n - 1));
    struct range r = {some[off], some[n - 1 - off]};
    if (!(r.low < r.high)) r = (struct range){some[0], some[n - 1]};
    if (!(r.low < r.high)) r = (struct range){r.low - 0.5, r.low + 0.5};
    return r;
}

/* How many channels are colours: red, green, blue; what follows is not seen. */
static int64_t seen(const struct train_view *v)
{
    return v->channels == 3 || v->channels == 4 ? 3 : 1;
}

static double part(double x, struct range r)
{
    x = (x - r.low) / (r.high - r.low);
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* From dark blue over green to yellow: lighter is more. */
static uint32_t heat(double x)
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

struct paint {
    bool classes, colours; /* of classes; else heat, or grey and RGB                 */
    struct range range;
};

static uint32_t colour_at(const struct train_view *v, const struct paint *how,
                          int64_t point)
{
    const float *x = v->value + point * v->channels;
    uint32_t colour = 0;
    double p;

    if (how->classes)
        return dnn_canvas_class(
            v->class != NULL ? v->class[point] : dnn_figure_class(x, v->channels, &p));
    for (int64_t c = 0; c < 3; c++) {
        float one = x[seen(v) == 3 ? c : 0];

        if (!isfinite(one)) return NOTHING;
        if (how->colours) return heat(part(one, how->range));
        colour = colour << 8 | (uint32_t)(255 * part(one, how->range) + 0.5);
    }
    return colour;
}

/* ---- panels ---- */

struct scale {
    int64_t zoom, skip; /* points for each of the image; each so many-th is taken   */
    int width, height;  /* in points                                                */
};

static struct scale scale_of(const struct train_view *v)
{
    int64_t most = v->height > v->width ? v->height : v->width;
    struct scale s = {.zoom = most < SIDE ? (SIDE + most - 1) / most : 1,
                      .skip = (most + LARGE - 1) / LARGE};

    s.width = (int)((v->width + s.skip - 1) / s.skip * s.zoom);
    s.height = (int)((v->height + s.skip - 1) / s.skip * s.zoom);
    return s;
}

static void draw_panel(const struct train_view *v, const struct paint *how,
                       struct dnn_canvas *canvas, int x, int y)
{
    const struct scale s = scale_of(v);

    for (int64_t i = 0; i * s.skip < v->height; i++)
        for (int64_t j = 0; j * s.skip < v->width; j++)
            dnn_canvas_fill(canvas, x + (int)(j * s.zoom), y + (int)(i * s.zoom),
                            (int)s.zoom, (int)s.zoom,
                            colour_at(v, how, i * s.skip * v->width + j * s.skip));
}

/* ---- below them ---- */

static void draw_classes(const struct train_figure *sheet, struct dnn_canvas *canvas,
                         int y)
{
    int x = GAP;

    for (int64_t c = 0; c < sheet->nclasses && c < LEGEND; c++) {
        char number[32];
        const char *text = number;

        snprintf(number, sizeof number, "%lld", (long long)c);
        if (sheet->class_name != NULL) text = sheet->class_name[c];
        int wide = (int)strlen(text) * 2 * DNN_FONT_WIDTH;
        if (x + 20 + wide > canvas->width - GAP) break;
        dnn_canvas_fill(canvas, x, y, 14, 14, dnn_canvas_class(c));
        dnn_canvas_text(canvas, x + 20, y, canvas->width, 2, text, DIM);
        x += 20 + wide + 12;
    }
}

static void draw_scale(struct range r, struct dnn_canvas *canvas, int y)
{
    enum { WIDE = 120 };
    char text[32];
    int x = GAP;

    snprintf(text, sizeof text, "%.3g", r.low);
    x += dnn_canvas_text(canvas, x, y, canvas->width, 2, text, DIM) + 6;
    for (int i = 0; i < WIDE; i++)
        dnn_canvas_fill(canvas, x + i, y, 1, 14, heat((double)i / (WIDE - 1)));
    snprintf(text, sizeof text, "%.3g", r.high);
    dnn_canvas_text(canvas, x + WIDE + 8, y, canvas->width, 2, text, DIM);
}

/* ---- the whole ---- */

struct panels {
    int n, width, height;
    const struct train_view *view[3];
    const char *title[3];
};

static void add_panel(struct panels *p, const struct train_view *v, const char *title)
{
    if (v == NULL) return;
    struct scale s = scale_of(v);
    p->view[p->n] = v;
    p->title[p->n++] = title;
    p->width += s.width + (p->n > 1 ? GAP : 0);
    if (s.height > p->height) p->height = s.height;
}

/* Target and output share a scale, so that equal numbers look equal. */
static struct paint paint_of(const struct train_figure *sheet)
{
    struct paint p = {.classes = sheet->classes, .colours = true};
    const struct train_view *v = sheet->target != NULL && sheet->target->value != NULL
                                     ? sheet->target
                                     : sheet->output;

    if (p.classes || v == NULL) return p;
    p.colours = seen(v) == 1;
    p.range = range_of(v, seen(v), 0);
    return p;
}

int dnn_figure_draw(const struct train_figure *sheet, struct dnn_canvas *out,
                    struct dnn_err *err)
{
    struct panels p = {0};
    const struct paint paint = paint_of(sheet);
    bool fields = sheet->target != NULL || sheet->output != NULL;
    int x = GAP, y = GAP + ROW;

    add_panel(&p, sheet->input, "input");
    add_panel(&p, sheet->target, "target");
    add_panel(&p, sheet->output, "prediction");
    int width = p.width > LEAST ? p.width : LEAST;
    for (int i = 0; i < 2; i++) {
        int want = sheet->line[i] == NULL
                       ? 0
                       : (int)strlen(sheet->line[i]) * 2 * DNN_FONT_WIDTH;

        if (want > width) width = want > 2 * LEAST ? 2 * LEAST : want;
    }
    int rows = fields + (sheet->line[0] != NULL) + (sheet->line[1] != NULL);
    DNN_TRY(dnn_canvas_make(out, width + 2 * GAP, y + p.height + GAP + rows * ROW,
                            PAPER, err));
    for (int i = 0; i < p.n; i++) {
        const struct train_view *v = p.view[i];
        struct paint how = paint;

        if (v == sheet->input)
            how = (struct paint){.range = range_of(v, seen(v), 0.01)};
        dnn_canvas_text(out, x, GAP, out->width, 2, p.title[i], DIM);
        draw_panel(v, &how, out, x, y);
        x += scale_of(v).width + GAP;
    }
    y += p.height + GAP;
    if (fields && sheet->classes) draw_classes(sheet, out, y);
    if (fields && !sheet->classes && paint.colours) draw_scale(paint.range, out, y);
    y += fields ? ROW : 0;
    for (int i = 0; i < 2; i++) {
        if (sheet->line[i] == NULL) continue;
        dnn_canvas_text(out, GAP, y, width, 2, sheet->line[i],
                        i == 0 || sheet->mood == 0 ? INK
                        : sheet->mood > 0          ? GOOD
                                                   : BAD);
        y += ROW;
    }
    return 0;
}
