/* rows_plain.c - the loops over rows in plain C, for any machine: vectors of four
 * floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#define LANES 4
#define TARGET

#include "backend/cpu/rows_norm_kernel.h"

#include "backend/cpu/rows_combine_kernel.h"
#include "backend/cpu/rows_unary_kernel.h"
#include "backend/cpu/rows_window_kernel.h"

const struct dnn_rows_isa dnn_rows_plain = {
    .name = "plain",
    .norm_stats = norm_stats,
    .norm_apply = norm_apply,
    .norm_dstats = norm_dstats,
    .norm_data = norm_data,
    .combine = combine,
    .chosen = chosen,
    .unary = unary,
    .unary_data = unary_data,
    .mask = mask,
    .mask_data = mask_data,
    .window_max = window_max,
    .window_max_data = window_max_data,
    .window_sum = window_sum,
    .repeat = repeat,
    .mix = mix,
};
