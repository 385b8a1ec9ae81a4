/* wino_avx2.c - minimal filtering on AVX2 with FMA: 16 registers of eight
 * floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#if defined(__x86_64__)

#define LANES 8
#define TILE_ROWS 6
#define TARGET __attribute__((target("avx2,fma")))
#define ISA dnn_wino_avx2
#define DIRECT dnn_direct_avx2

#include "backend/cpu/wino_kernel.h"

#endif
