/* direct_avx2.c - the direct kernels on AVX2 with FMA: 16 registers of eight floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#if defined(__x86_64__)

#include <immintrin.h>

#define LANES 8
#define TILE_ROWS 6
#define TARGET __attribute__((target("avx2,fma")))
#define STREAM(to, v) _mm256_stream_ps(to, (__m256)(v))
#define FENCE() _mm_sfence()
#define ISA dnn_direct_avx2
#define ISA_NAME "avx2"

#include "backend/cpu/direct_kernel.h"

#endif
