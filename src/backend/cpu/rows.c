/* rows.c - the choice of the instruction set for the loops over rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct.h"
#include "backend/cpu/rows_split.h"

/* They are limited by memory bandwidth: AVX-512 would not be faster than AVX2. */
const struct dnn_rows_isa *dnn_rows_find(void)
{
#if defined(__x86_64__)
    if (dnn_direct_level() > 0) return &dnn_rows_avx2;
#endif
    return &dnn_rows_plain;
}

bool dnn_rows_stream(const struct cpu_array *y, const struct cpu_array *x,
                     int64_t large)
{
    return y->mem != x->mem && (uintptr_t)y->mem % 64 == 0 && y->pitch % 16 == 0 &&
           y->count * (int64_t)sizeof(float) > large;
}
