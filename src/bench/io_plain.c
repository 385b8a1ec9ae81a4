/* io_plain.c - the files of a dataset, read one after the other with plain read().
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/io_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Blocks are read into a buffer as large as the batches.  Reading into a small buffer,
 * which remains in the CPU cache, would take only half of the time. */
enum { BLOCK = 8 << 20, BLOCKS = 8 };

/* The function to call for each file, and the results. */
struct visit {
    int (*one)(struct visit *v, int fd, const char *path, struct dnn_err *err);
    char *buffer;
    int64_t blocks;       /* blocks read so far */
    double bytes, cached; /* bytes of the files; bytes in the page cache */
};

static int visit_file(struct visit *v, const char *dir, const char *name,
                      struct dnn_err *err)
{
    char *path = dnn_format("%s/%s", dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        rc = dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    else if (S_ISREG(st.st_mode))
        rc = v->one(v, fd, path, err);
    if (fd >= 0) close(fd);
    dnn_free(path);
    return rc;
}

static int visit_all(struct visit *v, const char *dir, struct dnn_err *err)
{
    DIR *d = opendir(dir);
    int rc = 0;

    if (d == NULL) return dnn_fail(err, DNN_EIO, "%s: %s", dir, strerror(errno));
    for (struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') rc = visit_file(v, dir, e->d_name, err);
    closedir(d);
    return rc;
}

static int read_one(struct visit *v, int fd, const char *path, struct dnn_err *err)
{
    for (;;) {
        ssize_t n = read(fd, v->buffer + v->blocks % BLOCKS * BLOCK, BLOCK);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
        if (n == 0) return 0;
        v->bytes += (double)n;
        v->blocks++;
    }
}

int dnn_io_read_plain(const char *dir, double *bytes, double *seconds,
                      struct dnn_err *err)
{
    struct visit v = {.one = read_one, .buffer = dnn_alloc((size_t)BLOCKS * BLOCK)};

    memset(v.buffer, 1, (size_t)BLOCKS * BLOCK);
    double start = dnn_clock_now();
    int rc = visit_all(&v, dir, err);
    *seconds = dnn_clock_now() - start;
    *bytes = v.bytes;
    dnn_free(v.buffer);
    return rc;
}

/* Count the bytes of a file in the page cache. */
static void count_cached(struct visit *v, int fd, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (bytes + page - 1) / page;
    void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

    v->bytes += (double)bytes;
    if (at == MAP_FAILED) return;
    unsigned char *in = dnn_alloc(n + 1);
    if (mincore(at, bytes, in) == 0)
        for (size_t i = 0; i < n; i++)
            v->cached += (in[i] & 1) != 0 ? (double)page : 0;
    dnn_free(in);
    munmap(at, bytes);
}

static int drop_one(struct visit *v, int fd, const char *path, struct dnn_err *err)
{
    struct stat st;
    int rc = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);

    if (rc != 0) return dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(rc));
    if (fstat(fd, &st) == 0 && st.st_size > 0) count_cached(v, fd, (size_t)st.st_size);
    return 0;
}

int dnn_io_drop_cache(const char *dir, double *cached, struct dnn_err *err)
{
    struct visit v = {.one = drop_one};

    DNN_TRY(visit_all(&v, dir, err));
    *cached = v.bytes > 0 ? v.cached / v.bytes : 0;
    if (*cached > 1) *cached = 1;
    return 0;
}
