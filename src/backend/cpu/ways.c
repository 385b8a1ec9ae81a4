/* ways.c - every way to do a step, by kind and pass, best guess first.  To add one:
 * write it, declare it in rows_impl.h or onednn_impl.h, and put it in its list here.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"
#include "backend/cpu/rows_impl.h"

#define WAYS(...) ((const struct cpu_way *const[]){__VA_ARGS__, NULL})

static const struct cpu_way *const none[] = {NULL};

/* Forward, backward data, backward weights, backward statistics. */
static const struct cpu_way *const *const table[DNN_OP_KINDS][DNN_PASSES] = {
    [DNN_OP_BIAS] = {WAYS(&dnn_cpu_bias), NULL, WAYS(&dnn_cpu_bias_weights)},
    [DNN_OP_POOL] = {WAYS(&dnn_cpu_pool), WAYS(&dnn_cpu_pool_data)},
    [DNN_OP_UPSAMPLE] = {WAYS(&dnn_cpu_upsample), WAYS(&dnn_cpu_upsample_data)},
    [DNN_OP_PAD] = {WAYS(&dnn_cpu_pad), WAYS(&dnn_cpu_pad_data)},
    [DNN_OP_UNARY] = {WAYS(&dnn_cpu_unary), WAYS(&dnn_cpu_unary_data)},
    [DNN_OP_PRELU] = {WAYS(&dnn_cpu_prelu), WAYS(&dnn_cpu_prelu_data),
                     WAYS(&dnn_cpu_prelu_weights)},
    [DNN_OP_SOFTMAX] = {WAYS(&dnn_cpu_softmax), WAYS(&dnn_cpu_softmax_data)},
    [DNN_OP_COMBINE] = {WAYS(&dnn_cpu_combine), WAYS(&dnn_cpu_combine_data)},
    [DNN_OP_CONCAT] = {WAYS(&dnn_cpu_concat), WAYS(&dnn_cpu_concat_data)},
    [DNN_OP_RESHAPE] = {WAYS(&dnn_cpu_reshape)},
    [DNN_OP_TRANSPOSE] = {WAYS(&dnn_cpu_transpose)},
    [DNN_OP_REDUCE] = {WAYS(&dnn_cpu_reduce), WAYS(&dnn_cpu_reduce_data)},
    [DNN_OP_BN_STATS] = {WAYS(&dnn_cpu_bn_stats)},
    [DNN_OP_BN_UPDATE] = {WAYS(&dnn_cpu_bn_update)},
    [DNN_OP_BN_APPLY] = {WAYS(&dnn_cpu_bn_apply), WAYS(&dnn_cpu_bn_apply_data),
                     WAYS(&dnn_cpu_bn_apply_weights),
                     WAYS(&dnn_cpu_bn_apply_stats)},
    [DNN_OP_BN_INFER] = {WAYS(&dnn_cpu_bn_infer), WAYS(&dnn_cpu_bn_infer_data)},
    [DNN_OP_GROUPNORM] = {WAYS(&dnn_cpu_groupnorm), WAYS(&dnn_cpu_groupnorm_data),
                     WAYS(&dnn_cpu_groupnorm_weights)},
    [DNN_OP_NOISE] = {WAYS(&dnn_cpu_noise), WAYS(&dnn_cpu_noise_data)},
    [DNN_OP_SCALE] = {WAYS(&dnn_cpu_scale), WAYS(&dnn_cpu_scale_data)},
    [DNN_OP_ACTIVITY] = {WAYS(&dnn_cpu_activity), WAYS(&dnn_cpu_activity_data)},
    [DNN_OP_MSE] = {WAYS(&dnn_cpu_mse), WAYS(&dnn_cpu_mse_data)},
    [DNN_OP_XENT] = {WAYS(&dnn_cpu_loss), WAYS(&dnn_cpu_loss_data)},
    [DNN_OP_POINT] = {WAYS(&dnn_cpu_loss), WAYS(&dnn_cpu_loss_data)},
    [DNN_OP_WEIGH] = {WAYS(&dnn_cpu_weigh)},
    [DNN_OP_OVERLAP] = {WAYS(&dnn_cpu_overlap), WAYS(&dnn_cpu_overlap_data)},
    [DNN_OP_LOVASZ] = {WAYS(&dnn_cpu_lovasz), WAYS(&dnn_cpu_lovasz_data)},
    [DNN_OP_FOLD] = {WAYS(&dnn_cpu_fold)},
    [DNN_OP_PENALTY] = {WAYS(&dnn_cpu_penalty)},
    [DNN_OP_UPDATE] = {WAYS(&dnn_cpu_update)},
};

const struct cpu_way *const *dnn_cpu_ways(enum dnn_op_kind kind, enum dnn_pass pass)
{
    const struct cpu_way *const *ways = table[kind][pass];

    if (ways == NULL) ways = dnn_cpu_matrix_ways(kind, pass);
    return ways == NULL ? none : ways;
}
