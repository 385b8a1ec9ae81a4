/* weights.c - weights of the points of a tile.
 *
 * The weights of all tiles at a point are divided by their sum, which depends only on
 * the places of the tiles: it is the same for any part of a sample.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "window/window_impl.h"

#include "base/mem.h"

#include <math.h>

/* Gaussian weights are at least this. */
static const float LOWEST = 1e-3f;

/* ---- along an axis ---- */

static void make_curve(struct window_axis *axis, double sigma)
{
    double middle = (double)(axis->tile - 1) / 2, width = sigma * (double)axis->tile;

    axis->curve = dnn_alloc((size_t)axis->tile * sizeof *axis->curve);
    for (int64_t i = 0; i < axis->tile; i++) {
        double x = ((double)i - middle) / width;

        axis->curve[i] = (float)exp(-x * x / 2);
    }
}

void window_weights_make(struct dnn_window *window)
{
    for (int a = 0; a < DNN_WINDOW_DIMS; a++)
        if (window->cfg.blend == DNN_WINDOW_GAUSSIAN)
            make_curve(&window->axis[a], window->cfg.sigma);
}

/* ---- Gaussian ---- */

/* The weight before normalisation; rest: product of the values of the other axes. */
static inline float gaussian(float rest, float curve)
{
    float weight = rest * curve;

    return weight > LOWEST ? weight : LOWEST;
}

/* Adds the weights of the tiles at one place on the first two axes to a part of a row
 * from x, n points. */
static void add_gaussian(const struct window_axis *axis, float rest, int64_t x,
                         int64_t n, double *sum)
{
    int64_t first, last;

    window_touch(axis, x, x + n, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t start = window_start(axis, i), end = start + axis->tile;
        int64_t from = start > x ? start : x, to = end < x + n ? end : x + n;
        const float *curve = axis->curve + (from - start);
        double *out = sum + (from - x);

#pragma omp simd
        for (int64_t k = 0; k < to - from; k++)
            out[k] += (double)gaussian(rest, curve[k]);
    }
}

void window_inverse(const struct dnn_window *window, const struct window_row *row,
                    float *out)
{
    const struct window_axis *axis = window->axis;
    int64_t first[2], last[2];

    for (int a = 0; a < 2; a++)
        window_touch(&axis[a], row->at[a], row->at[a] + 1, &first[a], &last[a]);
    for (int64_t done = 0; done < row->n; done += WINDOW_ROW) {
        int64_t n = row->n - done < WINDOW_ROW ? row->n - done : WINDOW_ROW;
        double sum[WINDOW_ROW] = {0};

        for (int64_t i = first[0]; i < last[0]; i++)
            for (int64_t j = first[1]; j < last[1]; j++) {
                float rest = axis[0].curve[row->at[0] - window_start(&axis[0], i)] *
                             axis[1].curve[row->at[1] - window_start(&axis[1], j)];

                add_gaussian(&axis[2], rest, row->at[2] + done, n, sum);
            }
        for (int64_t k = 0; k < n; k++)
            out[done + k] = (float)(1 / sum[k]);
    }
}

/* ---- normalised ---- */

static double tiles_at(const struct window_axis *axis, int64_t x)
{
    int64_t first, last;

    window_touch(axis, x, x + 1, &first, &last);
    return (double)(last - first);
}

/* The reciprocal of the number of tiles at each point. */
static void constant_weights(const struct dnn_window *window,
                             const struct window_row *row, float scale, float *out)
{
    const struct window_axis *axis = window->axis;
    double rest = tiles_at(&axis[0], row->at[0]) * tiles_at(&axis[1], row->at[1]);
    double tiles[WINDOW_ROW] = {0};
    int64_t first, last, x = row->at[2];

    window_touch(&axis[2], x, x + row->n, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t from = window_start(&axis[2], i) - x, to = from + axis[2].tile;

        if (to > row->n) to = row->n;
        for (int64_t k = from > 0 ? from : 0; k < to; k++)
            tiles[k]++;
    }
    for (int64_t k = 0; k < row->n; k++)
        out[k] = (float)(scale / (rest * tiles[k]));
}

void window_weights(const struct dnn_window *window, const int64_t *start,
                    const struct window_row *row, const float *inverse, float scale,
                    float *out)
{
    const struct window_axis *axis = window->axis;

    if (window->cfg.blend == DNN_WINDOW_CONSTANT) {
        constant_weights(window, row, scale, out);
        return;
    }
    const float *curve = axis[2].curve + (row->at[2] - start[2]);
    float rest =
        axis[0].curve[row->at[0] - start[0]] * axis[1].curve[row->at[1] - start[1]];
#pragma omp simd
    for (int64_t k = 0; k < row->n; k++)
        out[k] = gaussian(rest, curve[k]) * inverse[k] * scale;
}
