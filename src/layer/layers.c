/* layers.c - the list of all kinds of layers.  To add one: write its file, add its
 * lines here and its file to src/Makefile.am.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "layer/layer.h"

#include <string.h>

extern const struct dnn_layer_type dnn_layer_input, dnn_layer_rescaling,
    dnn_layer_normalization, dnn_layer_dense, dnn_layer_conv1d, dnn_layer_conv2d,
    dnn_layer_conv3d, dnn_layer_depthwise1d, dnn_layer_depthwise2d,
    dnn_layer_depthwise3d, dnn_layer_separable1d, dnn_layer_separable2d,
    dnn_layer_separable3d, dnn_layer_conv1d_transpose, dnn_layer_conv2d_transpose,
    dnn_layer_conv3d_transpose, dnn_layer_max_pool1d, dnn_layer_max_pool2d,
    dnn_layer_max_pool3d, dnn_layer_average_pool1d, dnn_layer_average_pool2d,
    dnn_layer_average_pool3d, dnn_layer_global_max1d, dnn_layer_global_max2d,
    dnn_layer_global_max3d, dnn_layer_global_average1d, dnn_layer_global_average2d,
    dnn_layer_global_average3d, dnn_layer_batchnorm, dnn_layer_layernorm,
    dnn_layer_groupnorm, dnn_layer_instancenorm, dnn_layer_dropout,
    dnn_layer_spatial_dropout1d, dnn_layer_spatial_dropout2d,
    dnn_layer_spatial_dropout3d, dnn_layer_gaussian_dropout, dnn_layer_alpha_dropout,
    dnn_layer_gaussian_noise, dnn_layer_activity, dnn_layer_reshape, dnn_layer_flatten,
    dnn_layer_permute, dnn_layer_upsampling1d, dnn_layer_upsampling2d,
    dnn_layer_upsampling3d, dnn_layer_zero_padding1d, dnn_layer_zero_padding2d,
    dnn_layer_zero_padding3d, dnn_layer_cropping1d, dnn_layer_cropping2d,
    dnn_layer_cropping3d, dnn_layer_center_crop, dnn_layer_add, dnn_layer_subtract,
    dnn_layer_multiply, dnn_layer_average, dnn_layer_maximum, dnn_layer_minimum,
    dnn_layer_concatenate, dnn_layer_merge, dnn_layer_activation, dnn_layer_relu,
    dnn_layer_leaky_relu, dnn_layer_elu, dnn_layer_softmax, dnn_layer_log_softmax,
    dnn_layer_gelu, dnn_layer_sigmoid, dnn_layer_tanh, dnn_layer_swish, dnn_layer_selu,
    dnn_layer_softplus, dnn_layer_softsign, dnn_layer_hard_sigmoid,
    dnn_layer_hard_swish, dnn_layer_mish, dnn_layer_prelu, dnn_layer_layer_scale,
    dnn_layer_scaled_sum, dnn_layer_stochastic_depth;

static const struct dnn_layer_type *const table[] = {&dnn_layer_input,
                                                     &dnn_layer_rescaling,
                                                     &dnn_layer_normalization,
                                                     &dnn_layer_dense,
                                                     &dnn_layer_conv1d,
                                                     &dnn_layer_conv2d,
                                                     &dnn_layer_conv3d,
                                                     &dnn_layer_depthwise1d,
                                                     &dnn_layer_depthwise2d,
                                                     &dnn_layer_depthwise3d,
                                                     &dnn_layer_separable1d,
                                                     &dnn_layer_separable2d,
                                                     &dnn_layer_separable3d,
                                                     &dnn_layer_conv1d_transpose,
                                                     &dnn_layer_conv2d_transpose,
                                                     &dnn_layer_conv3d_transpose,
                                                     &dnn_layer_max_pool1d,
                                                     &dnn_layer_max_pool2d,
                                                     &dnn_layer_max_pool3d,
                                                     &dnn_layer_average_pool1d,
                                                     &dnn_layer_average_pool2d,
                                                     &dnn_layer_average_pool3d,
                                                     &dnn_layer_global_max1d,
                                                     &dnn_layer_global_max2d,
                                                     &dnn_layer_global_max3d,
                                                     &dnn_layer_global_average1d,
                                                     &dnn_layer_global_average2d,
                                                     &dnn_layer_global_average3d,
                                                     &dnn_layer_batchnorm,
                                                     &dnn_layer_layernorm,
                                                     &dnn_layer_groupnorm,
                                                     &dnn_layer_instancenorm,
                                                     &dnn_layer_dropout,
                                                     &dnn_layer_spatial_dropout1d,
                                                     &dnn_layer_spatial_dropout2d,
                                                     &dnn_layer_spatial_dropout3d,
                                                     &dnn_layer_gaussian_dropout,
                                                     &dnn_layer_alpha_dropout,
                                                     &dnn_layer_gaussian_noise,
                                                     &dnn_layer_activity,
                                                     &dnn_layer_reshape,
                                                     &dnn_layer_flatten,
                                                     &dnn_layer_permute,
                                                     &dnn_layer_upsampling1d,
                                                     &dnn_layer_upsampling2d,
                                                     &dnn_layer_upsampling3d,
                                                     &dnn_layer_zero_padding1d,
                                                     &dnn_layer_zero_padding2d,
                                                     &dnn_layer_zero_padding3d,
                                                     &dnn_layer_cropping1d,
                                                     &dnn_layer_cropping2d,
                                                     &dnn_layer_cropping3d,
                                                     &dnn_layer_center_crop,
                                                     &dnn_layer_add,
                                                     &dnn_layer_subtract,
                                                     &dnn_layer_multiply,
                                                     &dnn_layer_average,
                                                     &dnn_layer_maximum,
                                                     &dnn_layer_minimum,
                                                     &dnn_layer_concatenate,
                                                     &dnn_layer_merge,
                                                     &dnn_layer_activation,
                                                     &dnn_layer_relu,
                                                     &dnn_layer_leaky_relu,
                                                     &dnn_layer_elu,
                                                     &dnn_layer_softmax,
                                                     &dnn_layer_log_softmax,
                                                     &dnn_layer_gelu,
                                                     &dnn_layer_sigmoid,
                                                     &dnn_layer_tanh,
                                                     &dnn_layer_swish,
                                                     &dnn_layer_selu,
                                                     &dnn_layer_softplus,
                                                     &dnn_layer_softsign,
                                                     &dnn_layer_hard_sigmoid,
                                                     &dnn_layer_hard_swish,
                                                     &dnn_layer_mish,
                                                     &dnn_layer_prelu,
                                                     &dnn_layer_layer_scale,
                                                     &dnn_layer_scaled_sum,
                                                     &dnn_layer_stochastic_depth,
                                                     NULL};

const struct dnn_layer_type *dnn_layer_find(const char *name)
{
    for (int i = 0; table[i] != NULL; i++) {
        if (strcmp(table[i]->name, name) == 0) return table[i];
        for (int k = 0; k < 3 && table[i]->alias[k] != NULL; k++)
            if (strcmp(table[i]->alias[k], name) == 0) return table[i];
    }
    return NULL;
}

const struct dnn_layer_type *dnn_layer_at(int index)
{
    return table[index];
}
