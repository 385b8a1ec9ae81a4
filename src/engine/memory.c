/* memory.c - dry-run allocation, and the path of the autotuning cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "engine/model_impl.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- dry run ---- */

/* Reserves address space only: pages that are never accessed use no memory. */
static int dry_alloc(struct dnn_dev *dev, size_t bytes, void **out, struct dnn_err *err)
{
    void *mem = mmap(NULL, bytes + 64, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    (void)dev;
    if (mem == MAP_FAILED)
        return dnn_fail(err, DNN_ENOMEM,
                        "cannot reserve %zu bytes of address space: %s", bytes,
                        strerror(errno));
    *out = mem;
    return 0;
}

static void dry_release(struct dnn_dev *dev, void *mem, size_t bytes)
{
    (void)dev;
    if (mem != NULL) munmap(mem, bytes + 64);
}

static int dry_put(struct dnn_dev *dev, void *dst, const void *src, size_t n,
                   struct dnn_err *err)
{
    (void)dev, (void)dst, (void)src, (void)n, (void)err;
    return 0;
}

static int dry_run(struct dnn_dev *dev, struct dnn_kernel *kernel,
                   const struct dnn_now *now, struct dnn_err *err)
{
    (void)dev, (void)kernel, (void)now;
    return dnn_fail(err, DNN_EDEVICE, "a dry-run model cannot be run");
}

void dnn_model_make_dry(struct dnn_backend *backend)
{
    backend->alloc = dry_alloc;
    backend->release = dry_release;
    backend->put = dry_put;
    backend->run = dry_run;
    backend->begin = NULL;
    backend->host_memory = false;
}

/* ---- autotuning cache ---- */

/* FNV-1a. */
static uint32_t hash(const char *text, size_t len)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

char *dnn_model_cache(int threads)
{
    static const char key[] = "model name";
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *text = NULL, *dir, *path = NULL;
    uint32_t cpu = 0;

    if (xdg != NULL && xdg[0] == '/')
        dir = dnn_format("%s/dnn-toolkit", xdg);
    else if (home != NULL && home[0] == '/')
        dir = dnn_format("%s/.cache/dnn-toolkit", home);
    else
        return NULL;
    size_t len;
    if (dnn_file_read("/proc/cpuinfo", 64 << 20, &text, &len, NULL) == 0) {
        const char *at = strstr(text, key);

        if (at != NULL) cpu = hash(at, strcspn(at, "\n"));
    }
    if (dnn_file_make_dirs(dir, NULL) == 0)
        path = dnn_format("%s/kernels-%08" PRIx32 "-%d", dir, cpu, threads);
    dnn_free(text);
    dnn_free(dir);
    return path;
}
