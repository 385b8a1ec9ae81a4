/* plan_impl.h - what the files of this room share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PLAN_PLAN_IMPL_H
#define DNN_PLAN_PLAN_IMPL_H

#include "plan/plan.h"

/* What a value takes in a block: whole lines. */
static inline size_t dnn_plan_round(size_t bytes)
{
    return (bytes + DNN_PLAN_ALIGN - 1) / DNN_PLAN_ALIGN * DNN_PLAN_ALIGN;
}

#endif
