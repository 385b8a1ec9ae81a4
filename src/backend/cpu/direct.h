/* direct.h - our own convolution kernels, for shapes where oneDNN is slow.
 *
 * Pure functions on channels-last f32 arrays: no state, no allocation. The gradient of
 * the weights is a sum over all positions of x (input channels) times dy (output
 * channels); the sums stay in registers along the rows, which a GEMM on im2col patches
 * cannot do.
 *
 * The instruction set is chosen at run time. The environment variable DNN_ISA
 * (plain, avx2 or avx512) sets the highest one to use; it must not change between a
 * call of a _work function and the run it is for.
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
 * zero, so padding at the end need not be specified.
 *
 *   x  (n, in[0], in[1], in[2], c)        dw (kernel[0], kernel[1], kernel[2], c, m)
 *   dy (n, out[0], out[1], out[2], m)     db (m)
 *
 * The weights of a transposed convolution, (kernel, outputs, inputs), have the same
 * gradient with x and dy exchanged. */
struct dnn_direct_conv {
    int64_t n, in[3], c, out[3], m;
    int64_t kernel[3], stride[3], before[3];
    int64_t dilation[3]; /* 0 counts as 1 */
    int64_t pitch;       /* of x: floats from one position to the next; 0 counts as c */
};

/* The instruction set in use: 0 plain, 1 avx2, 2 avx512; and its name. */
int dnn_direct_level(void);
const char *dnn_direct_isa(void);

/* Check DNN_ISA, if it is set: it must be an instruction set that this machine
 * supports. The other functions ignore an invalid value. */
int dnn_direct_check(struct dnn_err *err);

/* sum[0 ... m) = the sums of the columns of rows of m floats, pitch apart.  Uses one
 * thread. */
void dnn_direct_columns(const float *y, int64_t rows, int64_t m, int64_t pitch,
                        float *sum);

/* Whether the gradient of the weights is supported: all sizes at least 1, no
 * negative padding, and no index overflow. */
bool dnn_direct_weights_can(const struct dnn_direct_conv *conv);

/* Bytes of workspace for a number of threads (at least 1). */
size_t dnn_direct_weights_work(const struct dnn_direct_conv *conv, int threads);

/* dw and db are overwritten; db may be NULL. work: dnn_direct_weights_work() bytes,
 * with any alignment. Runs a team of that many OpenMP threads. Results depend only on
 * the shape, the instruction set and the number of threads. */
void dnn_direct_weights(const struct dnn_direct_conv *conv, const float *x,
                        const float *dy, float *dw, float *db, void *work, int threads);

static inline int64_t dnn_min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t dnn_max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* n rounded up to a multiple. */
static inline int64_t dnn_round_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

#endif
