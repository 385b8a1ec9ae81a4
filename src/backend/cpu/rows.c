/* rows.c - which instruction set the loops over rows use.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct.h"
#include "backend/cpu/rows_split.h"

/* They wait for memory: nothing wider than AVX2 is worth its own copy. */
const struct dnn_rows_isa *dnn_rows_find(void)
{
#if defined(__x86_64__)
    if (strcmp(dnn_direct_isa(), "plain") != 0) return &dnn_rows_avx2;
#endif
    return &dnn_rows_plain;
}

bool dnn_rows_stream(const struct cpu_array *y, const struct cpu_array *x,
                     int64_t large)
{
    return y->mem != x->mem && (uintptr_t)y->mem % 64 == 0 && y->pitch % 16 == 0 &&
           y->count * (int64_t)sizeof(float) > large;
}
