/* blend.c - sums of the outputs of tiles: which are in memory, and when they are
 * complete.
 *
 * Sums are allocated in cells: boxes between the starts and ends of tiles.  A cell
 * exists from the first to the last tile that overlaps it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "window/window_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>

/* ---- cells ---- */

void blend_cell_box(const struct dnn_window *window, const int64_t *cell,
                    int64_t *start, int64_t *extent)
{
    for (int a = 0; a < DNN_WINDOW_DIMS; a++) {
        const struct window_axis *axis = &window->axis[a];

        start[a] = axis->edge[cell[a]];
        extent[a] = axis->edge[cell[a] + 1] - start[a];
    }
}

static int64_t cells_of_layer(const struct dnn_window *window)
{
    int64_t n = 1;

    for (int a = window->lead + 1; a < DNN_WINDOW_DIMS; a++)
        n *= window->axis[a].ncells;
    return n;
}

/* The layer of a cell. */
static struct blend_layer *layer_of(const struct dnn_blend *blend, const int64_t *cell)
{
    return &blend->layer[cell[blend->cfg.window->lead]];
}

struct blend_cell *blend_cell_of(const struct dnn_blend *blend, const int64_t *cell)
{
    const struct dnn_window *w = blend->cfg.window;
    const struct blend_layer *layer = layer_of(blend, cell);
    int64_t i = 0;

    for (int a = w->lead + 1; a < DNN_WINDOW_DIMS; a++)
        i = i * w->axis[a].ncells + cell[a];
    return layer->cell == NULL ? NULL : &layer->cell[i];
}

static bool is_wanted(const struct dnn_blend *blend, const int64_t *cell)
{
    int64_t start[DNN_WINDOW_DIMS], extent[DNN_WINDOW_DIMS];

    if (blend->cfg.wanted == NULL) return true;
    blend_cell_box(blend->cfg.window, cell, start, extent);
    return blend->cfg.wanted[window_unit_at(blend->cfg.window, start)] != 0;
}

/* The wanted cells in the layer of a cell. */
static int64_t count_wanted(const struct dnn_blend *blend, const int64_t *cell)
{
    const struct dnn_window *w = blend->cfg.window;
    int64_t cells = cells_of_layer(w), at[DNN_WINDOW_DIMS] = {0}, n = 0;

    at[w->lead] = cell[w->lead];
    for (int64_t i = 0; i < cells; i++) {
        int64_t rest = i;

        for (int a = DNN_WINDOW_DIMS; a-- > w->lead + 1; rest /= w->axis[a].ncells)
            at[a] = rest % w->axis[a].ncells;
        n += is_wanted(blend, at);
    }
    return n;
}

size_t blend_point_bytes(const struct dnn_window *window, int64_t channels,
                         bool bounded)
{
    size_t one = bounded ? sizeof(int32_t) : sizeof(int64_t);

    return (size_t)channels * one +
           (window->cfg.blend == DNN_WINDOW_GAUSSIAN ? sizeof(float) : 0);
}

static int64_t cell_points(const struct dnn_window *window, const int64_t *cell)
{
    int64_t start[DNN_WINDOW_DIMS], extent[DNN_WINDOW_DIMS];

    blend_cell_box(window, cell, start, extent);
    return extent[0] * extent[1] * extent[2];
}

/* The number of tiles that overlap a cell. */
static int64_t cell_tiles(const struct dnn_window *window, const int64_t *cell)
{
    int64_t start[DNN_WINDOW_DIMS], extent[DNN_WINDOW_DIMS], n = 1;

    blend_cell_box(window, cell, start, extent);
    for (int a = 0; a < DNN_WINDOW_DIMS; a++) {
        int64_t first, last;

        window_touch(&window->axis[a], start[a], start[a] + extent[a], &first, &last);
        n *= last - first;
    }
    return n;
}

/* ---- memory ---- */

