/* mem.h - allocate small memory, or exit; arenas.
 *
 * For names, tables and descriptors.  If there is not enough memory, these functions
 * print a message and exit; callers need no checks.  Large memory (tensors, batches)
 * is allocated elsewhere, with DNN_ENOMEM as an error.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_MEM_H
#define DNN_BASE_MEM_H

#include "base/err.h"

#include <stddef.h>

/* Zeroed memory; free it with dnn_free() (NULL is fine). */
void *dnn_alloc(size_t bytes);
void dnn_free(void *mem);

char *dnn_strdup(const char *text);
char *dnn_strndup(const char *text, size_t len);

/* printf into new memory, owned by the caller. */
char *dnn_format(const char *fmt, ...) DNN_PRINTF(1, 2);

/* Grow an array to a capacity of at least want elements of this size: returns its
 * (possibly new) address and updates *cap (in elements).  New elements are zero. */
void *dnn_grow(void *mem, size_t *cap, size_t want, size_t size);

/* Arenas: all allocations are freed together. */
struct dnn_arena;
struct dnn_arena *dnn_arena_make(void);
void dnn_arena_free(struct dnn_arena *arena);
void *dnn_arena_alloc(struct dnn_arena *arena, size_t bytes); /* zeroed */
char *dnn_arena_strdup(struct dnn_arena *arena, const char *text);

#endif
