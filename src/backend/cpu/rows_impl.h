/* rows_impl.h - the memory-bound kernels, which run over rows once: all ops that are
 * not matrix products.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_ROWS_IMPL_H
#define DNN_BACKEND_CPU_ROWS_IMPL_H

#include "backend/cpu/cpu_impl.h"

/* norm_batch.c */
extern const struct cpu_algo dnn_cpu_bn_stats, dnn_cpu_bn_apply, dnn_cpu_bn_apply_stats,
    dnn_cpu_bn_apply_data, dnn_cpu_bn_infer;
/* norm_batch_channel.c */
extern const struct cpu_algo dnn_cpu_bn_update, dnn_cpu_bn_apply_weights,
    dnn_cpu_bn_infer_data;
/* norm_group.c */
extern const struct cpu_algo dnn_cpu_groupnorm, dnn_cpu_groupnorm_data,
    dnn_cpu_groupnorm_weights;
/* unary.c */
extern const struct cpu_algo dnn_cpu_unary, dnn_cpu_unary_data;
/* bias.c */
extern const struct cpu_algo dnn_cpu_bias, dnn_cpu_bias_weights;
/* combine.c */
extern const struct cpu_algo dnn_cpu_combine, dnn_cpu_combine_data;
/* copy.c */
extern const struct cpu_algo dnn_cpu_concat, dnn_cpu_concat_data, dnn_cpu_pad,
    dnn_cpu_pad_data, dnn_cpu_reshape, dnn_cpu_transpose;
/* pool.c */
extern const struct cpu_algo dnn_cpu_pool, dnn_cpu_pool_data;
/* upsample.c */
extern const struct cpu_algo dnn_cpu_upsample, dnn_cpu_upsample_data;
/* reduce.c */
extern const struct cpu_algo dnn_cpu_reduce, dnn_cpu_reduce_data;
/* softmax.c */
extern const struct cpu_algo dnn_cpu_softmax, dnn_cpu_softmax_data;
/* noise.c */
extern const struct cpu_algo dnn_cpu_noise, dnn_cpu_noise_data;
/* scale.c */
extern const struct cpu_algo dnn_cpu_prelu, dnn_cpu_prelu_data, dnn_cpu_prelu_weights,
    dnn_cpu_scale, dnn_cpu_scale_data, dnn_cpu_activity, dnn_cpu_activity_data;
/* loss.c */
extern const struct cpu_algo dnn_cpu_mse, dnn_cpu_mse_data, dnn_cpu_loss,
    dnn_cpu_loss_data, dnn_cpu_weigh;
/* loss_overlap.c */
extern const struct cpu_algo dnn_cpu_overlap, dnn_cpu_overlap_data;
/* loss_lovasz.c */
extern const struct cpu_algo dnn_cpu_lovasz, dnn_cpu_lovasz_data;
/* update.c */
extern const struct cpu_algo dnn_cpu_update, dnn_cpu_penalty, dnn_cpu_fold;

#endif
