/* units.c - units of work: boxes of points, in a grid.
 *
 * They are numbered with the last axis fastest, forwards and backwards in turn: so
 * consecutive ones are neighbours, and ranks that compute them have few tiles in
 * common.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "window/window_impl.h"

enum { UNITS = 1024 }; /* of a sample, unless its first axis has more tiles */

/* ---- along an axis ---- */

static int64_t count(const struct window_axis *axis)
{
    return (axis->count + axis->unit - 1) / axis->unit;
}

/* The first point of unit i. */
static int64_t edge(const struct window_axis *axis, int64_t i)
{
    if (i >= count(axis)) return axis->full;
    return i == 0 ? 0 : window_start(axis, i * axis->unit);
}

static int64_t find(const struct window_axis *axis, int64_t point)
{
    int64_t i = point / (axis->unit * axis->step);

    /* Only the last tile may start before a multiple of the step. */
    if (i >= count(axis)) return count(axis) - 1;
    return edge(axis, i + 1) <= point ? i + 1 : i;
}

bool window_unit_starts(const struct window_axis *axis, int64_t point)
{
    return edge(axis, find(axis, point)) == point;
}

void window_units_make(struct dnn_window *w)
{
    int64_t left = UNITS;

    for (int a = 0; a < DNN_WINDOW_DIMS; a++) {
        struct window_axis *axis = &w->axis[a];
        int64_t wide = (WINDOW_MIN_CELL + axis->step - 1) / axis->step;
        int64_t few = (axis->count + left - 1) / left;

        axis->unit = a == w->lead ? 1 : wide > few ? wide : few;
        left = left > count(axis) ? left / count(axis) : 1;
    }
}

/* ---- on all axes ---- */

/* The place of a unit along an axis, or back; before: the number of units before it
 * along the axes before. */
static int64_t turn(const struct window_axis *axis, int64_t before, int64_t i)
{
    return before % 2 == 0 ? i : count(axis) - 1 - i;
}

/* The number of the unit at a place. */
static int64_t number(const struct dnn_window *w, int64_t i, int64_t j, int64_t k)
{
    int64_t unit = turn(&w->axis[0], 0, i);

    unit = unit * count(&w->axis[1]) + turn(&w->axis[1], unit, j);
    return unit * count(&w->axis[2]) + turn(&w->axis[2], unit, k);
}

int64_t window_unit_at(const struct dnn_window *w, const int64_t *point)
{
    return number(w, find(&w->axis[0], point[0]), find(&w->axis[1], point[1]),
                  find(&w->axis[2], point[2]));
}

/* The points [from, to) of a unit on all axes. */
static void unit_box(const struct dnn_window *w, int64_t unit, int64_t *from,
                     int64_t *to)
{
    for (int a = DNN_WINDOW_DIMS; a-- > 0;) {
        const struct window_axis *axis = &w->axis[a];
        int64_t i = unit % count(axis);

        unit /= count(axis);
        i = turn(axis, unit, i);
        from[a] = edge(axis, i);
        to[a] = edge(axis, i + 1);
    }
}

int64_t dnn_window_units(const struct dnn_window *w)
{
    return count(&w->axis[0]) * count(&w->axis[1]) * count(&w->axis[2]);
}

void dnn_window_unit(const struct dnn_window *w, int64_t unit,
                     int64_t start[DNN_WINDOW_DIMS], int64_t extent[DNN_WINDOW_DIMS])
{
    int64_t from[DNN_WINDOW_DIMS], to[DNN_WINDOW_DIMS];

    unit_box(w, unit, from, to);
    for (int a = 0; a < DNN_WINDOW_DIMS; a++) {
        bool is = a < w->cfg.ndim;

        start[a] = is ? from[a + w->lead] : 0;
        extent[a] = is ? to[a + w->lead] - start[a] : 1;
    }
}

int64_t dnn_window_unit_at(const struct dnn_window *w, const int64_t *point)
{
    int64_t at[DNN_WINDOW_DIMS] = {0};

    for (int a = w->lead; a < DNN_WINDOW_DIMS; a++)
        at[a] = point[a - w->lead];
    return window_unit_at(w, at);
}

int64_t dnn_window_unit_tiles(const struct dnn_window *w, int64_t unit)
{
    int64_t from[DNN_WINDOW_DIMS], to[DNN_WINDOW_DIMS], n = 1;

    unit_box(w, unit, from, to);
    for (int a = 0; a < DNN_WINDOW_DIMS; a++) {
        int64_t first, last;

        window_touch(&w->axis[a], from[a], to[a], &first, &last);
        n *= last - first;
    }
    return n;
}

bool dnn_window_wants(const struct dnn_window *w, const unsigned char *wanted,
                      int64_t tile)
{
    int64_t first[DNN_WINDOW_DIMS], last[DNN_WINDOW_DIMS];

    for (int a = DNN_WINDOW_DIMS; a-- > 0;) {
        const struct window_axis *axis = &w->axis[a];
        int64_t start = window_start(axis, tile % axis->count);
        int64_t end = start + axis->tile;

        tile /= axis->count;
        first[a] = find(axis, start < 0 ? 0 : start);
        last[a] = find(axis, end < axis->full ? end - 1 : axis->full - 1);
    }
    for (int64_t i = first[0]; i <= last[0]; i++)
        for (int64_t j = first[1]; j <= last[1]; j++)
            for (int64_t k = first[2]; k <= last[2]; k++)
                if (wanted[number(w, i, j, k)] != 0) return true;
    return false;
}
