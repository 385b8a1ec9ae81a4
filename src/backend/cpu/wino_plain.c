/* wino_plain.c - minimal filtering in plain C, for any machine: vectors of four
 * floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#define LANES 4
#define TILE_ROWS 6
#define TARGET
#define ISA dnn_wino_plain
#define DIRECT dnn_direct_plain

#include "backend/cpu/wino_kernel.h"
