/* shapes_impl.h - the shape rules used in the table of ops.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OP_SHAPES_IMPL_H
#define DNN_OP_SHAPES_IMPL_H

#include "op/op.h"

typedef int dnn_shape_rule(const union dnn_attr *attr, int nin,
                           const struct dnn_tensor *const *in, struct dnn_tensor *out);

dnn_shape_rule dnn_shape_same; /* the first operand's */
dnn_shape_rule dnn_shape_matmul;
dnn_shape_rule dnn_shape_conv;
dnn_shape_rule dnn_shape_deconv;
dnn_shape_rule dnn_shape_pool;
dnn_shape_rule dnn_shape_upsample;
dnn_shape_rule dnn_shape_pad;
dnn_shape_rule dnn_shape_unary;
dnn_shape_rule dnn_shape_combine;
dnn_shape_rule dnn_shape_concat;
dnn_shape_rule dnn_shape_reshape;
dnn_shape_rule dnn_shape_transpose;
dnn_shape_rule dnn_shape_reduce;
dnn_shape_rule dnn_shape_bn_stats;
dnn_shape_rule dnn_shape_none; /* no output */
dnn_shape_rule dnn_shape_groupnorm;
dnn_shape_rule dnn_shape_activity;
dnn_shape_rule dnn_shape_loss;
dnn_shape_rule dnn_shape_weigh;
dnn_shape_rule dnn_shape_overlap;
dnn_shape_rule dnn_shape_ratio;
dnn_shape_rule dnn_shape_lovasz;
dnn_shape_rule dnn_shape_fold;
dnn_shape_rule dnn_shape_penalty;

#endif
