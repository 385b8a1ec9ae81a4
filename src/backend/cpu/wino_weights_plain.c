/* wino_weights_plain.c - the transformed gradient of weights in plain C, for any
 * machine: vectors of four floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#define LANES 4
#define SUMS 12
#define TARGET
#define ISA dnn_wino_weights_plain
#define DIRECT dnn_direct_plain

#include "backend/cpu/wino_weights_kernel.h"
