/* conv_algos.c - the kernels for convolutions, transposed convolutions and matrix
 * products, preferred one first: the heuristic selects in this order.
 *
 * Kernels for special shapes come first; their can() limits them to those shapes.
 * The gradient of the weights uses our own kernel where there is one group, because
 * oneDNN has no direct kernel for it on most CPUs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"

#define ALGOS(...) ((const struct cpu_algo *const[]){__VA_ARGS__, NULL})

/* Forward, backward data, backward weights. */
static const struct cpu_algo *const *const conv[] = {
    ALGOS(&dnn_cpu_narrow, &dnn_cpu_few, &dnn_cpu_onednn_conv, &dnn_cpu_wino_squares,
          &dnn_cpu_wino_rows, &dnn_cpu_tiles),
    ALGOS(&dnn_cpu_narrow, &dnn_cpu_onednn_conv_data, &dnn_cpu_wino_squares,
          &dnn_cpu_wino_rows, &dnn_cpu_tiles),
    ALGOS(&dnn_cpu_direct_conv_weights, &dnn_cpu_wino_weights, &dnn_cpu_narrow_weights,
          &dnn_cpu_onednn_conv_weights),
};
static const struct cpu_algo *const *const deconv[] = {
    ALGOS(&dnn_cpu_tiles, &dnn_cpu_onednn_deconv),
    ALGOS(&dnn_cpu_tiles, &dnn_cpu_onednn_deconv_data),
    ALGOS(&dnn_cpu_direct_deconv_weights, &dnn_cpu_onednn_deconv_weights),
};
static const struct cpu_algo *const *const matmul[] = {
    ALGOS(&dnn_cpu_stream, &dnn_cpu_sgemm, &dnn_cpu_dgemm),
    ALGOS(&dnn_cpu_stream_data, &dnn_cpu_sgemm_data, &dnn_cpu_dgemm_data),
    ALGOS(&dnn_cpu_stream_weights, &dnn_cpu_sgemm_weights, &dnn_cpu_dgemm_weights),
};

const struct cpu_algo *const *dnn_cpu_matrix_algos(enum dnn_op_kind kind,
                                                   enum dnn_pass pass)
{
    if (pass > DNN_BWD_WEIGHTS) return NULL;
    switch (kind) {
    case DNN_OP_CONV:
        return conv[pass];
    case DNN_OP_DECONV:
        return deconv[pass];
    case DNN_OP_MATMUL:
        return matmul[pass];
    default:
        return NULL;
    }
}
