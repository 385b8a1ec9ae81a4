/* rows_plain.c - the loops over rows in plain C, for any machine: vectors of four
 * floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#define LANES 4
#define TARGET
#define ISA dnn_rows_plain
#define ISA_NAME "plain"

#include "backend/cpu/rows_isa.h"
