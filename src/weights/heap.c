/* heap.c - checks the global heaps of an HDF5 file before HDF5 reads them.
 *
 * Strings of variable length are in global heaps: a header with the size, then objects,
 * each with its own size.  HDF5 follows these sizes without checking that it advances,
 * and loops forever on damaged ones.  So every heap in the file is checked here first.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#if DNN_HAVE_HDF5
#include "weights/h5_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK = 1 << 20,
    HEADER = 16,            /* bytes of the header of a heap, and of an object    */
    MIN_HEAP = 4096,        /* bytes of a heap; HDF5 itself rejects smaller ones  */
    LENGTHS = 8,            /* bytes of a size, as in every file written by Keras */
    EXTRA_OBJECTS = 1 << 20 /* objects allowed, in addition to 1 per 16 bytes */
};

struct scan {
    const struct dnn_weights *w;
    int fd; /* or w->memory */
    uint64_t len, objects;
};

static uint64_t little_endian(const unsigned char *at, int bytes)
{
    uint64_t value = 0;

    for (int i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

/* Read *n bytes at at; at the end of the file fewer, then *n is set. */
static int fetch(const struct scan *s, uint64_t at, void *to, size_t *n,
                 struct dnn_err *err)
{
    size_t done = 0;

    if (*n > s->len - at) *n = (size_t)(s->len - at);
    if (s->w->memory != NULL) {
        memcpy(to, (const char *)s->w->memory + at, *n);
        return 0;
    }
    while (done < *n) {
        ssize_t k = pread(s->fd, (char *)to + done, *n - done, (off_t)(at + done));

        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return dnn_fail(err, DNN_EIO, "%s: %s", s->w->path, strerror(errno));
        if (k == 0) break;
        done += (size_t)k;
    }
    *n = done;
    return 0;
}

static int damaged(const struct scan *s, uint64_t at, struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA, "%s: is damaged: the global heap at byte %" PRIu64,
                    s->w->path, at);
}

/* Check a heap, or bytes that look like one.  What HDF5 itself rejects is ignored. */
static int check_heap(struct scan *s, uint64_t heap, struct dnn_err *err)
{
    unsigned char header[HEADER];
    size_t n = HEADER;

    DNN_TRY(fetch(s, heap, header, &n, err));
    uint64_t total = n < HEADER ? 0 : little_endian(header + 8, 8);
    if (header[4] != 1 || total < MIN_HEAP || total > s->len - heap) return 0;
    for (uint64_t at = HEADER; total - at >= HEADER;) {
        if (++s->objects > s->len / HEADER + EXTRA_OBJECTS)
            return damaged(s, heap, err);
        n = HEADER;
        DNN_TRY(fetch(s, heap + at, header, &n, err));
        uint64_t size = little_endian(header + 8, 8), left = total - at;
        if (n < HEADER || size > left) return damaged(s, heap, err);
        /* Object 0 is free space; its size includes the header. */
        uint64_t need =
            little_endian(header, 2) == 0 ? size : HEADER + ((size + 7) & ~7ull);
        if (need < HEADER || need > left) return damaged(s, heap, err);
        at += need;
    }
    return 0;
}

static int scan(struct scan *s, struct dnn_err *err)
{
    char *buffer = dnn_alloc(BLOCK + 3);
    int rc = 0;

    for (uint64_t at = 0; rc == 0 && at < s->len; at += BLOCK) {
        size_t n = BLOCK + 3; /* "GCOL" may cross the end of a block */
        const char *hit = buffer;

        rc = fetch(s, at, buffer, &n, err);
        while (rc == 0 &&
               (hit = memmem(hit, n - (size_t)(hit - buffer), "GCOL", 4)) != NULL) {
            rc = check_heap(s, at + (uint64_t)(hit - buffer), err);
            hit++;
        }
    }
    dnn_free(buffer);
    return rc;
}

int dnn_h5_check_heaps(const struct dnn_weights *w, size_t len, struct dnn_err *err)
{
    struct scan s = {.w = w, .fd = -1, .len = len};
    size_t offsets = 0, lengths = 0;
    struct stat stat;
    int rc = 0;
    hid_t plist = H5Fget_create_plist(w->file);

    if (plist < 0 || H5Pget_sizes(plist, &offsets, &lengths) < 0)
        rc = dnn_h5_fail(w->path, err, "the file header");
    else if (lengths != LENGTHS)
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: HDF5 lengths have %zu bytes, only %d is supported", w->path,
                      lengths, LENGTHS);
    if (plist >= 0) H5Pclose(plist);
    if (rc == 0 && w->memory == NULL) {
        s.fd = open(w->path, O_RDONLY | O_CLOEXEC);
        if (s.fd < 0 || fstat(s.fd, &stat) < 0)
            rc = dnn_fail(err, DNN_EIO, "%s: %s", w->path, strerror(errno));
        else
            s.len = (uint64_t)stat.st_size;
    }
    if (rc == 0) rc = scan(&s, err);
    if (s.fd >= 0) close(s.fd);
    return rc;
}
#endif
