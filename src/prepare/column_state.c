/* column_state.c - the state of a column between two steps: dtype, scale and offset.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <string.h>

int dnn_column_state_space(const struct dnn_column_state *state)
{
    bool space =
        state->column.kind == DNN_KIND_IMAGE || state->column.kind == DNN_KIND_MASK;

    return space && state->column.shape.ndim > 0 ? state->column.shape.ndim - 1 : 0;
}

int64_t dnn_column_state_channels(const struct dnn_column_state *state)
{
    const struct dnn_shape *shape = &state->column.shape;

    return shape->ndim == 0 ? 1 : shape->dim[shape->ndim - 1];
}

void dnn_column_state_become_values(struct dnn_column_state *state)
{
    state->column.type = DNN_F32;
    state->nscale = 0;
}

int dnn_column_state_values(const struct dnn_column_state *state,
                            struct dnn_array *array, struct dnn_err *err)
{
    DNN_TRY(dnn_array_convert(array, DNN_F32, false, err));
    if (state->nscale == 0) return 0;

    float *x = array->data;
    int64_t n = dnn_array_count(array);
    int64_t channels =
        array->shape.ndim == 0 ? 1 : array->shape.dim[array->shape.ndim - 1];
    if (state->nscale == 1) {
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)(x[i] * state->scale[0] + state->offset[0]);
        return 0;
    }
    if (channels != state->nscale)
        return dnn_fail(err, DNN_EDATA, "%lld channels, expected %d",
                        (long long)channels, state->nscale);
    for (int64_t i = 0; i < n; i++) {
        int64_t c = i % channels;

        x[i] = (float)(x[i] * state->scale[c] + state->offset[c]);
    }
    return 0;
}

void dnn_column_state_standardise(struct dnn_column_state *state, int nchannels,
                                  const double *mean, const double *std)
{
    int had = state->nscale, n = had > nchannels ? had : nchannels;

    for (int c = n; c-- > 0;) {
        int from = had > 1 ? c : 0, by = nchannels > 1 ? c : 0;
        double scale = had == 0 ? 1 : state->scale[from];
        double offset = had == 0 ? 0 : state->offset[from];

        state->scale[c] = scale / std[by];
        state->offset[c] = (offset - mean[by]) / std[by];
    }
    state->nscale = n;
}

struct dnn_column dnn_column_state_column(const struct dnn_column_state *state)
{
    struct dnn_column column = state->column;

    if (state->nscale > 0) column.type = DNN_F32;
    return column;
}
