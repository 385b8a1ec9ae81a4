/* pages.c - large blocks of memory, in huge pages where the system has them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/cpu_impl.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, PAGE = 4096 };

bool dnn_cpu_mapped(size_t bytes)
{
    return bytes >= HUGE_PAGE;
}

/* Bytes a block really takes. The end that does not fill a huge page uses small
 * ones, so that the use is as predicted. */
static size_t whole(size_t bytes)
{
    size_t page = dnn_cpu_mapped(bytes) ? PAGE : 64;

    return bytes == 0 ? 64 : (bytes + page - 1) / page * page;
}

void *dnn_cpu_take(size_t bytes)
{
    size_t size = whole(bytes);

    if (size < bytes) return NULL;
    if (!dnn_cpu_mapped(bytes)) return aligned_alloc(64, size);
    /* One huge page more, then unmap what is before and after the aligned part. */
    char *mem = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED) return NULL;
    size_t before = (HUGE_PAGE - (size_t)mem % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0) munmap(mem, before);
    if (before < HUGE_PAGE) munmap(mem + before + size, HUGE_PAGE - before);
    /* A hint: without transparent huge pages small ones are used. */
    madvise(mem + before, size, MADV_HUGEPAGE);
    return mem + before;
}

void dnn_cpu_give_back(void *mem, size_t bytes)
{
    if (mem == NULL) return;
    if (dnn_cpu_mapped(bytes))
        munmap(mem, whole(bytes));
    else
        free(mem);
}
