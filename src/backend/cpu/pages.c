/* pages.c - large blocks of memory, in huge pages if the system supports them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/cpu_impl.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, PAGE = 4096 };

static bool uses_mmap(size_t bytes)
{
    return bytes >= HUGE_PAGE;
}

/* Bytes that are allocated for a block. They are not rounded up to huge pages, so that
 * memory use is as predicted: small pages hold the end. */
static size_t rounded(size_t bytes)
{
    size_t page = uses_mmap(bytes) ? PAGE : 64;

    return bytes == 0 ? 64 : (bytes + page - 1) / page * page;
}

void *dnn_cpu_alloc(size_t bytes)
{
    size_t size = rounded(bytes);

    if (size < bytes) return NULL;
    if (!uses_mmap(bytes)) return aligned_alloc(64, size);
    /* Map one more huge page, then unmap what is before and after the aligned block. */
    char *mem = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED) return NULL;
    size_t before = (HUGE_PAGE - (size_t)mem % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0) munmap(mem, before);
    if (before < HUGE_PAGE) munmap(mem + before + size, HUGE_PAGE - before);
    /* Only a hint: without transparent huge pages small pages are used. */
    madvise(mem + before, size, MADV_HUGEPAGE);
    return mem + before;
}

void dnn_cpu_free(void *mem, size_t bytes)
{
    if (mem == NULL) return;
    if (uses_mmap(bytes))
        munmap(mem, rounded(bytes));
    else
        free(mem);
}