static int no_memory(const struct dnn_blend *blend, size_t more, struct dnn_err *err)
{
    char now[32], want[32];

    dnn_text_bytes(now, sizeof now, (double)blend->bytes);
    dnn_text_bytes(want, sizeof want, (double)more);
    return dnn_fail(err, DNN_ENOMEM,
                    "summing overlapping tiles needs %s in addition to %s, which do "
                    "not fit into memory; smaller tiles along the first axis, less "
                    "overlap or a shorter last axis need less",
                    want, now);
}

/* The reciprocal weights of all points of a cell. */
static void fill_inverse(const struct dnn_window *window, const int64_t *cell,
                         float *inverse)
{
    int64_t start[DNN_WINDOW_DIMS], extent[DNN_WINDOW_DIMS];

    blend_cell_box(window, cell, start, extent);
#pragma omp parallel for schedule(static) if (cell_points(window, cell) > 4096)
    for (int64_t i = 0; i < extent[0] * extent[1]; i++) {
        const struct window_row row = {
            {start[0] + i / extent[1], start[1] + i % extent[1], start[2]},
            extent[2]
        };

        window_inverse(window, &row, inverse + i * extent[2]);
    }
}

/* Allocates the sums of a cell, if it has none. */
static int open_cell(struct dnn_blend *blend, const int64_t *cell, struct dnn_err *err)
{
    const struct dnn_window *w = blend->cfg.window;
    struct blend_layer *layer = layer_of(blend, cell);

    if (!is_wanted(blend, cell)) return 0;
    if (layer->cell == NULL) {
        layer->left = count_wanted(blend, cell);
        layer->cell = dnn_alloc((size_t)cells_of_layer(w) * sizeof *layer->cell);
    }
    struct blend_cell *c = blend_cell_of(blend, cell);
    if (c->sum != NULL) return 0;

    size_t points = (size_t)cell_points(w, cell), bytes;
    size_t one = blend_point_bytes(w, blend->cfg.channels, blend->cfg.bounded);
    if (__builtin_mul_overflow(points, one, &bytes)) bytes = SIZE_MAX;
    c->sum = calloc(1, bytes);
    if (c->sum == NULL) return no_memory(blend, bytes, err);
    c->left = cell_tiles(w, cell);
    if (w->cfg.blend == DNN_WINDOW_GAUSSIAN) {
        c->inverse = (float *)((char *)c->sum + (bytes - points * sizeof(float)));
        fill_inverse(w, cell, c->inverse);
    }
    blend->bytes += bytes;
    if (blend->bytes > blend->peak) blend->peak = blend->bytes;
    return 0;
}

/* Counts a tile; after the last one, gives the values to the caller and frees them. */
static int count_tile(struct dnn_blend *blend, const int64_t *cell, struct dnn_err *err)
{
    const struct dnn_window *w = blend->cfg.window;
    struct blend_layer *layer = layer_of(blend, cell);
    struct blend_cell *c = blend_cell_of(blend, cell);
    int64_t start[DNN_WINDOW_DIMS] = {0}, extent[DNN_WINDOW_DIMS];
    int64_t points = cell_points(w, cell);

    if (c == NULL || c->sum == NULL || --c->left > 0) return 0;
    blend_cell_box(w, cell, start, extent);
    for (int a = 0; a < DNN_WINDOW_DIMS; a++) {
        bool is = a < w->cfg.ndim;

        start[a] = is ? start[a + w->lead] : 0;
        extent[a] = is ? extent[a + w->lead] : 1;
    }
    blend_divide(blend->cfg.bounded, c->sum, points * blend->cfg.channels);
    int rc = blend->cfg.done(blend->cfg.arg, start, extent, c->sum, err);
    free(c->sum);
    *c = (struct blend_cell){0};
    blend->bytes -=
        (size_t)points * blend_point_bytes(w, blend->cfg.channels, blend->cfg.bounded);
    if (--layer->left == 0) {
        dnn_free(layer->cell);
        layer->cell = NULL;
    }
    return rc;
}

/* ---- tiles ---- */

