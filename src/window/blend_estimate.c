/* blend_estimate.c - the most memory that sums need if tiles are added in order.
 *
 * A cell exists while tile t is added if its first tile is not after t and its last
 * tile not before t.  Tiles are ordered by their places on the first axis, then on the
 * second and so on, so this can be decided axis by axis: once the place on an axis is
 * strictly after the first tile's, that condition holds whatever follows.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "window/window_impl.h"

#include "base/mem.h"

/* For a place on an axis: the extents of the cells that are possible while the
 * conditions (first, last) are open, by which of them remain open. */
struct extents {
    int64_t of[2][2][2][2];
};

static struct extents *make_extents(const struct window_axis *axis)
{
    struct extents *all = dnn_alloc((size_t)axis->count * sizeof *all);
    int64_t before = 0, after = 0;

    for (int64_t c = 0; c < axis->ncells; c++) {
        int64_t from = axis->edge[c], n = axis->edge[c + 1] - from, first, end;

        window_touch(axis, from, from + n, &first, &end);
        all[first].of[1][0][1][0] += n;
        all[end - 1].of[0][1][0][1] += n;
        for (int64_t i = first; i < end; i++)
            all[i].of[1][1][first == i][end - 1 == i] += n;
    }
    for (int64_t i = 0; i < axis->count; i++) {
        all[i].of[0][0][0][0] = axis->full;
        all[i].of[1][0][0][0] = before;
        before += all[i].of[1][0][1][0];
    }
    for (int64_t i = axis->count; i-- > 0;) {
        all[i].of[0][1][0][0] = after;
        after += all[i].of[0][1][0][1];
    }
    return all;
}

/* Points of the cells that exist, on the axes from `axis`; at: the place of the tile.
 */
static int64_t points(struct extents *const *all, const int64_t *at, int axis, int a,
                      int b)
{
    int64_t sum = 0;

    if (axis == DNN_WINDOW_DIMS) return 1;
    const struct extents *e = &all[axis][at[axis]];
    for (int x = 0; x <= a; x++)
        for (int y = 0; y <= b; y++)
            if (e->of[a][b][x][y] > 0)
                sum += e->of[a][b][x][y] * points(all, at, axis + 1, x, y);
    return sum;
}

size_t dnn_blend_estimate(const struct dnn_window *window, int64_t channels,
                          bool bounded)
{
    const struct window_axis *axis = window->axis;
    struct extents *all[DNN_WINDOW_DIMS];
    int64_t at[DNN_WINDOW_DIMS], most = 0;
    size_t bytes;

    for (int a = 0; a < DNN_WINDOW_DIMS; a++)
        all[a] = make_extents(&axis[a]);
    for (at[0] = 0; at[0] < axis[0].count; at[0]++)
        for (at[1] = 0; at[1] < axis[1].count; at[1]++)
            for (at[2] = 0; at[2] < axis[2].count; at[2]++) {
                int64_t now = points(all, at, 0, 1, 1);

                if (now > most) most = now;
            }
    for (int a = 0; a < DNN_WINDOW_DIMS; a++)
        dnn_free(all[a]);
    if (__builtin_mul_overflow((size_t)most,
                               blend_point_bytes(window, channels, bounded), &bytes))
        return SIZE_MAX;
    return bytes;
}
