/* mem.h - small memory that never fails, and arenas.
 *
 * For names, tables and descriptors.  Running out of it means the machine is
 * lost, so the program says how much it wanted and stops.  Large memory
 * (tensors, batches) is planned and asked for elsewhere, and may fail.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_MEM_H
#define DNN_BASE_MEM_H

#include "base/err.h"

#include <stddef.h>

/* Zeroed memory; free it with dnn_free (NULL is fine there). */
void *dnn_alloc(size_t bytes);
void dnn_free(void *mem);

char *dnn_strdup(const char *text);
char *dnn_strndup(const char *text, size_t len);

/* printf into memory the caller owns. */
char *dnn_format(const char *fmt, ...) DNN_PRINTF(1, 2);

/* Room for at least want elements of the given size in a growing array: returns
 * mem or its new place, and updates *cap (counted in elements).  New elements
 * are zero. */
void *dnn_grow(void *mem, size_t *cap, size_t want, size_t size);

/* Things that are born and die together: one free, no partial states. */
struct dnn_arena;
struct dnn_arena *dnn_arena_make(void);
void dnn_arena_free(struct dnn_arena *arena);
void *dnn_arena_alloc(struct dnn_arena *arena, size_t bytes); /* zeroed */
char *dnn_arena_strdup(struct dnn_arena *arena, const char *text);

#endif
