/* rows_avx2.c - the loops over rows on AVX2 with FMA.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#if defined(__x86_64__)

#define LANES 8
#define TARGET __attribute__((target("avx2,fma")))
#define ISA dnn_rows_avx2
#define ISA_NAME "avx2"

#include "backend/cpu/rows_isa.h"

#endif
