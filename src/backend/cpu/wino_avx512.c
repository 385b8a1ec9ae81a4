/* wino_avx512.c - minimal filtering on AVX-512: 32 registers of sixteen
 * floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#if defined(__x86_64__)

#define LANES 16
#define TILE_ROWS 12
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define ISA dnn_wino_avx512
#define DIRECT dnn_direct_avx512

#include "backend/cpu/wino_kernel.h"

#endif
