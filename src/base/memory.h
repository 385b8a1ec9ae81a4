/* memory.h - how much memory the machine has, or the control group of this process.
 *
 * Control groups of version 2 are read; a job of Slurm is one.  All of this is Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_MEMORY_H
#define DNN_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* In bytes; SIZE_MAX: unknown. */
size_t dnn_memory_total(void);
size_t dnn_memory_available(void);

/* The same from files below another root directory, for tests. */
struct dnn_memory {
    size_t total, available;
};
struct dnn_memory dnn_memory_below(const char *root);

#endif
