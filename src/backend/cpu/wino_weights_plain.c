/* wino_weights_plain.c - the Winograd gradient of the weights in plain C, for any
 * machine: vectors of four floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#define LANES 4
#define TILE_ROWS 6
#define TARGET
#define ISA dnn_wino_weights_plain
#define DIRECT dnn_direct_plain

#include "backend/cpu/wino_weights_kernel.h"
