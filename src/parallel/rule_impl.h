/* rule_impl.h - the existing rules.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PARALLEL_RULE_IMPL_H
#define DNN_PARALLEL_RULE_IMPL_H

#include "parallel/rule.h"

extern const struct dnn_rule dnn_rule_bsp;

#endif
