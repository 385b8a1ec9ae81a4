/* rows2.c - which instruction set the loops of rows2_kernel.h use.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct.h"
#include "backend/cpu/rows2_kernel.h"

#include <string.h>

const struct dnn_rows2_isa *dnn_rows2_find(void)
{
#if defined(__x86_64__)
    if (strcmp(dnn_direct_isa(), "plain") != 0) return &dnn_rows2_avx2;
#endif
    return &dnn_rows2_plain;
}
