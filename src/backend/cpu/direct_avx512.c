/* direct_avx512.c - the direct kernels on AVX-512: 32 registers of sixteen floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#if defined(__x86_64__)

#include <immintrin.h>

#define LANES 16
#define TILE_ROWS 12
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define STREAM(to, v) _mm512_stream_ps(to, (__m512)(v))
#define FENCE() _mm_sfence()
#define ISA dnn_direct_avx512
#define ISA_NAME "avx512"

#include "backend/cpu/direct_kernel.h"

#endif
