/* wino_weights.h - the gradient of the weights of a convolution by Winograd's minimal
 * filtering, F(3, 4).
 *
 * Along the last axis, three taps are computed from four positions of dy and the six
 * positions of x that they multiply: both are transformed to six values, whose products
 * are summed: 6 multiplications instead of 12. The taps are computed from the sums at
 * the end. This would double the rounding errors, but each block has its own sums,
 * which are added to the total at the end of the block: over many positions the result
 * is more accurate than that of direct.h.
 *
 * Pure functions on channels-last f32 arrays, like those of direct.h; struct
 * dnn_direct_conv and DNN_ISA are the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_WINO_WEIGHTS_H
#define DNN_BACKEND_CPU_WINO_WEIGHTS_H

#include "backend/cpu/direct.h"

/* Whether it is supported: three taps along the last axis, strides and dilations of
 * 1, and enough channels and positions to pay off. */
bool dnn_wino_weights_can(const struct dnn_direct_conv *conv);

/* Bytes of workspace for a number of threads (at least 1). */
size_t dnn_wino_weights_work(const struct dnn_direct_conv *conv, int threads);

/* Like dnn_direct_weights(). */
void dnn_wino_weights(const struct dnn_direct_conv *conv, const float *x,
                      const float *dy, float *dw, float *db, void *work, int threads);

#endif
