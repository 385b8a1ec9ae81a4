/* algos.c - the kernels for each kind of op and pass, preferred one first. To add
 * one: write it, declare it in rows_impl.h or onednn_impl.h, and add it to its list
 * here.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"
#include "backend/cpu/rows_impl.h"

#define ALGOS(...) ((const struct cpu_algo *const[]){__VA_ARGS__, NULL})

static const struct cpu_algo *const none[] = {NULL};

/* Forward, backward data, backward weights, backward statistics. */
static const struct cpu_algo *const *const table[DNN_OP_KINDS][DNN_PASSES] = {
    [DNN_OP_BIAS] = {ALGOS(&dnn_cpu_bias), NULL, ALGOS(&dnn_cpu_bias_weights)},
    [DNN_OP_POOL] = {ALGOS(&dnn_cpu_pool), ALGOS(&dnn_cpu_pool_data)},
    [DNN_OP_UPSAMPLE] = {ALGOS(&dnn_cpu_upsample), ALGOS(&dnn_cpu_upsample_data)},
    [DNN_OP_PAD] = {ALGOS(&dnn_cpu_pad), ALGOS(&dnn_cpu_pad_data)},
    [DNN_OP_UNARY] = {ALGOS(&dnn_cpu_unary), ALGOS(&dnn_cpu_unary_data)},
    [DNN_OP_PRELU] = {ALGOS(&dnn_cpu_prelu), ALGOS(&dnn_cpu_prelu_data),
                     ALGOS(&dnn_cpu_prelu_weights)},
    [DNN_OP_SOFTMAX] = {ALGOS(&dnn_cpu_softmax), ALGOS(&dnn_cpu_softmax_data)},
    [DNN_OP_COMBINE] = {ALGOS(&dnn_cpu_combine), ALGOS(&dnn_cpu_combine_data)},
    [DNN_OP_CONCAT] = {ALGOS(&dnn_cpu_concat), ALGOS(&dnn_cpu_concat_data)},
    [DNN_OP_RESHAPE] = {ALGOS(&dnn_cpu_reshape)},
    [DNN_OP_TRANSPOSE] = {ALGOS(&dnn_cpu_transpose)},
    [DNN_OP_REDUCE] = {ALGOS(&dnn_cpu_reduce), ALGOS(&dnn_cpu_reduce_data)},
    [DNN_OP_BN_STATS] = {ALGOS(&dnn_cpu_bn_stats)},
    [DNN_OP_BN_UPDATE] = {ALGOS(&dnn_cpu_bn_update)},
    [DNN_OP_BN_APPLY] = {ALGOS(&dnn_cpu_bn_apply), ALGOS(&dnn_cpu_bn_apply_data),
                     ALGOS(&dnn_cpu_bn_apply_weights),
                     ALGOS(&dnn_cpu_bn_apply_stats)},
    [DNN_OP_BN_INFER] = {ALGOS(&dnn_cpu_bn_infer), ALGOS(&dnn_cpu_bn_infer_data)},
    [DNN_OP_GROUPNORM] = {ALGOS(&dnn_cpu_groupnorm), ALGOS(&dnn_cpu_groupnorm_data),
                     ALGOS(&dnn_cpu_groupnorm_weights)},
    [DNN_OP_NOISE] = {ALGOS(&dnn_cpu_noise), ALGOS(&dnn_cpu_noise_data)},
    [DNN_OP_SCALE] = {ALGOS(&dnn_cpu_scale), ALGOS(&dnn_cpu_scale_data)},
    [DNN_OP_ACTIVITY] = {ALGOS(&dnn_cpu_activity), ALGOS(&dnn_cpu_activity_data)},
    [DNN_OP_MSE] = {ALGOS(&dnn_cpu_mse), ALGOS(&dnn_cpu_mse_data)},
    [DNN_OP_XENT] = {ALGOS(&dnn_cpu_loss), ALGOS(&dnn_cpu_loss_data)},
    [DNN_OP_POINT] = {ALGOS(&dnn_cpu_loss), ALGOS(&dnn_cpu_loss_data)},
    [DNN_OP_WEIGH] = {ALGOS(&dnn_cpu_weigh)},
    [DNN_OP_OVERLAP] = {ALGOS(&dnn_cpu_overlap), ALGOS(&dnn_cpu_overlap_data)},
    [DNN_OP_LOVASZ] = {ALGOS(&dnn_cpu_lovasz), ALGOS(&dnn_cpu_lovasz_data)},
    [DNN_OP_FOLD] = {ALGOS(&dnn_cpu_fold)},
    [DNN_OP_PENALTY] = {ALGOS(&dnn_cpu_penalty)},
    [DNN_OP_UPDATE] = {ALGOS(&dnn_cpu_update)},
};

const struct cpu_algo *const *dnn_cpu_algos(enum dnn_op_kind kind, enum dnn_pass pass)
{
    const struct cpu_algo *const *algos = table[kind][pass];

    if (algos == NULL) algos = dnn_cpu_matrix_algos(kind, pass);
    return algos == NULL ? none : algos;
}
