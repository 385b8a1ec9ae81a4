/* rows_isa.h - the table of all loops over rows for one instruction set.
 *
 * Included once by each of rows_plain.c and rows_avx2.c, which define LANES (floats in
 * a vector), TARGET (the functions' attribute), ISA (the table's name) and ISA_NAME.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_norm_kernel.h"

#include "backend/cpu/rows_combine_kernel.h"
#include "backend/cpu/rows_elementwise_kernel.h"
#include "backend/cpu/rows_layernorm_kernel.h"
#include "backend/cpu/rows_overlap_kernel.h"
#include "backend/cpu/rows_unary_kernel.h"
#include "backend/cpu/rows_update_kernel.h"
#include "backend/cpu/rows_window_kernel.h"

const struct dnn_rows_isa ISA = {
    .name = ISA_NAME,
    .norm_stats = norm_stats,
    .norm_apply = norm_apply,
    .norm_dstats = norm_dstats,
    .norm_data = norm_data,
    .combine = combine,
    .max_min_data = max_min_data,
    .unary = unary,
    .unary_data = unary_data,
    .mask = mask,
    .mask_data = mask_data,
    .window_max = window_max,
    .window_max_data = window_max_data,
    .window_sum = window_sum,
    .repeat = repeat,
    .mix = mix,
    .sgd = sgd,
    .adam = adam,
    .nadam = nadam,
    .adagrad = adagrad,
    .adadelta = adadelta,
    .rmsprop = rmsprop,
    .lars_norms = lars_norms,
    .lamb_means = lamb_means,
    .lamb = lamb,
    .norms = norms,
    .penalty_data = penalty_data,
    .squares = squares,
    .difference = difference,
    .scale = scale,
    .prelu = prelu,
    .prelu_data = prelu_data,
    .dropout = dropout,
    .softmax = softmax,
    .softmax_data = softmax_data,
    .xent = xent,
    .xent_data = xent_data,
    .point = point,
    .point_data = point_data,
    .overlap = overlap,
    .overlap_data = overlap_data,
    .layer = layer,
    .layer_recompute = layer_recompute,
    .layer_data = layer_data,
    .layer_weights = layer_weights,
    .column_max = column_max,
    .column_equal = column_equal,
    .column_spread = column_spread,
    .column_prelu = column_prelu,
};
