/* wino_weights.h - the gradient of the weights of a convolution by Winograd's minimal
 * filtering, F(3, 4).
 *
 * Along the last axis three taps are computed from four positions of dy and the six of
 * x they meet: both are transformed into six numbers, whose products are summed: 6
 * multiplications instead of 12. The taps are computed from the sums at the end. That
 * alone would double the rounding errors, but the sums of a block start at zero and are
 * added to the others as a whole: over many positions the result is more exact than
 * that of direct.h.
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

/* Bytes of scratch memory for that many threads (at least 1). */
size_t dnn_wino_weights_work(const struct dnn_direct_conv *conv, int threads);

/* As dnn_direct_weights(). */
void dnn_wino_weights(const struct dnn_direct_conv *conv, const float *x,
                      const float *dy, float *dw, float *db, void *work, int threads);

#endif
