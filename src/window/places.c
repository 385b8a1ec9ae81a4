/* places.c - where tiles and cells are, along each axis.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "window/window_impl.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_TILE = 1 << 24, MAX_COUNT = 1 << 24 };
static const int64_t MAX_FULL = (int64_t)1 << 40;

/* ---- one axis ---- */

int64_t window_start(const struct window_axis *axis, int64_t i)
{
    int64_t start = i * axis->step, last = axis->full - axis->tile;

    if (last < 0) return -(-last / 2);
    return start < last ? start : last;
}

void window_touch(const struct window_axis *axis, int64_t from, int64_t to,
                  int64_t *first, int64_t *last)
{
    int64_t n = axis->count;

    /* Only the last tile may start before a multiple of the step. */
    *first = from < axis->tile ? 0 : (from - axis->tile) / axis->step + 1;
    if (*first > n - 1) *first = n - 1;
    *last = to <= 0 ? 0 : (to - 1) / axis->step + 1;
    if (*last > n - 1) *last = n - 1;
    if (window_start(axis, n - 1) < to) *last = n;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Edges are the starts and ends of tiles.  least: points of a cell; narrower ones are
 * joined, unless a unit starts there. */
static void make_cells(struct window_axis *axis, int64_t least)
{
    int64_t *edge = dnn_alloc((size_t)(2 * axis->count + 2) * sizeof *edge), n = 0;

    for (int64_t i = 0; i < axis->count; i++) {
        edge[n++] = window_start(axis, i);
        edge[n++] = window_start(axis, i) + axis->tile;
    }
    qsort(edge, (size_t)n, sizeof *edge, ascending);
    axis->edge = edge;
    axis->ncells = 1;
    edge[0] = 0;
    for (int64_t i = 1; i < n; i++) {
        int64_t width = edge[i] - edge[axis->ncells - 1];

        if (width <= 0 || edge[i] >= axis->full) continue;
        if (width >= least || window_unit_starts(axis, edge[i]))
            edge[axis->ncells++] = edge[i];
    }
    edge[axis->ncells] = axis->full;
}

int64_t window_cell(const struct window_axis *axis, int64_t point)
{
    int64_t low = 0, high = axis->ncells;

    while (high - low > 1) {
        int64_t middle = (low + high) / 2;

        if (axis->edge[middle] <= point)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void make_axis(struct window_axis *axis, int64_t full, int64_t tile,
                      double overlap)
{
    int64_t step = full == tile ? tile : (int64_t)((double)tile * (1 - overlap));

    if (step < 1) step = 1;
    *axis = (struct window_axis){.full = full, .tile = tile, .step = step};
    axis->count = full > tile ? (full - tile + step - 1) / step + 1 : 1;
}

/* ---- checks ---- */

static int check_axis(const struct dnn_window_cfg *cfg, int a, struct dnn_err *err)
{
    if (cfg->full[a] < 1 || cfg->full[a] > MAX_FULL)
        return dnn_fail(err, DNN_EDATA,
                        "axis %d of a sample has extent %lld; tiles need 1 to %lld", a,
                        (long long)cfg->full[a], (long long)MAX_FULL);
    if (cfg->tile[a] < 1 || cfg->tile[a] > MAX_TILE)
        return dnn_fail(err, DNN_ECONFIG,
                        "inference.tile: axis %d is %lld; it must be between 1 and %d",
                        a, (long long)cfg->tile[a], MAX_TILE);
    if (!(cfg->overlap[a] >= 0 && cfg->overlap[a] < 1))
        return dnn_fail(err, DNN_ECONFIG,
                        "inference.overlap: axis %d is %g; it must be at least 0 and "
                        "less than 1, as a fraction of a tile",
                        a, cfg->overlap[a]);
    return 0;
}

static int check(const struct dnn_window_cfg *cfg, struct dnn_err *err)
{
    if (cfg->ndim < 1 || cfg->ndim > DNN_WINDOW_DIMS)
        return dnn_fail(err, DNN_ECONFIG,
                        "a sample with %d spatial axes cannot be cut into tiles; it "
                        "must have 1 to %d",
                        cfg->ndim, DNN_WINDOW_DIMS);
    for (int a = 0; a < cfg->ndim; a++)
        DNN_TRY(check_axis(cfg, a, err));
    if (cfg->blend == DNN_WINDOW_GAUSSIAN && !(cfg->sigma > 0 && isfinite(cfg->sigma)))
        return dnn_fail(err, DNN_ECONFIG,
                        "inference.sigma: is %g; it must be above 0, as a fraction of "
                        "a tile (usual: 0.125)",
                        cfg->sigma);
    return 0;
}

/* The numbers of points, of tiles, and of points of a tile must be countable. */
static int check_size(const struct dnn_window *w, struct dnn_err *err)
{
    int64_t points = 1, tiles = 1, in_tile = 1;

    for (int a = 0; a < DNN_WINDOW_DIMS; a++)
        if (w->axis[a].count > MAX_COUNT ||
            __builtin_mul_overflow(points, w->axis[a].full, &points) ||
            __builtin_mul_overflow(tiles, w->axis[a].count, &tiles) ||
            __builtin_mul_overflow(in_tile, w->axis[a].tile, &in_tile))
            return dnn_fail(err, DNN_EDATA, "a sample or a tile has too many points");
    return 0;
}

/* ---- the window ---- */

int dnn_window_make(const struct dnn_window_cfg *cfg, struct dnn_window **out,
                    struct dnn_err *err)
{
    DNN_TRY(check(cfg, err));

    struct dnn_window *w = dnn_alloc(sizeof *w);
    w->cfg = *cfg;
    w->lead = DNN_WINDOW_DIMS - cfg->ndim;
    for (int a = 0; a < w->lead; a++)
        make_axis(&w->axis[a], 1, 1, 0);
    for (int a = 0; a < cfg->ndim; a++)
        make_axis(&w->axis[w->lead + a], cfg->full[a], cfg->tile[a], cfg->overlap[a]);
    int rc = check_size(w, err);
    if (rc < 0) {
        dnn_window_free(w);
        return rc;
    }
    window_units_make(w);
    for (int a = 0; a < DNN_WINDOW_DIMS; a++)
        make_cells(&w->axis[a], a == w->lead ? 1 : WINDOW_MIN_CELL);
    window_weights_make(w);
    *out = w;
    return 0;
}

void dnn_window_free(struct dnn_window *window)
{
    if (window == NULL) return;
    for (int a = 0; a < DNN_WINDOW_DIMS; a++) {
        dnn_free(window->axis[a].edge);
        dnn_free(window->axis[a].curve);
    }
    dnn_free(window);
}

const struct dnn_window_cfg *dnn_window_cfg(const struct dnn_window *window)
{
    return &window->cfg;
}

int64_t dnn_window_tiles(const struct dnn_window *window)
{
    const struct window_axis *x = window->axis;

    return x[0].count * x[1].count * x[2].count;
}

int64_t dnn_window_row(const struct dnn_window *window)
{
    return dnn_window_tiles(window) / window->axis[window->lead].count;
}

void dnn_window_start(const struct dnn_window *window, int64_t tile,
                      int64_t start[DNN_WINDOW_DIMS])
{
    for (int a = DNN_WINDOW_DIMS; a-- > window->lead;) {
        const struct window_axis *axis = &window->axis[a];

        start[a - window->lead] = window_start(axis, tile % axis->count);
        tile /= axis->count;
    }
    for (int a = window->cfg.ndim; a < DNN_WINDOW_DIMS; a++)
        start[a] = 0;
}