/* The part of a tile in the sample. */
static void find_box(const struct dnn_blend *blend, int64_t tile, struct blend_box *box)
{
    const struct dnn_window *w = blend->cfg.window;

    for (int a = DNN_WINDOW_DIMS; a-- > 0;) {
        const struct window_axis *axis = &w->axis[a];
        int64_t start = window_start(axis, tile % axis->count);

        tile /= axis->count;
        box->start[a] = start;
        box->from[a] = start > 0 ? start : 0;
        box->to[a] = start + axis->tile < axis->full ? start + axis->tile : axis->full;
        box->cell[a] = window_cell(axis, box->from[a]);
        box->cell_end[a] = window_cell(axis, box->to[a] - 1) + 1;
    }
}

static int for_cells(struct dnn_blend *blend, const struct blend_box *box,
                     int (*call)(struct dnn_blend *, const int64_t *, struct dnn_err *),
                     struct dnn_err *err)
{
    int64_t c[DNN_WINDOW_DIMS];

    for (c[0] = box->cell[0]; c[0] < box->cell_end[0]; c[0]++)
        for (c[1] = box->cell[1]; c[1] < box->cell_end[1]; c[1]++)
            for (c[2] = box->cell[2]; c[2] < box->cell_end[2]; c[2]++)
                DNN_TRY(call(blend, c, err));
    return 0;
}

int dnn_blend_add(struct dnn_blend *blend, int64_t tile, const float *value,
                  struct dnn_err *err)
{
    int64_t tiles = dnn_window_tiles(blend->cfg.window);
    struct blend_box box;

    if (tile < 0 || tile >= tiles)
        return dnn_fail(err, DNN_EDATA, "tile %lld of a sample that has %lld tiles",
                        (long long)tile, (long long)tiles);
    if ((blend->added[tile / 8] >> tile % 8 & 1) != 0)
        return dnn_fail(err, DNN_EDATA, "tile %lld is added twice", (long long)tile);
    blend->added[tile / 8] |= (unsigned char)(1u << tile % 8);
    find_box(blend, tile, &box);
    DNN_TRY(for_cells(blend, &box, open_cell, err));
    if (!blend_add_box(blend, &box, value))
        return blend_bad_value(blend, &box, value, err);
    return for_cells(blend, &box, count_tile, err);
}

/* ---- open and close ---- */

int dnn_blend_open(const struct dnn_blend_cfg *cfg, struct dnn_blend **out,
                   struct dnn_err *err)
{
    const struct dnn_window *w = cfg->window;
    int64_t values;

    if (cfg->channels < 1)
        return dnn_fail(err, DNN_EDATA, "the output of the network has %lld channels",
                        (long long)cfg->channels);
    values = w->axis[0].tile * w->axis[1].tile * w->axis[2].tile;
    if (__builtin_mul_overflow(values, cfg->channels * 16, &values))
        return dnn_fail(err, DNN_EDATA, "the outputs of a tile have too many values");
    struct dnn_blend *blend = dnn_alloc(sizeof *blend);
    blend->cfg = *cfg;
    blend->added = dnn_alloc((size_t)dnn_window_tiles(w) / 8 + 1);
    blend->layer = dnn_alloc((size_t)w->axis[w->lead].ncells * sizeof *blend->layer);
    *out = blend;
    return 0;
}

size_t dnn_blend_bytes(const struct dnn_blend *blend, size_t *peak)
{
    if (peak != NULL) *peak = blend->peak;
    return blend->bytes;
}

void dnn_blend_close(struct dnn_blend *blend)
{
    if (blend == NULL) return;
    const struct dnn_window *w = blend->cfg.window;
    int64_t n = cells_of_layer(w);
    for (int64_t k = 0; k < w->axis[w->lead].ncells; k++) {
        for (int64_t i = 0; blend->layer[k].cell != NULL && i < n; i++)
            free(blend->layer[k].cell[i].sum);
        dnn_free(blend->layer[k].cell);
    }
    dnn_free(blend->layer);
    dnn_free(blend->added);
    dnn_free(blend);
}
