/* window_impl.h - windows of convolutions and pooling, extended to three spatial axes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_WINDOW_IMPL_H
#define DNN_BACKEND_WINDOW_IMPL_H

#include "op/op.h"

/* Missing spatial axes come first and have extent 1. */
struct window3d {
    int64_t n, c, m; /* batch, channels of input and output */
    int64_t in[DNN_MAX_SPATIAL], out[DNN_MAX_SPATIAL];
    int64_t kernel[DNN_MAX_SPATIAL], stride[DNN_MAX_SPATIAL];
    int64_t dilation[DNN_MAX_SPATIAL];
    int64_t before[DNN_MAX_SPATIAL], after[DNN_MAX_SPATIAL];
    int64_t taps; /* product of kernel */
};

static inline struct window3d window3d(const struct dnn_op_window *w,
                                       const struct dnn_shape *in,
                                       const struct dnn_shape *out)
{
    struct window3d s = {.n = in->dim[0],
                         .c = in->dim[in->ndim - 1],
                         .m = out->dim[out->ndim - 1],
                         .taps = 1};

    for (int i = 0; i < DNN_MAX_SPATIAL; i++) {
        int j = i - (DNN_MAX_SPATIAL - w->nspatial);

        s.in[i] = j < 0 ? 1 : in->dim[j + 1];
        s.out[i] = j < 0 ? 1 : out->dim[j + 1];
        s.kernel[i] = j < 0 ? 1 : w->kernel[j];
        s.stride[i] = j < 0 ? 1 : w->stride[j];
        s.dilation[i] = j < 0 || w->dilation[j] < 1 ? 1 : w->dilation[j];
        s.before[i] = j < 0 ? 0 : w->before[j];
        s.after[i] = j < 0 ? 0 : w->after[j];
        s.taps *= s.kernel[i];
    }
    return s;
}

#endif
