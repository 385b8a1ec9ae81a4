/* preview_plane.c - draws an image, a volume, a mask, or a list of values.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/preview_impl.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLED = 1 << 16, /* values used to choose black and white                      */
    GAP = 1,           /* points of the image between planes of a volume             */
    MOST = 1 << 28     /* points of a plane                                          */
};

double dnn_plane_value(const struct dnn_stored *col, const void *data, int64_t at)
{
    size_t size = dnn_dtype_size(col->column.type);
    double value = 0;

    dnn_convert((const char *)data + (size_t)at * size, col->column.type, &value,
                DNN_F64, 1, false, NULL);
    if (col->nscale == 0) return value;
    int64_t c = col->nscale == 1 ? 0 : at % col->nscale;
    return value * col->scale[c] + col->offset[c];
}

/* ---- planes ---- */

/* A 2D cut through an array; its points are at base + row * down + col * right. */
struct cut {
    int64_t rows, cols, base, down, right;
};

struct maker {
    const struct dnn_stored *image, *mask;
    const void *data, *classes;
    int64_t channels; /* of the data                                                 */
    struct dnn_plane *out;
};

static void copy_cut(const struct maker *m, int64_t top, int64_t left,
                     const struct cut *c)
{
    struct dnn_plane *p = m->out;

    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->cols; j++) {
            int64_t from = c->base + i * c->down + j * c->right;
            int64_t to = (top + i) * p->width + left + j;

            for (int k = 0; k < p->channels; k++)
                p->value[to * p->channels + k] =
                    dnn_plane_value(m->image, m->data, from * m->channels + k);
            p->mask[to] = m->mask == NULL
                              ? 0
                              : (int32_t)dnn_plane_value(m->mask, m->classes, from);
        }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Black and white: the 1st and 99th percentile of the sample's finite values, of the
 * channels that are drawn. */
static void window(const struct maker *m, int64_t points)
{
    struct dnn_plane *p = m->out;
    int64_t step = points * p->channels / SAMPLED + 1, n = 0;
    double *some = dnn_alloc((SAMPLED + 1) * sizeof(*some));

    for (int64_t i = 0; i < points * p->channels && n < SAMPLED; i += step) {
        int64_t at = i / p->channels * m->channels + i % p->channels;
        double x = dnn_plane_value(m->image, m->data, at);

        if (isfinite(x)) some[n++] = x;
    }
    qsort(some, (size_t)n, sizeof(*some), compare);
    p->black = n == 0 ? 0 : some[n / 100];
    p->white = n == 0 ? 1 : some[n - 1 - n / 100];
    if (!(p->black < p->white) && n > 0) { /* nearly all are equal: show the others */
        p->black = some[0];
        p->white = some[n - 1];
    }
    if (!(p->black < p->white)) p->black -= 0.5, p->white += 0.5;
    dnn_free(some);
}

/* 3 channels are RGB, 4 of u8 are RGBA (alpha is ignored); else one channel is
 * drawn. */
static int drawn_channels(const struct dnn_column *column, int64_t channels)
{
    return channels == 3 || (channels == 4 && column->type == DNN_U8) ? 3 : 1;
}

static int alloc_plane(struct dnn_plane *out, int64_t height, int64_t width,
                       struct dnn_err *err)
{
    if (height < 1 || width < 1 || height > MOST / width)
        return dnn_fail(err, DNN_EDATA,
                        "an image of %lld x %lld pixels cannot be drawn",
                        (long long)height, (long long)width);
    out->height = height;
    out->width = width;
    size_t n = (size_t)(height * width);
    out->value = calloc(n * (size_t)out->channels, sizeof(*out->value));
    out->mask = malloc(n * sizeof(*out->mask));
    if (out->value == NULL || out->mask == NULL) {
        dnn_plane_free(out);
        return dnn_fail(err, DNN_ENOMEM, "not enough memory to draw %zu pixels", n);
    }
    memset(out->mask, 0xFF, n * sizeof(*out->mask)); /* -1: empty */
    return 0;
}

int dnn_plane_make(const struct dnn_stored *image, const void *data,
                   const struct dnn_stored *mask, const void *classes, bool three,
                   struct dnn_plane *out, struct dnn_err *err)
{
    const struct dnn_shape *s = &image->column.shape;
    int space = s->ndim - 1;
    struct maker m = {image, mask, data, classes, s->dim[space], out};
    int64_t h = s->dim[space - 2 < 0 ? 0 : space - 2];
    int64_t w = space > 1 ? s->dim[space - 1] : 1;

