/* direct_plain.c - the direct kernels in plain C, for any machine: vectors of four
 * floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#define LANES 4
#define TILE_ROWS 6
#define TARGET
#define STREAM(to, v) (*(vec *)(to) = (v))
#define FENCE() ((void)0)
#define ISA dnn_direct_plain
#define ISA_NAME "plain"

#include "backend/cpu/direct_kernel.h"
