/* pool_impl.h - windows over three space axes, for pooling and upsampling.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_POOL_IMPL_H
#define DNN_BACKEND_CPU_POOL_IMPL_H

#include "backend/cpu/rows_impl.h"

/* Three space axes, the missing ones first with extent 1. */
struct cpu_windows {
    int64_t n, in[DNN_MAX_SPATIAL], out[DNN_MAX_SPATIAL];
    int64_t kernel[DNN_MAX_SPATIAL], stride[DNN_MAX_SPATIAL], before[DNN_MAX_SPATIAL];
    int64_t c, taps;
};

struct cpu_windows dnn_cpu_windows(const struct dnn_op_window *w,
                                   const struct dnn_shape *in,
                                   const struct dnn_shape *out);
/* Bytes of workspace for what follows. */
size_t dnn_cpu_windows_work(const struct cpu_windows *w, int threads);
/* Sums over windows, factor times them; or means, where factor is 0. */
void dnn_cpu_windows_sum(const struct cpu_windows *w, const struct cpu_call *c,
                         float factor);

#endif