    *out = (struct dnn_plane){.channels = drawn_channels(&image->column, m.channels)};
    window(&m, (space < 3 ? 1 : s->dim[0]) * h * w);
    if (space < 3) {
        DNN_TRY(alloc_plane(out, h, w, err));
        copy_cut(&m, 0, 0, &(struct cut){h, w, 0, w, 1});
        return 0;
    }
    int64_t d = s->dim[0];
    const struct cut front = {h, w, d / 2 * h * w, w, 1};
    if (!three || d < 2) {
        DNN_TRY(alloc_plane(out, h, w, err));
        copy_cut(&m, 0, 0, &front);
        return 0;
    }
    DNN_TRY(alloc_plane(out, h + GAP + d, w + GAP + d, err));
    copy_cut(&m, 0, 0, &front);
    copy_cut(&m, 0, w + GAP, &(struct cut){h, d, w / 2, w, h * w});
    copy_cut(&m, h + GAP, 0, &(struct cut){d, w, h / 2 * w, h * w, 1});
    return 0;
}

void dnn_plane_free(struct dnn_plane *plane)
{
    free(plane->value);
    free(plane->mask);
    *plane = (struct dnn_plane){0};
}

/* ---- drawing ---- */

/* Mean of channel k over a rectangle of the plane. */
static double mean(const struct dnn_plane *p, const int64_t box[4], int k)
{
    double sum = 0;
    int64_t n = 0;

    for (int64_t y = box[0]; y < box[1]; y++)
        for (int64_t x = box[2]; x < box[3]; x++, n++)
            sum += p->value[(y * p->width + x) * p->channels + k];
    return sum / (double)n;
}

static uint32_t blend(uint32_t under, uint32_t over)
{
    uint32_t out = 0;

    for (int i = 0; i < 24; i += 8)
        out |= ((under >> i & 255) * 6 + (over >> i & 255) * 4 + 5) / 10 << i;
    return out;
}

static uint32_t shade(const struct dnn_plane *p, const int64_t box[4])
{
    uint32_t colour = 0;

    for (int k = 0; k < 3; k++) {
        double v = mean(p, box, p->channels == 3 ? k : 0);

        if (!isfinite(v)) return 0xFF00FF; /* NaN, infinity: magenta */
        v = (v - p->black) / (p->white - p->black) * 255;
        colour = colour << 8 | (uint32_t)(v < 0 ? 0 : v > 255 ? 255 : lround(v));
    }
    return colour;
}

void dnn_plane_draw(const struct dnn_plane *p, struct dnn_canvas *canvas, int x, int y,
                    int side)
{
    double most = (double)(p->height > p->width ? p->height : p->width);
    double f = side / most;

    if (f >= 1 && f < 2) f = 1; /* avoid a pattern of 1 and 2 pixels */
    int rows = (int)fmax(1, floor((double)p->height * f + 1e-9));
    int cols = (int)fmax(1, floor((double)p->width * f + 1e-9));

    x += (side - cols) / 2;
    y += (side - rows) / 2;
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < cols; i++) {
            int64_t box[4] = {j * p->height / rows, (j + 1) * p->height / rows,
                              i * p->width / cols, (i + 1) * p->width / cols};

            if (box[1] == box[0]) box[1]++;
            if (box[3] == box[2]) box[3]++;
            int32_t class =
                p->mask[(box[0] + box[1]) / 2 * p->width + (box[2] + box[3]) / 2];
            if (class < 0) continue;
            uint32_t colour = shade(p, box);
            if (p->solid)
                colour = dnn_canvas_class(class);
            else if (class > 0)
                colour = blend(colour, dnn_canvas_class(class));
            dnn_canvas_point(canvas, x + i, y + j, colour);
        }
}

void dnn_plane_bars(const double *value, int64_t n, struct dnn_canvas *canvas, int x,
                    int y, int side)
{
    double low = 0, high = 0;

    for (int64_t i = 0; i < n; i++) {
        if (value[i] < low) low = value[i];
        if (value[i] > high) high = value[i];
    }
    if (!(low < high)) high = low + 1;
    int zero = (int)lround((high / (high - low)) * (side - 1));
    dnn_canvas_fill(canvas, x, y, side, side, 0x101418);
    for (int i = 0; i < side; i++) { /* each column of pixels shows one value */
        int64_t at = (int64_t)i * n / side;
        bool gap = n * 4 <= side && (int64_t)(i + 1) * n / side != at;

        if (gap || !isfinite(value[at])) continue;
        int top = (int)lround((high - value[at]) / (high - low) * (side - 1));
        int from = top < zero ? top : zero, to = top < zero ? zero : top;
        dnn_canvas_fill(canvas, x + i, y + from, 1, to - from + 1,
                        value[at] < 0 ? 0xF58230 : 0x4C7DFF);
    }
    dnn_canvas_fill(canvas, x, y + zero, side, 1, 0x808890);
}
