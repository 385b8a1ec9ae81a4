/* onednn_impl.h - the kernels for matrix products (convolutions, transposed
 * convolutions and dense layers), by oneDNN, by OpenBLAS and our own.
 *
 * Activations are always plain channels-last arrays; only weights are packed, into the
 * step's keep memory, when they have changed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_ONEDNN_IMPL_H
#define DNN_BACKEND_CPU_ONEDNN_IMPL_H

#include "backend/cpu/cpu_impl.h"
#include "backend/cpu/direct.h"

/* onednn_conv.c: by oneDNN, with packed weights */
extern const struct cpu_algo dnn_cpu_onednn_conv, dnn_cpu_onednn_conv_data,
    dnn_cpu_onednn_conv_weights;
extern const struct cpu_algo dnn_cpu_onednn_deconv, dnn_cpu_onednn_deconv_data,
    dnn_cpu_onednn_deconv_weights;
/* conv_direct_weights.c: the gradient of the weights, summed in registers */
extern const struct cpu_algo dnn_cpu_direct_conv_weights, dnn_cpu_direct_deconv_weights;

/* conv_wino_weights.c: the same for three taps, with half the multiplications */
extern const struct cpu_algo dnn_cpu_wino_weights;

/* wino.c: three taps along the last axis, or the last two, with half or a quarter of
 * the multiplications; forward and backward data */
extern const struct cpu_algo dnn_cpu_wino_rows, dnn_cpu_wino_squares;

/* conv_tiles.c: windows that do not overlap, forward and backward data of both kinds */
extern const struct cpu_algo dnn_cpu_tiles;
/* conv_few.c: few output channels, forward */
extern const struct cpu_algo dnn_cpu_few;
/* conv_narrow.c, conv_narrow_weights.c: few input and output channels */
extern const struct cpu_algo dnn_cpu_narrow, dnn_cpu_narrow_weights;
/* matmul_sgemm.c: by OpenBLAS, one block per thread */
extern const struct cpu_algo dnn_cpu_sgemm, dnn_cpu_sgemm_data, dnn_cpu_sgemm_weights;
/* Whether an operand is small enough for OpenBLAS, which uses int for sizes. */
bool dnn_cpu_blas_fits(const struct dnn_tensor *tensor);
/* matmul_dgemm.c: the same in double precision */
extern const struct cpu_algo dnn_cpu_dgemm, dnn_cpu_dgemm_data, dnn_cpu_dgemm_weights;

/* matmul_stream.c: few rows; the weights are read or written once */
extern const struct cpu_algo dnn_cpu_stream, dnn_cpu_stream_data,
    dnn_cpu_stream_weights;

/* ---- conv_algos.c ---- */

/* The kernels of CONV, DECONV and MATMUL; NULL for other kinds. */
const struct cpu_algo *const *dnn_cpu_matrix_algos(enum dnn_op_kind kind,
                                                   enum dnn_pass pass);

/* ---- conv_window.c: the geometry of a step, for all kinds and passes ---- */

/* A convolution with three spatial axes; missing ones come first and have extent 1. For
 * a DECONV it is the convolution of which DECONV is the transpose: in is y, out is x. A
 * MATMUL has a single tap. */
struct cpu_window {
    struct dnn_direct_conv conv; /* dilation at least 1 */
    int64_t after[3], groups;
    int nspatial;
};

struct cpu_window dnn_cpu_window(const struct dnn_step *step);
/* The same for a call of a backward weights pass; also sets conv.pitch. */
struct cpu_window dnn_cpu_window_weights(const struct cpu_call *c);
/* Backward data of a convolution with strides of 1: a convolution of dy with the kernel
 * mirrored on every axis. */
struct dnn_direct_conv dnn_cpu_mirrored(const struct dnn_direct_conv *conv);

/* Input or output i of a step; NULL: absent. */
const struct dnn_tensor *dnn_cpu_in(const struct dnn_step *step, int i);
const struct dnn_tensor *dnn_cpu_out(const struct dnn_step *step, int i);
/* The pitch of operand i; if its rows are contiguous, the length of a row. */
int64_t dnn_cpu_pitch(const struct dnn_tensor *tensor, const int64_t *pitch, int i);
/* Multiplications and additions of a CONV, DECONV or MATMUL; else 0. */
double dnn_cpu_flops(const struct dnn_step *step);

/* ---- post_bias.c: fused activation and bias gradient ---- */

/* Whether dnn_cpu_post() supports the fused activation of a step. */
bool dnn_cpu_post_can(const struct dnn_step *step);
/* Apply the fused activation, if any, to the first output in place. */
void dnn_cpu_post(const struct cpu_call *c);
/* The sums of the columns of an array (the gradient of a bias); work:
 * dnn_cpu_sums_work() bytes. Results depend only on the shape and on threads. */
size_t dnn_cpu_sums_work(int64_t columns, int threads);
void dnn_cpu_sums(const struct cpu_array *a, float *sum, void *work, int threads);

/* ---- onednn.c ---- */

/* Destroy the engine and the stream; they are created on first use. */
void dnn_cpu_onednn_close(struct dnn_dev *dev);
/* oneDNN's version, "3.7.2". */
const char *dnn_cpu_onednn_version(char *out, size_t size);

#endif
