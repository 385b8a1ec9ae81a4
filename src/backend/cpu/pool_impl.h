/* pool_impl.h - sums over windows, for pooling and upsampling.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_POOL_IMPL_H
#define DNN_BACKEND_CPU_POOL_IMPL_H

#include "backend/cpu/rows_impl.h"
#include "backend/window_impl.h"

/* Bytes of workspace for dnn_cpu_windows_sum(). */
size_t dnn_cpu_windows_work(const struct window3d *w, int threads);
/* Sums over windows, times factor; factor 0: means. */
void dnn_cpu_windows_sum(const struct window3d *w, const struct cpu_call *c,
                         float factor);

#endif
