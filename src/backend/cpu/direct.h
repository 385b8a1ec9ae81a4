/* direct.h - our own convolution kernels, for shapes where the library is slow.
 *
 * Pure functions on channels-last f32 arrays: no state, no allocation, no other
 * room.  The gradient of the weights is a sum over all positions of
 * x (input channels) times dy (output channels); here it is held in registers
 * while walking along the rows, which a GEMM on unfolded patches cannot do.
 *
 * The instruction set is chosen by the CPU at run time.  The environment
 * variable DNN_ISA (plain, avx2 or avx512) sets the highest that may be used; it
 * must not change between a call of a _work function and the run it is for.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_DIRECT_H
#define DNN_BACKEND_CPU_DIRECT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* A convolution of up to three dimensions, in the order d, h, w; a 2D one has
 * depth 1, a 1D one also height 1.  The input position of output o and tap k on an
 * axis is o * stride + k * dilation - before; positions outside the input are
 * zero, so what is padded behind needs no number.
 *
 *   x  (n, in[0], in[1], in[2], c)        dw (kernel[0], kernel[1], kernel[2], c, m)
 *   dy (n, out[0], out[1], out[2], m)     db (m)
 *
 * A transposed convolution's weights, (kernel, outputs, inputs), have the same
 * gradient with its dy in the place of x and its x in the place of dy. */
struct dnn_direct_conv {
    int64_t n, in[3], c, out[3], m;
    int64_t kernel[3], stride[3], before[3];
    int64_t dilation[3]; /* 0 counts as 1 */
    int64_t pitch;       /* of x: floats from position to position; 0 counts as c */
};

/* The name of the instruction set in use here: plain, avx2 or avx512. */
const char *dnn_direct_isa(void);

/* Is DNN_ISA, if it is set, a name this machine can honour?  A wrong one is
 * otherwise without effect. */
int dnn_direct_check(struct dnn_err *err);

/* sum[0 ... m) becomes the sums of the columns of rows of m floats, which lie pitch
 * apart.  One thread. */
void dnn_direct_columns(const float *y, int64_t rows, int64_t m, int64_t pitch,
                        float *sum);

/* Gradient of the weights: can it be done, i.e. are all sizes at least 1, the
 * padding not negative, and every array within reach of its index? */
bool dnn_direct_weights_can(const struct dnn_direct_conv *conv);

/* Bytes of scratch memory for that many threads (at least 1). */
size_t dnn_direct_weights_work(const struct dnn_direct_conv *conv, int threads);

/* dw and db are overwritten; db may be NULL.  work holds the bytes asked for, at
 * any address.  Runs a team of that many OpenMP threads.  The bits of the result
 * depend on the shape, the instruction set and the number of threads alone. */
void dnn_direct_weights(const struct dnn_direct_conv *conv, const float *x,
                        const float *dy, float *dw, float *db, void *work, int threads);

#endif
