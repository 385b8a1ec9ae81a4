/* mem.c - allocate small memory, or exit; arenas.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16384 };

struct block {
    struct block *next;
    size_t used, size;
    max_align_t data[];
};

struct dnn_arena {
    struct block *first;
};

/* Not even small memory is available: print a message and exit. */
static void out_of_memory(size_t bytes)
{
    fprintf(stderr, "dnn: out of memory: cannot allocate %zu bytes\n", bytes);
    exit(dnn_exit_status(DNN_ENOMEM));
}

void *dnn_alloc(size_t bytes)
{
    void *mem = calloc(1, bytes == 0 ? 1 : bytes);

    if (mem == NULL) out_of_memory(bytes);
    return mem;
}

void dnn_free(void *mem)
{
    free(mem);
}

char *dnn_strndup(const char *text, size_t len)
{
    char *copy = dnn_alloc(len + 1);

    memcpy(copy, text, len);
    return copy;
}

char *dnn_strdup(const char *text)
{
    return dnn_strndup(text, strlen(text));
}

char *dnn_format(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (len < 0) len = 0;
    char *text = dnn_alloc((size_t)len + 1);
    va_start(ap, fmt);
    vsnprintf(text, (size_t)len + 1, fmt, ap);
    va_end(ap);
    return text;
}

void *dnn_grow(void *mem, size_t *cap, size_t want, size_t size)
{
    if (want <= *cap) return mem;
    size_t more = *cap < 8 ? 8 : *cap * 2;
    if (more < want) more = want;
    if (more > SIZE_MAX / size) out_of_memory(SIZE_MAX);
    mem = realloc(mem, more * size);
    if (mem == NULL) out_of_memory(more * size);
    memset((char *)mem + *cap * size, 0, (more - *cap) * size);
    *cap = more;
    return mem;
}

struct dnn_arena *dnn_arena_make(void)
{
    return dnn_alloc(sizeof(struct dnn_arena));
}

void dnn_arena_free(struct dnn_arena *arena)
{
    if (arena == NULL) return;
    for (struct block *b = arena->first; b != NULL;) {
        struct block *next = b->next;

        dnn_free(b);
        b = next;
    }
    dnn_free(arena);
}

void *dnn_arena_alloc(struct dnn_arena *arena, size_t bytes)
{
    struct block *b = arena->first;

    if (bytes > SIZE_MAX - BLOCK) out_of_memory(bytes);
    bytes =
        (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (b == NULL || b->size - b->used < bytes) {
        size_t size = bytes > BLOCK ? bytes : BLOCK;

        b = dnn_alloc(sizeof *b + size);
        b->size = size;
        b->next = arena->first;
        arena->first = b;
    }
    void *mem = (char *)b->data + b->used;
    b->used += bytes;
    return mem;
}

char *dnn_arena_strdup(struct dnn_arena *arena, const char *text)
{
    size_t len = strlen(text);
    char *copy = dnn_arena_alloc(arena, len + 1);

    memcpy(copy, text, len);
    return copy;
}
