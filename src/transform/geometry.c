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
