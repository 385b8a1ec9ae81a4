/* geometry.c - mirror and transpose arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/transform_impl.h"

#include <string.h>

int dnn_flip(const struct dnn_array *in, unsigned axes, struct dnn_array *out,
             struct dnn_err *err)
{
    struct dnn_grid grid;

    DNN_TRY(dnn_transform_grid(in, "flip", &grid, err));
    if (axes >> grid.nspace != 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "flip: axes 0x%x: the array has %d spatial axes", axes,
                        grid.nspace);
    DNN_TRY(dnn_transform_make(in, &grid, out, err));
    unsigned flips = axes << (DNN_MAX_SPACE - grid.nspace);
    ptrdiff_t step = flips & 4 ? -(ptrdiff_t)grid.pixel : (ptrdiff_t)grid.pixel;
    size_t row = (size_t)grid.n[2] * grid.pixel;
    char *to = out->data;
    for (int64_t z = 0; z < grid.n[0]; z++)
        for (int64_t y = 0; y < grid.n[1]; y++, to += row)
            dnn_transform_copy(to, (ptrdiff_t)grid.pixel,
                               (const char *)in->data +
                                   dnn_transform_at(&grid,
                                                    flips & 1 ? grid.n[0] - 1 - z : z,
                                                    flips & 2 ? grid.n[1] - 1 - y : y,
                                                    flips & 4 ? grid.n[2] - 1 : 0),
                               step, grid.n[2], grid.pixel);
    return 0;
}

/* ---- transpose ---- */

/* The side of a tile in points: the cache lines read for one row of a tile are still in
 * the cache for the next row. */
enum { TILE = 16 };

/* step: the steps in the memory of the input along the axes of the result.  Tiles
 * extend along the last axis of the result and axis `along`, the last axis of the
 * input. */
static void transpose_tiles(const struct dnn_array *in, const struct dnn_grid *to,
                            const ptrdiff_t *step, int along, struct dnn_array *out)
{
    ptrdiff_t pixel = (ptrdiff_t)to->pixel;
    int other = 1 - along;

    for (int64_t o = 0; o < to->n[other]; o++)
        for (int64_t top = 0; top < to->n[along]; top += TILE)
            for (int64_t left = 0; left < to->n[2]; left += TILE) {
                int64_t bottom = top + TILE < to->n[along] ? top + TILE : to->n[along];
                int64_t n = to->n[2] - left < TILE ? to->n[2] - left : TILE;

                for (int64_t t = top; t < bottom; t++)
                    dnn_transform_copy((char *)out->data +
                                           dnn_transform_at(to, along == 0 ? t : o,
                                                            along == 0 ? o : t, left),
                                       pixel,
                                       (const char *)in->data + o * step[other] +
                                           t * step[along] + left * step[2],
                                       step[2], n, to->pixel);
            }
}

/* The last axis does not change. */
static void transpose_rows(const struct dnn_array *in, const struct dnn_grid *to,
                           const ptrdiff_t *step, struct dnn_array *out)
{
    size_t row = (size_t)to->n[2] * to->pixel;
    char *at = out->data;

    for (int64_t z = 0; z < to->n[0]; z++)
        for (int64_t y = 0; y < to->n[1]; y++, at += row)
            memcpy(at, (const char *)in->data + z * step[0] + y * step[1], row);
}

int dnn_transpose(const struct dnn_array *in, const int *order, struct dnn_array *out,
                  struct dnn_err *err)
{
    ptrdiff_t in_step[DNN_MAX_SPACE], step[DNN_MAX_SPACE];
    struct dnn_grid from, to;
    unsigned seen = 0;

    DNN_TRY(dnn_transform_grid(in, "transpose", &from, err));
    to = from;
    int skip = DNN_MAX_SPACE - from.nspace;
    in_step[2] = (ptrdiff_t)from.pixel;
    in_step[1] = in_step[2] * from.n[2];
    in_step[0] = in_step[1] * from.n[1];
    memcpy(step, in_step, sizeof step);
    for (int i = 0; i < from.nspace; i++) {
        if (order[i] < 0 || order[i] >= from.nspace || seen >> order[i] & 1)
            return dnn_fail(err, DNN_ECONFIG,
                            "transpose: position %d has axis %d; name each of the %d "
                            "spatial axes once",
                            i, order[i], from.nspace);
        seen |= 1U << order[i];
        to.n[skip + i] = from.n[skip + order[i]];
        step[skip + i] = in_step[skip + order[i]];
    }
    DNN_TRY(dnn_transform_make(in, &to, out, err));
    for (int i = 0; i < from.nspace; i++)
        out->spacing[i] = in->spacing[order[i]];
    int last = order[from.nspace - 1];
    if (last == from.nspace - 1)
        transpose_rows(in, &to, step, out);
    else
        transpose_tiles(in, &to, step, skip == 0 && order[0] == 2 ? 0 : 1, out);
    return 0;
}
