/* opt_impl.h - internals of opt.c and opt_print.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_OPT_IMPL_H
#define DNN_BASE_OPT_IMPL_H

#include "base/opt.h"

/* The options of all tools; ends with name == NULL. */
extern const struct dnn_option dnn_opt_common[];

#endif
