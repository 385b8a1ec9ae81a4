/* wino_weights.h - the gradient of a convolution's weights with half the
 * multiplications.
 *
 * Along the last axis three taps are computed at once from four positions of dy and
 * the six of x they meet: both are transformed into six numbers, of which the sums of
 * products are taken, 6 multiplications where there would be 12 (Winograd's minimal
 * filtering, F(3, 4)); the taps come out of the sums at the very end.  That would
 * double the rounding errors, but a block's sums start at zero and are added to the
 * others' as a whole: over many positions the result is more exact than that of
 * direct.h.
 *
 * Pure functions on channels-last f32 arrays, as those of direct.h, whose convolution
 * and DNN_ISA they share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_WINO_WEIGHTS_H
#define DNN_BACKEND_CPU_WINO_WEIGHTS_H

#include "backend/cpu/direct.h"

/* Can it be done: three taps along the last axis, strides and dilations of 1, and
 * enough channels and positions for it to make sense? */
bool dnn_wino_weights_can(const struct dnn_direct_conv *conv);

/* Bytes of scratch memory for that many threads (at least 1). */
size_t dnn_wino_weights_work(const struct dnn_direct_conv *conv, int threads);

/* As dnn_direct_weights(). */
void dnn_wino_weights(const struct dnn_direct_conv *conv, const float *x,
                      const float *dy, float *dw, float *db, void *work, int threads);

#endif
