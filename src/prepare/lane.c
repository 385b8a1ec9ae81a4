/* lane.c - a column between two steps: what its numbers mean.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <string.h>

int dnn_lane_space(const struct dnn_lane *lane)
{
    bool space =
        lane->column.kind == DNN_KIND_IMAGE || lane->column.kind == DNN_KIND_MASK;

    return space && lane->column.shape.ndim > 0 ? lane->column.shape.ndim - 1 : 0;
}

int64_t dnn_lane_channels(const struct dnn_lane *lane)
{
    const struct dnn_shape *shape = &lane->column.shape;

    return shape->ndim == 0 ? 1 : shape->dim[shape->ndim - 1];
}

void dnn_lane_become_values(struct dnn_lane *lane)
{
    lane->column.type = DNN_F32;
    lane->nscale = 0;
}

int dnn_lane_values(const struct dnn_lane *lane, struct dnn_array *array,
                    struct dnn_err *err)
{
    DNN_TRY(dnn_array_convert(array, DNN_F32, false, err));
    if (lane->nscale == 0) return 0;

    float *x = array->data;
    int64_t n = dnn_array_count(array);
    int64_t channels =
        array->shape.ndim == 0 ? 1 : array->shape.dim[array->shape.ndim - 1];
    if (lane->nscale == 1) {
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)(x[i] * lane->scale[0] + lane->offset[0]);
        return 0;
    }
    if (channels != lane->nscale)
        return dnn_fail(err, DNN_EDATA, "%lld channels, expected %d",
                        (long long)channels, lane->nscale);
    for (int64_t i = 0; i < n; i++) {
        int64_t c = i % channels;

        x[i] = (float)(x[i] * lane->scale[c] + lane->offset[c]);
    }
    return 0;
}

void dnn_lane_standardise(struct dnn_lane *lane, int nchannels, const double *mean,
                          const double *std)
{
    int had = lane->nscale, n = had > nchannels ? had : nchannels;

    for (int c = n; c-- > 0;) {
        int from = had > 1 ? c : 0, by = nchannels > 1 ? c : 0;
        double scale = had == 0 ? 1 : lane->scale[from];
        double offset = had == 0 ? 0 : lane->offset[from];

        lane->scale[c] = scale / std[by];
        lane->offset[c] = (offset - mean[by]) / std[by];
    }
    lane->nscale = n;
}

struct dnn_column dnn_lane_column(const struct dnn_lane *lane)
{
    struct dnn_column column = lane->column;

    if (lane->nscale > 0) column.type = DNN_F32;
    return column;
}
