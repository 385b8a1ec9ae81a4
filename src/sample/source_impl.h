/* source_impl.h - shared by source.c and box.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SAMPLE_SOURCE_IMPL_H
#define DNN_SAMPLE_SOURCE_IMPL_H

#include "sample/source.h"

/* box.c: the complete sample that a box was cut from last.  NULL is fine. */
void dnn_source_last_free(struct dnn_source_last *last);

#endif
