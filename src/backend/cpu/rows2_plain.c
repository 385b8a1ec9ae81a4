/* rows2_plain.c - the loops of rows2_kernel.h in plain C, for any machine: vectors of
 * four floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#define LANES 4
#define TARGET

#include "backend/cpu/rows2_layer_kernel.h"
#include "backend/cpu/rows2_overlap_kernel.h"
#include "backend/cpu/rows2_weight_kernel.h"
#include "backend/cpu/rows2_update_kernel.h"

const struct dnn_rows2_isa dnn_rows2_plain = {
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
    .regular = regular,
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
    .layer_again = layer_again,
    .layer_data = layer_data,
    .layer_weights = layer_weights,
    .column_most = column_most,
    .column_equal = column_equal,
    .column_spread = column_spread,
    .column_prelu = column_prelu,
};
